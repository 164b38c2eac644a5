"""Schedule documents for hypothesis: every kind, every special form, none that never fires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from hypothesis import strategies as st
from tests.support.time_oracle.clock import wall_clock
from tests.support.time_oracle.inputs import FIRST_YEAR, LAST_YEAR, ZONES, seconds_of

Document = dict[str, Any]
# Before every DTSTART and start below, so that no rule has come to its end when it is submitted.
CREATED_AT = datetime(2018, 6, 1, 12, 34, 56, tzinfo=UTC)
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")

zones = st.sampled_from(("UTC", *ZONES))
gaps = st.sampled_from(("auto", "run_after", "skip", "shift"))
overlaps = st.sampled_from(("auto", "first", "last", "both"))


def _numbers(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    step = st.integers(1, max(2, (high - low) // 2))
    part = st.one_of(
        number.map(str),
        st.tuples(number, number).map(lambda t: f"{t[0]}-{t[1]}"),
        st.tuples(number, number, step).map(lambda t: f"{t[0]}-{t[1]}/{t[2]}"),
        st.tuples(number, step).map(lambda t: f"{t[0]}/{t[1]}"),
    )
    return st.one_of(
        st.just("*"), step.map(lambda n: f"*/{n}"), st.lists(part, min_size=1, max_size=3).map(",".join)
    )


# Up to the 28th, so that no month can lack the day.
_days = st.one_of(
    _numbers(1, 28),
    st.sampled_from(("*", "*", "?", "L", "L-3", "LW", "15W", "1W", "28W", "1,L", "*,10")),
)
_months = st.one_of(
    st.just("*"), _numbers(1, 12), st.sampled_from(MONTHS), st.just("NOV-FEB"), st.just("jan,JUL")
)
_weekdays = st.one_of(
    st.just("*"),
    st.sampled_from(
        ("?", "FRI-MON", "0,7", "0-7", "MON-FRI", "FRIL", "5L", "1#1", "TUE#2,THU#4", "*/2", "SUN")
    ),
    st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3).map(",".join),
    _numbers(0, 6),
)
_plain = st.tuples(_numbers(0, 59), _numbers(0, 23), _days, _months, _weekdays)


@st.composite
def crons(draw: st.DrawFn) -> Document:
    """Cron documents of both dialects, with zones and rules."""
    fields = list(draw(_plain))
    if fields[2].startswith("*") and any(mark in fields[4] for mark in "L#"):
        # Both fields must match, and a step may leave no day for a weekday that comes once a month: '*/11' has no last Friday.
        fields[2] = "*"
    document: Document = {}
    form = draw(st.sampled_from(("five", "five", "five", "first", "last", "quartz", "nickname", "hashed")))
    second = draw(st.sampled_from(("0", "30", "*/20", "5,59")))
    if form == "nickname":
        fields = [draw(st.sampled_from(("@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@midnight")))]
    elif form == "hashed":
        fields[0] = draw(st.sampled_from(("H", "H/15", "H(0-29)")))
        fields[1] = draw(st.sampled_from(("H", "*", "3", "H(1-4)")))
    elif form == "first":
        fields.insert(0, second)
        document["seconds_field"] = "first"
    elif form == "last":
        fields.append(second)
        document["seconds_field"] = "last"
    elif form == "quartz":
        day, week = draw(
            st.sampled_from(
                (("?", "6#3"), ("?", "1,7"), ("LW", "?"), ("L-3", "?"), ("1,15", "?"), ("?", "2L"))
            )
        )
        fields = [second, fields[0], fields[1], day, fields[3], week]
        document["dialect"] = "quartz"
        if draw(st.booleans()):
            fields.append(draw(st.sampled_from(("*", "2024-2031", "2020/3"))))
    return {
        "cron": " ".join(fields),
        **document,
        "timezone": draw(zones),
        "dst_gap": draw(gaps),
        "dst_overlap": draw(overlaps),
    }


@st.composite
def rrules(draw: st.DrawFn) -> Document:
    """Recurrence rules that have instances, some bounded, some with dates added and taken away."""
    start = draw(st.datetimes(datetime(2019, 1, 1), datetime(2021, 1, 1))).replace(second=0, microsecond=0)  # noqa: DTZ001
    start = start.replace(day=min(start.day, 28))
    freq = draw(
        st.sampled_from(("HOURLY", "DAILY", "DAILY", "WEEKLY", "WEEKLY", "MONTHLY", "MONTHLY", "YEARLY"))
    )
    parts = [f"FREQ={freq}"]
    interval = draw(st.sampled_from((1, 1, 1, 2, 3)))
    if interval > 1:
        parts.append(f"INTERVAL={interval}")
    names = draw(st.lists(st.sampled_from(WEEKDAYS), min_size=2, max_size=4, unique=True))
    days = ",".join(name[:2] for name in names)
    if freq == "WEEKLY":
        parts.append(f"BYDAY={days};WKST={draw(st.sampled_from(('MO', 'SU', 'TH')))}")
    elif freq == "MONTHLY":
        parts.append(
            draw(
                st.sampled_from(
                    (
                        f"BYDAY={days};BYSETPOS=1,-1",
                        f"BYDAY=2{days[:2]},-1{days[3:5]}",
                        "BYMONTHDAY=1,-1,15",
                        "BYMONTHDAY=28",
                    )
                )
            )
        )
    elif freq == "YEARLY":
        parts.append(
            draw(
                st.sampled_from(
                    (
                        "BYMONTH=3,11;BYDAY=SU",
                        "BYYEARDAY=1,100,-1",
                        f"BYWEEKNO=10,44;BYDAY={days}",
                        "BYMONTH=10;BYDAY=-1SU",
                    )
                )
            )
        )
    elif freq == "DAILY" and interval == 1 and draw(st.booleans()):
        parts.append("BYMONTH=3,4,10,11")
    if freq != "HOURLY" and draw(st.booleans()):
        parts.append(
            f"BYHOUR={draw(st.sampled_from(('0', '1,2', '2,3', '0,23', '1,2,3')))};BYMINUTE={draw(st.sampled_from(('0', '30', '15,45')))}"
        )
    ending = draw(st.sampled_from(("", "", "COUNT=40", "COUNT=700", "UNTIL=20270101T000000Z")))
    if ending:
        parts.append(ending)
    lines = [f"RRULE:{';'.join(parts)}"]
    if draw(st.booleans()):
        taken = start + timedelta(days=draw(st.integers(0, 60)))
        added = start + timedelta(days=draw(st.integers(0, 900)), hours=1, minutes=7)
        lines += [f"EXDATE:{taken:%Y%m%dT%H%M%S}", f"RDATE:{added:%Y%m%dT%H%M%S}"]
    return {
        "rrule": "\n".join(lines),
        "dtstart": f"{start:%Y-%m-%dT%H:%M:%S}",
        "timezone": draw(zones),
        "dst_gap": draw(gaps),
        "dst_overlap": draw(overlaps),
    }


@st.composite
def intervals(draw: st.DrawFn) -> Document:
    """Fixed intervals, anchored somewhere."""
    every = draw(
        st.one_of(st.integers(1, 200_000), st.sampled_from(("PT15M", "PT1H30M", "P1D", "P2W", "PT7S")))
    )
    start = draw(st.datetimes(datetime(2019, 6, 1), datetime(2021, 1, 1))).replace(microsecond=0)  # noqa: DTZ001
    return {"every": every, "start": f"{start:%Y-%m-%dT%H:%M:%S}Z"}


def _fires_every_year(document: Document) -> bool:
    if "rrule" in document:
        return "COUNT" not in document["rrule"]
    fields = document.get("cron", "").split()
    return len(fields) == 0 or (len(fields) == 5 and fields[3] == "*")


@st.composite
def _bounded(draw: st.DrawFn, documents: st.SearchStrategy[Document]) -> Document:
    document = dict(draw(documents))
    if _fires_every_year(document) and draw(st.integers(0, 3)) == 0:
        document.setdefault("start", "2020-02-29T12:34:56Z")
        document["end"] = draw(st.sampled_from(("2029-06-01T00:00:00Z", "2029-10-28T01:00:00Z")))
    return document


singles = _bounded(st.one_of(crons(), crons(), rrules(), intervals()))
_moments = st.sampled_from(("2026-03-08T07:00:00Z", "2024-02-29T00:00:00Z", "2027-01-01T00:00:00Z"))
RULE_FIELDS = ("timezone", "dst_gap", "dst_overlap")


def _bare(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in RULE_FIELDS}


@st.composite
def unions(draw: st.DrawFn) -> Document:
    """Several schedules on one job: zone and rules are the job's."""
    member = st.one_of(
        crons().map(_bare), rrules().map(_bare), intervals(), _moments.map(lambda at: {"at": at})
    )
    return {
        "any": draw(st.lists(member, min_size=1, max_size=4)),
        "timezone": draw(zones),
        "dst_gap": draw(gaps),
        "dst_overlap": draw(overlaps),
    }


def alone(union: Document, member: Document) -> Document:
    """Return a member of a union as a schedule of its own."""
    if "cron" in member or "rrule" in member:
        return {**member, **{key: union[key] for key in RULE_FIELDS}}
    return {"any": [member]}


documents = st.one_of(singles, singles, singles, unions())


@cache
def _changes() -> list[int]:
    found: set[int] = set()
    for zone in ZONES:
        found.update(wall_clock(zone).changes(seconds_of(FIRST_YEAR), seconds_of(LAST_YEAR + 1)))
    return sorted(found)


@st.composite
def moments(draw: st.DrawFn) -> datetime:
    """Instants, to the microsecond, half of them within hours of some zone's change of the clocks."""
    if draw(st.booleans()):
        second = draw(st.sampled_from(_changes())) + draw(st.integers(-4, 4)) * 1800
    else:
        second = draw(st.integers(seconds_of(FIRST_YEAR), seconds_of(LAST_YEAR + 1)))
    return datetime.fromtimestamp(second, UTC) + timedelta(
        microseconds=draw(st.sampled_from((0, 0, 1, 999_999)))
    )
