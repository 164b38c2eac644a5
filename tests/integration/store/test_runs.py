"""From start to outcome: who may write about a run, and what is tied to each write."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Json
from tests.integration.store.world import SHARDS, TOPICS, outcome

from noonmark.core.words import AttemptOutcome, RunState
from noonmark.store import work
from noonmark.store.work import Identity, Ticket


def slot_of(world, run):
    """Give a run its job's overlap slot."""
    world.db.execute(
        "insert into slots (key, slot_no, run_id, scheduled_for, taken_at) values (%s, 0, %s, %s, now())",
        [f"job:{run['job_id']}", run["id"], run["scheduled_for"]],
    )


# start


def test_a_start_makes_the_run_this_workers_and_brings_its_work(world):
    worker = world.worker()
    job_id = world.job(handler="mails.send", timeout_seconds=7)
    run_id = world.put_run(job_id=job_id)

    (run,) = world.start(worker, [run_id])

    assert (run.id, run.job_id, run.kind, run.handler, run.attempt) == (
        run_id,
        job_id,
        "python",
        "mails.send",
        1,
    )
    row = world.run(run_id)
    assert (row["state"], row["owner"], row["epoch"], row["attempt"]) == ("running", *worker, 1)
    (batch,) = world.rows("select * from start_batches")
    assert (batch["id"], batch["worker"], batch["run_ids"]) == (run.batch_id, worker.worker, [run_id])
    assert batch["started_at"] == row["started_at"] == run.started_at
    assert batch["overdue_at"] - batch["started_at"] == timedelta(seconds=7 + work.START_GRACE_SECONDS)


@pytest.mark.parametrize("fence", [1, 3])
def test_a_start_with_another_fence_than_the_runs_is_refused(world, fence):
    run_id = world.put_run(fence=2)
    ticket = world.ticket(run_id, fence=fence)

    started, refused = work.start(world.db, world.worker(), "default", [ticket])

    assert (started, refused) == ([], [ticket])
    assert world.run(run_id)["state"] == "queued"
    assert world.count("start_batches") == 0


def test_a_start_for_another_pool_is_refused(world):
    run_id = world.put_run(pool="gpu")

    started, refused = work.start(world.db, world.worker(), "default", [world.ticket(run_id)])

    assert started == []
    assert len(refused) == 1
    assert world.run(run_id)["state"] == "queued"


def test_a_start_under_another_epoch_or_by_a_worker_that_lapsed_or_left_is_refused(world):
    run_id = world.put_run()
    worker, lapsed, left = world.worker(), world.worker(), world.worker()
    world.db.execute("update workers set lapsed_at = now() where id = %s", [lapsed.worker])
    work.leave(world.db, left)
    nobody = Identity(99, 1)

    for who in (Identity(worker.worker, 2), lapsed, left, Identity(left.worker, 2), nobody):
        assert work.start(world.db, who, "default", [world.ticket(run_id)])[0] == []

    assert world.run(run_id)["state"] == "queued"
    assert len(work.start(world.db, worker, "default", [world.ticket(run_id)])[0]) == 1


def test_a_run_that_another_worker_has_is_not_started_again(world):
    first, second = world.worker(), world.worker()
    run_id = world.put_run()
    world.start(first, [run_id])

    started, refused = work.start(world.db, second, "default", [world.ticket(run_id)])

    assert (started, len(refused)) == ([], 1)
    assert world.run(run_id)["owner"] == first.worker


def test_two_workers_that_start_the_same_runs_at_once_share_them_out(world):
    tickets = [world.ticket(world.put_run()) for _ in range(50)]
    together = threading.Barrier(4)

    def start(session, worker):
        together.wait()
        return [run.id for run in work.start(session, worker, "default", tickets)[0]]

    with ThreadPoolExecutor(4) as pool:
        parts = [pool.submit(start, world.another(), world.worker()) for _ in range(4)]
        got = [run_id for part in parts for run_id in part.result()]

    assert sorted(got) == sorted(ticket.run_id for ticket in tickets)
    assert world.count("runs", "state = 'running' and attempt = 1") == 50


def test_a_start_whose_reply_was_lost_returns_the_same_runs_again(world):
    worker = world.worker()
    ids = [world.put_run() for _ in range(3)]
    first = world.start(worker, ids)

    again = world.start(worker, ids)

    assert [run.id for run in again] == [run.id for run in first]
    assert [run.attempt for run in again] == [1, 1, 1]
    assert {run.batch_id for run in again} != {run.batch_id for run in first}


def test_a_start_of_one_run_in_two_copies_starts_it_once(world):
    worker = world.worker()
    run_id = world.put_run()

    started, refused = work.start(world.db, worker, "default", [world.ticket(run_id)] * 2)

    assert [run.id for run in started] == [run_id]
    assert refused == []
    assert world.run(run_id)["attempt"] == 1


def test_one_start_takes_runs_of_several_fences_and_days(world):
    worker = world.worker()
    yesterday = world.now() - timedelta(days=1)
    ids = [world.put_run(fence=1), world.put_run(fence=5), world.put_run(fence=1, scheduled_for=yesterday)]

    started = world.start(worker, ids)

    assert {run.id for run in started} == set(ids)


def test_a_run_whose_start_deadline_has_passed_is_refused_and_then_skipped(world):
    worker = world.worker()
    late = world.put_run(start_by=world.now() - timedelta(milliseconds=1))
    early = world.put_run(start_by=world.now() + timedelta(hours=1))
    tickets = [world.ticket(late), world.ticket(early)]

    started, refused = work.start(world.db, worker, "default", tickets)
    ended = work.expire(world.db, TOPICS, refused, shards=SHARDS)

    assert [run.id for run in started] == [early]
    assert ended == 1
    row = world.run(late)
    assert (row["state"], row["reason"], row["fence"]) == ("skipped", "start_deadline", 2)
    assert row["finished_at"] is not None
    (told,) = world.told()
    assert (told["run_id"], told["state"], told["reason"]) == (str(late), "skipped", "start_deadline")


def test_a_run_keeps_the_version_of_its_job_that_it_was_planned_with(world):
    worker = world.worker()
    job_id = world.job(handler="new", version=2)
    world.db.execute(
        "insert into job_versions (job_id, version, kind, handler, work) values (%s, 1, 'python', 'old', %s)",
        [job_id, Json({"payload": "old"})],
    )
    ids = [
        world.put_run(
            job_id=job_id, job_version=version, scheduled_for=world.now() + timedelta(seconds=version)
        )
        for version in (1, 2)
    ]

    started = world.start(worker, ids)

    assert {run.job_version: run.handler for run in started} == {1: "old", 2: "new"}


def test_a_run_whose_job_is_gone_is_started_without_work(world):
    run_id = world.put_run(job_id=uuid4())

    (run,) = world.start(world.worker(), [run_id])

    assert (run.kind, run.handler, run.work) == (None, None, None)


# finish


def test_a_success_is_recorded_and_told_once(world):
    worker = world.worker()
    (run,) = world.started(worker)

    recorded = world.record(worker, [outcome(run)], [run.batch_id])

    assert recorded.states == {run.id: "succeeded"}
    row = world.run(run.id)
    assert (row["state"], row["result"], row["error"]) == ("succeeded", None, None)
    assert row["finished_at"] >= row["started_at"]
    assert [(told["run_id"], told["state"], told["fence"]) for told in world.told()] == [
        (str(run.id), "succeeded", 1)
    ]
    assert world.count("start_batches") == world.count("attempts") == world.count("dead_letters") == 0


def test_outcomes_of_one_batch_are_told_in_one_message_per_namespace(world):
    worker = world.worker()
    runs = world.started(worker, 20)

    world.record(worker, [outcome(run) for run in runs])

    assert world.count("outbox", "topic is not null") == 1
    assert len(world.told()) == 20


@pytest.mark.parametrize(
    "guard", ["fence below", "fence above", "another worker", "another epoch", "ended", "another's run"]
)
def test_an_outcome_that_any_guard_refuses_writes_nothing_that_is_tied_to_it(world, guard):
    worker, rival = world.worker(), world.worker()
    (run,) = world.started(worker, fence=2, holds_slot=True)
    slot_of(world, world.run(run.id))
    fence, who = 2, worker
    if guard.startswith("fence"):
        fence += -1 if guard == "fence below" else 1
    elif guard == "another worker":
        who = rival
    elif guard == "another epoch":
        who = Identity(worker.worker, worker.epoch + 1)
    elif guard == "ended":
        world.record(worker, [outcome(run, fence=2)])
    else:
        world.db.execute("update runs set owner = %s", [rival.worker])
    before = (world.run(run.id), world.count("outbox"), world.count("slots"))

    recorded = world.record(
        who,
        [
            outcome(run, RunState.RETRYING, fence=fence, error="boom", retry_seconds=1.0),
            outcome(run, RunState.DEAD, fence=fence, error="boom", reason="retries_exhausted"),
            outcome(run, fence=fence),
        ],
    )

    assert (recorded.states, len(recorded.fenced)) == ({}, 3)
    assert (world.run(run.id), world.count("outbox"), world.count("slots")) == before
    assert world.count("attempts") == world.count("dead_letters") == world.count("timers") == 0


def test_of_two_outcomes_for_two_fences_of_a_run_only_the_newer_is_tied_to_anything(world):
    """A worker may hold a run twice: its batch was overdue, was taken, and came back to the same worker."""
    worker = world.worker()
    (old,) = world.started(worker)
    world.db.execute("update runs set state = 'queued', fence = 2, owner = null, epoch = null")
    (new,) = world.start(worker, [old.id])

    recorded = world.record(
        worker,
        [
            outcome(old, RunState.RETRYING, fence=1, error="too late", retry_seconds=1.0),
            outcome(new, RunState.RETRYING, fence=2, error="boom", retry_seconds=1.0),
        ],
    )

    assert [(o.run.id, o.fence) for o in recorded.fenced] == [(old.id, 1)]
    assert world.column("select error from attempts") == ["boom"]
    assert world.count("timers") == 1
    assert [(told["fence"], told["state"]) for told in world.told()] == [(2, "retrying")]
    assert world.run(old.id)["error"] == "boom"


@pytest.mark.parametrize("newer_first", [False, True])
def test_a_success_and_a_stale_success_of_one_run_are_told_once(world, newer_first):
    worker = world.worker()
    (old,) = world.started(worker)
    world.db.execute("update runs set state = 'queued', fence = 2, owner = null, epoch = null")
    (new,) = world.start(worker, [old.id])
    both = [outcome(old, fence=1, result="1"), outcome(new, fence=2, result="2")]

    recorded = world.record(worker, both[::-1] if newer_first else both)

    assert [o.fence for o in recorded.fenced] == [1]
    assert [(told["fence"], told["state"]) for told in world.told()] == [(2, "succeeded")]
    assert world.run(old.id)["result"] == 2


def test_one_outcome_given_twice_is_recorded_once(world):
    worker = world.worker()
    (run,) = world.started(worker)
    failure = outcome(run, RunState.RETRYING, error="boom", retry_seconds=1.0)

    recorded = world.record(worker, [failure, failure])

    assert len(recorded.fenced) == 1
    assert world.count("timers") == 1
    assert len(world.told()) == 1


def test_a_failed_attempt_waits_for_its_retry_in_postgres(world):
    worker = world.worker()
    (run,) = world.started(worker)

    world.record(worker, [outcome(run, RunState.RETRYING, error="boom", retry_seconds=30.0)])

    row = world.run(run.id)
    assert (row["state"], row["error"], row["finished_at"], row["fence"]) == ("retrying", "boom", None, 1)
    (timer,) = world.rows("select * from timers")
    assert (timer["kind"], timer["run_id"], timer["scheduled_for"]) == (2, run.id, run.scheduled_for)
    assert (timer["shard"], timer["lane"], timer["pool"]) == (run.shard, run.lane, "default")
    assert timedelta(seconds=29) < timer["fire_at"] - world.now() <= timedelta(seconds=30)
    (attempt,) = world.rows("select * from attempts")
    assert (attempt["fence"], attempt["attempt"], attempt["worker"]) == (1, 1, worker.worker)
    assert (attempt["outcome"], attempt["error"]) == ("failed", "boom")
    assert [told["state"] for told in world.told()] == ["retrying"]


def test_a_dead_run_leaves_a_letter_and_two_events(world):
    worker = world.worker()
    (run,) = world.started(worker)

    world.record(worker, [outcome(run, RunState.DEAD, error="boom", reason="retries_exhausted")])

    row = world.run(run.id)
    assert (row["state"], row["reason"], row["error"]) == ("dead", "retries_exhausted", "boom")
    (letter,) = world.rows("select * from dead_letters")
    assert (letter["run_id"], letter["job_id"]) == (run.id, run.job_id)
    assert (letter["reason"], letter["error"], letter["attempts"]) == ("retries_exhausted", "boom", 1)
    assert [(told["state"], told["reason"]) for told in world.told()] == [("dead", "retries_exhausted")]
    (obituary,) = world.told(TOPICS.dead)
    assert (obituary["run_id"], obituary["error"]) == (str(run.id), "boom")


@pytest.mark.parametrize(
    ("state", "more"),
    [
        (RunState.SUCCEEDED, {}),
        (RunState.SUCCEEDED, {"result": "1"}),
        (RunState.RETRYING, {"error": "boom", "retry_seconds": 1.0}),
        (RunState.DEAD, {"error": "boom", "reason": "retries_exhausted"}),
        (RunState.CANCELLED, {}),
    ],
)
def test_whatever_a_run_reports_after_its_cancel_it_ends_as_cancelled(world, state, more):
    worker = world.worker()
    (run,) = world.started(worker)
    world.db.execute("update runs set state = 'cancelling'")

    recorded = world.record(worker, [outcome(run, state, **more)])

    assert recorded.states == {run.id: "cancelled"}
    row = world.run(run.id)
    assert (row["state"], row["reason"]) == ("cancelled", None)
    assert row["finished_at"] is not None
    assert [(told["state"], told["reason"]) for told in world.told()] == [("cancelled", None)]
    assert world.count("timers") == world.count("dead_letters") == 0


@pytest.mark.parametrize(
    ("state", "freed"),
    [(RunState.SUCCEEDED, True), (RunState.DEAD, True), (RunState.RETRYING, False)],
)
def test_a_slot_is_freed_exactly_when_its_run_ends(world, state, freed):
    worker = world.worker()
    (run,) = world.started(worker, holds_slot=True)
    slot_of(world, world.run(run.id))

    world.record(worker, [outcome(run, state, error=None if freed else "boom")])

    assert world.count("slots") == (0 if freed else 1)


def test_a_cancelled_run_that_would_have_been_retried_frees_its_slot(world):
    worker = world.worker()
    (run,) = world.started(worker, holds_slot=True)
    slot_of(world, world.run(run.id))
    world.db.execute("update runs set state = 'cancelling'")

    world.record(worker, [outcome(run, RunState.RETRYING, error="boom")])

    assert world.count("slots") == 0


# what cannot be stored as it is


@pytest.mark.parametrize(
    ("error", "stored"),
    [
        ("a\x00b", "a\\x00b"),
        ("half \ud83d of a pair", "half \\ud83d of a pair"),
        ("\x00", "\\x00"),
        ("", ""),
        ("x" * 10_000_000, "x" * 4000),
        ("\u20ac\U0001f600 \r\n\t", "\u20ac\U0001f600 \r\n\t"),
        ('{"not": "json', '{"not": "json'),
    ],
    ids=["nul", "lone surrogate", "only nul", "empty", "10 MB", "unicode", "half of json"],
)
def test_any_error_text_is_stored_and_told_as_far_as_it_can_be(world, error, stored):
    worker = world.worker()
    (retried, dead) = world.started(worker, 2)

    world.record(
        worker,
        [
            outcome(retried, RunState.RETRYING, error=error, retry_seconds=1.0),
            outcome(dead, RunState.DEAD, error=error, reason="not_retryable"),
        ],
    )

    assert world.run(retried.id)["error"] == world.run(dead.id)["error"] == stored
    assert world.column("select error from attempts") == [stored, stored]
    assert world.column("select error from dead_letters") == [stored]
    assert [told["error"] for told in world.told()] == [stored, stored]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d"', '"\\ud83d"'),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ("1e400", "1e400"),
        ("[" * 200 + "]" * 200, "[" * 200 + "]" * 200),
        ('"\\u0000"', '"\\u0000"'),
    ],
    ids=["lone surrogate", "duplicate keys", "huge number", "deep", "escaped nul"],
)
def test_a_result_is_stored_as_the_text_that_the_worker_wrote(world, text, value):
    worker = world.worker()
    (run,) = world.started(worker)

    world.record(worker, [outcome(run, result=text)])

    assert world.value("select result::text from runs where id = %s", run.id) == value
    assert world.run(run.id)["state"] == "succeeded"


@pytest.mark.parametrize("text", ["{", "", "nul\x00"], ids=["broken", "empty", "nul"])
def test_a_result_that_is_no_json_is_an_error_of_the_data_and_nothing_is_written(world, text):
    worker = world.worker()
    (run,) = world.started(worker)

    with pytest.raises(psycopg.DataError):
        world.record(worker, [outcome(run, result=text)])

    assert world.run(run.id)["state"] == "running"


def test_a_batch_of_large_results_is_recorded(world):
    worker = world.worker()
    runs = world.started(worker, 50)
    text = '"' + "x" * 60_000 + '"'

    assert len(world.record(worker, [outcome(run, result=text) for run in runs]).states) == 50


# after a COMMIT of unknown fate


def test_outcomes_that_were_recorded_are_known_again(world):
    worker = world.worker()
    recorded, retried, open_ = world.started(worker, 3)
    done = [outcome(recorded), outcome(retried, RunState.RETRYING, error="boom", retry_seconds=9.0)]
    world.record(worker, done)

    known = work.already_recorded(world.db, worker, [*done, outcome(open_)])

    assert known == {recorded.id, retried.id}
    assert work.already_recorded(world.db, world.worker(), done) == set()
    assert work.already_recorded(world.db, worker, [outcome(recorded, fence=2)]) == set()
    assert work.already_recorded(world.db, worker, []) == set()


def test_recording_the_rest_after_an_unknown_commit_repeats_nothing(world):
    worker = world.worker()
    runs = world.started(worker, 4)
    outcomes = [outcome(run) for run in runs]
    world.record(worker, outcomes[:2])

    known = work.already_recorded(world.db, worker, outcomes)
    world.record(worker, [o for o in outcomes if o.run.id not in known])

    assert sorted(told["run_id"] for told in world.told()) == sorted(str(run.id) for run in runs)


# hand-back and the books


def test_a_run_handed_back_is_queued_again_and_burns_no_attempt(world):
    worker = world.worker()
    (run,) = world.started(worker, attempt=2)

    assert work.hand_back(world.db, worker, [(run.id, run.scheduled_for)]) == 1

    row = world.run(run.id)
    assert (row["state"], row["fence"], row["attempt"], row["losses"]) == ("queued", 2, 2, 0)
    assert [message["fence"] for message in world.messages(run.id)] == [2]
    (attempt,) = world.rows("select * from attempts")
    assert (attempt["outcome"], attempt["fence"], attempt["attempt"]) == (AttemptOutcome.HANDED_BACK, 1, 3)
    assert len(world.record(worker, [outcome(run)]).fenced) == 1
    assert work.hand_back(world.db, worker, [(run.id, run.scheduled_for)]) == 0


def test_a_worker_is_told_which_runs_it_owns_and_which_it_should_stop(world):
    worker, other = world.worker(), world.worker()
    mine = world.started(worker, 3)
    world.started(other, 2)
    world.record(worker, [outcome(mine[0])])
    world.db.execute("update runs set state = 'cancelling' where id = %s", [mine[1].id])

    held = work.held(world.db, worker)

    assert set(held.batches) == {run.batch_id for run in mine}
    assert {run_id: live.state for run_id, live in held.live.items()} == {
        mine[1].id: "cancelling",
        mine[2].id: "running",
    }
    assert work.held(world.db, Identity(99, 1)) == work.Held({}, {})


def test_an_unknown_ticket_is_refused_without_an_error(world):
    ticket = Ticket(uuid4(), world.now() - timedelta(days=400), 1)

    assert work.start(world.db, world.worker(), "default", [ticket]) == ([], [ticket])
    assert work.expire(world.db, TOPICS, [ticket], shards=SHARDS) == 0
    assert work.expire(world.db, TOPICS, [], shards=SHARDS) == 0
