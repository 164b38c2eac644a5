"""Instants and durations as text: RFC 3339 and the part of ISO 8601 whose length is fixed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<weeks>[0-9]{1,9})W)?(?:(?P<days>[0-9]{1,9})D)?"
    r"(?:T(?=.)(?:(?P<hours>[0-9]{1,9})H)?(?:(?P<minutes>[0-9]{1,9})M)?"
    r"(?:(?P<seconds>[0-9]{1,12}(?:\.[0-9]{1,6})?)S)?)?"
)
_SHORT_DURATION: Final = re.compile(
    r"(?=.)(?:(?P<weeks>[0-9]{1,9})w)?(?:(?P<days>[0-9]{1,9})d)?(?:(?P<hours>[0-9]{1,9})h)?"
    r"(?:(?P<minutes>[0-9]{1,9})m)?(?:(?P<seconds>[0-9]{1,12}(?:\.[0-9]{1,6})?)s)?"
)
_PLAIN_SECONDS: Final = re.compile(r"(?P<seconds>[0-9]{1,12}(?:\.[0-9]{1,6})?)")
DURATION_FORMS: Final = "a duration such as 15m, 1h30m or PT15M, or a number of seconds"
"""What `parse_duration` reads, for messages and help texts."""
_CALENDAR_DURATION: Final = re.compile(r"P[0-9]{1,9}[YM][0-9A-Z.]*")


def as_utc(at: datetime) -> datetime:
    """Return the same instant with `tzinfo` UTC.

    Raises:
        ValueError: the datetime is naive: it names no instant.
    """
    if at.tzinfo is UTC:
        return at
    if at.utcoffset() is None:
        raise ValueError(f"datetime {at.isoformat()} has no offset; give an aware datetime")
    return at.astimezone(UTC)


def format_instant(at: datetime) -> str:
    """Return the RFC 3339 form in UTC, with microseconds only where there are some."""
    return as_utc(at).isoformat().replace("+00:00", "Z")


def parse_instant(value: object) -> datetime:
    """Read an RFC 3339 instant such as 2026-06-01T09:00:00Z; digits beyond the microsecond are cut off.

    Raises:
        ValueError: not a string, no offset, no such date, or outside the years 1970 to 9999.
    """
    expected = "expected an RFC 3339 instant with its offset, such as 2026-06-01T09:00:00Z, in 1970 or later"
    if not isinstance(value, str):
        raise ValueError(f"is {type_name(value)}; {expected}")  # noqa: TRY004 - the document is wrong, not the code
    if not _RFC3339.fullmatch(value):
        raise ValueError(f"{shortened(value)} is not an instant; {expected}")
    try:
        at = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        # The words of Python about an offset name its classes.
        reason = "its offset is a day or more" if "timedelta" in str(error) else str(error)
        raise ValueError(f"{shortened(value)} is not a valid instant ({reason}); {expected}") from None
    if at.year < 1970:
        raise ValueError(f"{shortened(value)} is too early; {expected}")
    return at


def parse_duration(text: str) -> timedelta:
    """Read a duration: `PT15M`, `15m` or `1h30m`, or a number of seconds; the longest unit is the week.

    A day has 24 hours. Every option, field and setting that takes a duration as text takes these forms.

    Raises:
        ValueError: not a duration, or one in months or years. The message is to follow the field's name.
    """
    forms = (_DURATION, _SHORT_DURATION, _PLAIN_SECONDS)
    found = next((found for form in forms if (found := form.fullmatch(text)) is not None), None)
    if found is None:
        if _CALENDAR_DURATION.fullmatch(text):
            raise ValueError(
                f"{shortened(text)} counts in months or years: a month has no fixed length; use days"
            )
        raise ValueError(f"{shortened(text)} is not a duration; write {DURATION_FORMS}")
    try:
        return timedelta(**{unit: float(number) for unit, number in found.groupdict("0").items()})
    except OverflowError:
        return timedelta.max


def shortened(text: str) -> str:
    """Return the text quoted for a message: short, and without terminal control characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def type_name(value: object) -> str:
    """Return what JSON calls the value's type, with its article."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return "null" if value is None else names.get(type(value), "an object")
