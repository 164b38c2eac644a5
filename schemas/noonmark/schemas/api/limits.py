"""Limits in API requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field

from noonmark.schemas.api.common import Answer
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document


class LimitFigures(Document):
    """The values of a limit; omitted ones are unlimited."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.LIMIT_FIGURES

    max_running: Annotated[
        int | None, Field(ge=1, le=1_000_000_000, description="Most runs in flight, for each key.")
    ] = None
    rate: Annotated[
        str | None,
        Field(max_length=40, description="Most runs that start per period: `100/60s`, `5/s`, `1000/h`."),
    ] = None
    burst: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000_000,
            description="Most runs that start at once. Default: the count of the rate.",
        ),
    ] = None


class Limit(Answer):
    """A limit of a namespace."""

    name: str
    namespace: str
    max_running: int | None
    rate: Annotated[str | None, Field(description="The rate, in the form that requests use.")]
    rate_count: int | None
    rate_seconds: float | None
    burst: int | None
    in_use: Annotated[int, Field(description="Slots in use, over all keys.")]
    waiting: Annotated[int, Field(description="Runs that wait for the limit, over all keys.")]
    updated_at: datetime


class Limits(Answer):
    """Limits of a namespace, sorted by name."""

    items: list[Limit]
