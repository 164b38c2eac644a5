"""Namespaces in the database: the default zone, and the pause of many jobs in batches that can be interrupted."""

import threading
from datetime import timedelta

import pytest
from tests.support.settings_orders import PauseResult, pause_namespace, resume_namespace

from noonmark.core.ids import uuid7
from noonmark.core.states import Lane, ResumeChoice, RunState, TimerKind
from noonmark.core.zones.zones import ZoneError
from noonmark.store.claims import claims
from noonmark.store.database.connect import connect
from noonmark.store.documents.columns import NEVER
from noonmark.store.namespaces import batches as namespace_batches
from noonmark.store.namespaces import namespaces
from noonmark.store.namespaces import pauses as namespace_pauses
from noonmark.store.namespaces.namespaces import JobCount, NamespaceNameError, list_namespaces, set_timezone
from noonmark.store.schedules.time_facts import facts_number, read_time_facts, share_time_facts

CRON = {"cron": "0 9 * * *", "timezone": "UTC"}
LATER = timedelta(hours=1)


def recurring(world, **columns):
    """A job with a timer in an hour."""
    job = world.job(schedule=CRON, recurring=True, **columns)
    world.timer(job, world.now() + LATER, kind=TimerKind.PLANNED)
    return job


def job_of(world, job):
    (row,) = world.rows("select * from jobs where id = %s", job)
    return row


def timer_of(world, job):
    (row,) = world.rows("select * from timers where job_id = %s", job)
    return row


def states(world):
    return dict(world.db.execute("select state, count(*) from jobs group by 1").fetchall())


# -- zones -----------------------------------------------------------------------------------------------


def test_a_zone_is_set_once_and_every_process_learns_of_it(world):
    before = facts_number(world.db)
    assert set_timezone(world.db, "tests", "Europe/Berlin") is True
    changed = facts_number(world.db)
    assert changed > before
    assert set_timezone(world.db, "tests", "Europe/Berlin") is False
    assert read_time_facts(world.db).zone_of("tests") == "Europe/Berlin"
    assert read_time_facts(world.db).zone_of("other") == "UTC"


def test_jobs_that_exist_keep_the_zone_that_they_were_made_with(world):
    job = recurring(world)
    before = job_of(world, job), timer_of(world, job)
    set_timezone(world.db, "tests", "Asia/Tokyo")
    assert (job_of(world, job), timer_of(world, job)) == before


@pytest.mark.parametrize("name", ["", "Tests", "a.b", "-a", "a" * 64, "a\n"])
def test_a_name_that_is_none_is_refused(world, name):
    for order in (
        lambda: set_timezone(world.db, name, "UTC"),
        lambda: pause_namespace(world.db, name),
        lambda: resume_namespace(world.db, name),
    ):
        with pytest.raises(NamespaceNameError, match="is not a valid namespace name; expected 1 to 63 of"):
            order()
    assert world.count("namespaces") == 0


def test_a_zone_that_is_none_is_refused_and_changes_nothing(world):
    with pytest.raises(ZoneError, match="did you mean 'Europe/Berlin'"):
        set_timezone(world.db, "tests", "Europe/Berln")
    assert world.count("namespaces") == 0


def test_a_change_waits_for_whoever_writes_schedules_and_keeps_others_out(world):
    done = threading.Event()

    def change():
        with connect(world.url, application="test", autocommit=True) as session:
            set_timezone(session, "tests", "Asia/Tokyo")
        done.set()

    with world.db.transaction():
        assert share_time_facts(world.db)
        thread = threading.Thread(target=change)
        thread.start()
        assert not done.wait(0.2)
    assert done.wait(30)
    thread.join()


# -- many jobs -------------------------------------------------------------------------------------------


def test_a_pause_holds_the_jobs_of_its_namespace_and_nobody_elses(world):
    mine, foreign = recurring(world), recurring(world)
    world.db.execute("update jobs set namespace = 'other' where id = %s", [foreign])
    was = job_of(world, foreign), timer_of(world, foreign)
    broken = recurring(world, state="broken")
    before = timer_of(world, mine)

    assert pause_namespace(world.db, "tests", "moving house") == PauseResult(True, 1, 0)

    job, timer = job_of(world, mine), timer_of(world, mine)
    assert (job["state"], job["paused_by"], job["version"]) == ("paused", "namespace", 1)
    assert timer == {**before, "fire_at": NEVER}
    assert (job_of(world, foreign), timer_of(world, foreign)) == was
    assert job_of(world, broken)["state"] == "broken"
    (row,) = list_namespaces(world.db, "tests")
    assert row.pause_reason == "moving house"
    assert row.paused_at <= job["paused_at"]

    assert resume_namespace(world.db, "tests", ResumeChoice.ALL) == PauseResult(True, 1, 0)
    job = job_of(world, mine)
    assert (job["state"], job["paused_at"], job["resume_choice"]) == ("active", None, "all")
    assert timer_of(world, mine) == before
    (row,) = list_namespaces(world.db, "tests")
    assert (row.pause_reason, row.paused_at) == (None, None)


def test_runs_and_retries_are_held_over_all_shards_in_one_pass(world):
    worker = world.worker()
    jobs = [recurring(world) for _ in range(8)]
    queued = [world.put_run(job_id=job) for job in jobs]
    retrying = [
        world.put_run(RunState.RETRYING, job_id=job, scheduled_for=world.now() - LATER) for job in jobs
    ]
    for job, run in zip(jobs, retrying, strict=True):
        world.timer(job, world.now() + LATER, kind=TimerKind.RETRY, run_id=run)
    parked = world.put_run(
        "waiting", job_id=jobs[0], reason="undeliverable", scheduled_for=world.now() - 2 * LATER
    )
    (running,) = world.started(worker, job_id=jobs[1])
    for run in queued:
        world.db.execute(
            "insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)"
            " select shard, lane, now(), id, job_id, scheduled_for, 1, 1, namespace, pool from runs where id = %s",
            [run],
        )

    assert pause_namespace(world.db, "tests") == PauseResult(True, 8, 17)

    assert {(world.run(run)["state"], world.run(run)["reason"]) for run in [*queued, *retrying, parked]} == {
        ("waiting", "paused")
    }
    assert {world.run(run)["fence"] for run in [*queued, *retrying, parked]} == {2}
    assert world.run(running.id)["state"] == "running"
    assert (world.count("outbox"), world.count("timers", "kind = 2"), world.count("waits")) == (0, 0, 17)

    assert resume_namespace(world.db, "tests") == PauseResult(True, 8, 17)
    assert (world.count("outbox"), world.count("waits")) == (17, 0)
    assert {world.run(run)["fence"] for run in [*queued, *retrying, parked]} == {3}


def test_thousands_of_jobs_are_held_and_freed_in_batches_that_tell_how_far_they_are(world, monkeypatch):
    monkeypatch.setattr(namespace_batches, "_RANGE", 700)
    world.copies(recurring(world), 2_499)
    told = []
    assert pause_namespace(world.db, "tests", progress=lambda *done: told.append(done)).jobs == 2_500
    assert told == [(500, 0), (700, 0), (1200, 0), (1400, 0), (1900, 0), (2100, 0), (2500, 0)]
    assert states(world) == {"paused": 2_500}
    assert world.count("timers", "fire_at > '9999-01-01'") == world.count("timers") == 2_500
    assert resume_namespace(world.db, "tests").jobs == 2_500
    assert world.count("timers", "fire_at = scheduled_for") == 2_500


class LostError(Exception):
    """The process that pauses ends."""


def test_what_an_interrupted_call_left_is_done_when_it_is_given_again(world, monkeypatch):
    monkeypatch.setattr(namespace_batches, "BATCH", 10)
    world.copies(recurring(world), 24)

    def lost(*_):
        raise LostError

    with pytest.raises(LostError):
        pause_namespace(world.db, "tests", "moving", progress=lost)
    assert states(world) == {"paused": 10, "active": 15}
    assert read_time_facts(world.db).paused == {"tests"}
    assert pause_namespace(world.db, "tests") == PauseResult(False, 15, 0)
    assert list_namespaces(world.db)[0].pause_reason == "moving"

    with pytest.raises(LostError):
        resume_namespace(world.db, "tests", ResumeChoice.LATEST, progress=lost)
    assert read_time_facts(world.db).paused == set()
    assert resume_namespace(world.db, "tests", ResumeChoice.LATEST) == PauseResult(False, 15, 0)
    assert states(world) == {"active": 25}
    assert resume_namespace(world.db, "tests") == PauseResult(False, 0, 0)


def test_a_pause_that_is_given_again_changes_its_reason_only_where_one_is_given(world):
    pause_namespace(world.db, "tests", "first")
    (first,) = list_namespaces(world.db)
    pause_namespace(world.db, "tests")
    assert list_namespaces(world.db) == [first]
    pause_namespace(world.db, "tests", "second")
    (again,) = list_namespaces(world.db)
    assert (again.paused_at, again.pause_reason) == (first.paused_at, "second")


def test_one_time_jobs_that_are_over_are_not_touched_however_many_there_are(world):
    over = world.job()
    world.put_run(RunState.SUCCEEDED, job_id=over)
    due = world.job()
    world.timer(due, world.now() + LATER)
    assert pause_namespace(world.db, "tests").jobs == 1
    assert (job_of(world, over)["state"], job_of(world, due)["state"]) == ("active", "paused")
    timer = timer_of(world, due)
    assert (timer["kind"], timer["fire_at"]) == (TimerKind.PLANNED, timer["scheduled_for"])


def until(condition) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it never became true")


def test_a_batch_that_loses_a_deadlock_to_a_worker_is_done_again(world, monkeypatch):
    job = recurring(world)
    first, second = (world.put_run(job_id=job, scheduled_for=world.now() - n * LATER) for n in (2, 1))
    worker = world.another()
    under_way = threading.Event()
    held = namespace_pauses.pause_runs
    tries = []
    query = "select cardinality(pg_blocking_pids(%s)) > 0"

    def hold(connection, jobs, **more):
        tries.append(jobs)
        if len(tries) == 1:
            # The circle is all but closed when the batch comes to wait: it is the one to find it.
            connection.execute("select from runs where id = %s for update", [first])
            under_way.set()
            until(lambda: world.value(query, worker.info.backend_pid))
        return held(connection, jobs, **more)

    monkeypatch.setattr(namespace_pauses, "pause_runs", hold)
    session = world.another()
    session.execute("set deadlock_timeout = '50ms'")
    pausing = threading.Thread(target=lambda: pause_namespace(session, "tests"))
    with worker.transaction():
        worker.execute("set local deadlock_timeout = '60s'")
        worker.execute("select from runs where id = %s for update", [second])
        pausing.start()
        assert under_way.wait(20)
        worker.execute("select from runs where id = %s for update", [first])
    pausing.join(20)
    assert len(tries) == 2
    assert {world.run(run)["state"] for run in (first, second)} == {"waiting"}


# -- what is shown ------------------------------------------------------------------------------------------


def test_the_list_has_namespaces_with_a_row_or_a_recurring_job(world):
    recurring(world)
    world.db.execute("update jobs set namespace = 'b'")
    recurring(world)
    recurring(world, state="cancelled")
    world.db.execute("update jobs set namespace = 'gone' where state = 'cancelled'")
    set_timezone(world.db, "zoned", "Asia/Tokyo")
    pause_namespace(world.db, "b")
    shown = [(row.name, row.timezone, row.paused_at is None) for row in list_namespaces(world.db)]
    assert shown == [("b", "UTC", False), ("tests", "UTC", True), ("zoned", "Asia/Tokyo", True)]
    assert [row.name for row in list_namespaces(world.db, "zoned")] == ["zoned"]
    assert list_namespaces(world.db, "gone") == []


def test_recurring_jobs_are_counted_by_state_and_by_who_paused_them(world):
    recurring(world)
    own = recurring(world)
    world.db.execute("update jobs set state = 'paused', paused_by = 'job' where id = %s", [own])
    world.job()
    assert sorted(namespaces.count_jobs(world.db, "tests"), key=str) == [
        JobCount("active", None, 1),
        JobCount("paused", "job", 1),
    ]
    pause_namespace(world.db, "tests")
    assert JobCount("paused", "namespace", 1) in namespaces.count_jobs(world.db, "tests")


def test_a_retry_of_a_job_that_no_longer_exists_is_nobodys_concern(world):
    """Retries name their job without a foreign key."""
    run = world.put_run(RunState.RETRYING, job_id=uuid7())
    (job,) = world.column("select job_id from runs where id = %s", run)
    world.timer(
        job,
        world.now() - LATER,
        kind=TimerKind.RETRY,
        run_id=run,
        scheduled_for=world.run(run)["scheduled_for"],
    )
    assert claims.claim_retries(world.db, Lane.NORMAL, range(4), 100).queued == 1
