"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import typer

from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.vocabulary import ResumeChoice

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SHORT: Final = re.compile(r"(\d{1,6})([smhdw])(?: ago)?")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class Output(StrEnum):
    """How much a listing shows."""

    TABLE = "table"
    WIDE = "wide"


class LaneName(StrEnum):
    """The lanes by name."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Most rows that are shown.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="`wide` shows more columns.")]
Namespace = Annotated[str | None, typer.Option("--namespace", help="Only this namespace.")]
LaneOption = Annotated[list[LaneName] | None, typer.Option("--lane", help="Only this lane; repeatable.")]
After = Annotated[
    str | None, typer.Option("--after", help="Go on below this row: the `next` of the page before.")
]
AfterCursor = Annotated[
    str | None,
    typer.Option(
        "--after",
        help="Go on there: the `next_cursor` of the page before.",
        callback=lambda given: _no_time(given),  # noqa: PLW0108 - it is defined below
    ),
]
OneNamespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Of this namespace; else that of the context or key, else `default`."),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", help="Only what was due from here on: 90s, 15m, 2h, 7d ago, a day (UTC), or an instant."
    ),
]
Missed = Annotated[
    ResumeChoice,
    typer.Option(
        "--missed",
        help="Instants of recurring jobs that came due in the pause: none runs, the latest of each job runs,"
        " or all run, oldest first.",
    ),
]
MetricsPort = Annotated[
    int | None, typer.Option("--metrics-port", help="Port of /livez, /readyz, /metrics; 0: a free one.")
]
MetricsHost = Annotated[str | None, typer.Option("--metrics-host", help="Address that port listens on.")]
LogLevel = Annotated[str | None, typer.Option("--log-level", help="debug, info, warning or error.")]
Folder = Annotated[
    Path | None,
    typer.Option("--path", exists=True, file_okay=False, help="Folder that modules are imported from first."),
]


def read_since(given: str | None, *, now: datetime | None = None, option: str = "--since") -> datetime | None:
    """Read `--since`, or an option like it: how long ago, a day from its midnight in UTC, or an instant.

    Raises:
        CliError: it is neither.
    """
    if given is None:
        return None
    if (seconds := as_seconds(given)) is not None:
        return (now or datetime.now(UTC)) - timedelta(seconds=seconds)
    from noonmark.core.instants import parse_instant  # noqa: PLC0415 - only for the rare form

    try:
        return parse_instant(f"{given}T00:00:00Z" if _DAY.fullmatch(given) else given)
    except ValueError as error:
        raise CliError(
            f"{option} {given!r} is no time span such as 15m or 2h, no day such as 2026-06-01, and no instant"
            " such as 2026-06-01T09:00:00Z",
            ExitCode.USAGE,
        ) from error


def as_seconds(given: str) -> int | None:
    """Return the length of a time such as 90s, 15m, 2h, 7d or 4w; None where the text is none."""
    found = _SHORT.fullmatch(given)
    return int(found[1]) * _UNITS[found[2]] if found else None


def _no_time(given: str | None) -> str | None:
    """Tell who means a time by `--after`, as `run cancel` does, which option that is here."""
    if given is not None and (as_seconds(given) is not None or _DAY.match(given)):
        raise CliError(
            f"--after {given!r} is a time; this listing's --after takes the `next_cursor` of the page before."
            " What takes a time is --since, where there is one",
            ExitCode.USAGE,
        )
    return given


def read_uuid(given: str | None, what: str) -> UUID | None:
    """Read an id.

    Raises:
        CliError: it is none.
    """
    if given is None:
        return None
    found = as_uuid(given)
    if found is None:
        raise CliError(f"{what} {given!r} is no id: a UUID of 36 characters is needed", ExitCode.USAGE)
    return found


def as_uuid(given: str) -> UUID | None:
    """Return the id that a text is; None where it is a name."""
    try:
        return UUID(given) if len(given) == 36 else None
    except ValueError:
        return None
