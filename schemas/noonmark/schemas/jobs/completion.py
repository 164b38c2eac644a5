"""Completion report: a target that responded 202 reports the outcome of a run."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, Self

import orjson
from pydantic import AfterValidator, Field, model_validator

from noonmark.schemas.problems.pydantic_errors import Document, Expected, wrong

MAX_RESULT_BYTES: Final = 64 * 1024
UUID_PATTERN: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
CALLBACK_PATTERN: Final = r"^[A-Za-z0-9_-]{20,200}$"


def _result(value: object) -> object:
    size = len(orjson.dumps(value))
    if size > MAX_RESULT_BYTES:
        raise wrong(f"is {size} bytes of JSON; at most {MAX_RESULT_BYTES} are stored")
    return value


class RunCompletion(Document):
    """Outcome of a run whose target responded 202 and works asynchronously."""

    secret: ClassVar[bool] = True

    run_id: Annotated[
        str,
        Field(pattern=UUID_PATTERN, description="Id of the run: `webhook-id` of the request."),
        Expected("a UUID in the form with 36 characters"),
    ]
    token: Annotated[
        str,
        Field(
            pattern=CALLBACK_PATTERN,
            description="`Noonmark-Callback-Token` header of the request. It is valid once.",
        ),
        Expected("the token of the request, unchanged"),
    ]
    outcome: Annotated[
        Literal["succeeded", "failed"],
        Field(description="Outcome of the work. A failure is retried by the job's retry policy."),
        Expected("succeeded or failed"),
    ]
    result: Annotated[
        Any,
        AfterValidator(_result),
        Field(description="Result of a success: any JSON, at most 64 KB."),
        Expected("any JSON of at most 64 KB"),
    ] = None
    error: Annotated[
        str | None,
        Field(min_length=1, max_length=2000, description="Error message of a failure."),
        Expected("text of 1 to 2,000 characters"),
    ] = None
    retryable: Annotated[
        bool,
        Field(description="For a failure: false if another attempt cannot help."),
        Expected("true or false"),
    ] = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.outcome == "succeeded" and (self.error is not None or not self.retryable):
            raise wrong("has the error of a failure, but outcome succeeded", "outcome failed, or no error")
        if self.outcome == "failed" and self.result is not None:
            raise wrong("has the result of a success, but outcome failed", "outcome succeeded, or no result")
        return self
