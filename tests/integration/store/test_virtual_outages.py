"""Outages, changes of clocks and restarts on a virtual clock: a small part of tests/virtual, and known bugs of others."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.virtual.outages import (
    KINDS,
    LENGTHS,
    Outage,
    around,
    down,
    go_through,
    ledger,
    paused,
    slow,
)
from tests.virtual.system import job_document, system_of, utc
from tests.virtual.verdicts import Row

from noonmark.schemas.problems.refusal import Refused


@pytest.fixture(scope="module")
def database(postgres_server, template_database):
    with system_of(postgres_server, template_database, utc("2026-01-01T00:00:00Z")) as system:
        yield system


@pytest.fixture
def system(database):
    yield database
    for trigger in list(database.triggers):
        database.stop_trigger(trigger, leave=True)


TWO_HOURS, _, SPRING, AUTUMN = LENGTHS


@pytest.mark.parametrize(
    "outage",
    [
        down(*TWO_HOURS),
        down(*SPRING),
        down(*AUTUMN),
        paused(*TWO_HOURS, "skip"),
        paused(*TWO_HOURS, "latest"),
        paused(*AUTUMN, "all"),
        slow("90 s late", "2026-03-08T06:27:00Z", claims=12, apart=3, late=90),
    ],
    ids=lambda outage: outage.name,
)
def test_every_missed_instant_has_the_verdict_of_its_policy(system, outage):
    # Thousands of runs are for tests/virtual: those of a minute's rhythm are here in the short stories only.
    kinds = KINDS if outage.name.count("2 h") or "slow" in outage.name else KINDS[1:]

    result = go_through(system, outage, kinds=kinds, row_cap=40)

    assert not result.wrong, "\n".join(result.wrong)
    assert all(told.instants for told in result.told.values())


def test_a_flood_is_worked_off_in_claims_of_no_more_runs_than_the_cap(system):
    created, before, _ = around(utc("2026-05-31T22:30:30Z"), utc("2026-06-01T00:30:30Z"))
    claims = [(utc("2026-06-01T00:30:30Z") + timedelta(seconds=20 * n), "claim once") for n in range(20)]

    result = go_through(system, Outage("down 2 h", created, [*before, *claims]), run_cap=7, row_cap=20)

    assert not result.wrong, "\n".join(result.wrong)
    per_claim = "select count(*) as n from runs where state = 'queued' group by job_id, queued_at"
    assert system.value(f"select max(n) from ({per_claim}) as claims") == 7


def fires(system, job_id):
    return [f"{row.at:%d %H:%M:%S}" for row in ledger(system, job_id) if row.state == "queued"]


def start(system, at, **settings):
    system.empty(utc(at))
    return system.start_trigger(**settings)


def claim_at(system, at):
    system.turn_to(utc(at))
    system.claim()


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("auto", ["01 05:30:00"]),
        ("first", ["01 05:30:00"]),
        ("last", ["01 06:30:00"]),
        ("both", ["01 05:30:00", "01 06:30:00"]),
    ],
)
def test_a_repeated_hour_passed_in_quarters_of_a_second_fires_no_more_often_than_the_rule_says(
    system, overlap, expected
):
    """A periodic job was once dispatched thousands of times there."""
    start(system, "2026-11-01T04:59:00Z")
    schedule = {"cron": "30 1 * * *", "timezone": "America/New_York", "dst_overlap": overlap}
    job_id = system.create("nightly", schedule)
    passes = 0
    due_at = system.next_at()
    now = utc("2026-11-01T05:00:00Z")
    for _ in range(43_200):
        if due_at is not None and due_at <= now:  # where a trigger's probe would find something
            system.turn_to(now)
            passes += system.claim()
            due_at = system.next_at()
        now += timedelta(milliseconds=250)

    assert now == utc("2026-11-01T08:00:00Z")
    assert fires(system, job_id) == expected
    assert passes == len(expected)


def test_a_new_trigger_plans_in_the_zone_of_the_job(system):
    first = start(system, "2026-06-01T00:00:00Z")
    job_id = system.create("breakfast", {"cron": "0 7 * * *", "timezone": "Asia/Tokyo"})
    claim_at(system, "2026-06-01T22:00:00Z")
    system.stop_trigger(first)
    system.start_trigger()
    claim_at(system, "2026-06-02T22:00:01Z")

    assert fires(system, job_id) == ["01 22:00:00", "02 22:00:00"]
    assert system.next_at() == utc("2026-06-03T22:00:00Z")


def test_a_pause_of_more_than_a_hundred_missed_starts_ends_with_one_run_and_one_summary(system):
    start(system, "2026-06-01T00:00:00Z", ledger_cap=100)
    job_id = system.create("minutely", "* * * * *")
    system.turn_to(utc("2026-06-01T00:00:30Z"))
    system.submit("pause", [{"job_id": str(job_id)}])
    system.turn_to(utc("2026-06-01T03:00:30Z"))
    system.submit("resume", [{"job_id": str(job_id), "missed": "latest"}])
    system.claim()
    claim_at(system, "2026-06-01T03:01:00Z")

    assert ledger(system, job_id) == [
        Row(utc("2026-06-01T00:01:00Z"), "skipped", "coalesced", utc("2026-06-01T02:59:00Z"), 179),
        Row(utc("2026-06-01T03:00:00Z"), "queued"),
        Row(utc("2026-06-01T03:01:00Z"), "queued"),
    ]


@pytest.mark.parametrize("policy", ["fire_all", "fire_latest", "skip"])
def test_a_claim_that_is_half_a_minute_late_runs_late_and_says_so(system, policy):
    start(system, "2026-06-01T00:00:00Z")
    job_id = system.create("minutely", "* * * * *", misfire=policy)
    claim_at(system, "2026-06-01T00:01:30Z")

    assert fires(system, job_id) == ["01 00:01:00"]
    late = system.value("select queued_at - scheduled_for from runs where job_id = %s", job_id)
    assert late == timedelta(seconds=30)


@pytest.mark.parametrize("policy", ["fire_all", "fire_latest", "skip"])
def test_a_start_in_the_past_makes_no_runs_of_the_past(system, policy):
    start(system, "2026-06-01T00:00:30Z")
    schedule = {"cron": "* * * * *", "start": "2026-05-02T00:00:00Z"}
    anchored = {"every": 60, "start": "2026-05-02T00:00:20Z"}
    jobs = [
        system.create(f"n{n}", one, misfire={"policy": policy, "look_back_seconds": 9e6})
        for n, one in enumerate((schedule, anchored))
    ]
    system.claim()
    claim_at(system, "2026-06-01T00:01:20Z")

    assert [fires(system, job_id) for job_id in jobs] == [["01 00:01:00"], ["01 00:01:20"]]
    assert [len(ledger(system, job_id)) for job_id in jobs] == [1, 1]


def test_while_one_job_is_caught_up_another_is_on_time(system):
    trigger = start(system, "2026-06-01T00:00:30Z", catch_up_cap=100)
    flood = system.create(
        "flood", "* * * * *", misfire={"policy": "fire_all", "look_back_seconds": 7 * 86_400}
    )
    other = system.create("other", "0 0 * * *")
    system.turn_to(utc("2026-06-02T00:00:00Z"))
    trigger.membership.beat(trigger.connection)

    assert trigger.pass_once()

    assert fires(system, other) == ["02 00:00:00"]
    counts = [len(fires(system, flood))]
    while trigger.pass_once():
        counts.append(len(fires(system, flood)))
    assert counts == [*range(100, 1500, 100), 1440]


def test_a_job_that_takes_the_name_of_one_that_was_deleted_makes_nothing_up(system):
    start(system, "2026-06-01T11:55:00Z")
    first = system.create("x", "*/10 * * * *", misfire={"policy": "fire_all", "look_back_seconds": 9e6})
    claim_at(system, "2026-06-01T12:00:00Z")
    system.submit("cancel", [{"name": "x", "namespace": "virtual"}])
    system.turn_to(utc("2026-06-01T12:05:00Z"))
    second = system.create("x", "*/10 * * * *", misfire={"policy": "fire_all", "look_back_seconds": 9e6})
    system.claim()
    claim_at(system, "2026-06-01T12:10:00Z")

    assert ledger(system, first) == [Row(utc("2026-06-01T12:00:00Z"), "cancelled", "with its job")]
    assert [row.at for row in ledger(system, second)] == [utc("2026-06-01T12:10:00Z")]


def test_jitter_moves_the_start_the_same_way_each_time_and_never_past_the_end(system):
    start(system, "2026-06-01T00:00:00Z")
    jobs = [
        system.create(
            f"spread-{n}",
            {"cron": "* * * * *", "jitter_seconds": 30, "end": "2026-06-01T00:04:05Z"},
        )
        for n in range(80)
    ]
    starts = "select job_id, fire_at from timers where scheduled_for = '2026-06-01T00:03:00Z'"
    for second in range(61, 330):
        claim_at(system, f"2026-06-01T00:{second // 60:02}:{second % 60:02}Z")
        if second == 155:
            planned = dict(system.db.execute(starts).fetchall())
            # Resumed, a job's start is worked out again.
            ids = [{"job_id": str(job_id)} for job_id in jobs]
            system.submit("pause", ids)
            system.submit("resume", [{**one, "missed": "skip"} for one in ids])
        if second == 180:
            anew = dict(system.db.execute(starts).fetchall())
            assert len(anew) > 10
            assert anew.items() <= planned.items()

    assert {tuple(fires(system, job_id)) for job_id in jobs} == {
        ("01 00:01:00", "01 00:02:00", "01 00:03:00", "01 00:04:00")
    }
    # The pause took back what was queued: those are not queued for the first time any more.
    delays = system.column(
        "select extract(epoch from queued_at - scheduled_for)::int from runs where fence = 1"
    )
    assert 0 <= min(delays) < 5
    assert 25 < max(delays) <= 30
    assert system.value("select max(queued_at) from runs") <= utc("2026-06-01T00:04:06Z")
    assert set(system.column("select state from jobs")) == {"completed"}


def test_a_pause_that_ends_before_a_run_was_to_start_takes_nothing(system):
    start(system, "2026-06-01T11:00:00Z")
    schedule = {"cron": "0 12 * * *", "jitter_seconds": 3600}
    jobs = [system.create(f"spread-{n}", schedule) for n in range(5)]
    # The job's id decides about its delay: take the longest.
    job_id = system.value("select job_id from timers order by fire_at desc limit 1")
    assert job_id in jobs
    system.turn_to(utc("2026-06-01T12:00:00.5Z"))
    system.submit("pause", [{"job_id": str(job_id)}])
    system.turn_to(utc("2026-06-01T12:00:01Z"))
    system.submit("resume", [{"job_id": str(job_id), "missed": "skip"}])
    system.claim()
    claim_at(system, "2026-06-01T13:00:00Z")

    assert ledger(system, job_id) == [Row(utc("2026-06-01T12:00:00Z"), "queued")]


@pytest.mark.parametrize("jitter", [-1, 60, 3600])
def test_jitter_below_zero_or_as_long_as_the_period_is_refused(system, jitter):
    system.empty(utc("2026-06-01T00:00:00Z"))
    with pytest.raises(Refused, match="jitter_seconds"):
        system.submit("create", [job_document("x", {"cron": "* * * * *", "jitter_seconds": jitter})])
