"""Every statement that moves runs, against a run in every state: only moves of the table happen."""

from datetime import timedelta
from functools import partial

import orjson
import pytest
from psycopg import errors
from tests.contract.moves import STATEMENT_BIRTHS, STATEMENT_MOVES
from tests.integration.store.world import SHARDS, TOPICS, World, outcome

from noonmark.core.states import AttemptOutcome, Lane, RunState, SkipReason
from noonmark.core.transitions import INITIAL, MOVES
from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement
from noonmark.store.limits.wait_queue import enqueue_gated
from noonmark.store.maintenance import housekeeping
from noonmark.store.outbox import relay
from noonmark.store.outbox.relay import Parked
from noonmark.store.outcomes.callback_rows import Expected
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import dead_letters, held_runs, leases, starts


class Case:
    """A run in one state, put in place so that nothing but the state can stop a statement."""

    def __init__(self, world: World, state: RunState, **columns) -> None:
        self.world = world
        self.worker = world.worker()
        owned = state in (RunState.RUNNING, RunState.CANCELLING)
        self.run_id = world.put_run(state, owner=self.worker if owned else None, **columns)
        if not owned:
            # Also a run that is not live may carry its last owner: the guards must look at the state.
            world.db.execute(
                "update runs set owner = %s, epoch = %s where id = %s", [*self.worker, self.run_id]
            )
        self.before = world.run(self.run_id)

    def as_started(self) -> StartedRun:
        row = self.before
        return StartedRun(
            row["id"],
            row["scheduled_for"],
            row["job_id"],
            row["job_version"],
            row["origin"],
            row["request_id"],
            row["namespace"],
            row["lane"],
            row["attempt"],
            row["losses"],
            row["holds_slot"],
            row["scheduled_for"],
            row["shard"],
            "python",
            "h",
            "{}",
            0,
        )

    def span(self) -> dict[str, object]:
        at = self.before["scheduled_for"]
        return {"ids": [self.run_id], "first": at, "last": at}


def start(case):
    starts.start(
        case.world.db,
        case.worker,
        "default",
        [starts.StartRequest(case.run_id, case.before["scheduled_for"], 1)],
    )


def finish(state, case, **more):
    case.world.record(case.worker, [outcome(case.as_started(), state, **more)])


def wait_for_callback(case):
    extras = OutcomeExtras(callback=Expected(60.0))
    finish(RunState.RUNNING, case, attempt_outcome=AttemptOutcome.SUCCEEDED, extras=extras)


def cancel_unheld(case):
    runs = [(case.run_id, case.before["scheduled_for"], case.before["fence"])]
    held_runs.cancel_unowned(case.world.db, case.worker, TOPICS, runs, shards=4)


def hand_back(case):
    runs = [(case.run_id, case.before["scheduled_for"], case.before["fence"])]
    held_runs.requeue_unfinished(case.world.db, case.worker, runs)


def lose(case):
    at = case.before["started_at"] or case.before["scheduled_for"]
    case.world.db.execute(
        """insert into start_batches (worker, epoch, first_scheduled_for, last_scheduled_for, started_at, overdue_at, run_ids)
           values (%s, 1, %s, %s, %s, now() - interval '1 s', %s)""",
        [case.worker.worker, *[case.before["scheduled_for"]] * 2, at, [case.run_id]],
    )
    leases.run_pass(case.world.db, TOPICS, shards=SHARDS, gap_seconds=5)


def lose_for_good(case):
    case.world.db.execute("update runs set losses = %s where id = %s", [leases.LOSS_BUDGET, case.run_id])
    lose(case)


def lose_again(case):
    losses = leases.LOSSES_BEFORE_WAIT - 1
    case.world.db.execute("update runs set losses = %s where id = %s", [losses, case.run_id])
    lose(case)


def lose_at_most_once(case):
    case.world.db.execute(
        """update jobs set work = '{"delivery": "at_most_once", "timeout_seconds": 60}' where id = %s""",
        [case.before["job_id"]],
    )
    lose(case)


def expire(case):
    case.world.db.execute("update runs set start_by = now() - interval '1 s' where id = %s", [case.run_id])
    ticket = starts.StartRequest(case.run_id, case.before["scheduled_for"], 1)
    starts.expire(case.world.db, TOPICS, [ticket], shards=SHARDS)


def requeue(case):
    reason = case.before["reason"] or "undeliverable"
    case.world.db.execute(statement("requeue_runs"), {**case.span(), "reason": reason})


def park(case):
    parked = Parked(case.run_id, case.before["scheduled_for"], 1, "no such topic")
    relay.park(case.world.db, [], [parked], retry_seconds=1)


class OneTopic:
    """Says of any topic that it carries the lane of the runs here."""

    def parse_runs(self, topic):
        del topic
        return "default", 1


def resend(case):
    case.world.db.execute("update runs set queued_at = now() - interval '1 h' where id = %s", [case.run_id])
    case.world.db.execute("delete from outbox")
    case.world.db.execute(
        "insert into topic_progress values ('t', now(), now()) on conflict (topic) do update set passed_until = now()"
    )
    housekeeping.resend_vanished(case.world.db, OneTopic())


def hold(case):
    case.world.db.execute(
        statement("pause_runs"), {**case.span(), "shards": [case.before["shard"]], "reason": "by a test"}
    )


def cancel(case):
    case.world.db.execute(
        statement("cancel_runs"), {**case.span(), "shards": [case.before["shard"]], "reason": "by a test"}
    )


def cancel_without_worker(case):
    case.world.db.execute("update runs set owner = 0 where id = %s", [case.run_id])
    cancel(case)


def redrive(case):
    put_letter(case)
    runs = [dead_letters.DeadRun(case.run_id, case.before["scheduled_for"])]
    dead_letters.redrive(case.world.db, TOPICS, runs, shards=SHARDS)


def redrive_of_a_paused_job(case):
    case.world.db.execute("update jobs set state = 'paused' where id = %s", [case.before["job_id"]])
    redrive(case)


def discard(case):
    put_letter(case)
    runs = [dead_letters.DeadRun(case.run_id, case.before["scheduled_for"])]
    dead_letters.discard(case.world.db, TOPICS, runs, reason=None, shards=SHARDS)


def put_letter(case):
    row = case.before
    case.world.db.execute(
        """insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, fingerprint, died_at)
           values (%s, %s, %s, 'tests', 1, 'x', 'x', now())""",
        [row["id"], row["scheduled_for"], row["job_id"]],
    )


def promote(case):
    case.world.db.execute(statement("promote_runs"), {**case.span(), "holders": []})


def gate(case):
    enqueue_gated(case.world.db, [(case.run_id, case.before["scheduled_for"])], waiting_for="paused")


def skip_wait(verdict, case):
    case.world.db.execute("update runs set start_by = now() - interval '1 s' where id = %s", [case.run_id])
    case.world.db.execute(statement("skip_waits"), {**case.span(), "verdict": verdict})


def show_wait(case):
    case.world.db.execute(
        statement("update_run_wait_reasons"), {**case.span(), "reason": "fairness", "slotted": True}
    )


def open_workflow(case):
    columns = {"shards": [0], "generations": [1], "progress": [b"\0"], "choices": [b""]}
    case.world.db.execute(statement("open_workflows"), {**case.span(), **columns})


def close_workflow(verdict, case):
    case.world.db.execute(
        "update runs set owner = -1 where id = %s and state in ('running', 'cancelling')", [case.run_id]
    )
    verdicts = orjson.dumps({str(case.run_id): [verdict, None, None, None]}).decode()
    case.world.db.execute(statement("close_workflows"), {**case.span(), "verdicts": verdicts})


WAYS = {
    "open_workflows": [open_workflow],
    "close_workflows": [partial(close_workflow, verdict) for verdict in ("succeeded", "dead")],
    "promote_runs": [promote],
    "enqueue_gated_runs": [gate],
    "skip_waits": [partial(skip_wait, "start_deadline"), partial(skip_wait, "overlap")],
    "update_run_wait_reasons": [show_wait],
    "start_runs": [start],
    "finish_plain": [partial(finish, RunState.SUCCEEDED)],
    "finish_detailed": [
        partial(finish, RunState.SUCCEEDED, result="{}"),
        partial(finish, RunState.RETRYING, error="boom", retry_seconds=5.0),
        partial(finish, RunState.DEAD, reason="retries_exhausted", error="boom"),
        partial(finish, RunState.CANCELLED),
        partial(finish, RunState.CANCELLED, reason="by_handler"),
        partial(finish, RunState.DISCARDED, reason="by_handler", error="hopeless"),
        partial(finish, RunState.UNKNOWN, reason="timed_out", error="timed out after 30 s"),
    ],
    "await_callbacks": [wait_for_callback],
    "requeue_unfinished_runs": [hand_back],
    "cancel_unowned_runs": [cancel_unheld],
    "requeue_lost_runs": [lose, lose_again, lose_for_good, lose_at_most_once],
    "expire_starts": [expire],
    "requeue_runs": [requeue],
    "park_runs": [park],
    "resend_vanished": [resend],
    "pause_runs": [hold],
    "cancel_runs": [cancel, cancel_without_worker],
    "redrive_runs": [redrive, redrive_of_a_paused_job],
    "discard_runs": [discard],
}

STATES = [(state, None) for state in RunState if state is not RunState.WAITING] + [
    (RunState.WAITING, "paused"),
    (RunState.WAITING, "undeliverable"),
    (RunState.WAITING, "limit"),
]


@pytest.mark.parametrize("name", sorted(STATEMENT_MOVES))
def test_a_statement_makes_its_moves_and_no_others(world, name):
    made = set()
    for way in WAYS[name]:
        for state, reason in STATES:
            case = Case(world, state, reason=reason)
            way(case)
            after = world.run(case.run_id)
            target = RunState(after["state"])
            queued_anew = target is RunState.QUEUED and after["fence"] > case.before["fence"]
            if target is not state or queued_anew:
                made.add((state, target))
                assert target in MOVES[state]
            else:
                assert after["finished_at"] == case.before["finished_at"]

    assert made == STATEMENT_MOVES[name]


@pytest.mark.parametrize("name", sorted(STATEMENT_MOVES))
def test_every_queueing_raises_the_fence_and_leaves_no_owner(world, name):
    for way in WAYS[name]:
        for state, reason in STATES:
            case = Case(world, state, reason=reason)
            way(case)
            after = world.run(case.run_id)
            if after["state"] == "queued" and state is not RunState.QUEUED:
                assert after["fence"] == case.before["fence"] + 1
                assert (after["owner"], after["epoch"]) == (None, None)
                (message,) = world.messages(case.run_id)
                assert message["fence"] == after["fence"]


def test_a_parked_run_of_a_paused_job_waits_for_the_resume_under_a_higher_fence(world):
    case = Case(world, RunState.WAITING, reason="undeliverable")

    hold(case)

    after = world.run(case.run_id)
    assert (after["state"], after["reason"]) == ("waiting", "paused")
    assert after["fence"] == case.before["fence"] + 1
    assert world.column("select reason from waits where run_id = %s", case.run_id) == ["paused"]


def test_a_worker_cannot_cancel_a_run_that_nobody_asked_it_to_cancel(world):
    case = Case(world, RunState.RUNNING)

    recorded = world.record(case.worker, [outcome(case.as_started(), RunState.CANCELLED)])

    assert len(recorded.fenced) == 1
    assert world.run(case.run_id)["state"] == "running"
    assert world.told() == []


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.QUEUED}))
def test_a_run_that_is_not_queued_has_no_use_for_its_deadline(world, state):
    case = Case(world, state)
    world.db.execute("update runs set start_by = now() - interval '1 h' where id = %s", [case.run_id])

    ended = starts.expire(
        world.db, TOPICS, [starts.StartRequest(case.run_id, case.before["scheduled_for"], 1)], shards=4
    )

    assert ended == {}
    assert world.run(case.run_id)["state"] == state.value


def test_inserts_make_only_the_states_that_a_run_may_begin_in():
    assert set().union(*STATEMENT_BIRTHS.values()) == INITIAL


def test_postgres_itself_refuses_rows_that_no_state_describes(world):
    with pytest.raises(errors.CheckViolation):
        world.put_run(RunState.RUNNING, started_at=None)
    with pytest.raises(errors.CheckViolation):
        world.put_run(RunState.SUCCEEDED, finished_at=None)
    with pytest.raises(errors.CheckViolation):
        world.put_run(RunState.QUEUED, finished_at=world.now())
    run_id = world.put_run(RunState.QUEUED)
    with pytest.raises(errors.CheckViolation):
        world.db.execute("update runs set state = 'lost' where id = %s", [run_id])


def test_an_expired_run_is_told_with_its_reason(world):
    job_id = world.job()
    run_id = world.put_run(
        RunState.QUEUED,
        job_id=job_id,
        start_by=world.now() - timedelta(seconds=1),
        holds_slot=True,
    )
    world.db.execute(
        "insert into slots select %s, 0, id, now() from runs where id = %s",
        [job_id, run_id],
    )

    assert starts.expire(world.db, TOPICS, [world.ticket(run_id)], shards=SHARDS) == {Lane.NORMAL: 1}

    (told,) = world.told()
    assert (told["run_id"], told["state"]) == (str(run_id), "skipped")
    assert told["reason"] == SkipReason.START_DEADLINE.value
    assert world.count("slots") == 0
    assert world.run(run_id)["fence"] == 2
