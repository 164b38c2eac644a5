"""The value of an RRULE: its parts by RFC 5545 3.3.10, read strictly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Final, Literal

from noonmark.core.rrule.text import Piece, RRuleError, quoted, read_date_time

MAX_COUNT: Final = 100_000
"""The largest COUNT: where it ends is found by counting, once per rule."""

MAX_INTERVAL: Final = 999_999_999

WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
"""RFC 5545's weekday names, by `datetime.weekday()`."""


class Freq(IntEnum):
    """The period of a rule, from the longest to the shortest."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


@dataclass(frozen=True, slots=True)
class RuleParts:
    """The parts of an RRULE. An empty tuple: it has no such part. Numbers are sorted and unique.

    Attributes:
        until: the last wall-clock time, included, or None.
        until_utc: the last instant (aware), included, or None; at most one of `until`, `until_utc` and
            `count` is set.
        byday: (ordinal, weekday) pairs; ordinal 0 is every such weekday, Monday is weekday 0.
        wkst: the weekday on which a week starts.
    """

    freq: Freq
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    until_utc: datetime | None = None
    bymonth: tuple[int, ...] = ()
    byweekno: tuple[int, ...] = ()
    byyearday: tuple[int, ...] = ()
    bymonthday: tuple[int, ...] = ()
    byday: tuple[tuple[int, int], ...] = ()
    byhour: tuple[int, ...] = ()
    byminute: tuple[int, ...] = ()
    bysecond: tuple[int, ...] = ()
    bysetpos: tuple[int, ...] = ()
    wkst: int = 0


@dataclass(frozen=True, slots=True)
class _Range:
    low: int
    high: int
    signed: bool = False

    @property
    def allowed(self) -> str:
        numbers = f"{self.low} to {self.high}"
        return f"{numbers} or -{self.high} to -{self.low}" if self.signed else numbers


_NumberPart = Literal[
    "BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS"
]
_LISTS: Final[dict[_NumberPart, _Range]] = {
    "BYMONTH": _Range(1, 12),
    "BYWEEKNO": _Range(1, 53, signed=True),
    "BYYEARDAY": _Range(1, 366, signed=True),
    "BYMONTHDAY": _Range(1, 31, signed=True),
    "BYHOUR": _Range(0, 23),
    "BYMINUTE": _Range(0, 59),
    "BYSECOND": _Range(0, 59),
    "BYSETPOS": _Range(1, 366, signed=True),
}
_PARTS: Final = ("FREQ", "INTERVAL", "COUNT", "UNTIL", *_LISTS, "BYDAY", "WKST")
_SIGNED: Final = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_PLAIN: Final = re.compile(r"\d{1,12}", re.ASCII)
_DAY: Final = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
# RFC 5545's table of parts: such a part has no meaning in other periods.
_NOT_IN: Final[dict[str, tuple[Freq, ...]]] = {
    "BYWEEKNO": tuple(freq for freq in Freq if freq is not Freq.YEARLY),
    "BYYEARDAY": (Freq.MONTHLY, Freq.WEEKLY, Freq.DAILY),
    "BYMONTHDAY": (Freq.WEEKLY,),
}


def read_rule(value: Piece) -> RuleParts:
    """Read the value of an RRULE property.

    Raises:
        RRuleError: a part is unknown, repeated, out of range, or cannot be combined with the others.
    """
    pieces = _split(value)
    if "FREQ" not in pieces:
        raise RRuleError(
            f"rrule has no FREQ at character {value.at}; write FREQ={' or '.join(_freq_names())}",
            value.at,
            "FREQ",
        )
    freq = _freq(pieces["FREQ"])
    _check_together(freq, pieces)
    until = read_date_time(pieces["UNTIL"], "UNTIL") if "UNTIL" in pieces else None
    aware = until is not None and until.tzinfo is not None
    return RuleParts(
        freq=freq,
        interval=_number(pieces, "INTERVAL", MAX_INTERVAL) or 1,
        count=_number(pieces, "COUNT", MAX_COUNT),
        until=None if aware else until,
        until_utc=until if aware else None,
        bymonth=_list(pieces, "BYMONTH"),
        byweekno=_list(pieces, "BYWEEKNO"),
        byyearday=_list(pieces, "BYYEARDAY"),
        bymonthday=_list(pieces, "BYMONTHDAY"),
        byday=_days(freq, pieces),
        byhour=_list(pieces, "BYHOUR"),
        byminute=_list(pieces, "BYMINUTE"),
        bysecond=_list(pieces, "BYSECOND"),
        bysetpos=_list(pieces, "BYSETPOS"),
        wkst=_wkst(pieces),
    )


def _freq_names() -> list[str]:
    return [freq.name for freq in reversed(Freq)]


def _split(value: Piece) -> dict[str, Piece]:
    found: dict[str, Piece] = {}
    parts = [*value.split(";")]
    if len(parts) > 1 and not parts[-1].text:
        parts.pop()  # a semicolon at the end, as many programs write it
    for part in parts:
        if not part.text and len(parts) > 1:
            raise RRuleError(
                f"rrule: nothing is before the semicolon at character {part.at}; remove a semicolon",
                part.at,
            )
        name_text, equals, _ = part.text.partition("=")
        name = name_text.strip().upper()
        if not equals or name not in _PARTS:
            what = f"part {quoted(part.text)}" if part.text else "an empty text"
            why = ": RFC 7529's calendars are not supported" if name in {"RSCALE", "SKIP"} else ""
            raise RRuleError(
                f"rrule: {what} at character {part.at} is not known{why}; expected NAME=VALUE with the "
                f"names {', '.join(_PARTS)}",
                part.at,
            )
        if name in found:
            raise RRuleError(
                f"rrule: {name} is given again at character {part.at}; give each part once",
                part.at,
                name,
            )
        found[name] = part.cut(len(name_text) + 1, len(part.text))
    return found


def _refuse(name: str, piece: Piece, allowed: str, why: str = "is not allowed") -> RRuleError:
    return RRuleError(
        f"rrule {name}: {quoted(piece.text)} at character {piece.at} {why}; use {allowed}", piece.at, name
    )


def _freq(piece: Piece) -> Freq:
    try:
        return Freq[piece.text.upper()]
    except KeyError:
        raise _refuse("FREQ", piece, ", ".join(_freq_names())) from None


def _check_together(freq: Freq, pieces: dict[str, Piece]) -> None:
    if "COUNT" in pieces and "UNTIL" in pieces:
        raise _refuse("UNTIL", pieces["UNTIL"], "one of the two", "cannot be combined with COUNT")
    for name, freqs in _NOT_IN.items():
        if name in pieces and freq in freqs:
            allowed = ", ".join(other.name for other in Freq if other not in freqs)
            raise _refuse(
                name, pieces[name], f"it with FREQ={allowed} only", f"has no meaning with FREQ={freq.name}"
            )
    if "BYSETPOS" in pieces and not any(name.startswith("BY") and name != "BYSETPOS" for name in pieces):
        raise _refuse(
            "BYSETPOS",
            pieces["BYSETPOS"],
            "it together with BYDAY, BYHOUR or another BY part",
            "has no set to choose from",
        )


def _number(pieces: dict[str, Piece], name: str, high: int) -> int | None:
    piece = pieces.get(name)
    if piece is None:
        return None
    if not (_PLAIN.fullmatch(piece.text) and 1 <= int(piece.text) <= high):
        raise _refuse(name, piece, f"a whole number from 1 to {high}")
    return int(piece.text)


def _list(pieces: dict[str, Piece], name: _NumberPart) -> tuple[int, ...]:
    if name not in pieces:
        return ()
    span = _LISTS[name]
    numbers: set[int] = set()
    for item in pieces[name].split(","):
        number = int(item.text) if _SIGNED.fullmatch(item.text) else None
        if name == "BYSECOND" and number == 60:
            raise _refuse(name, item, span.allowed, "is a leap second, which is not supported")
        magnitude = None if number is None else abs(number) if span.signed else number
        if number is None or magnitude is None or not span.low <= magnitude <= span.high:
            raise _refuse(name, item, span.allowed)
        if not span.signed and item.text[0] in "+-":
            raise _refuse(name, item, f"{span.allowed}, without a sign")
        numbers.add(number)
    return tuple(sorted(numbers))


def _days(freq: Freq, pieces: dict[str, Piece]) -> tuple[tuple[int, int], ...]:
    if "BYDAY" not in pieces:
        return ()
    days: set[tuple[int, int]] = set()
    for item in pieces["BYDAY"].split(","):
        match = _DAY.fullmatch(item.text.upper())
        ordinal = int(match[1] or 0) if match else 0
        if match is None or (match[1] and not 1 <= abs(ordinal) <= 53):
            raise _refuse(
                "BYDAY",
                item,
                f"{', '.join(WEEKDAYS)}, each with a number 1 to 53 or -53 to -1 before it or none",
            )
        if ordinal and (freq not in (Freq.YEARLY, Freq.MONTHLY) or "BYWEEKNO" in pieces):
            beside = "BYWEEKNO" if "BYWEEKNO" in pieces else f"FREQ={freq.name}"
            raise _refuse(
                "BYDAY",
                item,
                f"{match[2]}, or FREQ=MONTHLY or YEARLY without BYWEEKNO",
                f"has a number, which has no meaning with {beside}",
            )
        days.add((ordinal, WEEKDAYS.index(match[2])))
    return tuple(sorted(days))


def _wkst(pieces: dict[str, Piece]) -> int:
    piece = pieces.get("WKST")
    if piece is None:
        return 0
    if piece.text.upper() not in WEEKDAYS:
        raise _refuse("WKST", piece, ", ".join(WEEKDAYS))
    return WEEKDAYS.index(piece.text.upper())
