"""Single fields of a schedule document: checked, with the pointer to what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from noonmark.core.instants import DURATION_FORMS, parse_duration, parse_instant, shortened, type_name
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.kinds import MAX_EVERY, MIN_EVERY
from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.zones import UTC_ZONE, Zone, ZoneError, load_zone

Word = TypeVar("Word", DstGap, DstOverlap)
MAX_RUNS: Final = 1_000_000_000
_OFFSET: Final = re.compile(r"(?<=\d)(?:[Zz]|[+-]\d\d:?\d\d)$")
_LOCAL: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?")


def read_seconds(value: Mapping[str, Any], key: str, low: float, high: float) -> float:
    """Read a number of seconds between two limits, both allowed."""
    number = value[key]
    if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
        shown = str(number)[:50] if type(number) in (int, float) else type_name(number)
        raise ScheduleError(
            f"/{key}", f"{key} is {shown}; expected a number of seconds from {low:.0f} to {high:.0f}"
        )
    return float(number)


def read_zone(name: object) -> Zone:
    """Read the name of a time zone."""
    if name == "UTC":
        return UTC_ZONE
    if not isinstance(name, str):
        raise ScheduleError(
            "/timezone", f"timezone is {type_name(name)}; expected an IANA zone such as 'Europe/Berlin'"
        )
    try:
        return load_zone(name)
    except ZoneError as error:
        raise ScheduleError("/timezone", str(error)) from None


def read_word(value: Mapping[str, Any], key: str, words: type[Word]) -> Word:
    """Read a word of an enumeration whose default is `auto`."""
    given = read_choice(value, key, tuple(word.value for word in words), "")
    return words(given or "auto")


def read_choice(value: Mapping[str, Any], key: str, allowed: tuple[str, ...], pointer: str) -> str | None:
    """Read one of several words; None if the field is absent."""
    given = value.get(key)
    if given is None or given in allowed:
        return given
    shown = shortened(given) if isinstance(given, str) else type_name(given)
    raise ScheduleError(f"{pointer}/{key}", f"{key} is {shown}; expected {', '.join(allowed)}")


def read_local_time(value: object, pointer: str) -> datetime | None:
    """Read a wall-clock time such as 2026-03-08T02:30:00."""
    if value is None:
        return None
    expected = "expected a local time without offset, such as 2026-03-08T02:30:00"
    if not isinstance(value, str):
        raise ScheduleError(f"{pointer}/dtstart", f"dtstart is {type_name(value)}; {expected}")
    if value[10:11] in {"T", "t", " "} and (offset := _OFFSET.search(value[11:])):
        raise ScheduleError(
            f"{pointer}/dtstart",
            f"dtstart {shortened(value)} has an offset ({offset[0]}), but the schedule's zone decides; "
            f"expected a local time without offset, such as {value[:19]}, and the zone in 'timezone'",
        )
    try:
        if not _LOCAL.fullmatch(value):
            raise ValueError(value)  # noqa: TRY301 - one answer for both
        at = datetime.fromisoformat(value)
    except ValueError:
        raise ScheduleError(
            f"{pointer}/dtstart", f"dtstart {shortened(value)} is not a local time; {expected}"
        ) from None
    if at.year < 1900:
        raise ScheduleError(f"{pointer}/dtstart", f"dtstart {shortened(value)} is too early; {expected}")
    return at


def read_duration(value: object, pointer: str) -> timedelta:
    """Read the field `every`: a number of seconds, or a duration as text."""
    expected = f"expected {DURATION_FORMS}, at least 1 second and at most {MAX_EVERY.days} days"
    pointer = f"{pointer}/every"
    if isinstance(value, str):
        try:
            every = parse_duration(value)
        except ValueError as error:
            raise ScheduleError(pointer, f"every {str(error).partition('; write')[0]}; {expected}") from None
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise ScheduleError(pointer, f"every is {type_name(value)}; {expected}")
    elif not 0 < value <= MAX_EVERY.total_seconds():  # so neither NaN nor infinite
        raise ScheduleError(pointer, f"every is out of range; {expected}")
    else:
        every = timedelta(seconds=value)
    if not MIN_EVERY <= every <= MAX_EVERY:
        raise ScheduleError(pointer, f"every is out of range; {expected}")
    return every


def read_instant(document: Mapping[str, Any], key: str, pointer: str) -> datetime | None:
    """Return the document's instant under `key`, or None if it has none."""
    if document.get(key) is None:
        return None
    try:
        return parse_instant(document[key])
    except ValueError as error:
        raise ScheduleError(f"{pointer}/{key}", f"{key} {error}") from None


def read_shape(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return bounds, jitter and number of runs as arguments of the schedule classes."""
    shape = read_bounds(value, "")
    if value.get("jitter_seconds") is not None:
        shape["jitter_seconds"] = read_seconds(value, "jitter_seconds", 0, 86_400 * 31)
    if value.get("max_runs") is not None:
        runs = value["max_runs"]
        if isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs <= MAX_RUNS:
            shown = str(runs)[:50] if type(runs) in (int, float) else type_name(runs)
            raise ScheduleError("/max_runs", f"max_runs is {shown}; expected a whole number, at least 1")
        shape["max_runs"] = runs
    return shape


def read_bounds(value: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """Read `start` and `end`; absent ones are left out."""
    bounds = {key: read_instant(value, key, pointer) for key in ("start", "end")}
    return {key: at for key, at in bounds.items() if at is not None}
