"""Parts that answers of every resource share."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from noonmark.core.instants import parse_instant

T = TypeVar("T")

Instant = Annotated[AwareDatetime, BeforeValidator(parse_instant)]
"""An RFC 3339 instant with its offset, in what the API is given: no number of seconds stands for one."""


class Answer(BaseModel):
    """Base of what the API answers. Fields may be added in later versions; none changes its meaning."""

    model_config = ConfigDict(from_attributes=True)


class Page(Answer, Generic[T]):
    """Some items of a listing, in its order."""

    items: list[T]
    next_cursor: Annotated[
        str | None, Field(description="Send it as `cursor` for the following page; null: there is none.")
    ] = None


class ProblemField(Answer):
    """One problem of a request."""

    pointer: Annotated[str, Field(description='RFC 6901 pointer into the body; "" is the whole of it.')]
    message: Annotated[str, Field(description="What is wrong.")]
    expected: Annotated[str, Field(description="What would be right; empty where the message says it.")] = ""


class Problem(Answer):
    """An error: a problem document of RFC 9457. docs/problems.md lists the types."""

    type: Annotated[str, Field(examples=["urn:noonmark:problem:not-found"])]
    title: str
    status: int
    detail: Annotated[str, Field(description="What is wrong in this case, and what to do.")] = ""
    errors: list[ProblemField] = Field(default_factory=list)
    request_id: Annotated[str, Field(description="The same as in the `Noonmark-Request-Id` header.")] = ""


JsonObject = dict[str, Any]
