"""Answers of the API as commands work with them: pages put together, instants read, what is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from noonmark.cli.terminal.problems import CliError

if TYPE_CHECKING:
    from noonmark.client.binding import Listing

_T = TypeVar("_T")
_PAGE: Final = 200
MISSING: Final = 404
"""Status of an answer about a thing that is not there, or that others have."""
_INSTANTS: Final = frozenset(
    {"scheduled_for", "last_scheduled_for", "start_by", "report_until", "waiting_since"}
)
"""Fields that hold an instant, beside those whose name ends with `_at`."""


def gather(
    ask: Callable[[int], Listing[_T]], limit: int, after: str | None = None
) -> tuple[list[_T], str | None]:
    """Take rows of a listing, over as many pages as it needs: a page may be short and not the last.

    Args:
        ask: makes the listing, of at most so many rows on a page.
        limit: rows at most.
        after: the cursor to go on at.

    Returns:
        The rows, and the cursor of what follows; None: nothing does.
    """
    rows: list[_T] = []
    place = after
    while True:
        page = ask(min(limit - len(rows), _PAGE)).page(place)
        rows += page.items
        place = page.next_cursor
        if place is None or len(rows) >= limit:
            return rows, place


def with_instants(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with its instants read; what is nested stays as it came."""
    return {
        name: datetime.fromisoformat(value)
        if isinstance(value, str) and (name.endswith("_at") or name in _INSTANTS)
        else value
        for name, value in answer.items()
    }


@contextmanager
def or_missing(told: str) -> Iterator[None]:
    """Say that a thing is not there, where the API does.

    Raises:
        CliError: with what is `told`.
    """
    from noonmark.client import ApiError  # noqa: PLC0415 - httpx takes a while to load

    try:
        yield
    except ApiError as error:
        if error.status != MISSING:
            raise
        raise CliError(told) from error
