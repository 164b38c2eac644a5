"""Random rules against python-dateutil, on naive local time, where python-dateutil is right.

It is not asked about: mixed plain and numbered BYDAY (it intersects them), BYSETPOS in the first week of a weekly
rule (it sees only the part from DTSTART on), BYWEEKNO alone (it takes all days of the week), negative BYWEEKNO
beyond -1 or a leap year's neighbour (it miscounts the weeks of the year before).
"""

# ruff: noqa: DTZ001 - recurrence rules are about naive wall-clock times
import calendar
from datetime import datetime, timedelta
from itertools import islice

import pytest
from dateutil.rrule import rrulestr
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from noonmark.core.rrule.recurrence_set import RRuleError, parse_rrule

SPAN = {
    "YEARLY": timedelta(days=366 * 60),
    "MONTHLY": timedelta(days=366 * 20),
    "WEEKLY": timedelta(days=366 * 8),
    "DAILY": timedelta(days=366 * 4),
    "HOURLY": timedelta(days=60),
    "MINUTELY": timedelta(days=2),
    "SECONDLY": timedelta(hours=1),
}
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
STEP = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
THOROUGH = settings(QUIET, max_examples=300)

starts = st.datetimes(datetime(1998, 1, 1), datetime(2030, 12, 31)).map(lambda at: at.replace(microsecond=0))


def signed(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high) | st.integers(-high, -low)


def some(numbers: st.SearchStrategy[int], most: int = 4) -> st.SearchStrategy[list[int]]:
    return st.lists(numbers, min_size=1, max_size=most, unique=True)


@st.composite
def rules(draw: st.DrawFn, freqs: tuple[str, ...] = tuple(SPAN), *, bounded: bool = True) -> dict[str, str]:
    freq = draw(st.sampled_from(freqs))
    long = freq in ("YEARLY", "MONTHLY", "WEEKLY", "DAILY")
    parts = {"FREQ": freq, "INTERVAL": str(draw(st.integers(1, 6) | st.integers(1, 40)))}

    def maybe(name: str, numbers: st.SearchStrategy[int], odds: int = 3, most: int = 4) -> None:
        if draw(st.integers(1, odds)) == 1:
            parts[name] = ",".join(map(str, draw(some(numbers, most))))

    maybe("BYMONTH", st.integers(1, 12), most=6)
    if freq != "WEEKLY":
        maybe("BYMONTHDAY", signed(1, 31), odds=4, most=8)
    if freq in ("YEARLY", "HOURLY", "MINUTELY", "SECONDLY"):
        maybe("BYYEARDAY", signed(1, 366), odds=6, most=20)
    if freq == "YEARLY":
        maybe("BYWEEKNO", st.integers(1, 53) | st.just(-1), odds=4)
    if draw(st.booleans()) or "BYWEEKNO" in parts:
        days = draw(st.lists(st.sampled_from(DAYS), min_size=1, max_size=5, unique=True))
        numbered = freq in ("YEARLY", "MONTHLY") and "BYWEEKNO" not in parts and draw(st.booleans())
        yearly = freq == "YEARLY" and "BYMONTH" not in parts
        ordinals = signed(1, 53) if yearly else signed(1, 5)
        parts["BYDAY"] = ",".join(f"{draw(ordinals)}{day}" if numbered else day for day in days)
    maybe("BYHOUR", st.integers(0, 23), odds=3 if long else 4, most=8)
    maybe("BYMINUTE", st.integers(0, 59), most=8)
    maybe("BYSECOND", st.integers(0, 59), odds=5)
    if any(name.startswith("BY") for name in parts) and freq != "WEEKLY":
        maybe("BYSETPOS", signed(1, 5), odds=3)
    if draw(st.booleans()):
        parts["WKST"] = draw(st.sampled_from(DAYS))
    if bounded and draw(st.booleans()):
        parts["COUNT"] = str(draw(st.integers(1, 30)))
    return parts


def as_text(parts: dict[str, str]) -> str:
    return ";".join(f"{name}={value}" for name, value in parts.items())


@given(parts=rules(), start=starts)
@THOROUGH
def test_random_rules_have_the_times_that_dateutil_finds(parts, start):
    text = as_text(parts)
    assume(dateutil_counts_weeks_right(parts))
    try:
        rule = parse_rrule(text, dtstart=start).rules[0]
    except RRuleError as error:
        event("never fires")
        if "never fires" not in error.message:
            raise
        return
    end = start + SPAN[parts["FREQ"]]
    ours, at = [], start - timedelta(seconds=1)
    while len(ours) < 40 and (found := rule.next(at)) is not None and found <= end:
        ours.append(found)
        at = found
    # Only as many as we found are asked for: where there is no further one, dateutil would walk to year 9999.
    assert list(islice(rrulestr(text, dtstart=start), len(ours))) == ours
    if ours:
        assert rule.count(start - timedelta(seconds=1), ours[-1]) == len(ours)
        assert rule.previous(ours[-1] + timedelta(microseconds=1)) == ours[-1]
        assert [rule.previous(each - timedelta(microseconds=1)) for each in ours] == [None, *ours[:-1]]


def dateutil_counts_weeks_right(parts: dict[str, str]) -> bool:
    numbers = {int(number) for number in parts.get("BYWEEKNO", "1").split(",")}
    return not numbers & {52, 53, -1} or numbers >= {52, 53, -1}


@given(
    parts=rules(("HOURLY", "MINUTELY", "SECONDLY"), bounded=False),
    start=starts,
    steps=st.integers(0, 10**9),
    data=st.data(),
)
@QUIET
def test_a_time_is_an_instance_if_it_lies_on_a_step_and_every_part_admits_it(parts, start, steps, data):
    parts.pop("BYSETPOS", None)
    try:
        rule = parse_rrule(as_text(parts), dtstart=start).rules[0]
    except RRuleError:
        assume(False)
        return
    unit = STEP[parts["FREQ"]]
    seconds = steps % (60 * 366 * 86400) // unit // int(parts["INTERVAL"]) * unit * int(parts["INTERVAL"])
    at = start + timedelta(seconds=seconds)
    for name, freqs in (("minute", ("HOURLY",)), ("second", ("HOURLY", "MINUTELY"))):
        admitted = [int(number) for number in parts.get(f"BY{name.upper()}", "").split(",") if number]
        if parts["FREQ"] in freqs and admitted:
            at = at.replace(**{name: data.draw(st.sampled_from(admitted))})
    assume(at >= start)
    event(f"admitted: {admits(parts, at)}")
    assert rule.names(at) == admits(parts, at)
    assert not rule.names(at + timedelta(seconds=unit)) or int(parts["INTERVAL"]) == 1


def admits(parts: dict[str, str], at: datetime) -> bool:
    """Ask every part in turn, by the calendar module."""
    year_length = 366 if calendar.isleap(at.year) else 365
    day, month_length = at.timetuple().tm_yday, calendar.monthrange(at.year, at.month)[1]
    values = {
        "BYMONTH": {at.month},
        "BYMONTHDAY": {at.day, at.day - month_length - 1},
        "BYYEARDAY": {day, day - year_length - 1},
        "BYDAY": {DAYS[at.weekday()]},
        "BYHOUR": {at.hour},
        "BYMINUTE": {at.minute},
        "BYSECOND": {at.second},
    }
    return all(
        {str(value) for value in values[name]} & set(text.split(","))
        for name, text in parts.items()
        if name in values
    )


@given(parts=rules(bounded=False), start=starts, ahead=st.integers(0, 40 * 366 * 86400))
@QUIET
def test_far_from_dtstart_next_previous_and_count_agree(parts, start, ahead):
    try:
        rule = parse_rrule(as_text(parts), dtstart=start).rules[0]
    except RRuleError:
        assume(False)
        return
    at = start + timedelta(seconds=ahead)
    following = rule.next(at)
    before = rule.previous(at)
    assert before is None or start <= before <= at
    if following is not None:
        assert following > at
        assert rule.names(following)
        assert (
            "BYWEEKNO" in parts or any(map(str.isdigit, parts.get("BYDAY", ""))) or admits(parts, following)
        )
        assert rule.count(at, following) == 1
        assert rule.count(at, following - timedelta(seconds=1)) == 0
        assert rule.previous(following) == following
        assert rule.previous(following - timedelta(seconds=1)) == before
        second = rule.next(following)
        assert second is None or rule.count(at, second) == 2
    if before is not None:
        assert rule.count(before, at) == 0
        assert rule.count(before - timedelta(seconds=1), at) == 1
        assert rule.next(before - timedelta(seconds=1)) == before


@given(parts=rules(("WEEKLY",), bounded=False), start=starts, positions=some(signed(1, 6)))
@QUIET
def test_positions_in_a_week_count_from_the_weeks_start(parts, start, positions):
    parts |= {"INTERVAL": "1", "BYDAY": parts.get("BYDAY", "MO,WE,TH,SA"), "BYHOUR": "9,17", "BYMINUTE": "30"}
    wkst = DAYS.index(parts.get("WKST", "MO"))
    earlier = parse_rrule(as_text(parts), dtstart=start - timedelta(days=400)).rules[0]
    weeks: dict[int, list[datetime]] = {}
    at = start - timedelta(days=8)
    while (at := earlier.next(at)) is not None and at < start + timedelta(days=800):
        weeks.setdefault((at.toordinal() - 1 - wkst) // 7, []).append(at)
    first, last = min(weeks, default=0), max(weeks, default=0)
    expected = [
        time
        for number, times in weeks.items()
        for place, time in enumerate(times)
        if first < number < last and time >= start and {place + 1, place - len(times)} & set(positions)
    ]
    text = as_text(parts | {"BYSETPOS": ",".join(map(str, positions))})
    for place, time in enumerate(expected):
        rule = parse_rrule(text, dtstart=start).rules[0]
        assert rule.names(time)
        assert place == 0 or rule.next(expected[place - 1]) == time


@pytest.mark.parametrize("wkst", DAYS)
def test_week_numbers_are_those_of_the_first_week_with_four_days(wkst):
    shift = DAYS.index(wkst)
    for number in (1, 2, 26, 52, 53, -1, -2, -53):
        rule = parse_rrule(
            f"FREQ=YEARLY;BYWEEKNO={number};BYDAY=MO,TU,WE,TH,FR,SA,SU;WKST={wkst}",
            dtstart=datetime(1996, 1, 1),
        ).rules[0]
        for year in range(1996, 2030):
            first = datetime(year, 1, 1)
            days = (first + timedelta(days=day) for day in (0, 1, 2, 3, 4, 5, 6, 7, 8, 180, *range(350, 366)))
            for at in days:
                # ISO weeks of a calendar moved by the days that WKST lies behind Monday.
                moved = at - timedelta(days=(at.weekday() - shift) % 7) + timedelta(days=3)
                week = (moved.timetuple().tm_yday - 1) // 7 + 1
                last = (365 + calendar.isleap(moved.year) - moved.timetuple().tm_yday) // 7
                assert rule.names(at) == (number in (week, -last - 1)), (at, number, week, last)
