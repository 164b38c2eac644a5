"""Each kind of alert on a real database: raised once, told once, resolved once when it is over."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from msgspec.structs import replace
from tests.integration.observer.watch_desk import WatchDesk
from tests.integration.store.world import SHARDS, TOPICS, World, outcome

from noonmark.core.ids import uuid7
from noonmark.core.states import RunState, TimerKind
from noonmark.schemas.events.settled import SettledRun, settled_event
from noonmark.store.alerts import alerts
from noonmark.store.runs import dead_letters
from noonmark.store.runs.dead_letters import DeadRun

pytestmark = pytest.mark.postgres

ERROR = "ValueError: no such customer: 17"


def told_once(desk: WatchDesk, kind: str) -> None:
    """Two looks more change nothing; there is one row, one event and one delivery of each change."""
    before = desk.changes()
    desk.look()
    desk.look()
    assert desk.changes() == before == [(kind, "raised"), (kind, "resolved")]
    (alert,) = desk.world.rows("select * from alerts")
    assert (alert["kind"], alert["resolved_at"] >= alert["raised_at"]) == (kind, True)
    assert desk.world.rows("select change, channel from alert_deliveries order by change") == [
        {"change": "raised", "channel": "webhook"},
        {"change": "resolved", "channel": "webhook"},
    ]


def succeed(world: World, job_id: UUID, seconds: float) -> None:
    """One run of a job that took so long."""
    worker = world.worker()
    (run,) = world.started(worker, job_id=job_id)
    world.db.execute(
        "update runs set started_at = noonmark_now() - make_interval(secs => %s) where id = %s",
        [seconds, run.id],
    )
    earlier = replace(run, started_at=world.run(run.id)["started_at"])
    world.record(worker, [outcome(earlier)], [run.batch_id])


def fail(world: World, job_id: UUID, state: RunState = RunState.DEAD, error: str = ERROR) -> UUID:
    worker = world.worker()
    (run,) = world.started(worker, job_id=job_id)
    world.record(worker, [outcome(run, state, error=error)], [run.batch_id])
    return run.id


def test_a_run_that_never_ends_is_a_runaway_until_it_does(world, watching):
    desk = watching(runaway_min_runs=5)
    job = world.job(recurring=True)
    for _ in range(5):
        succeed(world, job, 10.0)
    desk.hear()
    worker = world.worker()
    (run,) = world.started(worker, job_id=job)
    world.db.execute("update start_batches set started_at = noonmark_now() - interval '1 minute'")
    world.db.execute(
        "update runs set started_at = noonmark_now() - interval '19 seconds' where id = %s", [run.id]
    )
    assert desk.look() == {}

    world.db.execute(
        "update runs set started_at = noonmark_now() - interval '40 seconds' where id = %s", [run.id]
    )
    (alert,) = desk.look()["runaway"]

    assert (alert["job_id"], alert["run_id"], alert["namespace"]) == (job, run.id, "tests")
    assert alert["details"]["usual_rests_on_runs"] == 5
    assert 9.9 < alert["details"]["usual_seconds"] < 11
    assert alert["details"]["last_hour"]["succeeded"] == 5
    world.record(worker, [outcome(run)], [run.batch_id])
    assert desk.look() == {}
    told_once(desk, "runaway")


def test_too_short_a_history_makes_no_runaway(world, watching):
    desk = watching(runaway_min_runs=5)
    job = world.job(recurring=True)
    for _ in range(4):
        succeed(world, job, 1.0)
    desk.hear()
    world.started(world.worker(), job_id=job)
    world.turn_clock(timedelta(minutes=1))

    assert "runaway" not in desk.look()


def test_an_instant_that_no_trigger_plans_is_late_until_it_starts(world, watching):
    desk = watching(late_after_seconds=60)
    job = world.job(recurring=True)
    world.timer(job, world.now() - timedelta(seconds=50), kind=TimerKind.PLANNED)
    assert desk.look() == {}

    world.db.execute("update timers set fire_at = fire_at - interval '20 seconds'")
    (alert,) = desk.look()["late"]

    assert (alert["job_id"], alert["details"]["planned"], alert["details"]["count"]) == (job, False, 1)
    world.db.execute("delete from timers")
    assert desk.look() == {}
    told_once(desk, "late")


def test_a_timer_that_fires_before_all_time_hides_no_late_job(world, watching):
    desk = watching(late_after_seconds=60)
    damaged, late = world.job(recurring=True), world.job(recurring=True)
    for job in (damaged, late):
        world.timer(job, world.now() - timedelta(seconds=70), kind=TimerKind.PLANNED)
    world.db.execute("update timers set fire_at = '-infinity' where job_id = %s", [damaged])
    world.db.execute("insert into late_rules (job_id, late_after_seconds) values (%s, 30)", [damaged])

    assert [alert["job_id"] for alert in desk.look()["late"]] == [late]


def test_runs_that_nobody_starts_are_one_alert_of_a_job_and_one_of_the_one_time_jobs(world, watching):
    desk = watching(late_after_seconds=60, silent_after_seconds=86_400)
    job = world.job(recurring=True)
    mine, *others = (world.put_run(job_id=one) for one in (job, world.job(), world.job()))
    world.put_run("waiting", reason="paused", job_id=world.job(recurring=True))
    assert desk.look() == {}

    world.turn_clock(timedelta(seconds=70))
    once, of_job = sorted(desk.look()["late"], key=lambda alert: alert["job_id"] is not None)

    assert (of_job["run_id"], of_job["details"]["planned"]) == (mine, True)
    assert (once["job_id"], once["details"]["count"], once["details"]["pools"]) == (None, 2, ["default"])
    worker = world.worker()
    world.start(worker, [mine])
    assert [alert["job_id"] for alert in desk.look()["late"]] == [None]
    world.start(worker, others)
    assert desk.look() == {}
    assert sorted(desk.changes()) == [("late", "raised")] * 2 + [("late", "resolved")] * 2


@pytest.mark.parametrize(("own", "expected"), [(10, True), (600, False)])
def test_a_job_says_itself_when_it_is_late(world, watching, own, expected):
    desk = watching(late_after_seconds=60, silent_after_seconds=86_400)
    planned, queued = (
        world.job(recurring=True, policy={"overlap": "skip", "late_after_seconds": own}) for _ in range(2)
    )
    world.timer(planned, world.now(), kind=TimerKind.PLANNED)
    world.put_run(job_id=queued)
    world.turn_clock(timedelta(seconds=30 if expected else 120))

    found = desk.look().get("late", [])
    assert {alert["job_id"] for alert in found} == ({planned, queued} if expected else set())
    # How many more are late is not looked at, and not told.
    assert all(alert["details"]["count"] is None for alert in found)
    assert all(alert["summary"].startswith("Instants of job") for alert in found)

    world.db.execute('update jobs set policy = \'{"overlap": "skip"}\'')
    world.turn_clock(timedelta(seconds=30))
    assert desk.look() == {}


def test_a_job_with_a_rule_is_late_for_as_long_as_its_run_waits(world, watching):
    desk = watching(late_after_seconds=300)
    job = world.job(policy={"late_after_seconds": 5})
    run = world.put_run(job_id=job)
    world.turn_clock(timedelta(seconds=10))
    assert [alert["run_id"] for alert in desk.look()["late"]] == [run]

    # Longer than any look back: it is remembered, and not sought again.
    world.turn_clock(timedelta(days=1, hours=12))
    assert [alert["run_id"] for alert in desk.look()["late"]] == [run]

    world.db.execute("update runs set state = 'cancelled', finished_at = noonmark_now()")
    assert desk.look().get("late", []) == []
    assert world.count("late_runs") == 0


def test_the_rule_of_a_job_goes_with_it(world):
    job = world.job(policy={"late_after_seconds": 5})
    assert world.rows("select * from late_rules") == [{"job_id": job, "late_after_seconds": 5.0}]

    world.db.execute("delete from jobs")

    assert world.count("late_rules") == 0


def test_runs_of_workers_that_say_nothing_are_stuck_until_they_speak(world, watching):
    desk = watching(stuck_runs=2, stuck_after_seconds=60, runaway_min_runs=1000)
    worker = world.worker()
    world.started(worker, 2)
    world.turn_clock(timedelta(seconds=70))
    assert desk.look() == {}
    world.turn_clock(timedelta(0))
    world.started(worker, 1)

    world.turn_clock(timedelta(seconds=70))
    (alert,) = desk.look()["stuck"]

    assert (alert["namespace"], alert["severity"]) == (None, "critical")
    assert (alert["details"]["runs"], alert["details"]["workers"]) == (3, 1)
    world.db.execute("update workers set beat_at = noonmark_now()")
    assert desk.look() == {}
    told_once(desk, "stuck")


def test_equal_failures_in_a_row_are_an_alert_until_a_run_succeeds(world, watching):
    desk = watching(failing_after=3)
    job = world.job(recurring=True)
    for _ in range(2):
        fail(world, job)
    world.db.execute("delete from dead_letters")
    desk.hear()
    assert desk.look() == {}

    run = fail(world, job)
    world.db.execute("delete from dead_letters")
    desk.hear()
    (alert,) = desk.look()["failing"]

    assert (alert["job_id"], alert["run_id"]) == (job, run)
    assert (alert["details"]["failures"], alert["details"]["error"]) == (3, ERROR)
    succeed(world, job, 1.0)
    desk.hear()
    assert desk.look() == {}
    told_once(desk, "failing")


def test_a_job_that_is_paused_fails_no_more(world, watching):
    desk = watching(failing_after=2)
    job = world.job(recurring=True)
    for _ in range(2):
        fail(world, job)
    desk.hear()
    assert len(desk.look()["failing"]) == 1

    world.db.execute("update jobs set state = 'paused' where id = %s", [job])

    assert "failing" not in desk.look()


def test_of_the_past_nothing_is_concluded(world, watching):
    """While outcomes are still to be read, a job may have recovered long ago."""
    desk = watching(failing_after=2)
    job = world.job(recurring=True)
    for _ in range(2):
        fail(world, job)
    desk.hear()
    world.db.execute("update observer_offsets set caught_up = false")

    assert desk.look() == {}


def test_a_check_that_fails_leaves_the_alerts_of_the_other_kinds(world, watching):
    desk = watching()
    fail(world, world.job())
    desk.hear()
    world.db.execute("set lock_timeout = '50ms'")
    with psycopg.connect(world.url) as session:
        # The first check and the last one read this table.
        session.execute("lock table late_runs in access exclusive mode")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            desk.look()
        assert desk.changes() == [("dead", "raised")]
    assert set(desk.look()) == {"dead"}


def test_deaths_of_one_cause_are_one_alert_until_they_are_redriven(world, watching):
    desk = watching()
    runs = [fail(world, world.job(), error=f"ValueError: no such customer: {n}") for n in range(20)]
    other = fail(world, world.job(), error="KeyError: 'name'")
    desk.hear()

    by_count = {alert["details"]["count"]: alert for alert in desk.look()["dead"]}

    assert set(by_count) == {1, 20}
    assert (by_count[20]["run_id"], by_count[20]["job_id"]) == (runs[-1], None)
    assert by_count[20]["details"]["error"] == "ValueError: no such customer: 19"
    dead_letters.discard(world.db, TOPICS, _dead(world, [other]), reason=None, shards=SHARDS)
    assert [alert["details"]["count"] for alert in desk.look()["dead"]] == [20]
    dead_letters.redrive(world.db, TOPICS, _dead(world, runs), shards=SHARDS)
    assert desk.look() == {}
    assert sorted(desk.changes()) == [("dead", "raised")] * 2 + [("dead", "resolved")] * 2


def test_a_later_success_of_the_job_ends_the_alert_of_its_death_for_good(world, watching):
    desk = watching()
    job = world.job(recurring=True)
    run = fail(world, job)
    desk.hear()
    (alert,) = desk.look()["dead"]
    assert (alert["job_id"], alert["run_id"], alert["severity"]) == (job, run, "critical")

    succeed(world, job, 1.0)
    desk.hear()
    assert desk.look() == {}
    assert world.count("dead_letters") == 1
    told_once(desk, "dead")

    fail(world, job)
    desk.hear()
    assert len(desk.look()["dead"]) == 1


def test_silence_is_an_alert_where_something_should_be_heard_until_it_is(world, watching):
    desk = watching(silent_after_seconds=60, late_after_seconds=86_400)
    job = world.job(recurring=True)
    world.turn_clock(timedelta(seconds=120))
    assert desk.look() == {}
    world.timer(job, world.now() - timedelta(seconds=70), kind=TimerKind.PLANNED)

    (alert,) = desk.look()["silent"]

    assert (alert["namespace"], alert["severity"]) == (None, "critical")
    assert alert["details"]["signs"] == ["instants that no trigger has planned"]
    succeed(world, job, 1.0)
    desk.hear()
    assert desk.look() == {}
    told_once(desk, "silent")


def test_what_the_trigger_writes_without_a_worker_does_not_hide_silence(world, watching):
    desk = watching(silent_after_seconds=60, late_after_seconds=86_400)
    job = world.job(recurring=True)
    world.turn_clock(timedelta(seconds=120))
    world.timer(job, world.now() - timedelta(seconds=70), kind=TimerKind.PLANNED)

    def settled(state: RunState, reason: str | None, started_at: datetime | None) -> bytes:
        run = SettledRun(
            uuid7(), job, "default", world.now(), "schedule", state, reason, 1, 1, "normal", "default",
            started_at, world.now(), None,
        )  # fmt: skip
        return settled_event("default", [run])

    desk.values += [
        settled(RunState.SKIPPED, "overlap", None),
        settled(RunState.UNKNOWN, "lost", world.now()),
    ]
    desk.hear()
    assert set(desk.look()) == {"silent"}

    desk.values.append(settled(RunState.SUCCEEDED, None, world.now()))
    desk.hear()
    assert desk.look() == {}


def test_several_observers_raise_and_resolve_once(world, watching):
    job = world.job(recurring=True)
    fail(world, job)
    desks = [watching() for _ in range(3)]
    desks[0].hear()

    for desk in desks:
        assert len(desk.look()["dead"]) == 1
    world.db.execute("delete from dead_letters")
    for desk in desks:
        assert desk.look() == {}

    told_once(desks[0], "dead")


def test_what_is_found_is_told_with_its_row_or_not_at_all(world, watching):
    desk = watching()
    fail(world, world.job())
    desk.hear()
    with world.db.transaction():
        assert len(desk.look()["dead"]) == 1
        raise psycopg.Rollback

    assert (world.count("alerts"), world.count("alert_deliveries"), desk.changes()) == (0, 0, [])
    assert len(desk.look()["dead"]) == 1
    assert desk.changes() == [("dead", "raised")]


def test_figures_of_an_open_alert_are_renewed_now_and_then(world, watching):
    desk = watching()
    fail(world, world.job())
    desk.hear()
    desk.look()
    fail(world, world.job())
    desk.hear()
    (soon,) = desk.look()["dead"]

    world.turn_clock(timedelta(seconds=alerts.RENEW_SECONDS + 1))
    (later,) = desk.look()["dead"]

    assert (soon["details"]["count"], later["details"]["count"]) == (1, 2)
    assert " used up its attempts: " in soon["summary"]
    assert later["summary"].startswith("2 runs")
    assert desk.changes() == [("dead", "raised")]


def _dead(world: World, runs: list[UUID]) -> list[DeadRun]:
    return [DeadRun(run_id, world.run(run_id)["scheduled_for"]) for run_id in runs]
