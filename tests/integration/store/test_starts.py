"""The start statement: which runs a worker gets, and which it does not; and what it gives back."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pytest
from psycopg.types.json import Json
from tests.integration.store.world import SHARDS, TOPICS, outcome

from noonmark.core.states import AttemptOutcome, Lane
from noonmark.store.runs import held_runs, starts, worker_lease
from noonmark.store.runs.starts import StartRequest
from noonmark.store.runs.worker_lease import Identity


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
    assert batch["overdue_at"] - batch["started_at"] == timedelta(seconds=7 + starts.START_GRACE_SECONDS)


@pytest.mark.parametrize("timeout", ["soon", {"a": 1}, 1e300, None])
def test_a_timeout_that_is_no_number_of_seconds_stops_no_start(world, timeout):
    worker = world.worker()
    odd, plain = world.job(), world.job(timeout_seconds=7)
    text = Json({"timeout_seconds": timeout})
    world.db.execute("update jobs set work = %s where id = %s", [text, odd])

    runs = world.start(worker, [world.put_run(job_id=job_id) for job_id in (odd, plain)])

    assert {run.job_id for run in runs} == {odd, plain}
    assert world.count("start_batches") == 1


@pytest.mark.parametrize(
    "work", [r'{"payload": "\ud800"}', r'{"a": "\u0000"}', '{"timeout_seconds": 1e200000}']
)
def test_work_that_postgres_cannot_read_stops_no_other_start(world, work):
    worker = world.worker()
    odd, *plain = (world.job(timeout_seconds=7) for _ in range(5))
    world.db.execute("update jobs set work = %s where id = %s", [work, odd])

    runs = world.start(worker, [world.put_run(job_id=job_id) for job_id in (plain[0], odd, *plain[1:])])

    assert {run.job_id: run.work for run in runs}[odd] == work
    assert {run.job_id for run in runs} == {odd, *plain}
    assert world.count("runs", "state = 'running'") == 5


@pytest.mark.parametrize("fence", [1, 3])
def test_a_start_with_another_fence_than_the_runs_is_refused(world, fence):
    run_id = world.put_run(fence=2)
    ticket = world.ticket(run_id, fence=fence)

    started, refused = starts.start(world.db, world.worker(), "default", [ticket])

    assert (started, refused) == ([], [ticket])
    assert world.run(run_id)["state"] == "queued"
    assert world.count("start_batches") == 0


def test_a_start_for_another_pool_is_refused(world):
    run_id = world.put_run(pool="gpu")

    started, refused = starts.start(world.db, world.worker(), "default", [world.ticket(run_id)])

    assert started == []
    assert len(refused) == 1
    assert world.run(run_id)["state"] == "queued"


def test_a_start_under_another_epoch_or_by_a_worker_that_lapsed_or_left_is_refused(world):
    run_id = world.put_run()
    worker, lapsed, left = world.worker(), world.worker(), world.worker()
    world.db.execute("update workers set lapsed_at = now() where id = %s", [lapsed.worker])
    worker_lease.leave(world.db, left)
    nobody = Identity(99, 1)

    for who in (Identity(worker.worker, 2), lapsed, left, Identity(left.worker, 2), nobody):
        assert starts.start(world.db, who, "default", [world.ticket(run_id)])[0] == []

    assert world.run(run_id)["state"] == "queued"
    assert len(starts.start(world.db, worker, "default", [world.ticket(run_id)])[0]) == 1


def test_a_run_that_another_worker_has_is_not_started_again(world):
    first, second = world.worker(), world.worker()
    run_id = world.put_run()
    world.start(first, [run_id])

    started, refused = starts.start(world.db, second, "default", [world.ticket(run_id)])

    assert (started, len(refused)) == ([], 1)
    assert world.run(run_id)["owner"] == first.worker


def test_two_workers_that_start_the_same_runs_at_once_share_them_out(world):
    tickets = [world.ticket(world.put_run()) for _ in range(50)]
    together = threading.Barrier(4)

    def start(session, worker):
        together.wait()
        return [run.id for run in starts.start(session, worker, "default", tickets)[0]]

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

    started, refused = starts.start(world.db, worker, "default", [world.ticket(run_id)] * 2)

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

    started, refused = starts.start(world.db, worker, "default", tickets)
    ended = starts.expire(world.db, TOPICS, refused, shards=SHARDS)

    assert [run.id for run in started] == [early]
    assert ended == {Lane.NORMAL: 1}
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


def test_a_run_handed_back_is_queued_again_and_burns_no_attempt(world):
    worker = world.worker()
    (run,) = world.started(worker, attempt=2)

    assert held_runs.requeue_unfinished(world.db, worker, [(run.id, run.scheduled_for, 1)]).requeued == 1

    row = world.run(run.id)
    assert (row["state"], row["fence"], row["attempt"], row["losses"]) == ("queued", 2, 2, 0)
    assert [message["fence"] for message in world.messages(run.id)] == [2]
    (attempt,) = world.rows("select * from attempts")
    assert (attempt["outcome"], attempt["fence"], attempt["attempt"]) == (AttemptOutcome.HANDED_BACK, 1, 3)
    assert len(world.record(worker, [outcome(run)]).fenced) == 1
    assert held_runs.requeue_unfinished(world.db, worker, [(run.id, run.scheduled_for, 1)]).requeued == 0


def test_a_late_hand_back_leaves_a_run_alone_that_the_same_worker_has_started_again(world):
    worker = world.worker()
    (run,) = world.started(worker)
    assert held_runs.requeue_unfinished(world.db, worker, [(run.id, run.scheduled_for, 1)]).requeued == 1
    (again,) = world.start(worker, [run.id])

    assert held_runs.requeue_unfinished(world.db, worker, [(run.id, run.scheduled_for, 1)]).requeued == 0
    world.db.execute("update runs set state = 'cancelling' where id = %s", [run.id])
    unowned = [(run.id, run.scheduled_for, 1)]
    assert held_runs.cancel_unowned(world.db, worker, TOPICS, unowned, shards=SHARDS) == 0
    assert held_runs.read_stop_requests(world.db, worker, unowned) == []

    row = world.run(run.id)
    assert (row["state"], row["fence"], row["owner"]) == ("cancelling", 2, worker.worker)
    assert held_runs.read_worker_runs(world.db, worker).live == {
        run.id: held_runs.LiveRun("cancelling", again.scheduled_for, 2)
    }


def test_a_message_of_an_earlier_fence_does_not_expire_a_run(world):
    run_id = world.put_run(job_id=world.job(), fence=2, start_by=world.now() - timedelta(seconds=1))
    old, current = (StartRequest(run_id, world.run(run_id)["scheduled_for"], fence) for fence in (1, 2))

    assert starts.expire(world.db, TOPICS, [old], shards=SHARDS) == {}
    assert sum(starts.expire(world.db, TOPICS, [old, current], shards=SHARDS).values()) == 1


def test_a_worker_is_told_which_runs_it_owns_and_which_it_should_stop(world):
    worker, other = world.worker(), world.worker()
    mine = world.started(worker, 3)
    world.started(other, 2)
    world.record(worker, [outcome(mine[0])])
    world.db.execute("update runs set state = 'cancelling' where id = %s", [mine[1].id])

    held = held_runs.read_worker_runs(world.db, worker)

    assert set(held.batches) == {run.batch_id for run in mine}
    assert {run_id: live.state for run_id, live in held.live.items()} == {
        mine[1].id: "cancelling",
        mine[2].id: "running",
    }
    assert held_runs.read_worker_runs(world.db, Identity(99, 1)) == held_runs.WorkerRuns({}, {})


def test_an_unknown_ticket_is_refused_without_an_error(world):
    ticket = StartRequest(uuid4(), world.now() - timedelta(days=400), 1)

    assert starts.start(world.db, world.worker(), "default", [ticket]) == ([], [ticket])
    assert starts.expire(world.db, TOPICS, [ticket], shards=SHARDS) == {}
    assert starts.expire(world.db, TOPICS, [], shards=SHARDS) == {}
