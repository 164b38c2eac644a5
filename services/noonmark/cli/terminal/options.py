"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID

import typer

from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.states import ResumeChoice

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))


class Output(StrEnum):
    """Width of a listing."""

    TABLE = "table"
    WIDE = "wide"


class LaneName(StrEnum):
    """Names of the lanes."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Maximum number of rows.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="`wide` shows more columns.")]
Namespace = Annotated[str | None, typer.Option("--namespace", help="Only this namespace.")]
LaneOption = Annotated[list[LaneName] | None, typer.Option("--lane", help="Only this lane; repeatable.")]
After = Annotated[
    str | None, typer.Option("--after", help="Continue at this row: the `next` of the previous page.")
]
AfterCursor = Annotated[
    str | None,
    typer.Option(
        "--after",
        help="Continue here: the `next_cursor` of the previous page.",
        callback=lambda given: _no_time(given),  # noqa: PLW0108 - it is defined below
    ),
]
OneNamespace = Annotated[
    str | None,
    typer.Option("--namespace", help="Namespace. (default: that of the context or key, else `default`)"),
]
Missed = Annotated[
    ResumeChoice,
    typer.Option(
        "--missed",
        help="Instants that came due during the pause: run none, run the latest of each job,"
        " or run all, oldest first.",
    ),
]
MetricsPort = Annotated[
    int | None, typer.Option("--metrics-port", help="Port of /livez, /readyz, /metrics; 0 picks a free port.")
]
MetricsHost = Annotated[
    str | None, typer.Option("--metrics-host", help="Address that the metrics port listens on.")
]
LogLevel = Annotated[
    str | None, typer.Option("--log-level", help="Log level: debug, info, warning or error.")
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="KEY:VALUE",
        help="Only jobs with this label, also as KEY=VALUE; repeatable: all must match.",
    ),
]
NamePattern = Annotated[
    str | None,
    typer.Option("--name", metavar="PATTERN", help="Only jobs with this name; * and ? are wildcards."),
]
Folder = Annotated[
    Path | None,
    typer.Option("--path", exists=True, file_okay=False, help="Folder to import modules from first."),
]


def duration_option(
    *flags: str, help_text: str, least: float = 1, most: float | None = None
) -> typer.models.OptionInfo:
    """Return an option that is a duration: 300, 5m, 1h30m or PT5M, as in documents; its value is in seconds.

    Args:
        flags: names of the option.
        help_text: what the duration is; the forms and the bounds follow it.
        least: shortest duration, in seconds.
        most: longest duration, in seconds; None for no limit.
    """
    reach = f", up to {_span(most)}" if most is not None else ""
    found: typer.models.OptionInfo = typer.Option(
        *flags,
        metavar="DURATION",
        parser=_duration_parser(least, most),
        help=f"{help_text}: 5m, PT5M or 300 (seconds){reach}.",
    )
    return found


def _duration_parser(least: float, most: float | None) -> Callable[[Any], float]:
    """Return the parser of a duration within these bounds; the option's name precedes its messages."""

    def parse(given: Any) -> float:
        if not isinstance(given, str):  # the default
            return float(given)
        from noonmark.core.instants import parse_duration, shortened  # noqa: PLC0415 - see `as_seconds`

        seconds = parse_duration(given.strip()).total_seconds()
        if seconds < least:
            raise ValueError(f"{shortened(given)} is too short; write a duration of at least {_span(least)}")
        if most is not None and seconds > most:
            raise ValueError(f"{shortened(given)} is too long; write a duration of at most {_span(most)}")
        return seconds

    return parse


def _span(seconds: float) -> str:
    """Return a number of seconds in the largest unit that divides it: 7d, 1h, 90s."""
    for unit, length in _UNITS:
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def as_seconds(given: str) -> int | None:
    """Return the whole seconds of a duration such as 15m, PT15M or 900 (also with "ago"), else None."""
    from noonmark.core.instants import parse_duration  # noqa: PLC0415 - only where an option has a duration

    try:
        return int(parse_duration(given.removesuffix(" ago")).total_seconds())
    except ValueError:
        return None


def _no_time(given: str | None) -> str | None:
    """Reject a time in `--after`, which `run cancel` accepts, and name the right option."""
    if given is not None and ((as_seconds(given) is not None and not given.isdigit()) or _DAY.match(given)):
        raise CliError(
            f"--after {given!r} is a time, but here --after takes the `next_cursor` of the previous page;"
            " use --since for a time, if the command has it",
            ExitCode.USAGE,
        )
    return given


def read_labels(given: Sequence[str] | None) -> dict[str, str]:
    """Parse `--label` options: `key:value` or `key=value`, as in filters of the API.

    Raises:
        CliError: one is not a label, or a key has two values.
    """
    labels: dict[str, str] = {}
    for one in given or ():
        at = min((at for at in (one.find(":"), one.find("=")) if at > 0), default=0)
        if not at:
            raise CliError(f"--label {one!r} is not a label; use KEY:VALUE", ExitCode.USAGE)
        key, value = one[:at], one[at + 1 :]
        if labels.setdefault(key, value) != value:
            raise CliError(f"--label: {key} cannot have two values", ExitCode.USAGE)
    return labels


def as_uuid(given: str) -> UUID | None:
    """Return a text as an id; None if it is a name."""
    try:
        return UUID(given) if len(given) == 36 else None
    except ValueError:
        return None
