"""Schedules as text: what users write in a job document, and what the store keeps.

The document form is a cron string, an object, a list of objects (their union), or `{"any": [...]}` with the
shared fields next to it. docs/schedules.md describes it for users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.calendars.selection import HolidayRule, parse_holidays
from noonmark.core.cron.expression import is_hashed
from noonmark.core.cron.foreign import Foreign
from noonmark.core.instants import as_utc, format_instant, shortened, type_name
from noonmark.core.rrule.recurrence_set import MAX_RULES
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.advice import advised, with_accepted_advice
from noonmark.core.schedules.fields import (
    read_bounds,
    read_choice,
    read_duration,
    read_instant,
    read_local_time,
    read_shape,
    read_word,
    read_zone,
)
from noonmark.core.schedules.kinds import (
    MAX_CLOSED_DAYS,
    AnyOf,
    Interval,
    Once,
    Recurring,
    Schedule,
    members_of,
)
from noonmark.core.schedules.wall_clock import Cron, RRule
from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.zones import Zone

MAX_MEMBERS: Final = 20
MAX_TEXT: Final = 20_000
_GAPS_CHECKED: Final = 50

_KINDS: Final = ("cron", "rrule", "every", "at")
_MEMBER: Final = (
    *_KINDS,
    "dialect",
    "seconds_field",
    "dtstart",
    "start",
    "end",
)
_SHARED: Final = (
    "timezone",
    "dst_gap",
    "dst_overlap",
    "start",
    "end",
    "max_runs",
    "jitter_seconds",
    "calendars",
)
_FOR: Final = {"dialect": ("cron",), "seconds_field": ("cron",), "dtstart": ("rrule",)}
SCHEDULE_FIELDS: Final = (*_KINDS[:3], "any", *(key for key in _MEMBER[4:7]), *_SHARED)
"""Fields of the object form at the top, in the order in which documents show them."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context that a document is read in.

    Attributes:
        created_at: when the job was created: the anchor of an interval without `start`.
        default_zone: of a document without `timezone`.
        seed: what `H` is hashed from: the job's name.
        calendars: those of the job's namespace, by name.
        start: of the union that a member belongs to.
    """

    created_at: datetime
    default_zone: str = "UTC"
    seed: str = ""
    calendars: Mapping[str, Calendar] | None = None
    start: datetime | None = None


def parse_schedule(
    value: object,
    *,
    created_at: datetime,
    default_zone: str = "UTC",
    seed: str = "",
    calendars: Mapping[str, Calendar] | None = None,
) -> Schedule:
    """Read a schedule as users write it; the arguments are those of `Context`.

    Raises:
        ScheduleError: a field is unknown, of a wrong type or value, or nothing will ever be due.
    """
    context = Context(as_utc(created_at), default_zone, seed, calendars)
    schedule = read_document(value, context)
    end = schedule.end
    if end is not None and end <= context.created_at:
        raise _past_end(end, "")
    first = schedule.first(context.created_at)
    if first is None:
        causes = [" up to its end; move 'end' to a later instant"] if end is not None else []
        if schedule.calendars is not None:
            causes.append("; check its calendars: they may exclude all of its days")
        raise ScheduleError(
            "/end" if end is not None else "",
            "schedule has no instant after the job's creation" + "".join(causes),
        )
    _check_jitter(schedule, first)
    return schedule


def read_document(value: object, context: Context) -> Schedule:
    """Read a schedule as `parse_schedule` does, also one that has no instant left.

    Raises:
        ScheduleError: a field is unknown, or of a wrong type or value.
    """
    if isinstance(value, str):
        try:
            return _cron({"cron": value}, "", context, _shared({}, context), {})
        except ScheduleError as error:
            at = "" if error.pointer == "/cron" else error.pointer
            raise ScheduleError(at, error.message, error.position, error.field) from None
    if isinstance(value, list):
        return _any(value, "", {}, context)
    if not isinstance(value, Mapping):
        raise ScheduleError(
            "",
            f"schedule is {type_name(value)}; expected a cron string, an object with one of "
            "'cron', 'rrule', 'every', or a list of such objects",
        )
    if "any" in value:
        _check_keys(value, ("any", *_SHARED), "")
        return _any(value["any"], "/any", value, context)
    _check_keys(value, (*_MEMBER, *_SHARED), "")
    return _member(value, "", context, _shared(value, context), shape=read_shape(value))


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the members of a union have in common, read."""

    zone: Zone
    dst_gap: DstGap
    dst_overlap: DstOverlap
    holidays: HolidayRule | None

    def clock(self) -> dict[str, Any]:
        return {
            "timezone": self.zone,
            "dst_gap": self.dst_gap,
            "dst_overlap": self.dst_overlap,
            "holidays": self.holidays,
        }


def _shared(value: Mapping[str, Any], context: Context) -> _Shared:
    calendars = value.get("calendars")
    holidays = parse_holidays(calendars, context.calendars or {}) if calendars is not None else None
    day = max(context.created_at.date(), date(1970, 1, 1)) - timedelta(days=1)
    if holidays is not None and holidays.days.next_open(day, within_days=MAX_CLOSED_DAYS) is None:
        raise ScheduleError(
            "/calendars",
            f"calendars leave no day open within {MAX_CLOSED_DAYS} days; leave at least one day open",
        )
    return _Shared(
        _zone_of(value, context),
        read_word(value, "dst_gap", DstGap),
        read_word(value, "dst_overlap", DstOverlap),
        holidays,
    )


def _zone_of(value: Mapping[str, Any], context: Context) -> Zone:
    if value.get("timezone") is not None:
        return read_zone(value["timezone"])
    try:
        return read_zone(context.default_zone)
    except ScheduleError as error:
        raise ScheduleError("", f"the namespace's default {error.message}") from None


def _any(members: object, pointer: str, value: Mapping[str, Any], context: Context) -> Schedule:
    if not isinstance(members, list) or not 1 <= len(members) <= MAX_MEMBERS:
        raise ScheduleError(
            pointer, f"is not a list of 1 to {MAX_MEMBERS} schedules; expected objects with one of 'cron', "
            "'rrule', 'every', 'at'"
        )  # fmt: skip
    shared, shape = _shared(value, context), read_shape(value)
    # Members inherit from the union what they leave out.
    context = replace(context, start=shape.get("start"))
    found: list[Schedule] = []
    rules = 0
    for index, member in enumerate(members):
        at = f"{pointer}/{index}"
        try:
            found.append(_of_union(member, at, context, shared))
        except ScheduleError as error:
            # A member that is a string has no field to point at.
            shown = at if isinstance(member, str) and error.pointer == f"{at}/cron" else error.pointer
            raise ScheduleError(shown, error.message, error.position, error.field) from None
        if isinstance(found[-1], RRule):
            rules += len(found[-1].recurrence.rules)
            if rules > MAX_RULES:
                raise ScheduleError(at, f"has too many RRULEs; expected {MAX_RULES} in one schedule")
    if len(found) == 1 and isinstance(found[0], Recurring) and not value.keys() & {"start", "end"}:
        # One member is not a union: it then costs what it would cost alone.
        return replace(found[0], **{key: item for key, item in shape.items() if key not in {"start", "end"}})
    return AnyOf(members_of(found), **shape)


def _of_union(member: object, pointer: str, context: Context, shared: _Shared) -> Schedule:
    document = {"cron": member} if isinstance(member, str) else member
    if not isinstance(document, Mapping):
        raise ScheduleError(pointer, f"is {type_name(member)}; expected a cron string or an object")
    _check_keys(document, _MEMBER, pointer)
    schedule = _member(document, pointer, context, shared, shape=read_bounds(document, pointer))
    if schedule.end is not None and schedule.end <= context.created_at:
        raise _past_end(schedule.end, pointer)
    if schedule.calendars is not None and schedule.next(context.created_at) is None:
        raise ScheduleError(pointer, "never fires on a day that its calendars leave open; leave it out")
    return schedule


def _past_end(end: datetime, pointer: str) -> ScheduleError:
    shown = format_instant(end)
    return ScheduleError(f"{pointer}/end", f"end {shown} is in the past; move it to a later instant")


def _member(
    value: Mapping[str, Any], pointer: str, context: Context, shared: _Shared, *, shape: dict[str, Any]
) -> Schedule:
    given = [kind for kind in _KINDS if kind in value]
    if len(given) != 1:
        named = " and ".join(f"'{kind}'" for kind in given) if given else "none of 'cron', 'rrule', 'every'"
        raise ScheduleError(
            pointer,
            f"schedule has {named}; give exactly one of 'cron', 'rrule', 'every', or 'any' with a list",
        )
    kind = given[0]
    for key, kinds in _FOR.items():
        if key in value and kind not in kinds:
            raise ScheduleError(f"{pointer}/{key}", f"{key} is for {kinds[0]} schedules only; leave it out")
    if kind == "at":
        return _at(value, pointer, shared)
    if kind == "every":
        return _every(value, pointer, context, shared, shape)
    if kind == "cron":
        return _cron(value, pointer, context, shared, shape)
    text = value["rrule"]
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        text = "\n".join(text)
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise ScheduleError(
            f"{pointer}/rrule",
            f"rrule is {type_name(text) if not isinstance(text, str) else 'too long'}; expected text such as "
            f"'FREQ=MONTHLY;BYDAY=-1FR', several lines or a list of lines, at most {MAX_TEXT} characters",
        )
    try:
        return RRule(text, read_local_time(value.get("dtstart"), pointer), **shared.clock(), **shape)
    except ScheduleError as error:
        raise _below(error, pointer) from None


def _cron(
    value: Mapping[str, Any],
    pointer: str,
    context: Context,
    shared: _Shared,
    shape: dict[str, Any],
) -> Cron:
    cron_pointer = f"{pointer}/cron"
    expression = value["cron"]
    if not isinstance(expression, str):
        raise ScheduleError(
            cron_pointer,
            f"cron is {type_name(expression)}; expected a string of 5 fields such as '0 9 * * 1'",
        )
    dialect = read_choice(value, "dialect", ("unix", "quartz"), pointer) or "unix"
    seconds_field = read_choice(value, "seconds_field", ("first", "last"), pointer)
    seed = context.seed if is_hashed(expression) else ""
    try:
        return Cron(expression, dialect, seconds_field, seed, **shared.clock(), **shape)
    except ScheduleError as error:
        message = with_accepted_advice(error.message, expression, _read_advice)
        told = ScheduleError(error.pointer, message, error.position, error.field)
        raise _below(told, pointer) from None


def advice_on(text: str) -> Foreign | None:
    """Return what a text is that is no schedule, and a schedule to write instead; None: not recognized."""
    return advised(text, _read_advice)


def _read_advice(document: dict[str, object]) -> Schedule:
    return read_document(document, Context(datetime(2026, 1, 1, tzinfo=UTC)))


def _every(
    value: Mapping[str, Any], pointer: str, context: Context, shared: _Shared, shape: dict[str, Any]
) -> Interval:
    every = read_duration(value["every"], pointer)
    holidays = shared.holidays
    if holidays is not None and holidays.on_holiday.value != "skip":
        raise ScheduleError(
            "/calendars/on_holiday",
            "on_holiday can only be 'skip' for 'every': elapsed time has no time of day to move to",
        )
    anchor = shape.get("start") or context.start or context.created_at
    try:
        return Interval(every, anchor, holidays, shared.zone if holidays else None, **shape)
    except ScheduleError as error:
        raise _below(error, pointer) from None


def _at(value: Mapping[str, Any], pointer: str, shared: _Shared) -> Once:
    at = read_instant(value, "at", pointer)
    if at is None:
        raise ScheduleError(f"{pointer}/at", "at is null; expected an RFC 3339 instant with its offset")
    extra = next((key for key in ("start", "end") if key in value), None)
    if extra:
        raise ScheduleError(
            f"{pointer}/{extra}", f"{extra} has no meaning for a single instant; leave it out"
        )
    if shared.holidays is not None:
        raise ScheduleError(
            "/calendars", "calendars have no meaning for a single instant; leave out 'calendars' or 'at'"
        )
    return Once(at)


def _below(error: ScheduleError, pointer: str) -> ScheduleError:
    return ScheduleError(pointer + error.pointer, error.message, error.position, error.field)


def _check_keys(value: Mapping[str, Any], allowed: tuple[str, ...], pointer: str) -> None:
    for key in value:
        if key not in allowed:
            at = pointer + "/" + str(key)[:80].replace("~", "~0").replace("/", "~1")
            hint = "; for a list, put it next to 'any'" if key in _SHARED else ""
            # Only the top level allows `any`, and only members of a union allow `at`.
            names = ", ".join(
                dict.fromkeys(allowed if pointer else ("any", *(k for k in allowed if k != "at")))
            )
            raise ScheduleError(at, f"unknown field {shortened(str(key))}; expected {names}{hint}")


def _check_jitter(schedule: Schedule, first: datetime) -> None:
    """Refuse jitter as long as a period: a run would start after the next instant."""
    jitter = schedule.jitter_seconds
    if not jitter:
        return
    at: datetime | None = first
    for _ in range(_GAPS_CHECKED):
        following = schedule.next(at) if at is not None else None
        if at is None or following is None:
            return
        gap = (following - at).total_seconds()
        if jitter >= gap:
            raise ScheduleError(
                "/jitter_seconds",
                f"jitter_seconds is {jitter:g}, but {format_instant(following)} comes {gap:g} s after "
                f"{format_instant(at)}; expected less than the shortest time between two instants",
            )
        at = following
