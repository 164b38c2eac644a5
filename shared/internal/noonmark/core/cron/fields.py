"""One field of a cron expression: its syntax and its values."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from noonmark.core.cron.days import DayTerm

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2099


class CronError(ValueError):
    """The expression is refused.

    Attributes:
        message: a sentence that names the field, the character and what is allowed.
        position: 1-based character of the expression where the problem is, or None.
        field: second, minute, hour, day-of-month, month, day-of-week or year; None if several fields are
            affected.
    """

    def __init__(self, message: str, position: int | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.field = field


@dataclass(frozen=True, slots=True)
class FieldText:
    """One field of an expression, read.

    Attributes:
        name: second, minute, hour, day-of-month, month, day-of-week or year.
        text: the field as written; for a nickname, the field that it means.
        position: 1-based character at which the field starts (of a nickname: the nickname).
        mask: bit n is the value n; weekdays with Sunday = 0 in every dialect; every value for `*`.
        terms: the days that depend on the month, in addition to those of `mask`.
    """

    name: str
    text: str
    position: int
    mask: int
    terms: tuple[DayTerm, ...] = ()

    @property
    def any(self) -> bool:
        """Whether the field is `*` or `?`; a full range written out is not."""
        return self.text in {"*", "?"}

    @property
    def starred(self) -> bool:
        """Whether the field starts with `*` or is `?`."""
        return self.text[0] in "*?"

    @property
    def values(self) -> tuple[int, ...] | None:
        """The fixed values in ascending order, `H` already picked; None for `*` and `?`."""
        return None if self.any else tuple(at for at in range(self.mask.bit_length()) if self.mask >> at & 1)

    @property
    def place(self) -> str:
        """The field's name, text and position, for a message."""
        return f"{self.name} field {quoted(self.text)} at character {self.position}"


@dataclass(frozen=True, slots=True)
class Field:
    """What may be written in one field of one dialect."""

    name: str
    low: int
    high: int
    top: int  # the largest number that may be written: 7 for a second Sunday, else `high`
    max_step: int  # a longer one leaves only the first value
    names: tuple[str, ...] = ()
    forms: str = "H"  # what is allowed in addition to values, ranges, lists and steps
    shift: int = 0  # by how much the written numbers exceed those of the mask
    period: str = ""  # `every` with a step of this unit is the period that a long step probably meant

    @property
    def as_stored(self) -> Field:
        """This field as earlier releases accepted it: with a step as high as its highest value."""
        return self if self.name == "year" else replace(self, max_step=max(self.max_step, self.high))

    @property
    def allowed(self) -> str:
        """What may be written, for a message."""
        numbers = f"{self.low} to {self.top}"
        numbers = f"{numbers} or {self.names[0]} to {self.names[-1]}" if self.names else numbers
        return f"{numbers}, ranges a-b, lists a,b, * and steps */n{', ' if self.forms else ''}{self.forms}"

    @property
    def full(self) -> int:
        """The mask of every value, in written numbers."""
        return (1 << self.high + 1) - (1 << self.low)


_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
SECOND: Final = Field("second", 0, 59, 59, 59, period="s")
MINUTE: Final = Field("minute", 0, 59, 59, 59, period="m")
HOUR: Final = Field("hour", 0, 23, 23, 23, period="h")
DAY: Final = Field("day-of-month", 1, 31, 31, 30, (), "?, L, L-n, LW, nW, H", period="d")
MONTH: Final = Field("month", 1, 12, 12, 11, _MONTHS)
WEEKDAY: Final = Field("day-of-week", 0, 6, 7, 7, _WEEKDAYS, "?, d#n, dL, H")
QUARTZ_WEEKDAY: Final = Field("day-of-week", 1, 7, 7, 6, _WEEKDAYS, "?, L, d#n, dL, H", 1)
YEAR: Final = Field("year", FIRST_YEAR, LAST_YEAR, LAST_YEAR, LAST_YEAR - FIRST_YEAR, (), "")

_HASH_DAYS: Final = 28
"""`H` never picks a day that some month does not have."""


def quoted(token: str) -> str:
    """Return the token for a message: short, and without terminal control characters."""
    return repr(token if len(token) <= 24 else token[:21] + "...")


def read_field(spec: Field, text: str, at: int, seed: str) -> FieldText:
    """Read the field's text, which starts at character `at` of the expression.

    Raises:
        CronError: the text is not allowed in this field.
    """
    if text == "*" or (text == "?" and "?" in spec.forms):
        return FieldText(spec.name, text, at, spec.full >> spec.shift)
    bits, start = 0, at
    terms: dict[DayTerm, None] = {}  # a set that keeps the order
    for item in text.split(","):
        if (term := _term(spec, item, start)) is not None:
            terms[term] = None
        else:
            for value in _values(spec, item, start, seed):
                bits |= 1 << value
        start += len(item) + 1
    return FieldText(spec.name, text, at, bits >> spec.shift, tuple(terms))


def _refuse(spec: Field, problem: str, at: int, allowed: str | None = None) -> NoReturn:
    raise CronError(f"cron {spec.name} field: {problem}; expected {allowed or spec.allowed}", at, spec.name)


_LAST_DAY: Final = re.compile(r"L(?:-(\d{1,2}))?(W?)")
_NEAR_DAY: Final = re.compile(r"(\d{1,3})W")
_LAST_WEEKDAY: Final = re.compile(r"(\d{1,2}|[A-Z]{3})L")
_LAST_WEEKDAY_TURNED: Final = re.compile(r"L(\d{1,2}|[A-Z]{3})")


def _term(spec: Field, item: str, at: int) -> DayTerm | None:
    """Return the day that depends on the month, if the item is one."""
    if not item.isascii():
        return None
    if spec.name == "day-of-month":
        return _day_term(spec, item.upper(), at)
    return _weekday_term(spec, item.upper(), at) if spec.name == "day-of-week" else None


def _day_term(spec: Field, item: str, at: int) -> DayTerm | None:
    if found := _LAST_DAY.fullmatch(item):
        number = int(found.group(1) or 0)
        if number > 30:
            _refuse(
                spec, f"value {found.group(1)!r} at character {at + 2} is out of range", at + 2, "L-1 to L-30"
            )
        return DayTerm("weekday_near_last" if found.group(2) else "from_last", number)
    if found := _NEAR_DAY.fullmatch(item):
        return DayTerm("weekday_near", _value(spec, found.group(1), at))
    return None


def _weekday_term(spec: Field, item: str, at: int) -> DayTerm | None:
    day, hash_sign, which = item.partition("#")
    if hash_sign:
        weekday = _weekday(spec, day, at)
        if which not in {"1", "2", "3", "4", "5"}:
            start = at + len(day) + 1
            _refuse(
                spec, f"{quoted(which)} at character {start} is not allowed after '#'", start, "d#1 to d#5"
            )
        return DayTerm("nth", int(which), weekday)
    if found := _LAST_WEEKDAY.fullmatch(item):
        return DayTerm("last", weekday=_weekday(spec, found.group(1), at))
    if (found := _LAST_WEEKDAY_TURNED.fullmatch(item)) and not spec.shift:
        return DayTerm("last", weekday=_weekday(spec, found.group(1), at + 1))
    return None


def _weekday(spec: Field, text: str, at: int) -> int:
    """Return the weekday, Sunday = 0."""
    return (_value(spec, text, at) - spec.shift) % 7


def _values(spec: Field, item: str, at: int, seed: str) -> list[int]:
    base, slash, step_text = item.partition("/")
    step_at = at + len(base) + 1
    if base[:1] in {"H", "h"} and "H" in spec.forms:
        return _hashed(spec, base, step_text if slash else None, at, seed)
    if spec.shift and item.upper() == "L":
        return [spec.high]
    left, dash, right = base.partition("-")
    if base == "*":
        low, high = spec.low, spec.high
    elif dash:
        low, high = _range(spec, _value(spec, left, at), _value(spec, right, at + len(left) + 1), at)
    else:
        low = _value(spec, left, at)
        low = 0 if low > spec.high else low
        high = spec.high if slash else low
    step = _step(spec, step_text, step_at, spec.max_step, base) if slash else 1
    return _expanded(spec, low, high, step)


def _expanded(spec: Field, low: int, high: int, step: int = 1) -> list[int]:
    size = spec.high - spec.low + 1
    return [(value - spec.low) % size + spec.low for value in range(low, high + 1, step)]


def _range(spec: Field, low: int, high: int, at: int) -> tuple[int, int]:
    """Return the ends of a range; if it wraps, its end is above the field's highest value."""
    if low > spec.high:
        low, high = 0, high % 7
    if low <= high:
        return low, high
    if spec.name == "year":
        _refuse(spec, f"range '{low}-{high}' at character {at} ends before it starts", at)
    return low, high + spec.high - spec.low + 1


def _step(spec: Field, text: str, at: int, most: int, base: str) -> int:
    """Return the step that follows `base`, at most `most`."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
    if 1 <= number <= most:
        return number
    long = _long_step(spec, number, base) if number > spec.max_step else ""
    raise CronError(
        f"cron {spec.name} field: step {quoted(text)} at character {at} is not allowed;"
        f" use 1 to {most}{long}",
        at,
        spec.name,
    )


def _long_step(spec: Field, number: int, base: str) -> str:
    """Return what to write instead of a step that is longer than all values of the field."""
    first = str(spec.low) if base == "*" else base.partition("-")[0] if base[:1] not in "Hh" else base
    period = f'; for a fixed period write {{"every": "{number}{spec.period}"}}' if spec.period else ""
    return f"; a longer step would leave only the first value: write {first[:8]}{period}"


_HASH_FORM: Final = re.compile(r"[Hh](?:\(([^-()]*)-([^-()]*)\))?")


def _hashed(spec: Field, base: str, step_text: str | None, at: int, seed: str) -> list[int]:
    """Return the values that the seed selects: always the same, and spread evenly over many seeds."""
    found = _HASH_FORM.fullmatch(base)
    if found is None:
        _refuse(spec, f"{quoted(base)} at character {at} is not a value", at, "H, H/n, H(a-b), H(a-b)/n")
    if found.group(1) is None:
        choice = _expanded(spec, spec.low, _HASH_DAYS if spec.name == "day-of-month" else spec.high)
    else:
        low = _value(spec, found.group(1), at + 2)
        high = _value(spec, found.group(2), at + 3 + len(found.group(1)))
        choice = _expanded(spec, *_range(spec, low, high, at + 2))
    most = min(len(choice), spec.max_step)
    step = 0 if step_text is None else _step(spec, step_text, at + len(base) + 1, most, base)
    if not seed:
        raise CronError(
            f"cron {spec.name} field: {quoted(base)} at character {at} depends on the job's name, but "
            "there is none; give the job a name, or write a value",
            at,
            spec.name,
        )
    digest = hashlib.blake2b(f"{spec.name}\0{seed}".encode(errors="surrogatepass"), digest_size=8).digest()
    picked = int.from_bytes(digest, "big")
    return choice[picked % step :: step] if step else [choice[picked % len(choice)]]


_MONTH_FORMS: Final = re.compile(r"L|L-\d{1,2}W?|L?W|\d{1,2}W")
_WEEK_FORMS: Final = re.compile(r"\w+L|.*#.*")


def _value(spec: Field, text: str, at: int) -> int:
    """Return the number that is written; 7 stays 7."""
    upper = text.upper() if text.isascii() else ""
    if upper in spec.names:
        return spec.names.index(upper) + spec.low
    if upper.isdigit():
        number = int(text) if len(text) <= 4 else -1
        if spec.low <= number <= spec.top:
            return number
        problem = f"value {quoted(text)} at character {at} is out of range{_number_hint(spec, number)}"
    elif not text:
        problem = f"a value is missing at character {at}"
    else:
        problem = f"{quoted(text)} at character {at} is not a value{_hint(spec, upper)}"
    _refuse(spec, problem, at)


def _number_hint(spec: Field, number: int) -> str:
    if spec.shift and number == 0:
        return " (in dialect 'quartz' 1 is Sunday)"
    if spec.name == "day-of-week" and FIRST_YEAR <= number <= LAST_YEAR:
        return " (years go in the seventh field of dialect 'quartz')"
    return ""


def _hint(spec: Field, text: str) -> str:
    """Return a hint about what a misplaced form was probably meant to be."""
    if spec.name == "day-of-week" and text == "L":
        return " (SAT is every Saturday, SATL the last one of a month)"
    if "~" in text:
        return " (a value that is random but stable is written H(a-b))"
    if text == "?":
        return " ('?' must be alone in the day-of-month or the day-of-week field)"
    for forms, home, words in (
        (_MONTH_FORMS, "day-of-month", "L and W belong"),
        (_WEEK_FORMS, "day-of-week", "d#n and dL belong"),
    ):
        if forms.fullmatch(text):
            alone = " (it cannot be combined with a range or a step)"
            return alone if spec.name == home else f" ({words} to the {home} field)"
    return ""
