"""The lines of an RFC 5545 recurrence: unfolded and split into properties, with character positions.

`noonmark.core.rrule.parts` reads the value of an RRULE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

MAX_LENGTH: Final = 20_000
"""The most characters of a text: about 1,200 dates."""

PROPERTIES: Final = ("RRULE", "RDATE", "EXDATE", "DTSTART")

_BREAK: Final = re.compile(r"(?P<fold>(?:\r\n|\n|\r)[ \t])|\r\n|\n|\r|\\n")
_BARE: Final = re.compile(r"[A-Za-z-]+[ \t]*=")
_NAME: Final = re.compile(r"[A-Za-z-]+")
_PARAMETER: Final = re.compile(r';(?P<name>[A-Za-z-]+)=(?:"(?P<quoted>[^"]*)"|(?P<plain>[^";:,]*))')
_DATE_TIME: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(Z?)", re.ASCII)
_DATE: Final = re.compile(r"\d{8}", re.ASCII)
_FIRST_YEAR: Final = 1900
_DATE_TIME_HELP: Final = "write 20260308T023000 (wall clock) or 20260308T073000Z (UTC)"


class RRuleError(ValueError):
    """The recurrence is refused.

    Attributes:
        message: what is wrong, where, and what is allowed there.
        position: 1-based character of the text where the problem is, or None if it is not in the text.
        field: the property or the part of the rule, such as "EXDATE" or "BYDAY", or None.
    """

    def __init__(self, message: str, position: int | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.field = field


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text. `places` has the 1-based position of each character, and of the end."""

    text: str
    places: Sequence[int]

    @property
    def at(self) -> int:
        """The 1-based position of the first character (of the end, if there is none)."""
        return self.places[0]

    def cut(self, start: int, stop: int) -> Piece:
        """Return the characters from `start` to before `stop`, without surrounding spaces."""
        body = self.text[start:stop]
        start += len(body) - len(body.lstrip(" \t"))
        stop = max(start, stop - (len(body) - len(body.rstrip(" \t"))))
        return Piece(self.text[start:stop], self.places[start : stop + 1])

    def split(self, separator: str) -> Iterator[Piece]:
        """Yield the pieces between the separators, at least one."""
        start = 0
        for part in self.text.split(separator):
            yield self.cut(start, start + len(part))
            start += len(part) + len(separator)


@dataclass(frozen=True, slots=True)
class Property:
    """One line: its upper-case name, its time zone if it names one, and the value.

    `whole_days`: the values are dates without a time of day (`VALUE=DATE`).
    """

    name: str
    at: int
    tzid: str | None
    value: Piece
    whole_days: bool = False

    @property
    def head(self) -> str:
        """Name and parameters in normal form."""
        name = f"{self.name};VALUE=DATE" if self.whole_days else self.name
        return name if self.tzid is None else f"{name};TZID={self.tzid}"


def quoted(text: str) -> str:
    """Return the user's text for a message: short, in quotes."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def read_properties(text: str) -> list[Property]:
    """Split the text into properties; a line that starts with `FREQ=` or another part is an RRULE's value.

    Raises:
        RRuleError: a line is not a property, or has a name or parameter that is not supported.
    """
    if len(text) > MAX_LENGTH:
        raise RRuleError(f"rrule text has {len(text)} characters; at most {MAX_LENGTH} are allowed")
    found = [_property(line) for line in _lines(text) if line.text]
    if not found:
        raise RRuleError("rrule text is empty; write a rule such as RRULE:FREQ=DAILY", 1)
    return found


def _lines(text: str) -> Iterator[Piece]:
    pieces: list[str] = []
    places: list[int] = []
    start = 0
    for match in _BREAK.finditer(text):
        pieces.append(text[start : match.start()])
        places.extend(range(start + 1, match.start() + 1))
        start = match.end()
        if match["fold"] is None:
            yield _line(pieces, [*places, match.start() + 1])
            pieces, places = [], []
    pieces.append(text[start:])
    places.extend(range(start + 1, len(text) + 2))
    yield _line(pieces, places)


def _line(pieces: list[str], places: list[int]) -> Piece:
    joined = "".join(pieces)
    return Piece(joined, places).cut(0, len(joined))


def _property(line: Piece) -> Property:
    if _BARE.match(line.text):
        return Property("RRULE", line.at, None, line)
    named = _NAME.match(line.text)
    if named is None:
        raise RRuleError(
            f"rrule text: {quoted(line.text)} at character {line.at} is not a property; write one of "
            f"{', '.join(PROPERTIES)}, a colon and its value",
            line.at,
        )
    name = named[0].upper()
    _check_name(name, line.at)
    end, tzid, whole_days = _parameters(name, line, named.end())
    if line.text[end : end + 1] != ":":
        place = line.places[end]
        raise RRuleError(f"rrule text: {name} needs a colon at character {place}", place, name)
    return Property(name, line.at, tzid, line.cut(end + 1, len(line.text)), whole_days)


def _check_name(name: str, at: int) -> None:
    if name == "EXRULE":
        raise RRuleError(
            f"rrule text: EXRULE at character {at} is not supported: RFC 5545 removed it; list the "
            "dates to exclude as EXDATE, or say in the RRULE which days are meant",
            at,
            name,
        )
    if name not in PROPERTIES:
        raise RRuleError(
            f"rrule text: property {quoted(name)} at character {at} is not known; expected "
            f"{', '.join(PROPERTIES)}",
            at,
        )


def _parameters(name: str, line: Piece, start: int) -> tuple[int, str | None, bool]:
    """Return where the parameters end, the TZID among them, and whether the values are whole days."""
    tzid: str | None = None
    whole_days = False
    while (match := _PARAMETER.match(line.text, start)) is not None:
        parameter, place = match["name"].upper(), line.places[start] + 1
        value = match["plain"] if match["quoted"] is None else match["quoted"]
        if name == "RRULE":
            raise RRuleError(
                f"rrule text: RRULE takes no parameter such as {quoted(parameter)} at character {place}",
                place,
                name,
            )
        if parameter == "TZID" and value and tzid is None:
            tzid = value
        elif (name, parameter, value.upper()) == ("EXDATE", "VALUE", "DATE"):
            whole_days = True
        elif parameter != "VALUE" or value.upper() != "DATE-TIME":
            raise RRuleError(
                f"rrule text: {name} with {quoted(match[0][1:])} at character {place} is not supported; "
                "allowed are one TZID=<zone>, VALUE=DATE-TIME and, for EXDATE only, VALUE=DATE: every"
                " other value is a date with a time of day",
                place,
                name,
            )
        start = match.end()
    return start, tzid, whole_days


def read_day(piece: Piece, name: str) -> datetime:
    """Read `20260308`: the midnight at which that day starts, naive.

    Raises:
        RRuleError: it is not a date.
    """
    try:
        if not _DATE.fullmatch(piece.text):
            raise ValueError("write a date such as 20260308")  # noqa: TRY301 - one answer for both
        day = datetime.strptime(piece.text, "%Y%m%d")  # noqa: DTZ007 - a day on the wall calendar
        if day.year < _FIRST_YEAR:
            raise ValueError(f"write a date in {_FIRST_YEAR} or later")  # noqa: TRY301
    except ValueError as error:
        raise RRuleError(
            f"rrule {name}: {quoted(piece.text)} at character {piece.at} is not a day: {error}",
            piece.at,
            name,
        ) from None
    return day


def read_date_time(piece: Piece, name: str) -> datetime:
    """Read `20260308T023000` (naive: wall clock) or `20260308T073000Z` (aware UTC).

    Raises:
        RRuleError: it is something else, such as a date without a time of day.
    """
    text, at = piece.text, piece.at
    match = _DATE_TIME.fullmatch(text.upper())
    if match is None:
        why = "has no time of day" if _DATE.fullmatch(text) else "is not a date with a time of day"
        raise RRuleError(f"rrule {name}: {quoted(text)} at character {at} {why}; {_DATE_TIME_HELP}", at, name)
    try:
        moment = datetime(*(int(number) for number in match.groups()[:6]))  # type: ignore[arg-type]  # noqa: DTZ001
    except ValueError as error:
        raise RRuleError(
            f"rrule {name}: {quoted(text)} at character {at} does not exist: {error}", at, name
        ) from None
    return moment.replace(tzinfo=UTC) if match[7] else moment


def format_date_time(moment: datetime) -> str:
    """Return the basic form that RFC 5545 writes, with a Z if the datetime is aware (and so in UTC)."""
    return moment.replace(tzinfo=None).isoformat().replace("-", "").replace(":", "") + (
        "Z" if moment.tzinfo else ""
    )
