"""The report of a target on a run that it had answered 202 to."""

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
        raise wrong(f"is {size} bytes of JSON; {MAX_RESULT_BYTES} are kept at most")
    return value


class RunCompletion(Document):
    """How the work of a run ended that its target had answered 202 to."""

    secret: ClassVar[bool] = True

    run_id: Annotated[
        str,
        Field(pattern=UUID_PATTERN, description="Id of the run: `webhook-id` of the request."),
        Expected("a UUID in its usual form of 36 characters"),
    ]
    token: Annotated[
        str,
        Field(
            pattern=CALLBACK_PATTERN, description="`Noonmark-Callback-Token` of the request. It works once."
        ),
        Expected("the token of the request, as it came"),
    ]
    outcome: Annotated[
        Literal["succeeded", "failed"],
        Field(description="How the work ended. A failure is retried as the job says."),
        Expected("succeeded or failed"),
    ]
    result: Annotated[
        Any,
        AfterValidator(_result),
        Field(description="Of a success: any JSON that the run keeps, of at most 64 KB."),
        Expected("any JSON of at most 64 KB"),
    ] = None
    error: Annotated[
        str | None,
        Field(min_length=1, max_length=2000, description="Of a failure: what went wrong."),
        Expected("text of 1 to 2,000 characters"),
    ] = None
    retryable: Annotated[
        bool,
        Field(description="Of a failure: false where another attempt cannot help."),
        Expected("true or false"),
    ] = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.outcome == "succeeded" and (self.error is not None or not self.retryable):
            raise wrong("has the error of a failure, and outcome succeeded", "outcome failed, or no error")
        if self.outcome == "failed" and self.result is not None:
            raise wrong("has the result of a success, and outcome failed", "outcome succeeded, or no result")
        return self
