"""What a schedule will do, and how two differ."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.schedules.documents import Context, read_document
from noonmark.core.schedules.preview import MAX_COMPARED, diff, differing_fields, preview
from noonmark.core.zones.zones import load_zone

MARCH = datetime(2026, 3, 6, 12, tzinfo=UTC)
NEW_YORK = "America/New_York"


def schedule(document, zone=NEW_YORK, after=MARCH, calendars=None):
    return read_document(document, Context(after, zone, "billing", calendars))


def times(fires):
    return [fire.local.isoformat() for fire in fires]


def test_fires_show_the_wall_clock_with_its_offset_and_what_the_clocks_did():
    found = preview(schedule("30 2 * * *"), MARCH, None, 3)
    assert [fire.at.isoformat() for fire in found.fires] == [
        "2026-03-07T07:30:00+00:00", "2026-03-08T07:00:00+00:00", "2026-03-09T06:30:00+00:00",
    ]  # fmt: skip
    assert times(found.fires) == [
        "2026-03-07T02:30:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00",
    ]  # fmt: skip
    assert [fire.note for fire in found.fires] == [None, "moved: 02:30 does not exist", None]
    assert not found.complete
    assert found.removed == []


@pytest.mark.parametrize("overlap", ["first", "last", "both", "auto"])
@pytest.mark.parametrize("gap", ["run_after", "skip", "shift", "auto"])
@pytest.mark.parametrize("cron", ["30 1 * * *", "30 2 * * *", "*/20 * * * *", "0 3 * * *", "15,45 0-4 * * *"])
def test_every_note_of_the_schedule_is_shown(cron, gap, overlap):
    rule = schedule({"cron": cron, "dst_gap": gap, "dst_overlap": overlap})
    for change in (datetime(2026, 3, 7, tzinfo=UTC), datetime(2026, 10, 31, tzinfo=UTC)):
        found = preview(rule, change, change + timedelta(days=3), 1000)
        assert [fire.note for fire in found.fires] == [rule.note(fire.at) for fire in found.fires]


def test_what_the_clocks_take_away_is_listed_as_far_as_the_fires_go():
    rule = schedule({"cron": "30 2 * * *", "dst_gap": "skip"})
    found = preview(rule, MARCH, None, 2)
    assert times(found.fires) == ["2026-03-07T02:30:00-05:00", "2026-03-09T02:30:00-04:00"]
    assert [(gone.local.isoformat(), gone.note) for gone in found.removed] == [
        ("2026-03-08T02:30:00", "removed: 02:30 does not exist")
    ]
    assert preview(rule, MARCH, None, 1).removed == []
    assert len(preview(rule, MARCH, MARCH + timedelta(days=2), 9).removed) == 1


def test_what_a_calendar_takes_away_is_listed_too():
    calendars = {"holidays": Calendar.parse({"dates": ["2026-03-09"]})}
    rule = schedule({"cron": "0 9 * * *", "calendars": {"exclude": ["holidays"]}}, calendars=calendars)
    found = preview(rule, MARCH, None, 3)
    assert times(found.fires) == [
        "2026-03-06T09:00:00-05:00", "2026-03-07T09:00:00-05:00", "2026-03-08T09:00:00-04:00",
    ]  # fmt: skip
    assert [gone.local.day for gone in preview(rule, MARCH, None, 4).removed] == [9]


@pytest.mark.parametrize(
    ("document", "until", "count", "fires", "complete"),
    [
        ({"at": "2026-04-01T00:00:00Z"}, None, 5, 1, True),
        ({"at": "2026-04-01T00:00:00Z"}, "2026-03-20", 5, 0, False),
        ({"at": "2026-01-01T00:00:00Z"}, None, 5, 0, True),
        ({"cron": "0 9 * * *", "end": "2026-03-10T00:00:00Z"}, None, 10, 4, True),
        ({"cron": "0 9 * * *", "end": "2026-03-10T00:00:00Z"}, None, 4, 4, True),
        ({"cron": "0 9 * * *", "end": "2026-03-10T00:00:00Z"}, None, 3, 3, False),
        ({"cron": "0 9 * * *", "end": "2026-03-01T00:00:00Z"}, None, 3, 0, True),
        ({"cron": "0 9 * * *"}, "2026-03-08", 10, 2, False),
        ({"cron": "0 9 * * *", "max_runs": 2}, None, 10, 2, True),
        ({"cron": "0 9 * * *", "max_runs": 2}, None, 1, 1, False),
        ({"rrule": "FREQ=DAILY;COUNT=3", "dtstart": "2026-03-06T20:00:00"}, None, 10, 3, True),
        ({"cron": "0 0 9 1 1 ? 2027", "dialect": "quartz"}, None, 10, 1, True),
    ],
    ids=lambda value: str(value)[:50],
)
def test_complete_says_whether_a_fire_can_follow(document, until, count, fires, complete):
    stop = datetime.fromisoformat(f"{until}T23:00:00+00:00") - timedelta(days=1) if until else None
    found = preview(schedule(document), MARCH, stop, count)
    assert (len(found.fires), found.complete) == (fires, complete)


def test_fires_come_strictly_after_and_up_to_the_end_of_the_window():
    rule = schedule("0 12 * * *", "UTC")
    found = preview(rule, MARCH, MARCH + timedelta(days=1), 10)
    assert [fire.at for fire in found.fires] == [MARCH + timedelta(days=1)]


def test_another_zones_clock_can_be_shown():
    found = preview(schedule({"every": "PT1H"}), MARCH, None, 1, zone=load_zone("Asia/Kolkata"))
    assert times(found.fires) == ["2026-03-06T18:30:00+05:30"]
    early = datetime(1936, 1, 1, tzinfo=UTC)
    monrovia = preview(schedule("0 9 * * *", "Africa/Monrovia"), early, None, 1)
    assert times(monrovia.fires) == ["1936-01-01T09:00:00-00:44:30"]


@pytest.mark.parametrize(
    "document",
    ["30 2 * * *", "*/5 * * * *", "* * * * * *", {"every": 60}, {"cron": "30 2 * * *", "dst_gap": "skip"}],
    ids=str,
)
def test_ten_thousand_fires_take_less_than_a_second(document):
    rule = schedule(document)
    started = time.process_time()
    assert len(preview(rule, MARCH, None, 10_000).fires) == 10_000
    assert time.process_time() - started < 1


def test_a_difference_is_what_only_one_of_two_schedules_fires():
    until = MARCH + timedelta(days=3)
    found = diff(schedule("0 9 * * *"), schedule("0 9,17 * * 6,0"), MARCH, until, 100)
    assert times(found.added) == ["2026-03-07T17:00:00-05:00", "2026-03-08T17:00:00-04:00"]
    assert times(found.removed) == ["2026-03-06T09:00:00-05:00"]
    assert (found.until, found.complete) == (until, True)


def test_a_difference_counts_runs_as_the_preview_does():
    until = MARCH + timedelta(days=10)
    for runs in (1, 3, 10, 11):
        limited = schedule({"cron": "0 9 * * *", "max_runs": runs})
        found = diff(limited, schedule("0 9 * * *"), MARCH, until, 100)
        assert len(found.added) == 10 - min(runs, 10)
        assert found.removed == []
        assert found.complete


def test_a_difference_that_fills_its_limit_is_complete_where_nothing_follows():
    once = schedule({"at": "2026-03-07T14:30:00Z"})
    found = diff(schedule({"at": "2026-03-07T14:00:00Z"}), once, MARCH, MARCH + timedelta(days=10), 1)
    assert (len(found.added), len(found.removed), found.complete) == (1, 1, True)


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ("0 9 * * *", {"cron": "0 9 * * *", "dst_gap": "auto", "timezone": NEW_YORK}, []),
        ("0 9 * * *", {"cron": "0 9 * * *", "jitter_seconds": 5}, ["jitter_seconds"]),
        ("0 9 * * *", {"cron": "0 9 * * *", "end": "2126-01-01T00:00:00Z"}, ["end"]),
        (["0 9 * * *", "0 8 * * *"], {"any": ["0 9 * * *", "0 8 * * *"], "dst_gap": "skip"}, ["dst_gap"]),
        ({"every": 60}, {"every": 60, "start": "2026-03-06T12:00:00Z"}, ["start"]),
        ({"every": 60}, {"every": 90}, ["every"]),
        ({"at": "2026-04-01T00:00:00Z"}, {"at": "2026-05-01T00:00:00Z"}, ["at"]),
    ],
    ids=str,
)
def test_fields_that_differ_are_those_of_documents(old, new, fields):
    assert differing_fields(schedule(old), schedule(new)) == fields
    assert differing_fields(schedule(new), schedule(old)) == fields


def test_a_difference_between_rules_for_the_clocks_shows_what_they_did():
    found = diff(
        schedule("30 2 * * *"),
        schedule({"cron": "30 2 * * *", "dst_gap": "shift"}),
        MARCH,
        MARCH + timedelta(days=30),
        100,
    )
    assert [fire.note for fire in found.removed] == ["moved: 02:30 does not exist"]
    assert [fire.note for fire in found.added] == ["shifted: 02:30 does not exist"]


def test_equal_schedules_differ_in_nothing_and_one_that_has_ended_in_the_rest():
    until = MARCH + timedelta(days=10)
    assert diff(schedule("0 9 * * *"), schedule("0 9 * * *"), MARCH, until, 10).added == []
    ended = schedule({"at": "2026-03-07T14:00:00Z"})
    found = diff(ended, schedule("0 9 * * *"), MARCH, until, 100)
    assert (len(found.added), len(found.removed)) == (9, 0)


def test_a_difference_is_cut_at_its_limit_and_says_how_far_it_came():
    until = MARCH + timedelta(days=10)
    found = diff(schedule("0 9 * * *"), schedule("30 9 * * *"), MARCH, until, 3)
    assert not found.complete
    assert len(found.removed) == 3
    assert found.until == max(fire.at for fire in [*found.added, *found.removed])


def test_a_difference_of_schedules_of_every_second_is_bounded(monkeypatch):
    assert MAX_COMPARED <= 200_000, "two seconds of work"
    monkeypatch.setattr("noonmark.core.schedules.preview.MAX_COMPARED", 5_000)
    found = diff(schedule("* * * * * *"), schedule("* * * * * *"), MARCH, MARCH + timedelta(days=30), 10)
    assert not found.complete
    assert found.until == MARCH + timedelta(seconds=5_000)
