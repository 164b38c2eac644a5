"""Limits as the API takes and shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from noonmark.schemas.api.common import Answer
from noonmark.schemas.problems.pydantic_errors import Document


class LimitFigures(Document):
    """What a limit allows; what is left out it does not bound."""

    max_running: Annotated[
        int | None, Field(ge=1, le=1_000_000_000, description="Most runs under way at a time, for each key.")
    ] = None
    rate: Annotated[
        str | None,
        Field(max_length=40, description="Runs that may begin in a time: `100/60s`, `5/s`, `1000/h`."),
    ] = None
    burst: Annotated[
        int | None,
        Field(ge=1, le=1_000_000_000, description="Runs that may begin at once; default: those of the rate."),
    ] = None


class Limit(Answer):
    """A limit of a namespace."""

    name: str
    namespace: str
    max_running: int | None
    rate: Annotated[str | None, Field(description="As it can be given.")]
    rate_count: int | None
    rate_seconds: float | None
    burst: int | None
    in_use: Annotated[int, Field(description="Slots that are held, over all keys.")]
    waiting: Annotated[int, Field(description="Runs that wait for it, over all keys.")]
    updated_at: datetime


class Limits(Answer):
    """Limits of a namespace by name."""

    items: list[Limit]
