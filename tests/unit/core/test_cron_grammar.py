"""The grammar of cron expressions: spellings, dialects, hashed values, and what is said about a bad one."""

import contextlib
import time
from collections import Counter
from datetime import datetime

import pytest

from noonmark.core.cron.expression import CronError, DayTerm, is_hashed, parse_cron
from noonmark.core.crontab.fields import CrontabError, check_fields

T0 = datetime(2026, 1, 1)  # noqa: DTZ001 - the clock on the wall has no zone
PINNED = [(18,), (15,), (14,), (22,), (10,), (2,)]
QUARTZ = {"dialect": "quartz"}
LAST = {"seconds_field": "last"}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("0 12 * * 7", "0 12 * * 0"),
        ("0 12 * * 0,7", "0 12 * * SUN"),
        ("0 12 * * 0-7", "0 12 * * SUN-SAT"),
        ("0 12 * * 7-2", "0 12 * * 0,1,2"),
        ("0 12 * * 7-7", "0 12 * * SUN"),
        ("0 12 * * 7-0", "0 12 * * SUN"),
        ("0 12 * * FRI-MON", "0 12 * * 5,6,0,1"),
        ("0 12 * * FRI-MON/2", "0 12 * * 5,0"),
        ("0 12 * * 5-7", "0 12 * * 5,6,0"),
        ("0 22-2 * * *", "0 22,23,0,1,2 * * *"),
        ("0 22-3/2 * * *", "0 22,0,2 * * *"),
        ("50-5/5 * * * *", "50,55,0,5 * * * *"),
        ("0 0 25-5 * *", "0 0 25,26,27,28,29,30,31,1,2,3,4,5 * *"),
        ("0 0 1 NOV-FEB *", "0 0 1 11,12,1,2 *"),
        ("5/20 * * * *", "5,25,45 * * * *"),
        ("0 0 1 6/3 *", "0 0 1 6,9,12 *"),
        ("0 9 * * 4/2", "0 9 * * 4,6"),
        ("0 9 * * 7/3", "0 9 * * 0,3,6"),
        ("  0\t9 * *  mon ", "0 9 * * MON"),
        ("00 09 01 01 *", "0 9 1 1 *"),
        ("0 0 ? * 5", "0 0 * * 5"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 * * FRIl", "0 0 * * 5L"),
        ("0 0 * * L5", "0 0 * * 5L"),
        ("0 0 * * tue#3", "0 0 * * 2#3"),
        ("0 0 l-0 * *", "0 0 L * *"),
        ("@HOURLY", "0 * * * *"),
        (" @daily ", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("0 5 12 * * 1", "5 12 * * 1"),
    ],
)
def test_two_spellings_of_one_rule_are_one_rule(left, right):
    first, second = parse_cron(left), parse_cron(right)
    assert (first, first.either) == (second, second.either)


@pytest.mark.parametrize(
    ("quartz", "unix"),
    [
        ("0 0 12 ? * 1", "0 0 12 ? * SUN"),
        ("0 0 12 ? * 2-6", "0 0 12 ? * MON-FRI"),
        ("0 0 12 ? * 6-2", "0 0 12 * * FRI-MON"),
        ("0 0 12 ? * 2/2", "0 0 12 * * 1,3,5"),
        ("0 0 12 ? * */3", "0 0 12 * * 0,3,6"),
        ("0 0 12 ? * L", "0 0 12 * * SAT"),
        ("0 0 12 ? * 6#3", "0 0 12 * * 5#3"),
        ("0 0 12 ? * 6L", "0 0 12 * * FRIL"),
        ("0 0/5 14,18 * * ?", "0 */5 14,18 * * *"),
        ("0 15 10 * * ? *", "0 15 10 * * *"),
        ("0 15 10 L-2 * ?", "0 15 10 L-2 * *"),
        ("0 15 10 * * MON", "0 15 10 * * MON"),
        ("0 15 10 1 * *", "0 15 10 1 * *"),
        ("0 15 10 * * *", "0 15 10 * * *"),
        ("@weekly", "@weekly"),
    ],
)
def test_quartz_counts_weekdays_from_one_and_needs_one_day_field_free(quartz, unix):
    theirs, ours = parse_cron(quartz, dialect="quartz"), parse_cron(unix)
    assert [theirs.previous(T0), theirs.next(T0)] == [ours.previous(T0), ours.next(T0)]
    assert (theirs.weekdays, theirs.weekday_terms) == (ours.weekdays, ours.weekday_terms)


def test_quartz_reads_years():
    rule = parse_cron("0 0 6 2 2 ? 2030,2035-2039/2", dialect="quartz")
    assert rule.years == sum(1 << year for year in (2030, 2035, 2037, 2039))
    assert parse_cron("0 0 6 2 2 ? 2095/2", **QUARTZ).fields[-1].values == (2095, 2097, 2099)
    assert parse_cron("0 0 6 2 2 ?", dialect="quartz").years is None
    # A year that is over is not a mistake of the grammar.
    assert parse_cron("0 0 6 2 2 ? 1999", dialect="quartz").next(T0) is None


def test_six_fields_have_their_seconds_first_unless_told_otherwise():
    first = parse_cron("*/20 * * * * *")
    assert first == parse_cron("*/20 * * * * *", seconds_field="first")
    assert (first.seconds_field, first.fields[0].name) == ("first", "second")
    last = parse_cron("*/20 * * * * *", seconds_field="last")
    assert (last.seconds_field, last.fields[-1].name) == ("last", "second")
    assert first.next(T0) == T0.replace(second=20)
    assert last.next(T0) == T0.replace(second=1)
    assert parse_cron("*/20 * * * *").seconds_field is None


@pytest.mark.parametrize(
    ("expression", "wild"),
    [
        ("*/15 2 * * *", True),
        ("0 */2 * * *", True),
        ("0,*/7 2 * * *", False),
        ("*,7 2 * * *", True),
        ("0 0-23 * * *", False),
        ("0/5 2 * * *", False),
        ("* 30 2 * * *", False),
        ("0 30 * * * *", True),
        ("H 2 * * *", False),
        ("H * * * *", True),
        ("@hourly", True),
        ("@daily", False),
        ("@yearly", False),
    ],
)
def test_a_rule_is_wild_if_its_minute_or_hour_field_starts_with_a_star(expression, wild):
    assert parse_cron(expression, seed="a").wild is wild


def test_the_fields_can_be_read_by_one_who_explains_them():
    rule = parse_cron("H/30 9-17/4  ? 1,jul MON#1,fril,3", seed="reports/nightly")
    minute, hour, day, month, weekday = rule.fields
    assert [field.name for field in rule.fields] == ["minute", "hour", "day-of-month", "month", "day-of-week"]
    assert [field.position for field in rule.fields] == [1, 6, 14, 16, 22]
    assert (hour.text, hour.values, hour.any) == ("9-17/4", (9, 13, 17), False)
    assert (day.text, day.values, day.any, day.starred) == ("?", None, True, True)
    assert (month.values, month.terms) == ((1, 7), ())
    assert weekday.values == (3,)
    assert weekday.terms == (DayTerm("nth", 1, 1), DayTerm("last", 0, 5))
    assert minute.text == "H/30"
    assert len(minute.values or ()) == 2
    daily = parse_cron("@daily")
    assert [field.text for field in daily.fields] == ["0", "0", "*", "*", "*"]
    assert parse_cron("0 0 0 ? * 1", **QUARTZ).fields[-1].values == (0,)


def picked(expression: str, seed: str, field: str = "minute") -> tuple[int, ...]:
    return next(each.values or () for each in parse_cron(expression, seed=seed).fields if each.name == field)


def test_a_hashed_value_depends_on_the_name_and_on_the_field_and_on_nothing_else():
    rule = parse_cron("H H H H H H", seed="billing/invoices")
    # Pinned: a release, or a process with another PYTHONHASHSEED, that picks others would move every such job.
    assert [each.values for each in rule.fields] == PINNED


def test_hashed_values_stay_in_their_range_and_are_spread_over_it():
    names = [f"team-{number % 7}/job-{number}" for number in range(2000)]
    assert {picked("0 0 H * *", name, "day-of-month") for name in names} == {(day,) for day in range(1, 29)}
    assert {picked("0 0 * H *", name, "month") for name in names} == {(month,) for month in range(1, 13)}
    assert {picked("0 0 * * H", name, "day-of-week") for name in names} == {(day,) for day in range(7)}
    assert {picked("H(50-9) * * * *", name) for name in names} == {(at % 60,) for at in range(50, 70)}
    assert {picked("H/15 * * * *", name) for name in names} == {
        (at, at + 15, at + 30, at + 45) for at in range(15)
    }
    assert {picked("h(0-29)/10 * * * *", name) for name in names} == {
        (at, at + 10, at + 20) for at in range(10)
    }
    assert {len(picked("H/7 * * * *", name)) for name in names} == {8, 9}
    assert picked("H,H(0-0),59 * * * *", names[0])[0] == 0


def test_ten_thousand_names_crowd_no_minute():
    crowd = Counter(picked("H * * * *", f"job-{number}") for number in range(10_000))
    assert len(crowd) == 60
    assert max(crowd.values()) <= 300


def test_the_seed_matters_to_expressions_with_a_hash_only():
    assert parse_cron("0 0 * * THU", seed="a") is parse_cron("0 0 * * THU", seed="b")
    assert [is_hashed(text) for text in ("0 0 * * THU", "H 0 * * *", "0 h(1-4)/2 * * *")] == [
        False,
        True,
        True,
    ]


SECONDS_FIRST = (
    "(six fields, read with the seconds first: second minute hour day-of-month month day-of-week; "
    "seconds_field 'last' reads them last)"
)
ERRORS = [
    ("*/60 * * * *", 3, "minute", "minute field: step '60' at character 3 is not allowed; use 1 to 59"),
    (
        "*/60 * * * *",
        3,
        "minute",
        'a longer step would leave only the first value: write 0; for a fixed period write {"every": "60m"}',
    ),
    ("5/90 * * * *", 3, "minute", 'the first value: write 5; for a fixed period write {"every": "90m"}'),
    ("0 9-17/24 * * *", 8, "hour", 'the first value: write 9; for a fixed period write {"every": "24h"}'),
    ("*/60 * * * * *", 3, "second", 'the first value: write 0; for a fixed period write {"every": "60s"}'),
    (
        "0 0 */31 * *",
        7,
        "day-of-month",
        "use 1 to 30; a longer step would leave only the first value: write 1;",
    ),
    ("0 0 1 */12 *", 9, "month", "use 1 to 11; a longer step would leave only the first value: write 1"),
    ("0 0 1 JAN/12 *", 11, "month", "the first value: write JAN"),
    ("H/60 * * * *", 3, "minute", "use 1 to 59; a longer step would leave only the first value: write H"),
    ("*/0 * * * *", 3, "minute", "minute field: step '0'"),
    ("0 */30 * * *", 5, "hour", "hour field: step '30' at character 5 is not allowed; use 1 to 23"),
    ("0 0 */32 * *", 7, "day-of-month", "use 1 to 30"),
    ("0 0 * */13 *", 9, "month", "use 1 to 11"),
    ("* * * * */8", 11, "day-of-week", "day-of-week field: step '8'"),
    ("*/ * * * *", 3, "minute", "step '' at character 3"),
    ("1//2 * * * *", 3, "minute", "step '/2'"),
    ("*/-1 * * * *", 3, "minute", "step '-1'"),
    ("60 * * * *", 1, "minute", "value '60' at character 1 is out of range; expected 0 to 59"),
    ("0 24 * * *", 3, "hour", "hour field: value '24'"),
    ("0 0 0 * *", 5, "day-of-month", "value '0' at character 5 is out of range; expected 1 to 31"),
    ("0 0 32 * *", 5, "day-of-month", "day-of-month field: value '32'"),
    ("0 0 1 13 *", 7, "month", "value '13' at character 7 is out of range; expected 1 to 12 or JAN"),
    ("0 0 * * 8", 9, "day-of-week", "value '8' at character 9 is out of range; expected 0 to 7 or SUN"),
    ("0 0 * * 1,2,FOO", 13, "day-of-week", "'FOO' at character 13 is not a value"),
    ("0 0 * * 1,,2", 11, "day-of-week", "a value is missing at character 11"),
    ("5, * * * *", 3, "minute", "a value is missing at character 3"),
    ("1-2-3 * * * *", 3, "minute", "'2-3' at character 3 is not a value"),
    ("-5 * * * *", 1, "minute", "a value is missing at character 1"),
    ("5- * * * *", 3, "minute", "a value is missing at character 3"),
    ("*5 * * * *", 1, "minute", "'*5' at character 1 is not a value"),
    ("*-5 * * * *", 1, "minute", "'*' at character 1 is not a value"),
    ("+5 * * * *", 1, "minute", "'+5' at character 1 is not a value"),
    ("5.5 * * * *", 1, "minute", "'5.5' at character 1 is not a value"),
    ("٣ * * * *", 1, "minute", "is not a value"),
    ("0 0 * * fr\u0131", 9, "day-of-week", "is not a value"),
    ("JAN * * * *", 1, "minute", "minute field: 'JAN' at character 1 is not a value"),
    ("0 0 JAN * *", 5, "day-of-month", "day-of-month field: 'JAN'"),
    ("0 0 1 January *", 7, "month", "month field: 'January'"),
    ("99999999999999999999 * * * *", 1, "minute", "out of range"),
    ("0 9 * * 1\x00", 9, "day-of-week", r"'1\x00' at character 9 is not a value"),
    ("0 9 * * \x1b[2J", 9, "day-of-week", r"'\x1b[2J' at character 9 is not a value"),
    # Days that depend on the month, where they may not stand.
    ("0 0 L-31 * *", 7, "day-of-month", "value '31' at character 7 is out of range; expected L-1 to L-30"),
    ("0 0 32W * *", 5, "day-of-month", "value '32' at character 5 is out of range"),
    ("0 0 W * *", 5, "day-of-month", "'W' at character 5 is not a value"),
    (
        "0 0 L/2 * *",
        5,
        "day-of-month",
        "'L' at character 5 is not a value (it cannot be combined with a range or a step)",
    ),
    (
        "0 0 1-15W * *",
        7,
        "day-of-month",
        "'15W' at character 7 is not a value (it cannot be combined with a range",
    ),
    ("0 0 5L * *", 5, "day-of-month", "(d#n and dL belong to the day-of-week field)"),
    ("0 0 1#1 * *", 5, "day-of-month", "(d#n and dL belong to the day-of-week field)"),
    ("0 0 * * 15W", 9, "day-of-week", "(L and W belong to the day-of-month field)"),
    ("L 0 * * *", 1, "minute", "(L and W belong to the day-of-month field)"),
    ("0 0 * * L", 9, "day-of-week", "(SAT is every Saturday, SATL the last one of a month)"),
    ("0 0 * * 1-5L", 11, "day-of-week", "'5L' at character 11 is not a value"),
    ("0 0 * * 8L", 9, "day-of-week", "value '8' at character 9 is out of range"),
    ("0 0 * * JANL", 9, "day-of-week", "'JAN' at character 9 is not a value"),
    ("0 0 * * 1#6", 11, "day-of-week", "'6' at character 11 is not allowed after '#'; expected d#1 to d#5"),
    ("0 0 * * 1#", 11, "day-of-week", "'' at character 11 is not allowed after"),
    ("0 0 * * #2", 9, "day-of-week", "a value is missing at character 9"),
    ("0 0 * * 8#1", 9, "day-of-week", "value '8' at character 9 is out of range"),
    ("? * * * *", 1, "minute", "('?' must be alone in the day-of-month or the day-of-week field)"),
    ("0 0 ?/2 * *", 5, "day-of-month", "'?' must be alone"),
    ("0 0 * * 1,?", 11, "day-of-week", "'?' must be alone"),
    # Hashed values.
    ("H * * * *", 1, "minute", "'H' at character 1 depends on the job's name, but there is none"),
    ("0 0 H(1-5) * *", 5, "day-of-month", "'H(1-5)' at character 5 depends on the job's name"),
    ("H(0-70) * * * *", 5, "minute", "value '70' at character 5 is out of range"),
    ("H(-5) * * * *", 3, "minute", "a value is missing at character 3"),
    ("H(5) * * * *", 1, "minute", "'H(5)' at character 1 is not a value; expected H, H/n, H(a-b), H(a-b)/n"),
    ("H-5 * * * *", 1, "minute", "'H-5' at character 1 is not a value; expected H, H/n"),
    ("H/60 * * * *", 3, "minute", "step '60' at character 3 is not allowed; use 1 to 59"),
    ("H(0-9)/15 * * * *", 8, "minute", "step '15' at character 8 is not allowed; use 1 to 10"),
    ("0 0 H/29 * *", 7, "day-of-month", "use 1 to 28"),
    ("0~30 * * * *", 1, "minute", "(a value that is random but stable is written H(a-b))"),
    # Expressions that never fire.
    ("0 0 30 2 *", 5, "day-of-month", "never fires: February has no day 30 (day-of-month field '30' at"),
    ("0 0 30-31 feb *", 5, "day-of-month", "February has no day 30 or day 31"),
    ("0 0 31 4,6,9,11 *", 5, "day-of-month", "April, June, September and November have no day 31"),
    ("0 0 31 2 */2", 5, "day-of-month", "never fires: February has no day 31"),
    ("0 0 31W 2,4 *", 5, "day-of-month", "February and April have no day 31"),
    ("0 0 L-30 2 *", 5, "day-of-month", "February has no day that lies 30 days before its last"),
    ("0 0 L-29W 2 *", 5, "day-of-month", "February has no day that lies 29 days before its last"),
    (
        "0 0 */8 * 1#5",
        5,
        "day-of-month",
        "no day of day-of-month field '*/8' at character 5 can be one of day-of-week field '1#5' at character 11",
    ),
    # How many fields there are.
    ("* * * * * * * *", 13, None, "8 fields; 5 are needed: minute hour day-of-month month day-of-week, or 6"),
    ("0 0 6 2 2 ? 2030", None, None, 'write {"cron": "0 0 6 2 2 ? 2030", "dialect": "quartz"}'),
    ("* * * * * * * *", 13, None, "8 fields"),
    ("* * * *", None, None, "4 fields; 5 are needed"),
    ("", None, None, "0 fields"),
    ("   ", None, None, "0 fields"),
    ("* * *\n* *", None, None, "4 fields"),
    ("* * * *\u00a0*", None, None, "4 fields"),
    ("CRON_TZ=Asia/Tokyo 0 0 * * *", 1, None, "in the field 'timezone'"),
    ("TZ=UTC 0 0 * * *", 1, None, "in the field 'timezone'"),
    ("@reboot", 1, None, "nickname '@reboot' at character 1 is not known; expected @hourly"),
    ("@reboot", 1, None, "'@reboot' is not a time"),
    ("  @every 5m", None, None, '\'@every 5m\' is a fixed period; write {"every": "5m"}'),
    ("every 5m", None, None, '\'every 5m\' is a fixed period; write {"every": "5m"}'),
    ("every 5 minutes", None, None, 'is a fixed period; write {"every": "5m"}'),
    ("Every minute", None, None, 'is a fixed period; write {"every": "1m"}'),
    ("each 90 secs", None, None, 'is a fixed period; write {"every": "90s"}'),
    ("@every 2 hours", None, None, 'is a fixed period; write {"every": "2h"}'),
    ("every 300", None, None, 'is a fixed period; write {"every": 300}'),
    ("5 minutes", None, None, 'is a fixed period; write {"every": "5m"}'),
    ("1 week", None, None, 'is a fixed period; write {"every": "1w"}'),
    ("every monday", None, None, "2 fields"),
    ("@every", 1, None, 'for a fixed period write {"every": "5m"}'),
    ("@", 1, None, "is not known"),
    ("0" * 1001, None, None, "1001 characters; at most 1000 are allowed"),
    # Six fields: which reading was taken is part of the message.
    (
        "0 0 1 1 * 2030",
        11,
        "day-of-week",
        "(years go in the seventh field of dialect 'quartz')",
    ),
    (
        "0 0 1 1 * 8",
        11,
        "day-of-week",
        SECONDS_FIRST,
    ),
    ("0 0 0 30 2 *", 7, "day-of-month", "(six fields, read with the seconds first"),
]
OPTION_ERRORS = [
    ("0 0 1 1 * 60", LAST, 11, "second", "(six fields, read with the seconds last: minute hour day-of-month"),
    ("0 0 1 1 *", LAST, None, None, "seconds_field 'last' means a sixth"),
    ("0 0 1 1 *", {"seconds_field": "first"}, None, None, "seconds_field 'first' means a sixth"),
    ("@daily", LAST, None, None, "means a sixth"),
    ("0 0 1 1 *", {"seconds_field": "middle"}, None, None, "'middle' is not known; expected first, last"),
    ("0 0 1 1 *", {"dialect": "spring"}, None, None, "dialect 'spring' is not known; expected unix, quartz"),
    ("0 0 1 1 *", QUARTZ, None, None, "5 fields; dialect 'quartz' needs 6 or 7: second minute hour"),
    ("0 0 1 1 *", QUARTZ, None, None, "5 fields are dialect 'unix'"),
    ("0 0 0 1 1 ? 2030 1", QUARTZ, 18, None, "8 fields"),
    ("0 0 0 1 1 ?", {**QUARTZ, **LAST}, None, None, "dialect 'quartz' has its seconds first"),
    ("0 0 0 ? * 0", QUARTZ, 11, "day-of-week", "is out of range (in dialect 'quartz' 1 is Sunday)"),
    ("0 0 0 ? * 8", QUARTZ, 11, "day-of-week", "expected 1 to 7 or SUN to SAT"),
    ("0 0 0 ? * L-3", QUARTZ, 11, "day-of-week", "'L' at character 11 is not a value"),
    ("0 0 0 ? * L6", QUARTZ, 11, "day-of-week", "'L6' at character 11 is not a value"),
    ("0 0 0 ? * ?", QUARTZ, 11, "day-of-week", "allows '?' in one of the two fields"),
    ("0 0 0 1 * MON", QUARTZ, 11, "day-of-week", "Quartz has no rule for days that both fields restrict"),
    ("0 0 0 */2 * 2#1", QUARTZ, 13, "day-of-week", "together with day-of-month field '*/2' at character 7"),
    (
        "0 0 0 1 1 ? 1969",
        QUARTZ,
        13,
        "year",
        "value '1969' at character 13 is out of range; expected 1970 to 2099",
    ),
    ("0 0 0 1 1 ? 2100", QUARTZ, 13, "year", "out of range"),
    ("0 0 0 1 1 ? 2030-2029", QUARTZ, 13, "year", "'2030-2029' at character 13 ends before it starts"),
    ("0 0 0 1 1 ? H", QUARTZ, 13, "year", "'H' at character 13 is not a value"),
    ("0 0 0 1 1 ? */130", QUARTZ, 15, "year", "use 1 to 129"),
    ("0 0 0 29 2 ? 2027", QUARTZ, 14, "year", "never fires: no year of year field '2027' at character 14"),
    ("0 0 0 30 2 ? 2028", QUARTZ, 7, "day-of-month", "February has no day 30"),
]


def test_every_wrong_field_is_reported_with_its_place():
    with pytest.raises(CronError) as caught:
        parse_cron("61 9 * FOO 9")
    message = caught.value.message
    assert "cron minute field: value '61' at character 1 is out of range" in message
    assert "; cron month field: 'FOO' at character 8 is not a value" in message
    assert "; cron day-of-week field: value '9' at character 12 is out of range" in message
    assert "hour" not in message
    assert (caught.value.position, caught.value.field) == (1, "minute")


@pytest.mark.parametrize(("expression", "position", "field", "said"), ERRORS)
def test_a_bad_expression_is_refused_naming_field_character_and_what_is_allowed(
    expression, position, field, said
):
    with pytest.raises(CronError) as refused:
        parse_cron(expression)
    error = refused.value
    assert (error.position, error.field) == (position, field)
    assert said in error.message
    assert len(error.message) < 450
    assert error.message.isprintable()


@pytest.mark.parametrize(("expression", "options", "position", "field", "said"), OPTION_ERRORS)
def test_a_bad_expression_is_refused_in_every_dialect_and_order(expression, options, position, field, said):
    with pytest.raises(CronError) as refused:
        parse_cron(expression, **options)
    error = refused.value
    assert (error.position, error.field) == (position, field)
    assert said in error.message
    assert len(error.message) < 450


@pytest.mark.parametrize(
    "expression",
    [
        "0," * 100_000 + "0 * * * *",
        "*" * 10_000,
        "1-" * 400 + " * * * *",
        "* " * 499,
        "@" * 999,
        ",".join(["0-59/1"] * 140) + " * * * *",
        "9" * 900 + " * * * *",
        "#" * 996 + " * * * *",
        "0 0 " + "L," * 490 + "L * *",
        "0 0 * * " + "L#" * 490,
        "H(" * 490 + " * * * *",
        "0 0 */30 2 */7",
        "59 23 */30 12 */7",
        "0 0 29 2 1#5,*/7",
    ],
)
def test_no_expression_makes_reading_or_searching_spin(expression):
    began = time.thread_time()
    with contextlib.suppress(CronError):
        following = parse_cron(expression).next(T0)
        assert following is None or following > T0
    assert time.thread_time() - began < 0.5


STEPS = [
    ("*/{} * * * *", 59),
    ("0 */{} * * *", 23),
    ("0 0 */{} * *", 30),
    ("0 0 1 */{} *", 11),
    ("0 0 * * */{}", 7),
]


@pytest.mark.parametrize(("form", "longest"), STEPS)
def test_schedules_and_crontabs_accept_the_same_steps_in_every_field(form, longest):
    for step in range(1, longest + 1):
        assert parse_cron(form.format(step))
        check_fields(form.format(step).split())
    for step in (longest + 1, longest + 2, 99, 1000):
        with pytest.raises(
            CronError, match=rf"use 1 to {longest}; a longer step would leave only the first value"
        ):
            parse_cron(form.format(step))
        with pytest.raises(CrontabError, match=f"longer than {longest}"):
            check_fields(form.format(step).split())


def test_the_seconds_and_the_fields_of_quartz_follow_the_same_rule():
    assert parse_cron("*/59 * * * * *")
    assert parse_cron("0 0 0 ? * */6", dialect="quartz")
    for expression in ("0 0 0 ? * */7", "0 0 0 */31 * ?", "0 0 0 1 */12 ?", "*/60 * * * * ?"):
        with pytest.raises(CronError, match="a longer step would leave only the first value"):
            parse_cron(expression, dialect="quartz")
