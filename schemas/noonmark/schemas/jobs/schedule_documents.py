"""The schedule of a job document: fields, descriptions, and the check for unknown or misplaced fields.

`noonmark.core.schedules.documents` checks the values. The models here describe them to people and editors,
and report misspelt and misplaced fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, cast

from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict

from noonmark.core.calendars.calendar import NAME_PATTERN, NAME_RULE
from noonmark.core.calendars.selection import MAX_CALENDARS
from noonmark.core.cron.expression import MAX_LENGTH
from noonmark.core.schedules.documents import MAX_MEMBERS, MAX_TEXT
from noonmark.core.schedules.fields import MAX_RUNS
from noonmark.core.schedules.kinds import MAX_EVERY, MIN_EVERY
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document, unknown_field
from noonmark.schemas.problems.refusal import FieldError, pointer

_JITTER_SECONDS: Final = 31 * 86_400

# What `noonmark.core.instants.parse_duration` accepts, as an expression that editors understand.
_DURATION: Final = (
    r"^(P(?=.)([0-9]{1,9}W)?([0-9]{1,9}D)?"
    r"(T(?=.)([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,12}(\.[0-9]{1,6})?S)?)?"
    r"|(?=.)([0-9]{1,9}w)?([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,12}(\.[0-9]{1,6})?s)?"
    r"|[0-9]{1,12}(\.[0-9]{1,6})?)$"
)
_LOCAL: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?$"
_NULL: Final[JsonDict] = {"type": "null"}


def _instant(description: str) -> Any:
    return Field(
        description=description + " RFC 3339 with offset.",
        json_schema_extra={"format": "date-time"},
        examples=["2026-06-01T00:00:00Z"],
    )


_NAME: Final[JsonDict] = {"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$", "description": NAME_RULE}
_CalendarNames = Annotated[
    str | list[str] | None,
    WithJsonSchema({"anyOf": [_NAME, {"type": "array", "items": _NAME, "maxItems": MAX_CALENDARS}, _NULL]}),
]
_Cron = Annotated[
    str | None,
    Field(
        max_length=MAX_LENGTH,
        description="Cron expression: minute, hour, day of month, month, day of week; six fields include "
        "seconds. Names, lists, ranges, steps, L, W, #, H and nicknames such as @daily are supported.",
        examples=["30 2 * * *", "0 9 * * MON-FRI", "0 0 L * *", "H 4 * * *", "@hourly"],
    ),
]
_RRule = Annotated[
    str | list[str] | None,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
                _NULL,
            ]
        }
    ),
    Field(
        description="Recurrence set of RFC 5545: RRULE, RDATE and EXDATE lines, as one text or as a list. "
        "A single rule needs no RRULE: prefix.",
        examples=["FREQ=MONTHLY;BYDAY=-1FR", ["RRULE:FREQ=WEEKLY;BYDAY=MO", "EXDATE:20260525T090000"]],
    ),
]
_Every = Annotated[
    float | str | None,
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "number",
                    "minimum": MIN_EVERY.total_seconds(),
                    "maximum": MAX_EVERY.total_seconds(),
                },
                {"type": "string", "pattern": _DURATION},
                _NULL,
            ]
        }
    ),
    Field(
        description="Elapsed time between instants: at least 1 second, as a number of seconds, or as a "
        "duration such as 15m, 1h30m or PT15M.",
        examples=[900, "15m", "PT15M", "P1D"],
    ),
]
_Dialect = Annotated[
    Literal["unix", "quartz"] | None,
    Field(
        description="Dialect of `cron`. unix (default): weekdays 0-7, from Sunday. quartz: six or seven "
        "fields, seconds first, weekdays 1-7 from Sunday, years last."
    ),
]
_SecondsField = Annotated[
    Literal["first", "last"] | None,
    Field(description="Position of the seconds in six fields of dialect unix. Default: first."),
]
_DtStart = Annotated[
    str | None,
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": _LOCAL}, _NULL]}),
    Field(
        description="Start of `rrule`: a local time without offset in the schedule's zone. It provides "
        "values that the rule omits. A DTSTART line in `rrule` is an alternative.",
        examples=["2026-03-08T02:30:00"],
    ),
]
_Start = Annotated[str | None, _instant("Earliest instant; also the anchor of `every`.")]
_End = Annotated[str | None, _instant("Latest instant; must be in the future.")]


def _exactly_one(**kinds: str | list[str]) -> JsonDict:
    """Return the rule that exactly one of the fields is given; null counts as not given."""
    choices = [{"required": [kind], "properties": {kind: {"type": types}}} for kind, types in kinds.items()]
    return {"oneOf": cast("Any", choices)}


def _only_with(field: str, kind: str) -> JsonDict:
    return {
        "if": {"properties": {field: {"type": "string"}}, "required": [field]},
        "then": {"properties": {kind: {"not": _NULL}}, "required": [kind]},
    }


_RULE_TYPES: Final[dict[str, str | list[str]]] = {
    "cron": "string",
    "rrule": ["string", "array"],
    "every": ["number", "string"],
}
_OWNERS: Final = {"dialect": "cron", "seconds_field": "cron", "dtstart": "rrule"}
_ONLY_WITH_OWNER: Final[JsonDict] = {"allOf": [_only_with(field, kind) for field, kind in _OWNERS.items()]}
_AT_EXCLUDES_BOUNDS: Final[JsonDict] = {
    "if": {"properties": {"at": {"type": "string"}}, "required": ["at"]},
    "then": {"properties": {"start": _NULL, "end": _NULL}},
}


class ScheduleMember(Document):
    """One schedule of several: exactly one of `cron`, `rrule`, `every` and `at`."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.MEMBER

    model_config = ConfigDict(
        json_schema_extra={
            **_exactly_one(**_RULE_TYPES, at="string"),
            **_ONLY_WITH_OWNER,
            **_AT_EXCLUDES_BOUNDS,
        }
    )

    cron: _Cron = None
    rrule: _RRule = None
    every: _Every = None
    at: Annotated[str | None, _instant("One additional instant.")] = None
    dialect: _Dialect = None
    seconds_field: _SecondsField = None
    dtstart: _DtStart = None
    start: _Start = None
    end: _End = None


CronText = Annotated[str, Field(max_length=MAX_LENGTH, description="Cron expression.")]
ScheduleList = Annotated[list[CronText | ScheduleMember], Field(min_length=1, max_length=MAX_MEMBERS)]


class CalendarsDocument(Document):
    """Calendars of the job's namespace whose days a schedule excludes or is restricted to; at least one."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {
                    "required": [key],
                    "properties": {key: {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1}]}},
                }
                for key in ("exclude", "include")
            ]
        }
    )

    exclude: Annotated[
        _CalendarNames,
        Field(description="Calendars on whose days nothing runs.", examples=[["us-holidays"]]),
    ] = None
    include: Annotated[
        _CalendarNames,
        Field(
            description="Calendars outside of whose days nothing runs.",
            examples=[["trading-days"]],
        ),
    ] = None
    on_holiday: Annotated[
        Literal["skip", "next_business_day", "previous_business_day"] | None,
        Field(
            description="What happens to an instant on a closed day: skipped (default), or moved to the "
            "same time of the next or previous open day. With `every` only skip."
        ),
    ] = None


class ScheduleDocument(Document):
    """When a recurring job is due: exactly one of `cron`, `rrule`, `every` and `any`, with options."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.SCHEDULE

    model_config = ConfigDict(
        json_schema_extra={**_exactly_one(**_RULE_TYPES, any="array"), **_ONLY_WITH_OWNER}
    )

    cron: _Cron = None
    rrule: _RRule = None
    every: _Every = None
    any: Annotated[
        ScheduleList | None,
        Field(
            description="Several schedules; an instant that several of them share is due once. A string is "
            "a cron expression.",
            examples=[["0 9 * * MON-FRI", {"cron": "0 12 * * SAT"}]],
        ),
    ] = None
    dialect: _Dialect = None
    seconds_field: _SecondsField = None
    dtstart: _DtStart = None
    timezone: Annotated[
        str | None,
        Field(
            min_length=1,
            description="IANA time zone for `cron`, `rrule` and the days of calendars. Default: the zone "
            "of the namespace.",
            examples=["Europe/Berlin", "America/New_York", "UTC"],
        ),
    ] = None
    dst_gap: Annotated[
        Literal["auto", "run_after", "skip", "shift"] | None,
        Field(
            description="What happens to a local time that a clock change skips. run_after: it runs at the "
            "first instant after the change; skip: it does not run; shift: it is read with the offset "
            "before the change. auto (default): run_after for cron with a fixed hour and minute and a "
            "change of up to 3 h, skip for other cron, shift for rrule."
        ),
    ] = None
    dst_overlap: Annotated[
        Literal["auto", "first", "last", "both"] | None,
        Field(
            description="When a local time runs that a clock change repeats. auto (default): both for cron "
            "whose minute or hour starts with * or for a change of over 3 h, first for other cron and for "
            "rrule."
        ),
    ] = None
    start: _Start = None
    end: _End = None
    max_runs: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_RUNS,
            description="The job is completed after this number of runs. Default: no limit.",
        ),
    ] = None
    jitter_seconds: Annotated[
        float | None,
        Field(
            ge=0,
            le=_JITTER_SECONDS,
            description="Most seconds by which runs start after their instant; the delay is fixed per job "
            "and instant. Must be less than the shortest time between two instants. Default: 0.",
        ),
    ] = None
    calendars: Annotated[
        CalendarsDocument | None,
        Field(
            description="Calendars of the namespace that exclude or move instants on some days.",
            examples=[{"exclude": ["us-holidays"], "on_holiday": "next_business_day"}],
        ),
    ] = None


RULES: Final = ("cron", "rrule", "every")
"""Fields of which a schedule has exactly one; `any` combines several schedules."""

_SHARED: Final = tuple(
    key for key in ScheduleDocument.model_fields if key != "any" and key not in ScheduleMember.model_fields
)


def known_fields(value: object) -> tuple[object, list[FieldError]]:
    """Return the schedule without null and unknown fields, and an error for each unknown field.

    The value is None if the rest of the schedule is not worth a second error. The input must have passed
    `screening`. Pointers start with `/schedule`.
    """
    problems: list[FieldError] = []
    if isinstance(value, list):
        return _members(value, ("schedule",), problems, bare=True), problems
    if not isinstance(value, dict):
        return value, problems
    several = value.get("any") is not None
    known: dict[str, object] = {}
    for key, item in value.items():
        problem = _misplaced(key, item, several=several)
        if problem is not None:
            problems.append(problem)
        elif item is not None:
            known[key] = item
    if isinstance(calendars := known.get("calendars"), dict):
        before = len(problems)
        named = _known(calendars, CalendarsDocument, ("schedule", "calendars"), problems)
        known["calendars"] = named if named or len(problems) == before else None
    if several:
        known["any"] = _members(known["any"], ("schedule", "any"), problems, bare=False)
        return (known if known["any"] is not None else None), problems
    return (known if not problems or any(rule in known for rule in RULES) else None), problems


def _misplaced(key: str, item: object, *, several: bool) -> FieldError | None:
    """Return the error about a field of this name in the object form, or None."""
    path = ("schedule", key)
    if key in ScheduleDocument.model_fields:
        if not several or item is None or (key not in RULES and key not in _OWNERS):
            return None
        expected = (
            "an item of any" if key in RULES else f"the field in the item of any that has {_OWNERS[key]}"
        )
        return FieldError(pointer(path), "cannot be combined with any", expected)
    if key == "at":
        expected = "run_at in the job, or an item of any"
        return FieldError(pointer(path), "is only for one of several schedules", expected)
    return unknown_field(key, ScheduleDocument, path)


def _members(
    members: object, path: tuple[str, ...], problems: list[FieldError], *, bare: bool
) -> list[object] | object | None:
    """Return the members without null and unknown fields; None if one of them has no rule left."""
    if not isinstance(members, list) or len(members) > MAX_MEMBERS:
        return members
    found: list[object] = []
    readable = True
    for index, member in enumerate(members):
        if not isinstance(member, dict):
            found.append(member)
            continue
        before = len(problems)
        at: tuple[str | int, ...] = (*path, index)
        shared = [key for key in member if key in _SHARED]
        home = (
            'the object form {"any": [...]} with the field next to any' if bare else "the field next to any"
        )
        problems += [
            FieldError(pointer((*at, key)), "applies to all schedules of a list", home) for key in shared
        ]
        own = {key: item for key, item in member.items() if key not in shared}
        known = _known(own, ScheduleMember, at, problems)
        found.append(known)
        readable &= len(problems) == before or any(rule in known for rule in (*RULES, "at"))
    return found if readable else None


def _known(
    value: Mapping[str, object],
    model: type[Document],
    path: tuple[str | int, ...],
    problems: list[FieldError],
) -> dict[str, object]:
    fields = model.model_fields
    problems += [unknown_field(key, model, (*path, key)) for key in value if key not in fields]
    return {key: item for key, item in value.items() if key in fields and item is not None}
