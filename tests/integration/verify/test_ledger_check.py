"""`noonmark verify` on a real ledger: a good one is clean, and each planted fault is found by its rule alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.integration.verify.ledgers import PREFIX, Ledger, check

from noonmark.cli.verify.findings import REMEDIES
from noonmark.cli.verify.pacing import Pacer
from noonmark.core.states import Lane, RunState, TimerKind
from noonmark.kafka.topics import Topics
from noonmark.store.database.connect import connect
from noonmark.store.runs import worker_lease
from noonmark.store.verify.reader import LedgerReader
from noonmark.verify.invariants import INVARIANTS
from noonmark.verify.ledger import CHECKED, EVENT_RULES, INSTANT_RULES, UNJUDGED, WORKFLOW_RULES


def overlapping_attempts(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update attempts set finished_at = finished_at + interval '5 minutes' where run_id = %s",
        [ledger.retried],
    )


def a_start_before_its_instant(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update runs set started_at = scheduled_for - interval '1 second', queued_at = scheduled_for - interval '2 s'"
        " where id = %s",
        [ledger.plain],
    )
    ledger.world.db.execute("update workers set started_at = started_at - interval '1 hour'")


def a_start_before_all_time(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update runs set started_at = '-infinity', queued_at = '-infinity' where id = %s", [ledger.plain]
    )
    ledger.world.db.execute("update workers set started_at = '-infinity'")


def more_attempts_than_allowed(ledger: Ledger) -> None:
    ledger.world.db.execute(
        'update jobs set work = \'{"retry": {"max_retries": 0}}\' where id ='
        " (select job_id from runs where id = %s)",
        [ledger.retried],
    )


def a_dead_run_without_a_letter(ledger: Ledger) -> None:
    ledger.world.db.execute("delete from dead_letters where run_id = %s", [ledger.dead])


def a_letter_of_a_run_that_is_gone(ledger: Ledger) -> None:
    ledger.world.db.execute("delete from attempts where run_id = %s", [ledger.dead])
    ledger.world.db.execute("delete from runs where id = %s", [ledger.dead])


def a_letter_of_the_living(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update dead_letters set run_id = runs.id, scheduled_for = runs.scheduled_for, job_id = runs.job_id from runs where runs.id = %s",
        [ledger.lost],
    )
    ledger.world.db.execute("delete from runs where id = %s", [ledger.dead])


def a_letter_of_another_namespace(ledger: Ledger) -> None:
    ledger.world.db.execute("update dead_letters set namespace = 'other'")


def a_deleted_attempt(ledger: Ledger) -> None:
    ledger.world.db.execute("delete from attempts where run_id = %s", [ledger.retried])


def a_deleted_attempt_of_a_lost_worker(ledger: Ledger) -> None:
    ledger.world.db.execute("delete from attempts where run_id = %s and outcome = 'lost'", [ledger.lost])


def an_end_before_the_start(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update runs set finished_at = started_at - interval '5 s' where id = %s", [ledger.plain]
    )


def an_erased_error(ledger: Ledger) -> None:
    ledger.world.db.execute("update attempts set error = null where run_id = %s", [ledger.retried])


def a_letter_of_another_job(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update dead_letters set job_id = gen_random_uuid() where run_id = %s",
        [ledger.dead],
    )


def a_version_that_the_job_never_had(ledger: Ledger) -> None:
    ledger.world.db.execute("update runs set job_version = 7 where id = %s", [ledger.plain])


def a_worker_that_never_existed(ledger: Ledger) -> None:
    ledger.world.db.execute("update runs set owner = 471100 where id = %s", [ledger.plain])


def a_worker_without_a_lease(ledger: Ledger) -> None:
    """It was registered minutes after it is said to have started the run."""
    late = ledger.world.worker().worker
    ledger.world.db.execute(
        "update workers set started_at = started_at + interval '5 minutes' where id = %s", [late]
    )
    ledger.world.db.execute("update runs set owner = %s where id = %s", [late, ledger.plain])


def _rewritten(table: str, run: str, changes: str) -> Callable[[Ledger], None]:
    """Change the rows about a run of the good ledger in one table."""
    key = "id" if table == "runs" else "run_id"

    def plant(ledger: Ledger) -> None:
        changed = ledger.world.db.execute(
            f"update {table} set {changes} where {key} = %s", [getattr(ledger, run)]
        )
        assert changed.rowcount == 1

    return plant


def _of_its_job(changes: str) -> Callable[[Ledger], None]:
    def plant(ledger: Ledger) -> None:
        of_job = "where id = (select job_id from runs where id = %s)"
        assert ledger.world.db.execute(f"{changes} {of_job}", [ledger.plain]).rowcount == 1

    return plant


REWRITTEN: dict[str, tuple[Callable[[Ledger], None], str, str]] = {
    "an end at infinity": (_rewritten("runs", "plain", "finished_at = 'infinity'"), "S16", "plain"),
    "an end before all time": (_rewritten("runs", "plain", "finished_at = '-infinity'"), "S16", "plain"),
    "an end in the first year": (
        _rewritten("runs", "cancelled", "finished_at = '0001-01-01 00:00+00'"),
        "S16",
        "cancelled",
    ),
    "a start at infinity": (_rewritten("runs", "plain", "started_at = 'infinity'"), "S16", "plain"),
    "a queueing in the future": (
        _rewritten("runs", "plain", "queued_at = queued_at + interval '10 years'"),
        "S16",
        "plain",
    ),
    "a queueing before all time": (_rewritten("runs", "plain", "queued_at = '-infinity'"), "S16", "plain"),
    "a run that was never queued": (_rewritten("runs", "plain", "queued_at = null"), "S16", "plain"),
    "an attempt that ends at infinity": (
        _rewritten("attempts", "dead", "finished_at = 'infinity'"),
        "S16",
        "dead",
    ),
    "a deadline at infinity": (_rewritten("runs", "plain", "start_by = 'infinity'"), "S7", "plain"),
    "a deadline before the instant": (
        _rewritten("runs", "plain", "start_by = scheduled_for - interval '1 hour'"),
        "S7",
        "plain",
    ),
    "a success with a reason": (_rewritten("runs", "plain", "reason = 'lost'"), "S17", "plain"),
    "a death that is announced late": (
        _rewritten("dead_letters", "dead", "died_at = died_at + interval '20 minutes'"),
        "S18",
        "dead",
    ),
    "a death at infinity": (_rewritten("dead_letters", "dead", "died_at = 'infinity'"), "S18", "dead"),
    "another shard": (_rewritten("runs", "plain", "shard = shard + 1"), "S18", "plain"),
    "more instants": (_rewritten("runs", "plain", "instants = 3"), "S18", "plain"),
    "a range of a success": (
        _rewritten("runs", "plain", "last_scheduled_for = scheduled_for"),
        "S18",
        "plain",
    ),
    "unknown zone data": (_rewritten("runs", "plain", "zone_data = 4711"), "S18", "plain"),
    "a job that is gone": (_of_its_job("delete from jobs"), "S18", "plain"),
    "a version that is gone": (_of_its_job("update jobs set version = 5"), "S18", "plain"),
    "no worker": (_rewritten("runs", "plain", "owner = null, epoch = null"), "S19", "plain"),
    "no worker, but its epoch": (_rewritten("runs", "plain", "owner = 0"), "S19", "plain"),
    "a target that reports nothing": (_rewritten("runs", "plain", "owner = 0, epoch = 0"), "S19", "plain"),
    "a worker before the first": (_rewritten("runs", "plain", "owner = -5"), "S19", "plain"),
    "an attempt by its target": (_rewritten("attempts", "retried", "worker = 0"), "S19", "retried"),
}
"""Values that no statement writes: how they are planted, the rule that must find each, and the run."""


def a_worker_whose_row_is_gone_too_early(ledger: Ledger) -> None:
    gone = ledger.world.worker().worker
    ledger.world.db.execute("delete from workers where id = %s", [gone])
    ledger.world.db.execute("update runs set owner = %s where id = %s", [gone, ledger.plain])


def a_run_whose_worker_is_gone(ledger: Ledger) -> None:
    _keep_watch(ledger)
    gone, ago = ledger.world.worker(), _long_ago(ledger)
    _put_unfinished(ledger, RunState.RUNNING, owner=gone, started_at=ago)
    ledger.world.db.execute("update workers set lapsed_at = %s where id = %s", [ago, gone.worker])


def a_run_whose_worker_is_silent(ledger: Ledger) -> None:
    _keep_watch(ledger)
    silent = ledger.world.worker()
    _put_unfinished(ledger, RunState.RUNNING, owner=silent, started_at=_long_ago(ledger))
    ledger.world.db.execute(
        "update workers set beat_at = beat_at - interval '5 minutes' where id = %s", [silent.worker]
    )


def a_retry_without_a_timer(ledger: Ledger) -> None:
    _put_retrying(ledger)


def a_retry_whose_timer_never_fires(ledger: Ledger) -> None:
    run = _put_retrying(ledger)
    _put_timer(ledger, run, TimerKind.RETRY)
    ledger.world.db.execute("update timers set fire_at = 'infinity' where run_id = %s", [run])


def a_callback_without_a_deadline(ledger: Ledger) -> None:
    job = ledger.world.job()
    ledger.world.db.execute('update jobs set work = \'{"payload": {"callback": {}}}\' where id = %s', [job])
    _put_unfinished(ledger, RunState.RUNNING, job_id=job, started_at=_long_ago(ledger))


def a_waiting_run_in_no_queue(ledger: Ledger) -> None:
    _put_unfinished(ledger, RunState.WAITING, reason="limit")
    ledger.world.db.execute("delete from waits")


def a_queued_run_whose_message_is_gone(ledger: Ledger) -> None:
    _put_unfinished(ledger, RunState.QUEUED)
    ledger.world.db.execute(
        "insert into topic_progress (topic, passed_until, measured_at) values (%s, noonmark_now(), noonmark_now())",
        [Topics(PREFIX).runs("default", Lane.NORMAL)],
    )


def an_old_row_in_the_outbox(ledger: Ledger) -> None:
    _enqueue(ledger, lane=3)
    ledger.world.db.execute("update outbox set created_at = noonmark_now() - interval '61 s'")


def an_event_that_kafka_refused(ledger: Ledger) -> None:
    _enqueue(ledger, lane=4)


def a_row_in_a_lane_that_does_not_exist(ledger: Ledger) -> None:
    _enqueue(ledger, lane=9)


def a_row_in_a_slice_that_does_not_exist(ledger: Ledger) -> None:
    _enqueue(ledger, lane=0)
    ledger.world.db.execute("update outbox set slice = 99")


def a_row_in_the_outbox_that_is_dated_in_the_future(ledger: Ledger) -> None:
    _enqueue(ledger, lane=3)
    ledger.world.db.execute("update outbox set created_at = 'infinity'")


def a_timer_of_a_run_that_has_ended(ledger: Ledger) -> None:
    _put_timer(ledger, ledger.plain, TimerKind.RETRY)


def a_timer_of_a_run_that_does_not_exist(ledger: Ledger) -> None:
    _put_timer(ledger, ledger.plain, TimerKind.DEADLINE)
    ledger.world.db.execute("update timers set run_id = gen_random_uuid() where run_id = %s", [ledger.plain])


def a_timer_in_a_shard_that_does_not_exist(ledger: Ledger) -> None:
    ledger.world.timer(ledger.world.job(), ledger.world.now())
    ledger.world.db.execute("update timers set shard = 99")


def a_timer_of_a_kind_that_does_not_exist(ledger: Ledger) -> None:
    ledger.world.timer(ledger.world.job(), ledger.world.now())
    ledger.world.db.execute("update timers set kind = 7")


def a_job_in_a_shard_that_does_not_exist(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update jobs set shard = 99 where id = (select job_id from runs where id = %s)", [ledger.plain]
    )
    ledger.world.db.execute("update runs set shard = 99 where id = %s", [ledger.plain])


def a_worker_whose_loss_is_not_noticed(ledger: Ledger) -> None:
    ledger.world.worker()
    ledger.world.db.execute(
        "update workers set beat_at = 'infinity' where id = (select max(id) from workers)"
    )


def a_job_that_was_changed_in_the_future(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "update jobs set updated_at = 'infinity' where id = (select job_id from runs where id = %s)",
        [ledger.plain],
    )


def a_slot_of_a_run_that_does_not_exist(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "insert into slots (key, slot_no, run_id, taken_at)"
        " values (gen_random_uuid(), 0, gen_random_uuid(), 'infinity')"
    )


def a_run_that_holds_a_slot_that_is_not_taken(ledger: Ledger) -> None:
    _put_unfinished(ledger, RunState.QUEUED, holds_slot=True)


def a_slot_that_is_taken_for_a_run_that_holds_none(ledger: Ledger) -> None:
    _put_unfinished(ledger, RunState.QUEUED)
    ledger.world.db.execute(
        "insert into slots (key, slot_no, run_id, taken_at)"
        " select job_id, 0, id, queued_at from runs where state = 'queued'"
    )


def a_slot_of_a_run_that_has_ended(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "insert into slots (key, slot_no, run_id, taken_at) select job_id, 0, id, queued_at from runs where id = %s",
        [ledger.plain],
    )


def a_slot_of_a_limit_of_a_run_that_has_ended(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "insert into limit_slots (key, slot_no, run_id, namespace) values (gen_random_uuid(), 0, %s, 'tests')",
        [ledger.plain],
    )


def a_wait_of_a_run_that_has_ended(ledger: Ledger) -> None:
    ledger.world.db.execute(
        "insert into waits (run_id, scheduled_for, job_id, reason, since)"
        " select id, scheduled_for, job_id, 'limit', queued_at from runs where id = %s",
        [ledger.plain],
    )


def _long_ago(ledger: Ledger) -> datetime:
    return ledger.world.now() - timedelta(minutes=5)


def _put_unfinished(ledger: Ledger, state: RunState, **columns: Any) -> UUID:
    before = _long_ago(ledger) - timedelta(minutes=1)
    return ledger.world.put_run(state, **{"scheduled_for": before, "queued_at": before} | columns)


def _put_retrying(ledger: Ledger) -> UUID:
    """A run whose first attempt failed."""
    run = _put_unfinished(ledger, RunState.RETRYING, started_at=_long_ago(ledger), error="no luck")
    ledger.world.db.execute(
        "insert into attempts (run_id, scheduled_for, fence, attempt, outcome, error, started_at, finished_at)"
        " select id, scheduled_for, fence, attempt, 'failed', error, started_at, started_at"
        " from runs where id = %s",
        [run],
    )
    return run


def _put_timer(ledger: Ledger, run: UUID, kind: TimerKind) -> None:
    row = ledger.world.run(run)
    at = ledger.world.now() + timedelta(hours=1)
    ledger.world.timer(row["job_id"], at, kind=kind, run_id=run, scheduled_for=row["scheduled_for"])


def _keep_watch(ledger: Ledger) -> None:
    """Triggers have received heartbeats for long."""
    ledger.world.db.execute(
        "update lease_watch set continuous_since = noonmark_now() - interval '1 hour', last_pass_at = noonmark_now()"
    )


def _enqueue(ledger: Ledger, lane: int) -> None:
    ledger.world.db.execute(
        "insert into outbox (slice, lane, created_at, topic, value) values (0, %s, noonmark_now(), 't.lifecycle', '{}')",
        [lane],
    )


FAULTS: dict[Callable[[Ledger], None], tuple[str, str]] = {
    overlapping_attempts: ("S3", "retried"),
    a_start_before_its_instant: ("S7", "plain"),
    a_start_before_all_time: ("S7", "plain"),
    more_attempts_than_allowed: ("S11", "retried"),
    a_dead_run_without_a_letter: ("S11", "dead"),
    a_letter_of_a_run_that_is_gone: ("S11", "dead"),
    a_letter_of_the_living: ("S11", "lost"),
    a_letter_of_another_namespace: ("S12", "dead"),
    a_deleted_attempt: ("S15", "retried"),
    a_deleted_attempt_of_a_lost_worker: ("S15", "lost"),
    an_end_before_the_start: ("S16", "plain"),
    an_erased_error: ("S17", "retried"),
    a_letter_of_another_job: ("S18", "dead"),
    a_version_that_the_job_never_had: ("S18", "plain"),
    a_worker_that_never_existed: ("S19", "plain"),
    a_worker_without_a_lease: ("S19", "plain"),
    a_worker_whose_row_is_gone_too_early: ("S19", "plain"),
}
"""What must be found: the rule, and the run by what became of it."""

STANDSTILLS: dict[Callable[[Ledger], None], tuple[str, str]] = {
    a_queued_run_whose_message_is_gone: ("S6", "no message of fence 1 in the outbox or in Kafka"),
    a_run_whose_worker_is_gone: ("V2", "is running (None)"),
    a_run_whose_worker_is_silent: ("V2", "is running (None)"),
    a_retry_without_a_timer: ("V2", "is retrying (None)"),
    a_retry_whose_timer_never_fires: ("V2", "is retrying (None)"),
    a_callback_without_a_deadline: ("V2", "is running (None)"),
    a_waiting_run_in_no_queue: ("V2", "is waiting (limit)"),
    an_old_row_in_the_outbox: ("V3", "the oldest row of the outbox is "),
    an_event_that_kafka_refused: ("V3", "1 rows in outbox, refused by Kafka"),
    a_slot_of_a_run_that_has_ended: ("V3", "1 rows in slots"),
    a_slot_of_a_limit_of_a_run_that_has_ended: ("V3", "1 rows in limit_slots"),
    a_wait_of_a_run_that_has_ended: ("V3", "1 rows in waits"),
    a_slot_of_a_run_that_does_not_exist: ("V3", "1 rows in slots"),
    a_row_in_a_lane_that_does_not_exist: ("V3", "1 rows in outbox, in a slice or lane that does not exist"),
    a_row_in_a_slice_that_does_not_exist: ("V3", "1 rows in outbox, in a slice or lane that does not exist"),
    a_row_in_the_outbox_that_is_dated_in_the_future: ("V3", "1 rows in outbox, dated in the future"),
    a_timer_of_a_run_that_has_ended: ("V3", "1 rows in timers of runs that have ended or do not exist"),
    a_timer_of_a_run_that_does_not_exist: ("V3", "1 rows in timers of runs that have ended or do not exist"),
    a_timer_in_a_shard_that_does_not_exist: ("V3", "1 rows in timers, in a shard or lane"),
    a_timer_of_a_kind_that_does_not_exist: ("V3", "1 rows in timers, in a shard or lane"),
    a_worker_whose_loss_is_not_noticed: ("S16", "has a time in the future"),
    a_job_that_was_changed_in_the_future: ("S16", "has a time in the future"),
    a_job_in_a_shard_that_does_not_exist: ("S18", "is in shard 99 of 4"),
    a_run_that_holds_a_slot_that_is_not_taken: ("S18", "holds the slot of its job, which is not taken"),
    a_slot_that_is_taken_for_a_run_that_holds_none: ("S18", "holds no slot"),
}
"""What must be found: the rule, and a part of its sentence."""


def test_a_good_ledger_is_clean(ledger):
    report = ledger.check()

    assert report.findings == []
    assert report.clean
    assert report.runs == ledger.world.count("runs") == 7


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_by_its_rule_and_by_no_other(ledger, plant):
    rule, run = FAULTS[plant]
    plant(ledger)

    report = ledger.check()

    assert dict(report.counts) == {rule: 1}
    (finding,) = report.findings
    assert finding.run_id == str(getattr(ledger, run))
    assert finding.run_id in finding.sentence
    assert finding.remedy


@pytest.mark.parametrize("value", REWRITTEN)
def test_a_value_that_no_statement_writes_is_found_by_its_rule_and_by_no_other(ledger, value):
    plant, rule, run = REWRITTEN[value]
    plant(ledger)

    report = ledger.check()

    assert dict(report.counts) == {rule: 1}, [one.sentence for one in report.findings]
    assert report.findings[0].run_id == str(getattr(ledger, run))


@pytest.mark.parametrize("plant", STANDSTILLS, ids=lambda plant: plant.__name__)
def test_work_that_nothing_continues_is_found_by_its_rule_and_by_no_other(ledger, plant):
    rule, words = STANDSTILLS[plant]
    plant(ledger)

    report = ledger.check()

    assert dict(report.counts) == {rule: 1}, [one.sentence for one in report.findings]
    assert words in report.findings[0].sentence
    about_a_run = report.findings[0].run_id is not None
    assert about_a_run == ("run" in report.findings[0].sentence and rule != "V3")


def test_work_that_waits_for_its_turn_is_no_finding(ledger):
    """A backlog has no live owner either, but has what continues it."""
    world = ledger.world
    ago = _long_ago(ledger)
    _keep_watch(ledger)
    _put_unfinished(ledger, RunState.QUEUED)  # workers are busy
    _put_unfinished(ledger, RunState.WAITING, reason="limit")
    _put_unfinished(ledger, RunState.RUNNING, owner=world.worker(lease_seconds=3600), started_at=ago)
    left = world.worker()
    _put_unfinished(ledger, RunState.RUNNING, owner=left, started_at=ago)
    worker_lease.leave(world.db, left)  # just now: its runs are about to be requeued
    _put_timer(ledger, _put_retrying(ledger), TimerKind.RETRY)
    _enqueue(ledger, lane=3)

    assert ledger.check().findings == []


def test_a_slot_of_a_limit_alone_is_a_slot(ledger):
    _keep_watch(ledger)
    run = _put_unfinished(ledger, RunState.QUEUED, holds_slot=True)
    ledger.world.db.execute(
        "insert into limit_slots (key, slot_no, run_id, namespace) values (gen_random_uuid(), 0, %s, 'tests')",
        [run],
    )

    assert ledger.check().findings == []


def test_no_run_is_stuck_while_no_primary_has_received_heartbeats_for_long(ledger):
    a_run_whose_worker_is_silent(ledger)
    ledger.world.db.execute("update lease_watch set continuous_since = noonmark_now() - interval '30 s'")

    assert ledger.check().clean


def test_every_rule_that_is_checked_has_a_planted_fault_and_a_remedy():
    planted = {rule for rule, _ in (FAULTS | STANDSTILLS).values()} | {"S1", *WORKFLOW_RULES}

    assert planted == set(CHECKED) == set(REMEDIES) - set(INSTANT_RULES) - set(EVENT_RULES)
    assert {*INSTANT_RULES, *EVENT_RULES} < set(UNJUDGED)
    assert set(CHECKED) | set(UNJUDGED) == {one.id for one in INVARIANTS if not one.id.startswith("T")}
    assert not set(CHECKED) & set(UNJUDGED)


def test_steps_of_any_size_check_the_same_runs(ledger):
    a_dead_run_without_a_letter(ledger)

    for step in (1, 2, 3, 7, 8):
        report = ledger.check(step=step)
        assert (report.runs, dict(report.counts)) == (7, {"S11": 1})


def test_what_ended_within_the_last_minute_is_not_judged(ledger):
    a_dead_run_without_a_letter(ledger)
    # Not 59: on a busy machine the check begins seconds later.
    ledger.world.db.execute(
        "update runs set finished_at = noonmark_now() - interval '30 seconds' where id = %s", [ledger.dead]
    )
    assert ledger.check().clean

    ledger.world.db.execute(
        "update runs set finished_at = noonmark_now() - interval '61 seconds' where id = %s", [ledger.dead]
    )
    assert "S11" in ledger.broken()


@pytest.mark.parametrize("step", [1, 2000])
def test_a_second_run_of_one_key_is_found_once_whatever_the_step(unindexed_ledger, step):
    world = unindexed_ledger.world
    names = ", ".join(
        world.column(
            "select column_name::text from information_schema.columns where table_name = 'runs' and column_name <> 'id'"
        )
    )
    world.db.execute(
        f"insert into runs (id, {names}) select noonmark_uuid7(), {names} from runs where id = %s",
        [unindexed_ledger.plain],
    )

    report = unindexed_ledger.check(step=step)

    assert dict(report.counts) == {"S1": 1}
    assert report.findings[0].run_id == str(unindexed_ledger.plain)
    assert report.findings[0].sentence.endswith("2 runs of one key")


def test_every_step_of_a_check_is_paced(ledger):
    now, slept = 0.0, []

    def clock() -> float:
        nonlocal now
        now += 0.1  # so every step takes 100 ms, and so does what is between two steps
        return now

    pacer = Pacer(0.2, clock=clock, sleep=slept.append)

    assert check(ledger.world, pacer=pacer, step=1).runs == 7

    assert pacer.steps >= 8
    assert slept == pytest.approx([0.3] * (pacer.steps - 1))


def test_a_check_changes_and_locks_nothing(ledger):
    world = ledger.world
    with connect(world.url, application="test", autocommit=True) as connection:
        reader = LedgerReader(connection)
        with reader.step():
            (modes,) = world.rows(
                "select array_agg(distinct mode) as modes from pg_locks where pid = %s and locktype = 'relation'",
                connection.info.backend_pid,
            )
            assert set(modes["modes"] or []) <= {"AccessShareLock"}
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                connection.execute("update runs set lane = 0")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
