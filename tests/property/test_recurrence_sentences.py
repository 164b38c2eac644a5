"""The sentence about a recurrence, read back, gives the number of fires that the engine gives."""

# ruff: noqa: DTZ001 - recurrence rules are about naive wall-clock times
from datetime import date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st
from tests.support.recurrence_reader import read

from noonmark.core.explanations.recurrence import describe
from noonmark.core.rrule.recurrence_set import RRuleError, parse_rrule

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FREQS = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
WINDOW = {"MINUTELY": timedelta(days=8), "SECONDLY": timedelta(days=1)}
SECOND = timedelta(seconds=1)
QUIET = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def signed(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high) | st.integers(-high, -low)


@st.composite
def rules(draw: st.DrawFn) -> str:
    freq = draw(st.sampled_from(FREQS))
    parts = {"FREQ": freq}

    def maybe(name: str, values: st.SearchStrategy[object], odds: int, most: int) -> None:
        if draw(st.integers(1, odds)) == 1:
            found = draw(st.lists(values, min_size=1, max_size=most, unique=True))
            parts[name] = ",".join(map(str, found))

    if draw(st.integers(1, 3)) == 1:
        parts["INTERVAL"] = str(draw(st.integers(2, 5) | st.integers(2, 40)))
    maybe("BYMONTH", st.integers(1, 12), 3, 4)
    if freq != "WEEKLY":
        maybe("BYMONTHDAY", signed(1, 31), 3, 5)
    if freq in {"YEARLY", "HOURLY", "MINUTELY", "SECONDLY"}:
        maybe("BYYEARDAY", signed(1, 366), 6, 12)
    if freq == "YEARLY":
        maybe("BYWEEKNO", signed(1, 53), 4, 4)
    plain = st.sampled_from(DAYS)
    numbered = st.tuples(signed(1, 5), plain).map(lambda pair: f"{pair[0]}{pair[1]}")
    counts = freq in {"YEARLY", "MONTHLY"} and "BYWEEKNO" not in parts
    maybe("BYDAY", plain | numbered if counts else plain, 2, 7)
    maybe("BYHOUR", st.integers(0, 23), 3, 4)
    maybe("BYMINUTE", st.integers(0, 59), 3, 3)
    maybe("BYSECOND", st.integers(0, 59), 5, 2)
    if any(name.startswith("BY") for name in parts):
        maybe("BYSETPOS", signed(1, 5), 3, 3)
    if draw(st.booleans()):
        parts["WKST"] = draw(plain)
    return ";".join(f"{name}={value}" for name, value in parts.items())


starts = st.datetimes(datetime(1999, 1, 1), datetime(2031, 12, 31)).map(lambda at: at.replace(microsecond=0))


@QUIET
@given(rules(), starts, st.integers(1, 12))
@example("FREQ=YEARLY;BYMONTHDAY=30", datetime(2026, 1, 1, 9), 1)
@example("FREQ=YEARLY;BYMONTH=3;BYDAY=MO", datetime(2026, 1, 1, 9), 1)
@example("FREQ=YEARLY;BYWEEKNO=20", datetime(2026, 1, 1, 9), 1)
@example("FREQ=MONTHLY;BYDAY=MO,1TU", datetime(2026, 1, 1, 9), 1)
def test_a_sentence_read_back_gives_the_number_of_fires(text: str, start: datetime, later: int) -> None:
    try:
        rule = parse_rrule(text, dtstart=start).rules[0]
    except RRuleError:
        assume(False)
    low = date(start.year + later, 1, 1)
    high = date(start.year + later + 1, 1, 1)
    freq = text.partition(";")[0].partition("=")[2]
    if freq in WINDOW:
        first = rule.next(datetime(low.year, 1, 1))
        if first is None:
            assume(False)
            return
        low = first.date()
        high = low + WINDOW[freq]
    sentence = describe(rule)
    fires = rule.count(
        datetime(low.year, low.month, low.day) - SECOND, datetime(high.year, high.month, high.day) - SECOND
    )
    event(f"{freq}: {'fires' if fires else 'no fires'}")
    assert read(sentence).count(low, high) == fires, f"{text} from {start}: {sentence}"


@pytest.mark.parametrize(
    ("sentence", "fires"),
    [
        ("every year on the 30th of the month at 09:00", 11),
        ("every year on 3 May at 09:00", 1),
        ("every Monday in March at 09:00", 5),
        ("the 1st Friday and the last Friday of each month at 09:00 and 17:00", 48),
        ("the last weekday of each month at 09:00", 12),
        ("every 2 months on the 15th of the month at 09:00, counted from 1 January 2026 09:00", 6),
        ("every hour at minutes 5 and 35", 2 * 24 * 365),
    ],
)
def test_the_reader_reads_what_a_person_reads(sentence: str, fires: int) -> None:
    assert read(sentence).count(date(2026, 1, 1), date(2027, 1, 1)) == fires
