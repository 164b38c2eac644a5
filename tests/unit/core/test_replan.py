"""What is due next when the zone data change: against a count of local times, each of which fires once."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import product

import pytest

from noonmark.core.schedules.schedule import AnyOf, Cron, Interval, Once, RRule
from noonmark.core.schedules.zone_change import next_open
from noonmark.core.states import DstGap, DstOverlap
from noonmark.core.zones.zones import Zone

HOUR = timedelta(hours=1)
DAY = date(2026, 11, 1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text)


def zone(*changes: tuple[str, float], first: float = -7) -> Zone:
    """A zone whose clock is `first` hours from UTC, and so many others from each of these instants on."""
    points = [(utc(at), timedelta(hours=hours)) for at, hours in changes]

    def offset_at(at: datetime) -> timedelta:
        return next((offset for start, offset in reversed(points) if at >= start), timedelta(hours=first))

    return Zone("Test/Here", "test", offset_at)


STAYS = zone()
"""Vancouver by the new law: seven hours behind UTC for good."""
FALLS = zone(("2026-11-01T09:00", -8))
"""Vancouver by the old law: the clock goes back on 1 November at 02:00."""
EARLIER = zone(("2026-10-25T09:00", -8))
SPRINGS = zone(("2026-11-01T10:00", -7), first=-8)
"""02:00 to 03:00 is missing on 1 November."""
STAYS_BEHIND = zone(first=-8)
SPRINGS_FAR = zone(("2026-11-01T10:00", -6), first=-8)
HALF = zone(("2026-11-01T09:00", -7.5))


def cron(expression: str, where: Zone, **more: object) -> Cron:
    return Cron(expression=expression, timezone=where, **more)  # type: ignore[arg-type]


def test_b055_the_clock_that_no_longer_goes_back_brings_the_instant_an_hour_forward():
    at, offset = utc("2026-11-01T15:00"), -7 * HOUR
    assert next_open(cron("0 8 * * *", STAYS), at, offset) == utc("2026-11-02T15:00")
    assert next_open(cron("0 8 * * *", FALLS), at, offset) == utc("2026-11-02T16:00")


def test_a_time_that_fired_does_not_fire_again_when_the_clock_turns_out_to_be_behind():
    fired, offset = utc("2026-11-02T15:00"), -7 * HOUR  # 08:00 of a clock that had not gone back
    assert cron("0 8 * * *", FALLS).next(fired) == utc("2026-11-02T16:00"), "08:00 once more"
    assert next_open(cron("0 8 * * *", FALLS), fired, offset) == utc("2026-11-03T16:00")


def test_a_time_that_has_passed_unseen_is_late_when_the_clock_turns_out_to_be_ahead():
    fired, offset = utc("2026-11-02T16:00"), -8 * HOUR  # 08:00 of a clock that went back
    schedule = cron("0,45 8 * * *", STAYS)
    assert next_open(schedule, fired, offset) == utc("2026-11-02T15:45"), "08:45 was a quarter of an hour ago"
    assert schedule.next(utc("2026-11-02T15:45")) == utc("2026-11-03T15:00")


def test_an_instant_that_has_its_run_stays_one_run_whatever_local_time_it_is_now():
    fired, offset = utc("2026-11-02T16:00"), -8 * HOUR  # 08:00, and now 09:00
    assert next_open(cron("0 8,9 * * *", STAYS), fired, offset) == utc("2026-11-03T15:00")


@pytest.mark.parametrize(
    ("where", "offset"), [(STAYS, -8), (FALLS, -7)], ids=["the clock is ahead", "the clock is behind"]
)
@pytest.mark.parametrize("expression", ["*/10 * * * *", "0 * * * *", "* 8 * * *"])
def test_what_goes_by_elapsed_time_goes_on_whatever_the_clock_shows(where, offset, expression):
    at = utc("2026-11-02T16:20")
    schedule = cron(expression, where)
    if expression != "0 * * * *":
        assert next_open(schedule, at, offset * HOUR) == schedule.next(at)
    assert next_open(Interval(every=HOUR, anchor=at), at, offset * HOUR) == at + HOUR


def test_a_time_that_a_new_gap_leaves_out_runs_after_it_unless_it_has_fired():
    schedule = cron("30 2 * * *", SPRINGS)
    day_before, offset = utc("2026-10-31T10:30"), -8 * HOUR
    assert next_open(schedule, day_before, offset, planned=utc("2026-11-01T10:30")) == utc("2026-11-01T10:00")
    fired = utc("2026-11-01T10:30")  # 02:30, before the gap was known of
    assert next_open(schedule, fired, offset) == utc("2026-11-02T09:30")
    just_before = utc("2026-11-01T10:10")  # 02:10: of another rule, or the job was made then
    assert next_open(schedule, just_before, offset) == utc("2026-11-01T10:00")


def test_a_new_gap_keeps_what_fires_at_its_end_and_what_it_shifts():
    at, offset = utc("2026-11-01T10:20"), -8 * HOUR  # 02:20
    assert next_open(cron("0 3 * * *", SPRINGS), at, offset) == utc("2026-11-01T10:00")
    shifted = cron("10,40 2 * * *", SPRINGS, dst_gap=DstGap.SHIFT)
    assert next_open(shifted, at, offset) == utc("2026-11-01T10:40")
    skipped = cron("10,40 2 * * *", SPRINGS, dst_gap=DstGap.SKIP)
    assert next_open(skipped, at, offset) == utc("2026-11-02T09:10")


def test_a_gap_that_is_no_more_gives_the_time_its_place_again():
    schedule = cron("30 2 * * *", STAYS_BEHIND)
    day_before = utc("2026-10-31T10:30")
    assert next_open(schedule, day_before, -8 * HOUR, planned=utc("2026-11-01T10:00")) == utc(
        "2026-11-01T10:30"
    )
    after_gap = utc("2026-11-01T10:00")  # 03:00, when 02:30 ran in its stead
    assert next_open(schedule, after_gap, -7 * HOUR) == utc("2026-11-02T10:30")


@pytest.mark.parametrize(
    ("rule", "first", "then"),
    [
        (DstOverlap.FIRST, "2026-11-01T08:30", "2026-11-02T09:30"),
        (DstOverlap.LAST, "2026-11-01T09:30", "2026-11-02T09:30"),
        (DstOverlap.BOTH, "2026-11-01T08:30", "2026-11-01T09:30"),
    ],
)
def test_an_overlap_that_comes_up_is_served_as_the_job_says(rule, first, then):
    schedule = cron("30 1 * * *", FALLS, dst_overlap=rule)
    day_before, offset = utc("2026-10-31T08:30"), -7 * HOUR
    assert next_open(schedule, day_before, offset, planned=utc("2026-11-01T08:30")) == utc(first)
    fired = utc("2026-11-01T08:30")  # 01:30, before anybody knew that it comes twice
    expected = utc(then) if rule is DstOverlap.BOTH else utc("2026-11-02T09:30")
    assert next_open(schedule, fired, offset, planned=utc("2026-11-02T08:30")) == expected


def test_an_overlap_that_is_no_more_leaves_the_time_its_only_place():
    at, offset = utc("2026-11-01T08:10"), -7 * HOUR
    schedule = cron("30 1 * * *", STAYS, dst_overlap=DstOverlap.LAST)
    assert next_open(schedule, at, offset, planned=utc("2026-11-01T09:30")) == utc("2026-11-01T08:30")
    second_pass = utc("2026-11-01T09:30")  # 01:30 fired in what was the second pass
    assert next_open(schedule, second_pass, -8 * HOUR) == utc("2026-11-02T08:30")


def test_a_time_whose_only_pass_turns_out_to_have_been_the_first_of_two_is_late():
    at, offset = utc("2026-11-01T09:10"), -8 * HOUR  # 01:10 of a clock that was behind all along
    schedule = cron("30 1 * * *", FALLS)
    assert next_open(schedule, at, offset, planned=utc("2026-11-01T09:30")) == utc("2026-11-01T08:30")


def test_a_cursor_without_a_planned_instant_goes_on_after_it_where_the_clock_is_the_same():
    at = utc("2026-11-01T08:40")
    for rule in DstOverlap:
        schedule = cron("30 1 * * *", FALLS, dst_overlap=rule)
        assert next_open(schedule, at, -7 * HOUR) == schedule.next(at)


def test_a_union_carries_each_of_its_members_over():
    fired, offset = utc("2026-11-02T15:00"), -7 * HOUR
    union = AnyOf(
        members=(cron("0 8 * * *", FALLS), cron("30 8 * * *", FALLS), Once(utc("2026-11-02T17:00")))
    )
    assert next_open(union, fired, offset) == utc("2026-11-02T16:30"), "08:00 has fired, 08:30 has not"
    elapsed = AnyOf(members=(cron("0 8 * * *", FALLS), cron("*/20 * * * *", FALLS)))
    assert next_open(elapsed, fired, offset) == utc("2026-11-02T15:20")
    bounded = AnyOf(members=(cron("0 8 * * *", FALLS),), end=utc("2026-11-03T00:00"))
    assert next_open(bounded, fired, offset) is None
    late = AnyOf(members=(cron("45 8 * * *", STAYS),), start=utc("2026-11-02T16:00"))
    assert next_open(late, utc("2026-11-02T16:00"), -8 * HOUR) == utc("2026-11-03T15:45")


def test_a_recurrence_set_is_carried_over_by_its_local_times_and_what_it_has_in_utc_as_it_stands():
    fired, offset = utc("2026-11-02T15:00"), -7 * HOUR
    rule = RRule(
        text="RRULE:FREQ=DAILY\nRDATE:20261102T153000Z",
        dtstart=local("2026-10-01T08:00"),
        timezone=FALLS,
    )
    assert next_open(rule, fired, offset) == utc("2026-11-02T15:30")
    assert next_open(rule, utc("2026-11-02T15:30"), offset) == utc("2026-11-03T16:00")


def test_a_schedule_without_a_zone_goes_on_as_it_is():
    at = utc("2026-11-02T15:00")
    assert next_open(Cron(expression="0 8 * * *"), at, timedelta(0)) == utc("2026-11-03T08:00")


def expected(minutes: list[int], where: Zone, at: datetime, done: datetime, days: int) -> list[datetime]:
    """Where each local time after `done` fires: first pass, or the end of a gap; not where a run is."""
    found = set()
    for day, minute in product(range(-1, days), minutes):
        clock = datetime.combine(DAY, time()) + timedelta(days=day, minutes=minute)
        if clock <= done:
            continue
        images = where.images(clock)
        if images:
            found.add(images[0])
        else:
            segment = where.segment(clock.replace(tzinfo=UTC))
            while segment.local_start <= clock:
                segment = where.segment(segment.end)
            found.add(segment.start)
    return sorted(found - {at})


def test_every_local_time_fires_once_whatever_the_zone_becomes_and_when():
    """All pairs of zones, every ten minutes of the night of the change as the last instant that is done."""
    zones = [STAYS, FALLS, EARLIER, SPRINGS, STAYS_BEHIND, SPRINGS_FAR, HALF]
    compared = 0
    for old, new in product(zones, repeat=2):
        for expression, minutes in (("10,40 1,2 * * *", [70, 100, 130, 160]), ("0 3 * * *", [180])):
            for step in range(8 * 6):
                at = utc("2026-11-01T05:00") + timedelta(minutes=10 * step)
                offset = old.offset(at)
                segment = old.segment(at)
                if segment.before > segment.offset and at < segment.start + (segment.before - segment.offset):
                    continue  # the second pass: what the first has done cannot be told from there
                schedule = cron(expression, new)
                planned = cron(expression, old).next(at)
                first = next_open(schedule, at, offset, planned=planned)
                chain = [first]
                while len(chain) < 7:
                    chain.append(schedule.next(chain[-1]))
                chain = [each for each in chain if each != at]  # the ledger has a run for it
                right = expected(minutes, new, at, (at + offset).replace(tzinfo=None), 8)
                assert chain[:6] == right[:6], (old.segment(at), new.segment(at), at, expression)
                compared += 1
    print(f"{compared} switches of zone data compared")
