"""Parts that the responses of all resources share."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from noonmark.core.instants import parse_instant

T = TypeVar("T")

Instant = Annotated[AwareDatetime, BeforeValidator(parse_instant)]
"""An RFC 3339 instant with its offset, in requests; a number of seconds is not accepted."""


class Answer(BaseModel):
    """Base of API responses. Later versions may add fields; no field changes its meaning."""

    model_config = ConfigDict(from_attributes=True)


class Page(Answer, Generic[T]):
    """One page of a listing."""

    items: list[T]
    next_cursor: Annotated[
        str | None,
        Field(description="Send it as `cursor` to get the next page; null: this is the last page."),
    ] = None


class ProblemField(Answer):
    """One problem of a request."""

    pointer: Annotated[str, Field(description='RFC 6901 pointer into the body; "" is the whole body.')]
    message: Annotated[str, Field(description="What is wrong.")]
    expected: Annotated[str, Field(description="Allowed values; empty if the message says so.")] = ""


class Problem(Answer):
    """An error: a problem document of RFC 9457. docs/problems.md lists the types."""

    type: Annotated[str, Field(examples=["urn:noonmark:problem:not-found"])]
    title: str
    status: int
    detail: Annotated[str, Field(description="What is wrong in this case and what to do.")] = ""
    errors: list[ProblemField] = Field(default_factory=list)
    request_id: Annotated[str, Field(description="Same as the `Noonmark-Request-Id` header.")] = ""


JsonObject = dict[str, Any]
