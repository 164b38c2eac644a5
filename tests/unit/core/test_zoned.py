"""Rules on the wall clock where clocks change, case by case; tests/property walks through every change."""

# ruff: noqa: DTZ001 - local times are naive

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from tests.support.local_times import COMBINATIONS, MINUTE, RULES, Times, at_minutes, every, wall

from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.local_times import CLOCK_CHANGE, GapRule, OverlapRule, Zoned, resolve_auto
from noonmark.core.zones.zones import MAX_AT, MIN_AT, UTC_ZONE, Zone, ZoneData, load_zone

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SECOND, TICK = timedelta(seconds=1), timedelta(microseconds=1)
AUTO = (DstGap.AUTO, DstOverlap.AUTO)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def zoned(rule, name: str, gap=DstGap.AUTO, overlap=DstOverlap.AUTO, *, kind="cron", wild=False) -> Zoned:
    return Zoned(rule, load_zone(name), *resolve_auto(gap, overlap, kind=kind, wild=wild))


def fires(of: Zoned, after: str | datetime, count: int) -> list[str]:
    at = utc(after) if isinstance(after, str) else after
    found = []
    for _ in range(count):
        at = of.next(at)
        if at is None:
            break
        assert of.previous(at) == at
        found.append(f"{at:%Y-%m-%dT%H:%M}" + (f":{at:%S}" if at.second else ""))
    return found


@pytest.mark.parametrize(
    ("clock", "zone", "after", "expected", "note"),
    [
        ("02:30", "America/New_York", "2026-03-08T00:00", "2026-03-08T07:00", "moved: 02:30 does not exist"),
        ("01:30", "Europe/Dublin", "2026-03-29T00:00", "2026-03-29T01:00", "moved: 01:30 does not exist"),
        ("01:30", "Europe/Dublin", "2026-10-25T00:00", "2026-10-25T00:30", "first of two 01:30"),
        ("02:15", "Australia/Lord_Howe", "2026-10-03T00:00", "2026-10-03T15:30", "moved: 02:15 does not exist"),
        ("01:45", "Australia/Lord_Howe", "2026-04-04T00:00", "2026-04-04T14:45", "first of two 01:45"),
        ("02:59", "Antarctica/Troll", "2026-03-28T12:00", "2026-03-29T01:00", "moved: 02:59 does not exist"),
        ("01:30", "Antarctica/Troll", "2026-10-24T12:00", "2026-10-24T23:30", "first of two 01:30"),
        ("00:00", "Africa/Cairo", "2024-04-25T12:00", "2024-04-25T22:00", "moved: 00:00 does not exist"),
        ("00:00", "America/Santiago", "2024-09-07T12:00", "2024-09-08T04:00", "moved: 00:00 does not exist"),
        ("23:30", "America/Santiago", "2024-04-06T12:00", "2024-04-07T02:30", "first of two 23:30"),
        ("02:30", "Africa/Casablanca", "2026-02-14T12:00", "2026-02-15T01:30", "first of two 02:30"),
        ("02:30", "Africa/Casablanca", "2026-03-21T12:00", "2026-03-22T02:00", "moved: 02:30 does not exist"),
        ("01:30", "Europe/Moscow", "2014-10-25T12:00", "2014-10-25T21:30", "first of two 01:30"),
        ("02:45", "America/Caracas", "2016-04-30T12:00", "2016-05-01T07:00", "moved: 02:45 does not exist"),
        ("23:45", "Asia/Pyongyang", "2018-05-03T16:00", "2018-05-04T15:00", "moved: 2018-05-04 23:45 does not exist"),
        ("12:00", "Pacific/Apia", "2011-12-30T00:00", "2011-12-30T22:00", None),
        ("12:00", "Pacific/Kwajalein", "1993-08-21T11:00", "1993-08-22T00:00", None),
        ("09:00", "America/New_York", "2026-03-08T00:00", "2026-03-08T13:00", None),
    ],
)  # fmt: skip
def test_a_fixed_time_fires_once_whatever_the_clocks_do(clock, zone, after, expected, note):
    of = zoned(at_minutes(clock), zone)
    assert fires(of, after, 1) == [expected]
    assert of.note(utc(expected)) == note


def test_a_day_that_a_country_skipped_is_removed_by_auto_and_made_up_on_request():
    noon, night = at_minutes("12:00"), ("2011-12-30T00:00", "2011-12-31T00:00")
    assert zoned(noon, "Pacific/Apia").removed(*map(utc, night), 10) == [
        (datetime(2011, 12, 30, 12), "removed: 12:00 does not exist")
    ]
    run_after = zoned(noon, "Pacific/Apia", DstGap.RUN_AFTER)
    assert fires(run_after, night[0], 2) == ["2011-12-30T10:00", "2011-12-30T22:00"]
    assert run_after.note(utc("2011-12-30T10:00")) == "moved: 2011-12-30 12:00 does not exist"
    assert run_after.removed(*map(utc, night), 10) == []
    shift = zoned(noon, "Pacific/Apia", DstGap.SHIFT)
    assert fires(shift, night[0], 2) == ["2011-12-30T22:00", "2011-12-31T22:00"]
    assert shift.note(utc("2011-12-30T22:00")) == "also runs for 2011-12-30 12:00, which does not exist"
    assert shift.count(*map(utc, night)) == 1


def test_a_day_that_came_twice_fires_twice_by_auto():
    noon = at_minutes("12:00")
    night = "1969-09-29T20:00"
    assert fires(zoned(noon, "Pacific/Kwajalein"), night, 3) == [
        "1969-09-30T01:00",
        "1969-10-01T00:00",
        "1969-10-02T00:00",
    ]
    first = zoned(noon, "Pacific/Kwajalein", overlap=DstOverlap.FIRST)
    assert fires(first, night, 2) == ["1969-09-30T01:00", "1969-10-02T00:00"]
    last = zoned(noon, "Pacific/Kwajalein", overlap=DstOverlap.LAST)
    assert fires(last, night, 2) == ["1969-10-01T00:00", "1969-10-02T00:00"]


@pytest.mark.parametrize(
    ("gap", "expected", "notes"),
    [
        (DstGap.RUN_AFTER, ["07:00"], ["moved: 02:15 and 02:45 do not exist"]),
        (
            DstGap.SHIFT,
            ["07:15", "07:45"],
            ["shifted: 02:15 does not exist", "shifted: 02:45 does not exist"],
        ),
        (DstGap.SKIP, [], []),
    ],
)
def test_times_in_a_gap_fire_by_the_rule_chosen_and_say_so(gap, expected, notes):
    of = zoned(at_minutes("02:15", "02:45"), "America/New_York", gap)
    start, end = utc("2026-03-08T05:00"), utc("2026-03-08T10:00")
    found = fires(of, start, of.count(start, end))
    assert found == [f"2026-03-08T{clock}" for clock in expected]
    assert [of.note(utc(at)) for at in found] == notes
    removed = [] if expected else [datetime(2026, 3, 8, 2, 15), datetime(2026, 3, 8, 2, 45)]
    assert [local for local, _ in of.removed(start, end, 10)] == removed
    assert [local for local, _ in of.removed(start, end, 1)] == removed[:1]
    assert (
        of.removed(start, utc("2026-03-08T07:00") - TICK, 9)
        == of.removed(utc("2026-03-08T07:00"), end, 9)
        == []
    )


def test_a_moved_time_that_meets_a_regular_one_is_one_fire():
    hourly = zoned(every(60), "America/New_York")
    assert fires(hourly, "2026-03-08T05:30", 3) == [
        "2026-03-08T06:00",
        "2026-03-08T07:00",
        "2026-03-08T08:00",
    ]
    assert hourly.note(utc("2026-03-08T07:00")) == "also runs for 02:00, which does not exist"
    shift = zoned(every(15), "America/New_York", DstGap.SHIFT)
    assert shift.count(utc("2026-03-08T06:00"), utc("2026-03-08T08:00")) == 8


def test_a_gap_with_many_times_is_noted_in_a_few_words():
    of = zoned(every(1), "America/New_York", DstGap.RUN_AFTER)
    assert (
        of.note(utc("2026-03-08T07:00"))
        == "also runs for 02:00, 02:01, 02:02 and 57 more, which do not exist"
    )
    removed = zoned(every(1), "America/New_York", wild=True).removed(utc("2026-01-01T00:00"), MAX_AT, 61)
    assert len(removed) == 61
    assert removed[59:] == [
        (datetime(2026, 3, 8, 2, 59), "removed: 02:59 does not exist"),
        (datetime(2027, 3, 14, 2), "removed: 02:00 does not exist"),
    ]


@pytest.mark.parametrize(
    ("overlap", "expected", "notes"),
    [
        (DstOverlap.FIRST, ["05:30"], ["first of two 01:30"]),
        (DstOverlap.LAST, ["06:30"], ["last of two 01:30"]),
        (DstOverlap.BOTH, ["05:30", "06:30"], [None, "second pass: 01:30 occurs twice"]),
    ],
)
def test_a_time_that_comes_twice_fires_by_the_rule_chosen_and_says_so(overlap, expected, notes):
    of = zoned(at_minutes("01:30"), "America/New_York", overlap=overlap)
    start, end = utc("2026-11-01T04:00"), utc("2026-11-01T10:00")
    found = fires(of, start, of.count(start, end))
    assert found == [f"2026-11-01T{clock}" for clock in expected]
    assert [of.note(utc(at)) for at in found] == notes
    assert of.removed(start, end, 10) == []


def test_only_what_lies_within_the_repeated_hour_is_noted():
    noted = {}
    for overlap in (DstOverlap.FIRST, DstOverlap.LAST, DstOverlap.BOTH):
        of = zoned(every(60), "America/New_York", overlap=overlap)
        found = fires(of, "2026-11-01T03:59", of.count(utc("2026-11-01T03:59"), utc("2026-11-01T07:00")))
        noted[overlap] = [(at[11:], of.note(utc(at))) for at in found]
    assert noted == {
        DstOverlap.FIRST: [("04:00", None), ("05:00", "first of two 01:00"), ("07:00", None)],
        DstOverlap.LAST: [("04:00", None), ("06:00", "last of two 01:00"), ("07:00", None)],
        DstOverlap.BOTH: [
            *(("04:00", None), ("05:00", None)),
            *(("06:00", "second pass: 01:00 occurs twice"), ("07:00", None)),
        ],
    }


def test_an_instant_that_is_no_fire_has_no_note():
    of = zoned(at_minutes("01:30", "02:30"), "America/New_York")
    for at in (
        "2026-11-01T06:30",
        "2026-11-01T05:31",
        "2026-03-08T07:30",
        "2026-03-08T06:00",
        "2026-06-01T07:00",
    ):
        assert of.note(utc(at)) is None


def test_seconds_are_named_where_there_are_some():
    of = zoned(Times((datetime(2026, 3, 8, 2, 30, 5),)), "America/New_York")
    assert fires(of, MIN_AT, 3) == ["2026-03-08T07:00"]
    assert of.note(utc("2026-03-08T07:00")) == "moved: 02:30:05 does not exist"
    assert of.next(utc("2026-03-08T07:00") - TICK) == utc("2026-03-08T07:00")
    assert of.next(utc("2026-03-08T07:00")) is None


def test_mean_time_keeps_its_seconds():
    of = zoned(Times((datetime(1850, 6, 1, 12),)), "America/New_York")
    assert fires(of, MIN_AT, 2) == ["1850-06-01T16:56:02"]


@pytest.mark.parametrize("overlap", list(DstOverlap))
def test_an_exhausted_rule_is_looked_at_again_in_the_second_pass_only(overlap):
    times = Times((datetime(2026, 11, 1, 1, 30),))
    of = zoned(times, "America/New_York", overlap=overlap)
    expected = {DstOverlap.BOTH: ["05:30", "06:30"], DstOverlap.LAST: ["06:30"]}.get(overlap, ["05:30"])
    assert fires(of, MIN_AT, 5) == [f"2026-11-01T{clock}" for clock in expected]
    assert fires(of, "2026-11-01T05:50", 5) == [
        f"2026-11-01T{clock}" for clock in expected if clock > "05:50"
    ]
    assert of.previous(MAX_AT) == utc(f"2026-11-01T{expected[-1]}")
    assert of.previous(utc("2026-11-01T05:29")) is None
    assert of.count(utc("1970-01-01T00:00"), utc("2100-01-01T00:00")) == len(expected)


class Counting(Times):
    """Also counts how often it is asked."""

    def __init__(self, times: tuple[datetime, ...]) -> None:
        super().__init__(times)
        object.__setattr__(self, "asked", [])

    def next(self, after: datetime) -> datetime | None:
        self.asked.append(after)
        return super().next(after)

    def previous(self, at: datetime) -> datetime | None:
        self.asked.append(at)
        return super().previous(at)


def test_a_rare_time_is_found_by_asking_the_rule_a_few_times_and_not_once_per_change():
    rule = Counting((datetime(2024, 2, 29, 12), datetime(2064, 2, 29, 12)))
    zone = ZoneData.packaged().zone("America/New_York")
    of = Zoned(rule, zone, *resolve_auto(*AUTO, kind="cron", wild=False))
    assert of.next(utc("2024-07-01T00:00")) == utc("2064-02-29T17:00")
    assert of.previous(utc("2064-01-01T00:00")) == utc("2024-02-29T17:00")
    assert of.next(utc("2070-01-01T00:00")) is None
    assert of.previous(utc("2020-01-01T00:00")) is None
    assert len(rule.asked) <= 12
    assert len(zone._years) <= 8


@pytest.mark.parametrize("name", ["UTC", "Etc/GMT+12", "Etc/GMT-14", "America/New_York", "Pacific/Apia"])
def test_the_ends_of_the_calendar_raise_nothing(name):
    for rule, (gap, overlap) in product((every(1), at_minutes("00:00", "23:59")), COMBINATIONS):
        of = Zoned(rule, load_zone(name), gap, overlap)
        for at in (MIN_AT, MIN_AT + DAY, MAX_AT - DAY, MAX_AT - SECOND, MAX_AT):
            later, sooner = of.next(at), of.previous(at)
            assert later is None or later > at
            assert sooner is None or sooner <= at
            assert of.note(at) is None
        assert of.next(MAX_AT) is None
        assert of.count(MIN_AT, MIN_AT) == 0
        assert of.count(MAX_AT - DAY, MAX_AT) > 0
        assert of.count(MIN_AT, MIN_AT + 2 * DAY) > 0


def test_utc_is_a_zone_without_changes():
    of = zoned(at_minutes("02:30"), "UTC")
    assert of.zone is UTC_ZONE
    assert of.count(utc("2026-01-01T00:00"), utc("2027-01-01T00:00")) == 365
    assert of.removed(MIN_AT, MAX_AT, 5) == []


def test_an_instant_in_another_offset_is_the_same_instant():
    of = zoned(at_minutes("02:30"), "America/New_York")
    at = utc("2026-03-08T05:00")
    assert of.next(at.astimezone(wall("Asia/Beirut"))) == of.next(at) == utc("2026-03-08T07:00")
    assert of.next(at).tzinfo is UTC
    with pytest.raises(ValueError, match="no offset"):
        of.next(datetime(2026, 3, 8, 5))


def test_equal_parts_make_equal_schedules_that_hash():
    assert zoned(every(5), "Europe/Berlin") == zoned(every(5), "Europe/Berlin")
    assert hash(zoned(every(5), "Europe/Berlin")) == hash(zoned(every(5), "Europe/Berlin"))
    assert zoned(every(5), "Europe/Berlin") != zoned(every(5), "Europe/Paris")


def test_auto_stands_for_the_cronie_rule_and_for_rfc_5545_and_leaves_explicit_values_alone():
    assert resolve_auto(*AUTO, kind="cron", wild=True) == (GapRule(DstGap.SKIP), OverlapRule(DstOverlap.BOTH))
    assert resolve_auto(*AUTO, kind="cron", wild=False) == (
        GapRule(DstGap.RUN_AFTER, CLOCK_CHANGE),
        OverlapRule(DstOverlap.FIRST, CLOCK_CHANGE),
    )
    for wild in (True, False):
        assert resolve_auto(*AUTO, kind="rrule", wild=wild) == (
            GapRule(DstGap.SHIFT),
            OverlapRule(DstOverlap.FIRST),
        )
        for gap, overlap in product(list(DstGap)[1:], list(DstOverlap)[1:]):
            assert resolve_auto(gap, overlap, kind="cron", wild=wild) == (GapRule(gap), OverlapRule(overlap))
    assert GapRule(DstGap.RUN_AFTER, 3 * HOUR).for_size(3 * HOUR) is DstGap.RUN_AFTER
    assert GapRule(DstGap.RUN_AFTER, 3 * HOUR).for_size(3 * HOUR + SECOND) is DstGap.SKIP


def test_a_change_of_exactly_three_hours_is_made_up_and_a_longer_one_is_not():
    casey = zoned(at_minutes("01:00"), "Antarctica/Casey")  # 00:01 became 03:01
    assert fires(casey, "2020-10-03T12:00", 1) == ["2020-10-03T16:01"]
    assert casey.note(utc("2020-10-03T16:01")) == "moved: 01:00 does not exist"
    vostok = zoned(at_minutes("01:00"), "Antarctica/Vostok")  # midnight became 07:00
    assert fires(vostok, "1994-10-31T12:00", 1) == ["1994-11-01T18:00"]
    back = zoned(at_minutes("20:00"), "Antarctica/Vostok")  # midnight had become 17:00
    assert fires(back, "1994-01-31T12:00", 2) == ["1994-01-31T13:00", "1994-01-31T20:00"]


def test_zone_data_that_make_no_sense_still_give_fires_in_order_and_once():
    # Two hours forward, one back after 30 minutes, four forward a day later, for ten minutes.
    start = utc("2026-06-01T00:00")
    steps = (
        (DAY + 10 * MINUTE, 3),
        (DAY, 5),
        (5 * HOUR + 30 * MINUTE, 1),
        (5 * HOUR, 2),
        (MIN_AT - start, 0),
    )

    def offset_at(at: datetime) -> timedelta:
        return next(hours * HOUR for after, hours in steps if at - start >= after)

    zone = Zone("Nowhere/Land", "2026z", offset_at)
    assert [zone.segment(start + after).start - start for after, _ in steps[:4]] == [
        after for after, _ in steps[:4]
    ]
    for rule, (gap, overlap) in product(RULES, COMBINATIONS):
        of = Zoned(rule, zone, gap, overlap)
        ahead, at = [], start
        while (at := of.next(at)) < start + 3 * DAY:
            ahead.append(at)
        back, at = [], start + 3 * DAY - TICK
        while (at := of.previous(at)) > start:
            back.append(at)
            at -= TICK
        assert ahead == sorted(set(ahead)) == back[::-1]
        assert of.count(start, start + 3 * DAY - TICK) == len(ahead)
