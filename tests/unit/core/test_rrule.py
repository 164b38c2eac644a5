"""Recurrence sets: their dates and bounds, what never fires, and how far a search goes."""

# ruff: noqa: DTZ001, DTZ901, ISC004 - recurrence rules are about naive wall-clock times
from datetime import UTC, datetime, timedelta, timezone

import pytest

from noonmark.core.rrule import expansion
from noonmark.core.rrule.expansion import SEARCH_STEPS, Expansion
from noonmark.core.rrule.recurrence_set import DateList, Recurrence, RRuleError, parse_rrule
from noonmark.core.rrule.text import MAX_LENGTH

START = datetime(2026, 1, 5, 9)  # a Monday
LONG_AGO = datetime(2012, 1, 2, 9)


def rule_of(text: str, start: datetime = START) -> Recurrence:
    return parse_rrule(text, dtstart=start).rules[0]


def listed(rule, after: datetime = datetime(1, 1, 1), most: int = 50) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < most and (following := rule.next(after)) is not None:
        found.append(following)
        after = following
    return found


def test_a_text_beyond_the_limit_is_refused_unread():
    with pytest.raises(RRuleError, match="at most 20000 are allowed"):
        parse_rrule("x" * (MAX_LENGTH + 1), dtstart=START)


def test_a_set_without_rule_and_date_is_refused():
    with pytest.raises(RRuleError, match="names no times"):
        parse_rrule("EXDATE:20260105T090000", dtstart=START)


def test_a_start_is_needed_from_the_text_or_beside_it():
    with pytest.raises(RRuleError, match="no DTSTART") as caught:
        parse_rrule("FREQ=DAILY")
    assert caught.value.field == "DTSTART"
    assert parse_rrule("DTSTART:20260105T090000\nFREQ=DAILY").dtstart == START
    assert parse_rrule("DTSTART:20260105T090000\nFREQ=DAILY", dtstart=START).dtstart == START


@pytest.mark.parametrize("start", [START.replace(microsecond=1), START.replace(tzinfo=UTC)])
def test_a_start_off_the_wall_clocks_seconds_is_a_programming_error(start):
    with pytest.raises(ValueError, match="naive datetime of whole seconds"):
        parse_rrule("FREQ=DAILY", dtstart=start)


NEVER = [
    (
        "FREQ=YEARLY;BYMONTH=5;BYSETPOS=3;BYMONTHDAY=3",
        "BYSETPOS",
        "more times than one period of the rule has",
    ),
    ("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30,31", "BYMONTHDAY", "no day of any year"),
    ("FREQ=HOURLY;INTERVAL=2;BYHOUR=0,6,12,18", "INTERVAL", "never reach"),
    ("FREQ=DAILY;INTERVAL=7;BYDAY=TU", "INTERVAL", "never reach"),
    ("FREQ=DAILY;INTERVAL=999999;BYMONTH=2;BYMONTHDAY=29", "INTERVAL", "never reach"),
    ("FREQ=WEEKLY;BYDAY=MO;BYSETPOS=2", "BYSETPOS", "more times than"),
    ("FREQ=MONTHLY;INTERVAL=12;BYMONTH=2", "INTERVAL", "never reach"),
    ("FREQ=MONTHLY;BYDAY=6MO", "BYDAY", "no day of any year"),
    ("FREQ=YEARLY;BYMONTH=2;BYYEARDAY=1", "BYYEARDAY", "no day of any year"),
    ("FREQ=MINUTELY;INTERVAL=10080;BYDAY=TU", "INTERVAL", "never reach"),
    ("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "BYMONTHDAY", "no day of any year"),
    (
        "FREQ=SECONDLY;INTERVAL=49;BYDAY=TU;BYHOUR=3;BYMINUTE=0;BYSECOND=1;BYMONTH=1",
        "INTERVAL",
        "never reach",
    ),
    ("FREQ=HOURLY;BYMINUTE=5;BYSETPOS=2", "BYSETPOS", "more times than"),
    ("FREQ=DAILY;UNTIL=20260101T000000", "UNTIL", "UNTIL is before its first time"),
    ("FREQ=DAILY;UNTIL=20260101T000000Z", "UNTIL", "UNTIL is before its first time"),
]


@pytest.mark.parametrize(("text", "field", "words"), NEVER, ids=[each[0] for each in NEVER])
def test_a_rule_without_times_is_refused_after_a_bounded_search(text, field, words, monkeypatch):
    looked_at = count_days_looked_at(monkeypatch)
    with pytest.raises(RRuleError, match="never fires") as caught:
        parse_rrule(text, dtstart=START)
    assert caught.value.field == field
    assert words in caught.value.message
    # The reason takes up to three more searches, of rules that do fire.
    assert sum(looked_at) <= SEARCH_STEPS + 4 * 366


def count_days_looked_at(monkeypatch) -> list[int]:
    parse_rrule.cache_clear()
    looked_at: list[int] = []
    original = Expansion._times

    def counted(self, day):
        looked_at.append(1)
        return original(self, day)

    monkeypatch.setattr(Expansion, "_times", counted)
    return looked_at


def test_days_minus_the_same_days_never_fire():
    dates = ",".join(f"202601{day:02}T090000" for day in range(5, 15))
    with pytest.raises(RRuleError, match="exclude all of its times") as caught:
        parse_rrule(f"RRULE:FREQ=DAILY;COUNT=10\nEXDATE:{dates}", dtstart=START)
    assert caught.value.field == "EXDATE"
    with pytest.raises(RRuleError, match="exclude all"):
        parse_rrule("RDATE:20260105T090000\nEXDATE:20260105T090000", dtstart=START)


FAR = [
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=28",
    "FREQ=MONTHLY;INTERVAL=5;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "FREQ=WEEKLY;INTERVAL=3;BYDAY=TU,SU",
    "FREQ=DAILY;INTERVAL=11",
    "FREQ=HOURLY;INTERVAL=4",
    "FREQ=MINUTELY;INTERVAL=7;BYHOUR=9",
    "FREQ=SECONDLY;INTERVAL=7",
]


@pytest.mark.parametrize("text", FAR)
def test_a_search_jumps_and_never_walks_from_dtstart(text, monkeypatch):
    rule = rule_of(text, LONG_AGO)
    looked_at: list[int] = []
    original = Expansion._days
    monkeypatch.setattr(
        Expansion, "_days", lambda self, index: looked_at.append(index) or original(self, index)
    )
    after = datetime(2926, 4, 17)
    assert rule.next(after) > after
    assert rule.previous(after) <= after
    assert len(looked_at) <= 4


def test_seconds_of_rare_days_are_found_by_days(monkeypatch):
    rule = rule_of(
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=3;BYMINUTE=0;BYSECOND=0;INTERVAL=7", LONG_AGO
    )
    looked_at = count_days_looked_at(monkeypatch)
    found = rule.next(datetime(2013, 1, 1))
    assert found is not None
    assert (found.month, found.day, found.hour, found.minute, found.second) == (2, 29, 3, 0, 0)
    assert (found - LONG_AGO).total_seconds() % 7 == 0
    assert len(looked_at) <= 10


def test_a_year_of_seconds_is_counted_by_days(monkeypatch):
    rule = rule_of("FREQ=SECONDLY;INTERVAL=7;BYHOUR=9,10,11,12", LONG_AGO)
    looked_at = count_days_looked_at(monkeypatch)
    after = datetime(2026, 4, 17, 9, 30, 1)
    total = rule.count(after, datetime(2027, 4, 17, 9, 30, 1))
    assert abs(total - 365 * 4 * 3600 / 7) <= 1
    assert len(looked_at) <= 366
    assert rule.count(after, after + timedelta(minutes=3)) == len(
        [at for at in listed(rule, after) if at <= after + timedelta(minutes=3)]
    )


def test_the_search_bound_ends_a_search_with_none():
    text = "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=3;BYMINUTE=0;BYDAY=MO"
    rule = rule_of(text, LONG_AGO)
    assert rule.next(START) is not None
    bounded = Recurrence(rule.parts, rule.dtstart, search_steps=3)
    assert bounded.next(rule.next(START)) is None


def test_a_count_is_counted_from_dtstart_and_ends_the_rule():
    rule = rule_of("FREQ=DAILY;COUNT=10", datetime(2026, 1, 1))
    assert listed(rule, datetime(2026, 1, 8)) == [datetime(2026, 1, 9), datetime(2026, 1, 10)]
    assert rule.previous(datetime(2030, 1, 1)) == datetime(2026, 1, 10)
    assert rule.count(datetime(2026, 1, 8), datetime(2030, 1, 1)) == 2
    assert rule.next(datetime(2026, 1, 10)) is None


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("FREQ=SECONDLY;COUNT=100000", START + timedelta(seconds=99_999)),
        ("FREQ=HOURLY;BYHOUR=8,9,10;BYMINUTE=0,30;COUNT=5", datetime(2026, 1, 6, 8)),
        ("FREQ=DAILY;BYHOUR=8,9,10;COUNT=4", datetime(2026, 1, 6, 9)),
        ("FREQ=DAILY;BYHOUR=8,9,10;COUNT=1", START),
        ("FREQ=YEARLY;COUNT=100000", datetime(9999, 1, 5, 9)),
        ("FREQ=WEEKLY;COUNT=2;BYDAY=MO,WE;BYHOUR=7,8", datetime(2026, 1, 7, 8)),
    ],
)
def test_the_last_time_of_a_count_is_right_to_the_second(text, last):
    assert rule_of(text).previous(datetime(9999, 12, 31, 23, 59, 59)) == last


def test_exdates_are_taken_away_after_count():
    rule = rule_of("RRULE:FREQ=DAILY;COUNT=3\nEXDATE:20260106T090000\nEXDATE:20260130T090000")
    assert listed(rule) == [START, datetime(2026, 1, 7, 9)]
    assert rule.count(datetime(2020, 1, 1), datetime(2030, 1, 1)) == 2
    assert rule.previous(datetime(2026, 1, 6, 12)) == START


def test_until_on_the_wall_clock_is_included():
    rule = rule_of("FREQ=DAILY;UNTIL=20260107T090000")
    assert listed(rule)[-1] == datetime(2026, 1, 7, 9)
    assert len(listed(rule)) == 3
    assert rule.until_utc is None


def test_until_in_utc_is_handed_on_and_leaves_a_day_for_the_zone():
    rule = rule_of("FREQ=DAILY;UNTIL=20260107T090000Z")
    assert rule.until_utc == datetime(2026, 1, 7, 9, tzinfo=UTC)
    assert listed(rule)[-1] == datetime(2026, 1, 8, 9)


def test_dates_and_exceptions_are_kept_apart_by_how_they_are_written():
    found = parse_rrule(
        "RRULE:FREQ=WEEKLY\n"
        "RDATE;TZID=Europe/Paris:20260201T100000,20260110T100000\n"
        'RDATE;TZID="Europe/Paris";VALUE=DATE-TIME:20260110T100000\n'
        "RDATE:20260301T000000Z\n"
        "EXDATE:20260112T090000,20260201T100000\n"
        "EXDATE:20260119T080000Z\n",
        dtstart=START,
    )
    assert found.dates == DateList((datetime(2026, 1, 10, 10),))
    assert found.instants == (datetime(2026, 3, 1, tzinfo=UTC),)
    assert found.excluded_instants == {datetime(2026, 1, 19, 8, tzinfo=UTC)}
    assert found.tzids == {"Europe/Paris"}
    assert listed(found.rules[0], most=2) == [START, datetime(2026, 1, 19, 9)]
    assert found.warnings == ()


def test_a_start_in_utc_names_that_zone():
    found = parse_rrule("DTSTART:20260105T090000Z\nRRULE:FREQ=DAILY")
    assert (found.dtstart, found.tzids) == (START, {"UTC"})


def test_dates_alone_make_a_set():
    found = parse_rrule("RDATE:20260201T100000,20260110T100000", dtstart=START)
    assert found.rules == ()
    assert listed(found.dates) == [datetime(2026, 1, 10, 10), datetime(2026, 2, 1, 10)]
    assert found.dates.previous(datetime(2026, 1, 31)) == datetime(2026, 1, 10, 10)
    assert found.dates.previous(datetime(2026, 1, 1)) is None
    assert found.dates.count(datetime(2026, 1, 10, 10), datetime(2026, 2, 1, 10)) == 1
    assert found.dates.count(datetime(2026, 2, 1), datetime(2026, 1, 1)) == 0


def test_several_rules_stand_side_by_side():
    found = parse_rrule("RRULE:FREQ=WEEKLY;BYDAY=MO\nRRULE:FREQ=WEEKLY;BYDAY=TU", dtstart=START)
    assert [rule.next(START) for rule in found.rules] == [datetime(2026, 1, 12, 9), datetime(2026, 1, 6, 9)]


def test_a_start_off_the_rule_is_no_instance_and_a_warning_says_so():
    found = parse_rrule("FREQ=WEEKLY;BYDAY=MO;COUNT=3", dtstart=datetime(2026, 1, 7, 9))
    assert listed(found.rules[0]) == [datetime(2026, 1, day, 9) for day in (12, 19, 26)]
    assert found.warnings == (
        "DTSTART 2026-01-07T09:00:00 is not one of the rule's times, so nothing runs then: it only "
        "says where the recurrence starts.",
    )


def test_an_exception_that_leaves_out_nothing_is_warned_about():
    found = parse_rrule("RRULE:FREQ=DAILY\nEXDATE:20260106T100000,20260107T100000", dtstart=START)
    assert found.warnings == (
        "EXDATE 20260106T100000 and 1 more EXDATEs exclude nothing: no rule or RDATE has that time.",
    )


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("freq=daily", "RRULE:FREQ=DAILY"),
        (" rrule: freq = weekly ; byday = mo, tu ", "RRULE:FREQ=WEEKLY;BYDAY=MO,TU"),
        ("RRULE:FREQ=DAILY\\nRDATE:20260201T100000z", "RRULE:FREQ=DAILY\nRDATE:20260201T100000Z"),
        ("RRULE:FREQ=WEE\r\n KLY;BYDAY=M\r\n\tO\r\n\r\n", "RRULE:FREQ=WEEKLY;BYDAY=MO"),
        (
            'dtstart;value=date-time;tzid="America/New_York":20260105t090000\nfreq=daily',
            "DTSTART;TZID=America/New_York:20260105T090000\nRRULE:FREQ=DAILY",
        ),
    ],
)
def test_the_text_in_normal_form_reads_to_an_equal_set(text, normal):
    found = parse_rrule(text, dtstart=START)
    assert found.text == normal
    again = parse_rrule(found.text, dtstart=found.dtstart)
    assert again == found
    assert hash(again) == hash(found)
    assert (again.rules, again.dates, again.tzids) == (found.rules, found.dates, found.tzids)


def test_sets_differ_by_start_and_by_text():
    first = parse_rrule("FREQ=DAILY", dtstart=START)
    assert first != parse_rrule("FREQ=DAILY", dtstart=START + timedelta(days=1))
    assert first != parse_rrule("FREQ=DAILY;INTERVAL=1", dtstart=START)


def test_after_may_lie_between_seconds():
    rule = rule_of("FREQ=DAILY")
    just_before = START + timedelta(days=1, microseconds=-1)
    assert rule.next(just_before) == START + timedelta(days=1)
    assert rule.previous(just_before) == START
    assert rule.count(just_before, just_before + timedelta(microseconds=1)) == 1


@pytest.mark.parametrize("start", [datetime(1, 1, 1), datetime(9999, 12, 27, 23, 59, 59)])
@pytest.mark.parametrize("freq", ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"])
@pytest.mark.parametrize("wkst", ["MO", "TH", "SU"])
def test_the_ends_of_the_calendar_are_no_error(start, freq, wkst):
    rule = rule_of(f"FREQ={freq};INTERVAL=2;WKST={wkst}", start)
    assert rule.previous(start) == start
    assert rule.next(datetime.min) == (start if start != datetime.min else rule.next(start))
    assert rule.previous(datetime.max) >= start
    assert rule.next(datetime.max) is None
    assert rule.count(start, start) == 0


def test_a_numbered_and_a_plain_weekday_unite():
    rule = rule_of("FREQ=MONTHLY;BYDAY=1MO,TU")
    assert [at.day for at in listed(rule, datetime(2026, 1, 1), 6)] == [5, 6, 13, 20, 27, 2]


def test_a_position_in_the_first_week_counts_from_the_weeks_start():
    # DTSTART is a Wednesday; the week's set has Monday too, so the second of its days is Wednesday itself.
    rule = rule_of("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2", datetime(2026, 1, 7, 9))
    assert listed(rule, most=2) == [datetime(2026, 1, 7, 9), datetime(2026, 1, 14, 9)]


def test_week_numbers_alone_take_the_weekday_of_dtstart():
    assert listed(rule_of("FREQ=YEARLY;BYWEEKNO=20"), most=2) == [
        datetime(2026, 5, 11, 9),
        datetime(2027, 5, 17, 9),
    ]


def test_times_of_a_day_are_cached_within_bounds():
    rule = rule_of("FREQ=SECONDLY;INTERVAL=9973")
    rule.count(START, datetime(2040, 1, 1))
    assert len(rule._expansion._by_residue) <= expansion._CACHED_DAYS


def test_zones_of_more_than_utc_are_no_forms_of_the_standard():
    with pytest.raises(RRuleError, match="not a date with a time of day"):
        parse_rrule("RDATE:20260105T090000+0100", dtstart=START)
    assert parse_rrule("RDATE:20260105T090000Z", dtstart=START).instants[0].tzinfo == timezone.utc  # noqa: UP017
