"""Helpers for answers of the API: joined pages, parsed instants, missing objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from noonmark.cli.terminal.options import Output
from noonmark.cli.terminal.output import Column, show_json, show_list
from noonmark.cli.terminal.problems import CliError

if TYPE_CHECKING:
    from noonmark.client.binding import Listing

_T = TypeVar("_T")
_PAGE: Final = 200
MISSING: Final = 404
"""Status of an object that does not exist, or that the key may not see."""
_INSTANTS: Final = frozenset(
    {"scheduled_for", "last_scheduled_for", "start_by", "report_until", "waiting_since"}
)
"""Fields with an instant, in addition to those whose name ends with `_at`."""


def gather(
    list_page: Callable[[int], Listing[_T]], limit: int, after: str | None = None
) -> tuple[list[_T], str | None]:
    """Read rows of a listing over several pages; a short page need not be the last.

    Args:
        list_page: returns the listing for a maximum number of rows a page.
        limit: maximum number of rows.
        after: the cursor to continue at.

    Returns:
        The rows, and the cursor of the next row; None at the end.
    """
    rows: list[_T] = []
    cursor = after
    while True:
        page = list_page(min(limit - len(rows), _PAGE)).page(cursor)
        rows += page.items
        cursor = page.next_cursor
        if cursor is None or len(rows) >= limit:
            return rows, cursor


def with_instants(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with its instants parsed; nested objects stay as they are."""
    return {
        name: datetime.fromisoformat(value)
        if isinstance(value, str) and (name.endswith("_at") or name in _INSTANTS)
        else value
        for name, value in answer.items()
    }


def show_page(
    rows: Sequence[Mapping[str, Any]],
    following: str | None,
    columns: Sequence[Column],
    *,
    output: Output,
    as_json: bool,
    empty: str,
) -> None:
    """Print a page of a listing: rows as the API returns them, and where the next page begins.

    Args:
        rows: as the API returned them.
        following: the cursor of the next page; None at the end.
        columns: columns of the table.
        output: width of the table.
        as_json: print JSON.
        empty: printed if there are no rows: what was not found, and how such rows come about.
    """
    if as_json:
        show_json({"items": rows, "next_cursor": following})
        return
    footer = f"more: --after {following}" if following else ""
    show_list(
        [with_instants(row) for row in rows], columns, wide=output is Output.WIDE, footer=footer, empty=empty
    )


@contextmanager
def or_missing(message: str) -> Iterator[None]:
    """Replace the API's 404 by a message that says what to do.

    Raises:
        CliError: the object does not exist; with the message.
    """
    from noonmark.client import ApiError  # noqa: PLC0415 - httpx takes a while to load

    try:
        yield
    except ApiError as error:
        if error.status != MISSING:
            raise
        raise CliError(message) from error
