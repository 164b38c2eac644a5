"""Runs whose target reports their end: the order of report and 202, deadlines, cancels, and who may not."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from msgspec.structs import replace
from psycopg.types.json import Json
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, outcome

from noonmark.core.ids import uuid7
from noonmark.core.states import AttemptOutcome, Lane, RunState
from noonmark.schemas.events.submissions import CompleteRun
from noonmark.settings import Settings
from noonmark.store.claims import claims
from noonmark.store.database.statements import statement
from noonmark.store.maintenance import housekeeping
from noonmark.store.outcomes.callback_rows import Expected, NewCallback, open_callbacks
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import callbacks, held_runs, leases

TOKEN = "t" * 43
SETTINGS = Settings()


class Called:
    """A run in a worker's hands whose callback is open."""

    def __init__(self, world, *, work_spec=None, **columns):
        self.world = world
        self.worker = world.worker()
        job_id = world.job(timeout_seconds=5)
        if work_spec is not None:
            world.db.execute("update jobs set work = %s where id = %s", [Json(work_spec), job_id])
        (self.run,) = world.started(self.worker, job_id=job_id, **columns)
        assert self.open() == {self.run.id}

    def open(self, token=TOKEN, fence=1):
        wanted = NewCallback(self.run.id, self.run.scheduled_for, fence, token)
        return open_callbacks(self.world.db, *self.worker, [wanted])

    def answered(self, state=RunState.RUNNING, *, seconds=60.0, **more):
        """Record what the worker says: with RUNNING that the target answered 202."""
        more |= {"attempt_outcome": AttemptOutcome.SUCCEEDED} if state is RunState.RUNNING else {}
        extras = OutcomeExtras(callback=Expected(seconds))
        return self.world.record(
            self.worker, [outcome(self.run, state, extras=extras, **more)], [self.run.batch_id]
        )

    def report(self, *, token=TOKEN, succeeded=True, result=None, error=None, retryable=True):
        report = CompleteRun(self.run.id, token, succeeded, result, error, retryable)
        with self.world.db.transaction():
            _, (taken,) = callbacks.complete_runs(self.world.db, TOPICS, [report], shards=SHARDS)
            return taken

    def row(self):
        return self.world.run(self.run.id)

    def expire(self):
        """Let the trigger take what is due."""
        return claims.claim_deadlines(
            self.world.db, Lane.NORMAL, EVERY_SHARD, 100, topics=TOPICS, install_shards=SHARDS
        )


def left(world):
    return {name: world.count(name) for name in ("callbacks", "timers", "slots", "start_batches")}


def test_a_run_that_waits_for_its_target_has_no_worker_and_is_told_of_when_it_ends(world):
    called = Called(world)

    recorded = called.answered()

    row = called.row()
    assert recorded.states == {called.run.id: "running"}
    assert (row["state"], row["owner"], row["epoch"], row["fence"]) == ("running", 0, 0, 1)
    assert world.told() == []
    assert left(world) == {"callbacks": 1, "timers": 1, "slots": 0, "start_batches": 0}
    (timer,) = world.rows("select kind, run_id, fire_at - noonmark_now() as left from timers")
    assert (timer["kind"], timer["run_id"]) == (4, called.run.id)
    assert timedelta(seconds=50) < timer["left"] <= timedelta(seconds=60)

    assert called.report(result=b'{"sent":3}')

    row = called.row()
    assert (row["state"], row["result"]) == ("succeeded", {"sent": 3})
    assert [(told["state"], told["fence"]) for told in world.told()] == [("succeeded", 1)]
    assert left(world) == {"callbacks": 0, "timers": 0, "slots": 0, "start_batches": 0}


def test_neither_death_nor_drain_of_the_worker_takes_a_run_that_waits_for_its_target(world):
    called = Called(world)
    (other,) = world.started(called.worker)
    called.answered()

    assert held_runs.read_worker_runs(world.db, called.worker).live.keys() == {other.id}
    held_runs.requeue_unfinished(world.db, called.worker, [(called.run.id, called.run.scheduled_for, 1)])
    world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1")
    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)

    assert (called.row()["state"], called.row()["fence"]) == ("running", 1)
    assert called.report()


@pytest.mark.parametrize("retryable", [True, False])
def test_a_reported_failure_is_a_failed_attempt_like_any_other(world, retryable):
    called = Called(world, work_spec={"retry": {"max_retries": 1, "delay_seconds": 10.0, "jitter": "none"}})
    called.answered()

    assert called.report(succeeded=False, error="no paper", retryable=retryable)

    assert called.row()["state"] == ("retrying" if retryable else "dead")
    assert world.rows("select attempt, outcome, error from attempts") == [
        {"attempt": 1, "outcome": "failed", "error": "no paper"}
    ]
    assert world.column("select kind from timers") == ([2] if retryable else [])
    assert world.column("select reason from dead_letters") == ([] if retryable else ["not_retryable"])


def test_a_slot_is_kept_while_the_target_works_and_freed_by_its_report(world):
    called = Called(world, holds_slot=True)
    world.db.execute(
        "insert into slots (key, slot_no, run_id, taken_at) values (%s, 0, %s, now())",
        [called.run.job_id, called.run.id],
    )

    called.answered()
    assert world.count("slots") == 1
    called.report()

    assert world.count("slots") == 0


@pytest.mark.parametrize("case", ["another token", "repeated", "unknown run", "after the deadline", "ended"])
def test_a_report_that_does_not_fit_changes_nothing(world, case):
    called = Called(world)
    called.answered()
    token = "x" * 43 if case == "another token" else TOKEN
    if case == "repeated":
        assert called.report()
    elif case == "unknown run":
        called.run = replace(called.run, id=uuid7())
    elif case == "after the deadline":
        world.turn_clock(timedelta(seconds=61))
    elif case == "ended":
        world.db.execute("update runs set state = 'cancelled', finished_at = now()")
    before = world.rows("select * from runs"), world.count("outbox")

    assert not called.report(token=token)

    assert (world.rows("select * from runs"), world.count("outbox")) == before


def test_a_report_before_the_answer_202_counts_and_the_answer_is_fenced_off(world):
    called = Called(world)

    assert called.report(result=b"7")
    recorded = called.answered()

    assert (recorded.states, len(recorded.fenced)) == ({}, 1)
    assert (called.row()["state"], called.row()["result"]) == ("succeeded", 7)
    assert [told["state"] for told in world.told()] == ["succeeded"]
    assert left(world) == {"callbacks": 0, "timers": 0, "slots": 0, "start_batches": 0}


def test_a_report_that_meets_the_answer_202_on_its_way_into_the_ledger_waits_and_counts(world):
    called = Called(world)
    waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"

    with (
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(world.url, autocommit=True) as other,
        psycopg.connect(world.url, autocommit=True) as looking,
    ):
        report = CompleteRun(called.run.id, TOKEN, succeeded=True, result=b"7", error=None, retryable=True)

        def come():
            with other.transaction():
                return callbacks.complete_runs(other, TOPICS, [report], shards=SHARDS)[1]

        with world.db.transaction():
            assert called.answered().states == {called.run.id: "running"}
            coming = threads.submit(come)
            while looking.execute(waits).fetchone() is None:
                assert not coming.done(), coming.exception()
        assert coming.result(20) == [True]

    assert (called.row()["state"], called.row()["result"]) == ("succeeded", 7)
    assert left(world) == {"callbacks": 0, "timers": 0, "slots": 0, "start_batches": 0}


def test_an_answer_other_than_202_closes_the_callback(world):
    called = Called(world)

    called.answered(RunState.SUCCEEDED, result='{"status":200}')

    assert world.count("callbacks") == 0
    assert not called.report()
    assert called.row()["state"] == "succeeded"


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
def test_a_target_that_does_not_report_in_time_has_timed_out(world, delivery):
    called = Called(world, work_spec={"delivery": delivery, "retry": {"delay_seconds": 5}})
    called.answered(seconds=30)
    assert called.expire().claimed == 0

    world.turn_clock(timedelta(seconds=31))
    done = called.expire()

    state = "retrying" if delivery == "at_least_once" else "unknown"
    assert (done.claimed, done.settled) == (1, {state: 1})
    assert called.row()["state"] == state
    assert world.column("select outcome from attempts") == ["timed_out"]
    assert world.count("callbacks") == 0
    assert not called.report()


def test_a_deadline_of_an_earlier_attempt_does_not_end_a_later_one(world):
    called = Called(world)
    called.answered(seconds=30)
    stale = world.rows("select * from timers")[0]
    called.report(succeeded=False)
    world.db.execute("delete from timers")
    span = {"ids": [called.run.id], "first": called.run.scheduled_for, "last": called.run.scheduled_for}
    world.db.execute(statement("requeue_runs"), {**span, "reason": "undeliverable"})
    (called.run,) = world.start(called.worker, [called.run.id])
    called.open(token="u" * 43, fence=2)
    extras = OutcomeExtras(callback=Expected(600.0))
    again = outcome(
        called.run, RunState.RUNNING, fence=2, extras=extras, attempt_outcome=AttemptOutcome.SUCCEEDED
    )
    world.record(called.worker, [again])
    names = ", ".join(stale)
    world.db.execute(
        f"insert into timers ({names}) values ({', '.join(f'%({name})s' for name in stale)})", stale
    )

    world.turn_clock(timedelta(seconds=31))
    assert called.expire().claimed == 1

    assert (called.row()["state"], called.row()["fence"]) == ("running", 2)
    assert not called.report()
    assert called.report(token="u" * 43)


def test_only_the_worker_that_has_the_run_opens_a_callback_for_it(world):
    called = Called(world)
    rival = world.worker()
    wanted = [NewCallback(called.run.id, called.run.scheduled_for, 1, "v" * 43)]

    assert open_callbacks(world.db, *rival, wanted) == set()
    assert open_callbacks(world.db, rival.worker, 99, wanted) == set()
    assert called.open(fence=2) == set()
    called.answered()
    assert called.open(token="w" * 43) == set()

    assert called.report()


def test_a_run_that_is_being_cancelled_ends_with_the_answer_202(world):
    called = Called(world)
    world.db.execute("update runs set state = 'cancelling' where id = %s", [called.run.id])

    recorded = called.answered()

    assert recorded.states == {called.run.id: "cancelled"}
    assert [told["state"] for told in world.told()] == ["cancelled"]
    assert left(world) == {"callbacks": 0, "timers": 0, "slots": 0, "start_batches": 0}


def test_a_cancel_ends_a_run_that_waits_for_its_target_at_once(world):
    called = Called(world)
    called.answered()
    span = {"ids": [called.run.id], "first": called.run.scheduled_for, "last": called.run.scheduled_for}

    world.db.execute(statement("cancel_runs"), {**span, "shards": [called.run.shard], "reason": None})

    assert called.row()["state"] == "cancelled"
    assert not called.report()
    world.turn_clock(timedelta(seconds=61))
    assert called.expire().settled == {}
    assert called.row()["state"] == "cancelled"


def test_an_answer_whose_recording_is_repeated_is_not_recorded_twice(world):
    called = Called(world)

    called.answered()
    recorded = called.answered()

    assert len(recorded.fenced) == 1
    assert left(world) == {"callbacks": 1, "timers": 1, "slots": 0, "start_batches": 0}


def test_of_two_reports_in_one_batch_the_first_that_fits_counts(world):
    called = Called(world)
    called.answered()
    reports = [
        CompleteRun(called.run.id, "x" * 43, succeeded=True, result=b"1", error=None, retryable=True),
        CompleteRun(called.run.id, TOKEN, succeeded=True, result=b"2", error=None, retryable=True),
        CompleteRun(called.run.id, TOKEN, succeeded=True, result=b"3", error=None, retryable=True),
    ]

    with world.db.transaction():
        settled, taken = callbacks.complete_runs(world.db, TOPICS, reports, shards=SHARDS)

    assert taken == [False, True, False]
    assert dict(settled.counts) == {("succeeded", 1): 1}
    assert called.row()["result"] == 2


def test_callbacks_of_attempts_that_ended_without_their_worker_are_pruned(world):
    gone, waiting = Called(world), Called(world)
    waiting.answered()
    world.db.execute("update runs set fence = 2 where id = %s", [gone.run.id])
    world.turn_clock(timedelta(hours=2))

    housekeeping.run_housekeeping(world.db, SETTINGS)

    assert world.column("select run_id from callbacks") == [waiting.run.id]


def test_runs_that_wait_for_their_target_count_as_unfinished(world):
    Called(world).answered()

    row = world.db.execute(statement("count_unfinished")).fetchone()

    assert row is not None
    assert row[1] == 1


def test_only_the_digest_of_a_token_is_stored(world):
    called = Called(world)

    (stored,) = world.column("select token_hash from callbacks")

    assert bytes(stored) == hashlib.sha256(TOKEN.encode()).digest()
    assert TOKEN not in world.value("select callbacks::text from callbacks")
    assert called.row()["state"] == "running"
