"""The grammar of cron expressions: two dialects, one reader, errors that name the field and the character.

Dialect `unix`: `minute hour day-of-month month day-of-week`, or six fields with the seconds first (or last,
if asked for). Dialect `quartz`: `second minute hour day-of-month month day-of-week [year]`, weekdays 1
(Sunday) to 7.

A field is a list of `*`, values, ranges and steps. Names (`jan`, `SUN`) in any case; ranges may wrap
(`FRI-MON`, `22-2`); `N/S` means N-max/S; in `unix` 0 and 7 are Sunday; `?` does not restrict days. Days
that depend on the month: `L`, `L-3`, `LW`, `L-3W`, `15W` in day-of-month; `MON#2`, `5L`, `FRIL` in
day-of-week. `H`, `H/15`, `H(0-29)`, `H(0-29)/10` pick values by a stable hash of the seed and the field's
name. Nicknames such as `@daily` mean their five fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from noonmark.core.cron.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    QUARTZ_WEEKDAY,
    SECOND,
    WEEKDAY,
    YEAR,
    CronError,
    Field,
    FieldText,
    quoted,
    read_field,
)
from noonmark.core.cron.foreign import translation

MAX_LENGTH: Final = 1000
"""The most characters of an expression: all values of all fields written out need 360."""


@dataclass(frozen=True, slots=True)
class Written:
    """An expression, read: its fields in the order of the text.

    Attributes:
        dialect: of the fields; those of a nickname are `unix`.
        seconds_field: "first" or "last", where the seconds were read; None without a seconds field.
        note: what an error message should add about the order of six fields.
    """

    fields: tuple[FieldText, ...]
    dialect: str
    seconds_field: str | None
    note: str


_FIVE: Final = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
_QUARTZ: Final = (SECOND, MINUTE, HOUR, DAY, MONTH, QUARTZ_WEEKDAY, YEAR)
_DIALECTS: Final = ("unix", "quartz")
_ORDERS: Final = ("first", "last")
_NICKNAMES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def read_expression(
    expression: str, *, dialect: str, seconds_field: str | None, seed: str, stored: bool = False
) -> Written:
    """Read all fields of an expression; `noonmark.core.cron.expression.parse_cron` turns them into a rule.

    Args:
        expression: as the user wrote it.
        dialect: "unix" or "quartz".
        seconds_field: as for `parse_cron`.
        seed: what `H` is hashed from.
        stored: also read the steps that only earlier releases accepted.

    Raises:
        CronError: the syntax is wrong. Whether any day matches is not checked.
    """
    if dialect not in _DIALECTS:
        raise CronError(f"cron dialect {quoted(dialect)} is not known; expected {', '.join(_DIALECTS)}")
    if seconds_field is not None and seconds_field not in _ORDERS:
        raise CronError(f"seconds_field {quoted(seconds_field)} is not known; expected {', '.join(_ORDERS)}")
    if len(expression) > MAX_LENGTH:
        raise CronError(f"cron expression has {len(expression)} characters; at most {MAX_LENGTH} are allowed")
    text = expression.strip(" \t")
    if (dialect == "unix" or len(text.split()) != 7) and (found := translation(text)) is not None:
        raise CronError(f"cron expression {quoted(text)} {found}")
    if text.startswith("@"):
        at = expression.index("@") + 1
        tokens = [(token, at) for token in _nickname(text, at).split()]
        dialect = "unix"
    else:
        tokens = [(match.group(), match.start() + 1) for match in re.finditer(r"[^ \t]+", expression)]
    specs, order = _specs(tokens, dialect, seconds_field)
    if stored:
        specs = tuple(spec.as_stored for spec in specs)
    note = _note(specs, dialect, order)
    read = _read_fields(specs, tokens, seed, note)
    if dialect == "quartz":
        days, weekdays = (each for each in read if each.name.startswith("day"))
        _check_quartz_days(days, weekdays, note)
    return Written(read, dialect, order, note)


def _read_fields(
    specs: tuple[Field, ...], tokens: list[tuple[str, int]], seed: str, note: str
) -> tuple[FieldText, ...]:
    """Read all fields.

    Raises:
        CronError: some are wrong: the message has the problem of each, position and field are the first's.
    """
    read: list[FieldText] = []
    errors: list[CronError] = []
    for spec, (text, at) in zip(specs, tokens, strict=True):
        try:
            read.append(read_field(spec, text, at, seed))
        except CronError as error:
            errors.append(error)
    if errors:
        message = "; ".join(error.message for error in errors) + note
        raise CronError(message, errors[0].position, errors[0].field)
    return tuple(read)


def _note(specs: tuple[Field, ...], dialect: str, order: str | None) -> str:
    if order is None or dialect == "quartz":
        return ""
    names = " ".join(spec.name for spec in specs)
    other = "first" if order == "last" else "last"
    return (
        f" (six fields, read with the seconds {order}: {names}; seconds_field {other!r} reads them {other})"
    )


def _specs(
    found: list[tuple[str, int]], dialect: str, seconds_field: str | None
) -> tuple[tuple[Field, ...], str | None]:
    """Return the fields that the tokens stand for, and where the seconds are."""
    count = len(found)
    if found and re.match(r"(?:CRON_)?TZ=", found[0][0]):
        raise CronError(
            f"cron expression starts with {quoted(found[0][0])} at character {found[0][1]}: put the "
            "time zone in the field 'timezone', not in the expression",
            found[0][1],
        )
    if dialect == "quartz":
        return _quartz_specs(found, seconds_field)
    if count == 6:
        order = seconds_field or "first"
        return ((SECOND, *_FIVE) if order == "first" else (*_FIVE, SECOND)), order
    names = " ".join(spec.name for spec in _FIVE)
    if count != 5:
        at = found[6][1] if count > 6 else None
        raise CronError(
            f"cron expression has {_fields(count)}; 5 are needed: {names}, or 6 with the seconds before "
            f"them (after them with seconds_field 'last')",
            at,
        )
    if seconds_field is not None:
        raise CronError(
            f"cron expression has 5 fields ({names}), but seconds_field {seconds_field!r} means a sixth; "
            "add the seconds, or leave seconds_field out"
        )
    return _FIVE, None


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _quartz_specs(
    found: list[tuple[str, int]], seconds_field: str | None
) -> tuple[tuple[Field, ...], str | None]:
    names = " ".join(spec.name for spec in _QUARTZ)
    if len(found) not in {6, 7}:
        at = found[7][1] if len(found) > 7 else None
        hint = "; 5 fields are dialect 'unix'" if len(found) == 5 else ""
        raise CronError(
            f"cron expression has {_fields(len(found))}; dialect 'quartz' needs 6 or 7: {names}{hint}", at
        )
    if seconds_field == "last":
        raise CronError(
            f"dialect 'quartz' has its seconds first: {names}; seconds_field 'last' is not allowed"
        )
    return _QUARTZ[: len(found)], "first"


def _check_quartz_days(days: FieldText, weekdays: FieldText, note: str) -> None:
    if days.text == weekdays.text == "?":
        raise CronError(
            f"cron {weekdays.name} field: '?' at character {weekdays.position} is not allowed together "
            f"with '?' in day-of-month; dialect 'quartz' allows '?' in one of the two fields{note}",
            weekdays.position,
            weekdays.name,
        )
    if not (days.any or weekdays.any):
        raise CronError(
            f"cron {weekdays.name} field: {quoted(weekdays.text)} at character {weekdays.position} is not "
            f"allowed together with {days.place}: Quartz has no rule for days that both fields restrict; "
            f"write '?' in one of them{note}",
            weekdays.position,
            weekdays.name,
        )


def _nickname(text: str, at: int) -> str:
    fields = _NICKNAMES.get(text.lower())
    if fields is not None:
        return fields
    hint = ""
    if text.lower().startswith("@every"):
        hint = '; for a fixed period write {"every": "5m"}'
    elif text.lower() == "@reboot":
        hint = "; '@reboot' is not a time: noonmark does not know when a machine starts"
    raise CronError(
        f"cron nickname {quoted(text)} at character {at} is not known; "
        f"expected {', '.join(_NICKNAMES)}{hint}",
        at,
    )
