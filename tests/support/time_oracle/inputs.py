"""The zones, years and expressions that product and oracle are compared on. The same ones in every run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zlib import crc32

from tests.support.time_oracle.clock import wall_clock
from tests.support.time_oracle.cron import OracleCron, read_cron
from tests.support.time_oracle.walk import DAY, day_matches

FIRST_YEAR, LAST_YEAR = 2020, 2029
ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Asuncion",
    "America/Havana",
    "America/Los_Angeles",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/London",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
)


@dataclass(frozen=True)
class Remarkable:
    """A change outside the ten years that is like none within them."""

    zone: str
    around: str
    what: str
    step: int = 60


REMARKABLE = (
    Remarkable("Pacific/Kwajalein", "1969-10-01", "23 hours come twice"),
    Remarkable("Pacific/Kwajalein", "1993-08-21", "a day is left out"),
    Remarkable("Pacific/Kiritimati", "1995-01-01", "a day is left out at the new year"),
    Remarkable("Pacific/Apia", "2011-12-30", "a day is left out, with summer time in force"),
    Remarkable("America/Caracas", "2007-12-09", "half an hour comes twice for good"),
    Remarkable("America/Caracas", "2016-05-01", "half an hour is left out for good"),
    Remarkable("Asia/Pyongyang", "2018-05-04", "half an hour before midnight is left out"),
    Remarkable("Europe/Moscow", "2014-10-26", "an hour comes twice, no summer time about"),
    Remarkable("Antarctica/Casey", "2018-03-11", "three hours come twice"),
    Remarkable("America/Sao_Paulo", "2018-11-04", "no midnight"),
    Remarkable("Africa/Monrovia", "1972-01-07", "44 minutes and 30 seconds are left out", 1),
    Remarkable("Europe/Dublin", "1916-10-01", "34 minutes and 39 seconds come twice", 1),
)


@dataclass(frozen=True)
class Expression:
    """An expression as a user writes it."""

    text: str
    dialect: str = "unix"
    seconds_field: str | None = None
    rrule: str | None = None
    """The same wall-clock times as a recurrence rule, to be planned as one."""

    def read(self) -> OracleCron:
        """Return the oracle's reading."""
        return read_cron(self.text, quartz=self.dialect == "quartz", seconds_field=self.seconds_field)

    def document(self, zone: str, gap: str, overlap: str, dtstart: str) -> dict[str, object]:
        """Return the schedule document."""
        rules = {"timezone": zone, "dst_gap": gap, "dst_overlap": overlap}
        if self.rrule:
            return {"rrule": self.rrule, "dtstart": dtstart, **rules}
        document: dict[str, object] = {"cron": self.text, **rules}
        if self.dialect != "unix":
            document["dialect"] = self.dialect
        if self.seconds_field:
            document["seconds_field"] = self.seconds_field
        return document

    def __str__(self) -> str:
        return self.rrule or " ".join(filter(None, (repr(self.text), self.dialect, self.seconds_field)))


def seconds_of(year: int, month: int = 1, day: int = 1) -> int:
    """Return the UTC second at which a date begins."""
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())


def windows(zone: str, margin_days: int = 2) -> list[tuple[int, int]]:
    """Return the stretches of UTC around the changes of ten years, in order and apart."""
    found: list[tuple[int, int]] = []
    for change in wall_clock(zone).changes(seconds_of(FIRST_YEAR), seconds_of(LAST_YEAR + 1)):
        start, end = change - margin_days * DAY, change + margin_days * DAY
        start, end = start - start % 3600, end - end % 3600
        if found and found[-1][1] >= start:
            start = found.pop()[0]
        found.append((start, end))
    return found


def sampled_days(zone: str, every: int = 37) -> list[tuple[int, int]]:
    """Return days away from any change: every nth, each month's last with the next month's first, 29 February."""
    days: list[tuple[int, int]] = []
    first, end = seconds_of(FIRST_YEAR), seconds_of(LAST_YEAR + 1)
    days += [(at, at + DAY) for at in range(first + DAY, end, every * DAY)]
    months = [(year, month) for year in range(FIRST_YEAR, LAST_YEAR + 1) for month in range(1, 13)][1:]
    # After a 29 February that day is the month's last.
    days += [(seconds_of(year, month) - DAY, seconds_of(year, month) + DAY) for year, month in months]
    near = windows(zone)
    return sorted(
        (start, stop) for start, stop in days if not any(start < hi and lo < stop for lo, hi in near)
    )


@dataclass(frozen=True)
class Target:
    """A wall-clock hour and minute worth asking about, and a date on which it is."""

    hour: int
    minute: int
    on: datetime

    @property
    def weekday(self) -> int:
        """Day of the week, Sunday 0."""
        return self.on.isoweekday() % 7


def targets(zone: str, first: int, end: int) -> list[Target]:
    """Return times within the gaps and overlaps of a zone between two instants; without any, early mornings."""
    found = []
    for change in wall_clock(zone).changes(first, end):
        [before, *_, after] = wall_clock(zone).walls(change - 1, change + 1, 1)
        low, high = sorted((before + 1, after))
        for wall in (low, low + (high - low) // 2, high - 60, low - 60):
            on = datetime(1970, 1, 1) + timedelta(seconds=wall)  # noqa: DTZ001 - a wall-clock time
            found.append(Target(on.hour, on.minute, on))
    return found or [Target(hour, 30, datetime(2024, 3, 31)) for hour in (0, 1, 2, 3)]  # noqa: DTZ001


WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def expressions(zone: str, first: int, end: int, extra_random: int = 4) -> list[Expression]:
    """Return the expressions for a zone, most of them aimed at its gaps and overlaps."""
    rng = random.Random(crc32(f"{zone} {first}".encode()))
    aims = targets(zone, first, end)

    def aim() -> Target:
        return rng.choice(aims)

    made = [
        *_fixed(rng, aim()),
        *_fixed(rng, aim())[:2],
        *_by_day(rng, aim()),
        *_wild(rng, aim()),
        *_with_seconds(rng, aim()),
        *_rules(aim()),
        *(_random(rng, aim()) for _ in range(extra_random)),
    ]
    return [one for one in dict.fromkeys(made) if _ever_fires(one, first)]


def _ever_fires(expression: Expression, first: int) -> bool:
    cron = expression.read()
    return any(day_matches(cron, day) for day in range(first // DAY, first // DAY + 9 * 366))


def _fixed(rng: random.Random, t: Target) -> list[Expression]:
    other = rng.randrange(60)
    near = f"{(t.hour - 1) % 24}-{(t.hour + 2) % 24}"
    return [
        Expression(f"{t.minute} {t.hour} * * *"),
        Expression(f"{other},{t.minute} {t.hour},{(t.hour + 1) % 24} * * *"),
        Expression(f"{rng.choice((0, 15, 30))} {near} * * *"),
        Expression(f"{rng.randrange(20)}/20 {near}/2 * * *"),
    ]


def _by_day(rng: random.Random, t: Target) -> list[Expression]:
    at = f"{t.minute} {t.hour}"
    name, month = WEEKDAYS[t.weekday], MONTHS[t.on.month - 1]
    nth = (t.on.day - 1) // 7 + 1
    day_form = rng.choice(("L", "LW", "L-2", f"{t.on.day}W", "15W", f"1,{t.on.day}", "28-3", f"L,{t.on.day}"))
    week_form = rng.choice(
        (f"{name}#{nth}", f"{t.weekday}L", f"{name}L", f"{t.weekday}#{nth},{(t.weekday + 3) % 7}")
    )
    return [
        Expression(f"{at} * * {name}"),
        Expression(f"{at} {t.on.day},{rng.randrange(1, 29)} * {WEEKDAYS[rng.randrange(7)]}"),
        Expression(f"{at} {day_form} * *"),
        Expression(f"{at} * {month}-{MONTHS[(t.on.month + 1) % 12]} {week_form}"),
    ]


def _wild(rng: random.Random, t: Target) -> list[Expression]:
    return [
        Expression(f"*/{rng.choice((10, 15, 20, 30))} {t.hour} * * *"),
        Expression(f"{t.minute} * * * *"),
        Expression(f"{rng.choice((0, t.minute))} */{rng.choice((2, 3, 4))} * * *"),
        Expression(
            f"*/{rng.choice((7, 12, 45))} {(t.hour - 1) % 24}-{(t.hour + 1) % 24} */2 * {WEEKDAYS[t.weekday]}"
        ),
    ]


def _with_seconds(rng: random.Random, t: Target) -> list[Expression]:
    at = f"{t.minute} {t.hour}"
    # Quartz knows no year before 1970.
    years = f" {t.on.year}-{t.on.year + 5}" if t.on.year >= 1970 else ""
    return [
        Expression(f"{rng.randrange(60)},59 {at} * * *", seconds_field="first"),
        Expression(f"{at} * * {WEEKDAYS[t.weekday]} 10/25", seconds_field="last"),
        Expression(f"{rng.randrange(60)} {at} ? * {t.weekday + 1}{years}", dialect="quartz"),
    ]


def _rules(t: Target) -> list[Expression]:
    day = WEEKDAYS[t.weekday]
    hours = f"{t.hour},{(t.hour + 1) % 24}"
    return [
        Expression(
            f"{t.minute} {hours} * * *", rrule=f"FREQ=DAILY;BYHOUR={hours};BYMINUTE={t.minute};BYSECOND=0"
        ),
        Expression(
            f"{t.minute} {t.hour} * * {day}",
            rrule=f"FREQ=WEEKLY;BYDAY={day[:2]};BYHOUR={t.hour};BYMINUTE={t.minute};BYSECOND=0",
        ),
    ]


def _random(rng: random.Random, t: Target) -> Expression:
    def some(low: int, high: int, most: int) -> str:
        return ",".join(str(n) for n in sorted({rng.randint(low, high) for _ in range(rng.randint(1, most))}))

    minute = rng.choice((some(0, 59, 3), f"{t.minute}", "*/25", f"{rng.randrange(40, 59)}-5/3"))
    hour = rng.choice((f"{t.hour}", some(0, 23, 3), "22-3", "*/5", f"{t.hour}-{(t.hour + 6) % 24}/2"))
    day = rng.choice(("*", "*", "*/3", some(1, 31, 3), "L", "10-20", "?"))
    month = rng.choice(("*", "*", "*/2", some(1, 12, 4), "NOV-APR"))
    weekday = rng.choice(("*", "*", some(0, 7, 3), "FRI-MON", "*/2", "MON-FRI"))
    return Expression(f"{minute} {hour} {day} {month} {weekday}")
