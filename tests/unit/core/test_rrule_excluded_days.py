"""`EXDATE;VALUE=DATE` and a semicolon at the end of a rule, as calendar programs write them."""

# ruff: noqa: DTZ001 - recurrence rules are about naive wall-clock times
from datetime import datetime

from noonmark.core.rrule.recurrence_set import parse_rrule

START = datetime(2026, 3, 6, 2, 0)


def times(text: str, until: datetime) -> list[datetime]:
    found = []
    (rule,) = parse_rrule(text, dtstart=START).rules
    following = rule.next(datetime(2026, 1, 1))
    while following is not None and following <= until:
        found.append(following)
        following = rule.next(following)
    return found


def test_an_excluded_day_removes_all_of_its_times():
    found = times("RRULE:FREQ=DAILY;BYHOUR=2,14\nEXDATE;VALUE=DATE:20260307,20260309", datetime(2026, 3, 10))
    assert found == [datetime(2026, 3, day, hour) for day in (6, 8) for hour in (2, 14)]


def test_the_normal_form_is_read_again_as_the_same_set():
    recurrence = parse_rrule("RRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20260307", dtstart=START)
    assert "EXDATE;VALUE=DATE:20260307" in recurrence.text
    assert parse_rrule(recurrence.text, dtstart=START).rules == recurrence.rules


def test_an_excluded_day_without_times_is_warned_of():
    recurrence = parse_rrule("RRULE:FREQ=WEEKLY;BYDAY=FR\nEXDATE;VALUE=DATE:20260307", dtstart=START)
    assert any("excludes nothing" in warning for warning in recurrence.warnings)


def test_an_excluded_day_removes_single_dates_too():
    recurrence = parse_rrule(
        "RRULE:FREQ=WEEKLY\nRDATE:20260307T050000\nEXDATE;VALUE=DATE:20260307", dtstart=START
    )
    assert recurrence.dates.moments == ()


def test_a_semicolon_at_the_end_of_a_rule_changes_nothing():
    for text in ("FREQ=DAILY;", "RRULE:FREQ=DAILY;BYHOUR=2; "):
        plain = text.strip().rstrip(";")
        assert parse_rrule(text, dtstart=START).rules == parse_rrule(plain, dtstart=START).rules
