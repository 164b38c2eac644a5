"""A population of schedules for the virtual year: every kind, many zones, most of them aimed at clock changes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.support.time_oracle.inputs import MONTHS, WEEKDAYS, Target, targets
from tests.virtual.instants import IsClosed, Member, Shape, due

ZONES = (
    "America/New_York", "Europe/London", "Australia/Lord_Howe", "Africa/Cairo", "America/Santiago", "Europe/Dublin",
    "Africa/Casablanca", "Antarctica/Troll", "Asia/Gaza", "America/St_Johns", "Pacific/Chatham", "Europe/Berlin",
    "America/Havana", "Asia/Beirut", "America/Nuuk", "Asia/Jerusalem", "Atlantic/Azores", "Pacific/Auckland",
    "Europe/Chisinau", "America/Vancouver", "America/Edmonton", "America/Winnipeg", "Australia/Sydney", "Asia/Tokyo",
    "Asia/Kathmandu", "America/Asuncion", "Pacific/Norfolk", "UTC",
)  # fmt: skip
GAPS = ("auto", "run_after", "skip", "shift")
OVERLAPS = ("auto", "first", "last", "both")
ON_HOLIDAY = ("skip", "next_business_day", "previous_business_day")

CALENDARS: dict[str, dict[str, Any]] = {
    "weekend": {"weekdays": ["SAT", "SUN"]},
    "holidays": {
        "yearly": ["01-01", "12-25", "12-26"],
        "dates": ["2026-03-09", "2026-04-03", "2026-04-06", "2026-10-26"],
        "ranges": [{"first": "2026-07-27", "last": "2026-08-14"}],
    },
    "odd-sundays": {"weekdays": ["MON", "WED", "FRI"], "dates": ["2026-03-08", "2026-03-29", "2026-11-01"]},
}
DEFAULT_ZONE = ("virtual-berlin", "Europe/Berlin")
"""A namespace whose jobs name no zone."""


def _is_in(calendar: dict[str, Any], day: date) -> bool:
    """Read a calendar the slow way."""
    text = day.isoformat()
    return (
        text in calendar.get("dates", ())
        or text[5:] in calendar.get("yearly", ())
        or day.strftime("%a").upper() in calendar.get("weekdays", ())
        or any(one["first"] <= text <= one["last"] for one in calendar.get("ranges", ()))
    )


def _closed(exclude: list[str], include: list[str]) -> IsClosed:
    def is_closed(day: date) -> bool:
        if any(_is_in(CALENDARS[name], day) for name in exclude):
            return True
        return bool(include) and not any(_is_in(CALENDARS[name], day) for name in include)

    return is_closed


@dataclass(frozen=True)
class VirtualJob:
    """A job document, and the same schedule as the oracle reads it."""

    name: str
    namespace: str
    schedule: object
    more: dict[str, Any]
    members: tuple[Member, ...]
    shape: Shape
    family: str

    @property
    def hashed(self) -> bool:
        """Whether an expression has an `H`: the oracle learns its value from the first run."""
        return any("H" in member.text.split()[:2] or "H(" in member.text for member in self.members)


def population(count: int, *, start: datetime, until: datetime, seed: int) -> list[VirtualJob]:
    """Return so many different jobs; the same for the same arguments."""
    rng = random.Random(seed)
    makers = [maker for maker, weight in _FAMILIES for _ in range(weight)]
    # Small populations take their share of each family as well.
    rng.shuffle(makers)
    span = (int(start.timestamp()), int(until.timestamp()))
    aims = {zone: targets(zone, *span) for zone in ZONES}
    jobs = []
    for n in range(count):
        maker = _Maker(rng, f"job-{n:04}", ZONES[n % len(ZONES)], aims, start, until)
        family = makers[n % len(makers)].__name__
        job = maker.make(family)
        # Calendars can leave nothing of a rule: intake refuses that.
        while family == "calendared" and not due(job.members, job.shape, *span).instants:
            job = maker.make(family)
        jobs.append(job)
    return jobs


@dataclass
class _Maker:
    rng: random.Random
    name: str
    zone: str
    aims: dict[str, list[Target]]
    start: datetime
    until: datetime

    def make(self, family: str) -> VirtualJob:
        members, document, limits = getattr(self, family)()
        jitter = document.pop("jitter_seconds", None)
        rules = self._rules() if family != "interval" or "calendars" in limits else {}
        calendars = limits.pop("calendars", None)
        named = {"timezone": self.zone, **rules, **({"calendars": calendars} if calendars else {})}
        bounds = {key: _text(at) if key != "max_runs" else at for key, at in limits.items()}
        if jitter is not None:
            bounds["jitter_seconds"] = jitter
        namespace, default = DEFAULT_ZONE
        if self.zone == default and self.rng.random() < 0.7:
            del named["timezone"]
        else:
            namespace = "virtual"
        shape = Shape(
            self.zone,
            rules.get("dst_gap", "auto"),
            rules.get("dst_overlap", "auto"),
            is_closed=_closed(calendars.get("exclude", []), calendars.get("include", [])) if calendars else None,
            on_holiday=(calendars or {}).get("on_holiday", "skip"),
            **{key: int(at.timestamp()) if key != "max_runs" else at for key, at in limits.items()},
        )  # fmt: skip
        schedule = {**document, **named, **bounds}
        if family == "interval" and not calendars:
            schedule.pop("timezone", None)
            namespace = "virtual"
        return VirtualJob(self.name, namespace, schedule, self._more(), tuple(members), shape, family)

    def _more(self) -> dict[str, Any]:
        policy = self.rng.choice(("fire_all", "fire_latest", "skip"))
        return {
            "priority": self.rng.choice(("normal", "normal", "normal", "high", "low")),
            # Nothing is ever later than this here: what policies make of a misfire is for the outages.
            "misfire": {"policy": policy, "grace_seconds": 2 * 86_400},
        }

    def _rules(self) -> dict[str, Any]:
        if self.rng.random() < 0.5:
            return {}
        return {"dst_gap": self.rng.choice(GAPS), "dst_overlap": self.rng.choice(OVERLAPS)}

    def _aim(self) -> Target:
        return self.rng.choice(self.aims[self.zone])

    def _cron(self, text: str, **how: Any) -> tuple[list[Member], dict[str, Any], dict[str, Any]]:
        return [Member("cron", text, **how)], {"cron": text, **how}, {}

    # the families

    def fixed_daily(self):
        t = self._aim()
        return self._cron(
            self.rng.choice(
                (
                    f"{t.minute} {t.hour} * * *",
                    f"{t.minute} {t.hour} * * *",
                    f"{self.rng.randrange(60)} {t.hour} * * *",
                    f"{t.minute},{self.rng.randrange(60)} {t.hour},{(t.hour + 1) % 24} * * 0,1,6",
                    "@daily",
                )
            )
        )

    def fixed_by_day(self):
        t = self._aim()
        name, month = WEEKDAYS[t.weekday], MONTHS[t.on.month - 1]
        return self._cron(
            self.rng.choice(
                (
                    f"{t.minute} {t.hour} * * {name}",
                    f"{t.minute} {t.hour} {t.on.day},15 * {WEEKDAYS[self.rng.randrange(7)]}",
                    f"{t.minute} {t.hour} * {month} *",
                    f"{t.minute} {t.hour} */2 * {name}",
                    f"{self.rng.randrange(60)} 22-2 * * FRI-MON",
                    f"{t.minute} {t.hour} {t.on.day} {t.on.month} *",
                )
            )
        )

    def month_ends(self):
        t = self._aim()
        name, nth = WEEKDAYS[t.weekday], (t.on.day - 1) // 7 + 1
        days = self.rng.choice(
            ("L * *", "L-2 * *", "LW * *", "15W * *", f"{t.on.day}W * *", f"* * {name}#{nth}", f"* * {name}L")
        )
        return self._cron(f"{t.minute} {t.hour} {days}")

    def wild_hourly(self):
        t = self._aim()
        return self._cron(
            self.rng.choice((f"{self.rng.randrange(60)} * * * *", f"{t.minute} * * * *", "@hourly"))
        )

    def wild(self):
        t = self._aim()
        return self._cron(
            self.rng.choice(
                (
                    f"*/20 {t.hour} * * *",
                    f"*/30 {(t.hour - 1) % 24}-{(t.hour + 1) % 24} * * *",
                    f"{t.minute} */{self.rng.choice((4, 6, 8))} * * *",
                    f"*/10 {t.hour} * * {t.weekday}",
                    f"*/45 {t.hour} */3 * *",
                )
            )
        )

    def seconds(self):
        t = self._aim()
        second = self.rng.randrange(60)
        if self.rng.random() < 0.5:
            return self._cron(f"{second},59 {t.minute} {t.hour} * * {t.weekday}", seconds_field="first")
        return self._cron(f"{t.minute} {t.hour} * * * {second}", seconds_field="last")

    def quartz(self):
        t = self._aim()
        second, day = self.rng.choice((0, 0, self.rng.randrange(60))), t.weekday + 1
        return self._cron(
            self.rng.choice(
                (
                    f"{second} {t.minute} {t.hour} ? * {day}",
                    f"{second} {t.minute} {t.hour} ? * {day}#{(t.on.day - 1) // 7 + 1}",
                    f"{second} {t.minute} {t.hour} L-1 * ?",
                    f"{second} {t.minute} {t.hour} LW * ? 2026-2029",
                    f"{second} 0/30 {t.hour} ? * MON-FRI",
                )
            ),
            dialect="quartz",
        )

    def hashed(self):
        t = self._aim()
        low = min(t.hour, 21)
        return self._cron(
            self.rng.choice(
                (
                    "H H * * *",
                    f"H {t.hour} * * *",
                    f"H H({low}-{low + 2}) * * *",
                    f"H {t.hour} * * {t.weekday}",
                )
            )
        )

    def interval(self):
        every = self.rng.choice((3600, 5400, 8 * 3600, 86_400, 7 * 86_400, 37 * 60, 90_061, 20 * 3600 + 1))
        limits: dict[str, Any] = {}
        member = Member("every", every=every)
        if every < 6000:
            limits["max_runs"] = self.rng.randrange(100, 900)
        if self.rng.random() < 0.3:
            limits["start"] = self._some_day()
        if self.rng.random() < 0.15:
            limits["calendars"] = {"exclude": ["weekend", "holidays"]}
        return [member], {"every": every}, limits

    def rrule(self):
        t = self._aim()
        day = WEEKDAYS[t.weekday][:2]
        dtstart = datetime(2025, 12, 1, t.hour, t.minute)  # noqa: DTZ001 - local
        nth = (t.on.day - 1) // 7 + 1
        text = self.rng.choice(
            (
                "FREQ=DAILY",
                f"FREQ=WEEKLY;BYDAY={day},TH",
                f"FREQ=DAILY;BYHOUR={t.hour},{(t.hour + 1) % 24};BYMINUTE=0,30;BYDAY={day}",
                f"FREQ=MONTHLY;BYDAY={nth}{day}",
                "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
                "FREQ=MONTHLY;BYMONTHDAY=-1,1",
                f"FREQ=YEARLY;BYMONTH={t.on.month};BYMONTHDAY={t.on.day}",
                "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=SU,MO",
                f"FREQ=HOURLY;INTERVAL=6;BYMINUTE={t.minute}",
                f"FREQ=DAILY;COUNT={self.rng.randrange(60, 300)}",
                f"FREQ=DAILY;UNTIL={self._some_day():%Y%m%dT%H%M%SZ}",
                "FREQ=DAILY;INTERVAL=3;BYHOUR=2;BYMINUTE=15,45",
                "SET",
            )
        )
        if text == "SET":
            out, more = t.on.strftime("%Y%m%dT%H%M00"), t.on.replace(minute=(t.minute + 1) % 60)
            text = f"RRULE:FREQ=WEEKLY;BYDAY={day},SA\nRDATE:{more:%Y%m%dT%H%M00}\nEXDATE:{out}"
        return (
            [Member("rrule", text, dtstart=dtstart)],
            {"rrule": text, "dtstart": dtstart.isoformat()},
            {},
        )

    def union(self):
        t = self._aim()
        members = [
            Member("cron", f"{t.minute} {t.hour} * * MON-FRI"),
            Member("cron", f"*/30 {t.hour} * * {t.weekday}"),
            Member("at", at=int((self.start + timedelta(days=self.rng.randrange(1, 300), seconds=77)).timestamp())),
            Member("rrule", "FREQ=MONTHLY;BYMONTHDAY=-1", dtstart=datetime(2025, 11, 30, t.hour, t.minute)),  # noqa: DTZ001
            Member("every", every=50 * 3600),
        ]  # fmt: skip
        members = self.rng.sample(members, self.rng.randrange(2, 5))
        if all(member.kind == "at" for member in members):
            members.append(Member("cron", "0 12 * * *"))
        if self.rng.random() < 0.4 and members[0].kind in ("cron", "every"):
            end = int(self._some_day().timestamp())
            members[0] = Member(members[0].kind, members[0].text, every=members[0].every, end=end)
        limits = {"max_runs": self.rng.randrange(20, 200)} if self.rng.random() < 0.3 else {}
        return members, {"any": [_document(member) for member in members]}, limits

    def jittered(self):
        family = self.rng.choice(("fixed_daily", "wild", "rrule"))
        members, document, limits = getattr(self, family)()
        if family == "rrule" and "COUNT" not in members[0].text and members[0].text != "FREQ=DAILY":
            members, document = [Member("rrule", "FREQ=DAILY", dtstart=members[0].dtstart)], {
                "rrule": "FREQ=DAILY", "dtstart": document["dtstart"],
            }  # fmt: skip
        # Below any of these periods, and across the next minute now and then.
        jitter = {"fixed_daily": 1500, "wild": 290, "rrule": 1500}[family]
        if family == "fixed_daily":
            members, document, limits = self._cron(f"{self._aim().minute} {self._aim().hour} * * *")
        return members, document | {"jitter_seconds": jitter}, limits

    def bounded(self):
        choice = self.rng.randrange(3)
        # A window must hold an instant, or the job is refused.
        families = ("fixed_daily", "wild", "seconds", *(("fixed_by_day", "rrule") if choice == 0 else ()))
        members, document, limits = getattr(self, self.rng.choice(families))()
        day = self._some_day()
        if choice == 0:
            limits["max_runs"] = self.rng.randrange(1, 60)
        elif choice == 1:
            limits["start"] = day
        else:
            limits |= {"start": self.start + timedelta(days=9), "end": day + timedelta(days=30)}
        return members, document, limits

    def calendared(self):
        family = self.rng.choice(("fixed_daily", "fixed_by_day", "month_ends", "rrule", "wild"))
        members, document, limits = getattr(self, family)()
        limits["calendars"] = self.rng.choice(
            (
                {"exclude": ["weekend"], "on_holiday": self.rng.choice(ON_HOLIDAY)},
                {"exclude": ["weekend", "holidays"], "on_holiday": self.rng.choice(ON_HOLIDAY)},
                {"include": ["odd-sundays"], "on_holiday": self.rng.choice(ON_HOLIDAY)},
                {"include": ["weekend"], "exclude": ["holidays"]},
            )
        )
        return members, document, limits

    def _some_day(self) -> datetime:
        """Return a moment within the time that is looked at."""
        days = (self.until - self.start).days
        moment = self.start + timedelta(days=self.rng.randrange(days // 4, max(days // 4 + 1, days * 3 // 4)))
        return moment.replace(hour=self.rng.randrange(24), minute=0, second=0)


_FAMILIES = (
    (_Maker.fixed_daily, 19),
    (_Maker.fixed_by_day, 10),
    (_Maker.month_ends, 5),
    (_Maker.wild_hourly, 2),
    (_Maker.wild, 11),
    (_Maker.seconds, 3),
    (_Maker.quartz, 7),
    (_Maker.hashed, 6),
    (_Maker.interval, 7),
    (_Maker.rrule, 10),
    (_Maker.union, 6),
    (_Maker.jittered, 5),
    (_Maker.bounded, 5),
    (_Maker.calendared, 6),
)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _document(member: Member) -> dict[str, Any]:
    document: dict[str, Any]
    if member.kind == "every":
        document = {"every": member.every}
    elif member.kind == "at":
        document = {"at": _text(datetime.fromtimestamp(member.at, UTC))}
    else:
        document = {member.kind: member.text}
    if member.dtstart is not None:
        document["dtstart"] = member.dtstart.isoformat()
    if member.end is not None:
        document["end"] = _text(datetime.fromtimestamp(member.end, UTC))
    return document
