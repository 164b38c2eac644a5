"""Points in time as users write them in `--since`, `--until` and others: one parser for all commands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from noonmark.cli.terminal.options import as_seconds
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.core.zones.zones import Zone

TIMES: Final = "15m, 2h or 7d ago, yesterday, 2026-11-27, 2026-11-27T09:00, or RFC 3339"
"""The forms of a time, for help texts."""

TIMES_AHEAD: Final = "15m or in 2h (from now), tomorrow, 2026-11-27T09:00, or RFC 3339"
"""The forms of a time that is usually in the future, for help texts."""

PeriodZone = Annotated[
    str | None,
    typer.Option("--zone", help="Time zone of days and times without an offset. (default: UTC)"),
]

_DAYS: Final = {"today": 0, "yesterday": -1, "tomorrow": 1}
_LOCAL: Final = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?))?"
)
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_AROUND: Final = re.compile(r"^in\s+|\s+ago$", re.IGNORECASE)
_AHEAD: Final = re.compile(r"in\s+(?P<span>\S+)", re.IGNORECASE)
_EARLIEST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(9998, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Period:
    """A period as aware UTC instants; None: it is open on this side.

    Attributes:
        since: the first instant.
        until: the first instant after it.
        restated: options that give the same period at any later time.
    """

    since: datetime | None
    until: datetime | None
    restated: str

    @classmethod
    def read(
        cls,
        since: str | None,
        until: str | None,
        zone: str | None,
        *,
        now: datetime | None = None,
        names: tuple[str, str] = ("--since", "--until"),
    ) -> Period:
        """Parse the options of a period.

        Args:
            since: start; None if not given.
            until: end, excluded; None if not given.
            zone: zone of what has no offset; None for UTC.
            now: the current instant, for tests.
            names: the options, for messages.

        Raises:
            CliError: one is not a time, or the end is not after the start.
        """
        now = now or datetime.now(UTC)
        first = read_time(since, zone, now=now, option=names[0])
        end = read_time(until, zone, now=now, option=names[1])
        if first is not None and end is not None and first >= end:
            raise CliError(
                f"{names[0]} ({shown_time(first)}) is not before {names[1]} ({shown_time(end)}):"
                " the period is empty",
                ExitCode.USAGE,
            )
        given = zip(names, (first, end), strict=True)
        return cls(first, end, " ".join(f"{name} {shown_time(at)}" for name, at in given if at is not None))


OPEN: Final = Period(None, None, "")
"""The period without a start and an end."""


def since_option(what: str, *flags: str, default: str = "") -> typer.models.OptionInfo:
    """Return the option for the start of a period.

    Args:
        what: what it selects, such as `runs due`.
        flags: other names of the option.
        default: what applies without the option, if anything.
    """
    note = f" (default: {default})" if default else ""
    found: typer.models.OptionInfo = typer.Option(
        "--since", *flags, metavar="TIME", help=f"Only {what} at or after this time: {TIMES}.{note}"
    )
    return found


def until_option(what: str, *flags: str, default: str = "") -> typer.models.OptionInfo:
    """Return the option for the end of a period; see `since_option`."""
    note = f" (default: {default})" if default else ""
    found: typer.models.OptionInfo = typer.Option(
        "--until", *flags, metavar="TIME", help=f"Only {what} before this time, in the same forms.{note}"
    )
    return found


def read_time(
    given: str | None,
    zone: str | None = None,
    *,
    now: datetime | None = None,
    option: str = "--since",
    ahead: bool = False,
) -> datetime | None:
    """Parse a point in time: a time span, a word, a day, a local time, or an RFC 3339 instant.

    `15m ago` is in the past and `in 15m` in the future, whatever `ahead` is.

    Args:
        given: the text; None stays None.
        zone: zone of a day or time without an offset; None for UTC.
        now: the current instant, for tests.
        option: the option, for messages.
        ahead: a span such as `15m` counts from now to the future, not to the past.

    Raises:
        CliError: it is none of these, or the zone has no such time, or two.
    """
    if given is None:
        return None
    check_zone(zone)
    now = now or datetime.now(UTC)
    text = given.strip()
    if _NUMBER.fullmatch(bare := _AROUND.sub("", text)):
        raise CliError(
            f"{option} {given} has no unit; write {bare}m, {bare}h or {bare}d for a time"
            f" {'from now' if ahead else 'ago'}, or a day such as {now:%Y-%m-%d}",
            ExitCode.USAGE,
        )
    try:
        at = _parsed(text, zone, now, option, ahead=ahead)
    except (ValueError, OverflowError):
        at = None
    if at is None or not _EARLIEST <= at < _LATEST:
        span, day = ("from now", "tomorrow") if ahead else ("ago", "yesterday")
        raise CliError(
            f"{option} {given!r} is not a time; write a time span {span} such as 15m, 2h or 7d, a day such as"
            f" {day} or {now:%Y-%m-%d}, a time such as {now:%Y-%m-%dT%H:%M}, or an instant such as"
            f" {now:%Y-%m-%dT%H:%M:%SZ}",
            ExitCode.USAGE,
        )
    return at


def shown_time(at: datetime) -> str:
    """Return an instant as RFC 3339, as options and documents take it."""
    return at.isoformat().replace("+00:00", "Z")


def _parsed(text: str, zone: str | None, now: datetime, option: str, *, ahead: bool) -> datetime | None:
    """Return the instant, or None if the text has no known form.

    Raises:
        ValueError: a number in it is out of range.
    """
    word = text.casefold()
    if word == "now":
        return now
    if word in _DAYS:
        local_now = _zone_of(zone).local(now)
        return _instant(datetime.combine(local_now + timedelta(days=_DAYS[word]), time()), zone, option)
    named_ahead = _AHEAD.fullmatch(text)
    if (seconds := as_seconds(named_ahead["span"] if named_ahead else text)) is not None:
        to_the_future = named_ahead is not None or (ahead and not word.endswith(" ago"))
        return now + timedelta(seconds=seconds if to_the_future else -seconds)
    found = _LOCAL.fullmatch(text)
    if found is not None:
        clock = found["clock"] or "00:00"
        local = datetime.fromisoformat(f"{found['day']}T{clock}")
        return _instant(local, zone, option, whole_day=found["clock"] is None)
    # RFC 3339 needs seconds and allows a space in place of the T.
    short = re.sub(r"(?<=T[0-9]{2}:[0-9]{2})(?=Z|[+-][0-9]{2}:)", ":00", text.upper().replace(" ", "T", 1))
    from noonmark.core.instants import parse_instant  # noqa: PLC0415 - only where an option has a time

    return parse_instant(short)


def _instant(local: datetime, zone: str | None, option: str, *, whole_day: bool = True) -> datetime:
    """Return the instant of a local time; a day begins at its first instant, also if midnight is skipped.

    Raises:
        CliError: clocks skip this time, or show it twice.
    """
    found = _zone_of(zone)
    images = found.images(local)
    if len(images) == 1 or (images and whole_day):
        return images[0]
    if whole_day:
        # With the offset before the change, midnight is the instant of the change.
        around = local.replace(tzinfo=UTC)
        return around - found.offset(around - timedelta(days=1))
    what = f"{option} {local:%Y-%m-%dT%H:%M}"
    if not images:
        raise CliError(f"{what} does not exist in {zone}: clocks skip it", ExitCode.USAGE)
    both = " or ".join(f"{local.isoformat()}{_offset(found.offset(at))}" for at in images)
    raise CliError(f"{what} occurs twice in {zone}; write {both}", ExitCode.USAGE)


def _offset(offset: timedelta) -> str:
    """Return the offset of a local time, in whole minutes: `+01:00`."""
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def check_zone(name: str | None) -> None:
    """Refuse a wrong value of --zone, also where no time needs it.

    Raises:
        CliError: the zone does not exist.
    """
    _zone_of(name)


def _zone_of(name: str | None) -> Zone:
    from noonmark.cli.connections.context import use_named_zone_data  # noqa: PLC0415
    from noonmark.core.zones.zones import UTC_ZONE, ZoneError, load_zone  # noqa: PLC0415

    if name is None:
        return UTC_ZONE
    use_named_zone_data()
    try:
        return load_zone(name)
    except ZoneError as error:
        raise CliError(f"--zone: {error}", ExitCode.USAGE) from error
