"""Leases: who is lost, when not, and what becomes of the runs."""

from datetime import timedelta

import pytest
from tests.integration.store.world import SHARDS, TOPICS, outcome

from noonmark.core.states import RunState
from noonmark.store.database.statements import statement
from noonmark.store.runs import held_runs, leases, starts, worker_lease
from noonmark.store.runs.starts import StartRequest

LEASE = 15
GAP = 5


class Watch:
    """A trigger that looks at the leases, on a clock that the test turns."""

    def __init__(self, world) -> None:
        self.world = world
        self.turned = 0.0

    def look(self, after: float = 0) -> leases.LeasePass:
        self.turned += after
        self.world.turn_clock(timedelta(seconds=self.turned))
        return leases.run_pass(self.world.db, TOPICS, shards=SHARDS, gap_seconds=GAP)

    def keep_looking(self, seconds: float, *alive: worker_lease.Identity) -> list[leases.LeasePass]:
        """A pass every 4 s; the workers that live beat before each."""
        passes = []
        left = seconds
        while left > 0:
            step = min(4.0, left)
            left -= step
            self.turned += step
            self.world.turn_clock(timedelta(seconds=self.turned))
            for worker in alive:
                assert worker_lease.beat(self.world.db, worker)
            passes.append(leases.run_pass(self.world.db, TOPICS, shards=SHARDS, gap_seconds=GAP))
        return passes


@pytest.fixture
def watch(world):
    watch = Watch(world)
    watch.look()
    return watch


def lapsed(passes):
    return sum(done.lapsed for done in passes)


def test_a_silent_worker_lapses_after_one_full_lease_and_not_before(world, watch):
    silent, alive = world.worker(lease_seconds=LEASE), world.worker(lease_seconds=LEASE)

    assert lapsed(watch.keep_looking(LEASE - 1, alive)) == 0
    assert lapsed(watch.keep_looking(4, alive)) == 1

    rows = {row["id"]: row for row in world.rows("select * from workers")}
    assert rows[silent.worker]["epoch"] == silent.epoch + 1
    assert rows[silent.worker]["lapsed_at"] is not None
    assert rows[alive.worker]["lapsed_at"] is None
    assert not worker_lease.beat(world.db, silent)


def test_each_worker_has_the_lease_that_it_asked_for(world, watch):
    world.worker(lease_seconds=8)
    patient = world.worker(lease_seconds=60)

    watch.keep_looking(20)

    assert world.column("select id from workers where lapsed_at is null") == [patient.worker]


@pytest.mark.parametrize(
    "event",
    [
        "update lease_watch set last_pass_at = last_pass_at - interval '10 s'",
        "update lease_watch set timeline = timeline + 1",
        "update lease_watch set postmaster_started_at = postmaster_started_at - interval '1 s'",
    ],
    ids=["a gap between two passes", "another timeline", "another start of the postmaster"],
)
def test_no_lease_lapses_before_this_primary_was_watched_for_one_full_lease(world, watch, event):
    worker = world.worker(lease_seconds=LEASE)
    watch.keep_looking(LEASE - 3)
    world.db.execute(event)

    first, *rest = watch.keep_looking(LEASE)

    assert first.watched_seconds == 0
    assert lapsed([first, *rest]) == 0
    assert worker_lease.beat(world.db, worker)


def test_an_outage_longer_than_every_lease_loses_nobody(world, watch):
    """Nothing could beat, and the trigger could not look: the first pass afterwards begins to count."""
    worker = world.worker(lease_seconds=LEASE)
    (run,) = world.started(worker)

    after = watch.look(after=30)

    assert (after.lapsed, after.lost, after.watched_seconds) == (0, [], 0)
    assert lapsed(watch.keep_looking(LEASE, worker)) == 0
    assert world.run(run.id)["state"] == "running"
    assert world.record(worker, [outcome(run)]).states == {run.id: "succeeded"}


def test_the_runs_of_a_lapsed_worker_are_queued_again_and_burn_no_attempt(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    runs = world.started(worker, 3, attempt=2, fence=4)
    retried = runs.pop()
    world.record(worker, [outcome(retried, RunState.RETRYING, fence=4, error="boom", retry_seconds=99.0)])

    passes = watch.keep_looking(LEASE + 4)

    lost = [run for done in passes for run in done.lost]
    assert {run.id for run in lost} == {run.id for run in runs}
    for run in runs:
        row = world.run(run.id)
        assert (row["state"], row["fence"], row["attempt"], row["losses"]) == ("queued", 5, 2, 1)
        assert (row["owner"], row["epoch"]) == (None, None)
        assert [message["fence"] for message in world.messages(run.id)] == [5]
    assert sorted(world.column("select outcome from attempts")) == ["failed", "lost", "lost"]
    assert world.run(retried.id)["state"] == "retrying"
    assert world.count("start_batches") == 0
    assert [told["state"] for told in world.told()] == ["retrying"]


@pytest.mark.parametrize("locking", ["jobs", "slots", "limit_slots"])
def test_lost_runs_do_not_wait_for_one_whose_job_or_slot_another_transaction_has_locked(
    world, watch, locking
):
    worker = world.worker(lease_seconds=LEASE)
    first, *others = world.started(worker, 3, holds_slot=True)
    world.db.execute("insert into slots values (%s, 0, %s, now())", [first.job_id, first.id])
    world.db.execute("insert into limit_slots values (%s, 0, %s, 'tests', 'l')", [first.job_id, first.id])
    world.db.execute("update runs set state = 'cancelling' where id = %s", [first.id])
    column = "id" if locking == "jobs" else "key"
    person = world.another()
    with person.transaction():
        person.execute(f"select from {locking} where {column} = %s for update", [first.job_id])
        watch.keep_looking(LEASE + 4)

        assert {world.run(run.id)["state"] for run in others} == {"queued"}
        assert world.run(first.id)["state"] == "cancelling"
        assert world.count("start_batches") == 1

    watch.look()
    assert world.run(first.id)["state"] == "cancelled"
    assert (world.count("start_batches"), world.count("slots"), world.count("limit_slots")) == (0, 0, 0)


def test_nothing_that_the_lapsed_worker_still_sends_is_taken(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    (run,) = world.started(worker)
    queued = world.put_run()
    watch.keep_looking(LEASE + 4)

    assert len(world.record(worker, [outcome(run)]).fenced) == 1
    assert held_runs.requeue_unfinished(world.db, worker, [(run.id, run.scheduled_for, 1)]).requeued == 0
    assert starts.start(world.db, worker, "default", [world.ticket(queued)])[0] == []
    assert world.run(run.id)["state"] == "queued"


def test_a_run_that_lost_its_worker_too_often_is_dead_and_told(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    (run,) = world.started(worker, losses=leases.LOSS_BUDGET, holds_slot=True)
    world.db.execute("insert into slots select job_id, 0, id, now() from runs where id = %s", [run.id])

    watch.keep_looking(LEASE + 4)

    row = world.run(run.id)
    assert (row["state"], row["reason"], row["losses"]) == ("dead", "lost", leases.LOSS_BUDGET + 1)
    assert row["error"] == f"the run lost its worker {leases.LOSS_BUDGET + 1} times"
    assert world.column("select reason from dead_letters") == ["lost"]
    assert world.count("slots") == 0
    assert world.messages(run.id) == []
    assert [(told["state"], told["reason"]) for told in world.told()] == [("dead", "lost")]
    assert len(world.told(TOPICS.dead)) == 1


def test_a_run_never_dies_for_a_neighbour(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    (run,) = world.started(worker, losses=3 * leases.LOSS_BUDGET)
    world.started(worker)
    other = world.worker(lease_seconds=LEASE)
    (alone,) = world.started(other, losses=leases.LOSS_BUDGET)

    watch.keep_looking(LEASE + 4)

    row = world.run(run.id)
    assert (row["state"], row["losses"], row["owner"]) == ("retrying", 3 * leases.LOSS_BUDGET + 1, None)
    assert world.run(alone.id)["state"] == "dead"


def test_a_run_past_its_timeout_on_a_live_worker_uses_up_its_budget_beside_others(world, watch):
    worker = world.worker(lease_seconds=3600)
    (run,) = world.started(worker, losses=leases.LOSS_BUDGET)
    (neighbour,) = world.started(worker)
    world.db.execute(
        "update start_batches set overdue_at = now() - interval '1 s' where %s = any (run_ids)", [run.id]
    )

    assert [lost.id for lost in watch.look().lost] == [run.id]

    assert world.run(run.id)["state"] == "dead"
    assert world.run(neighbour.id)["state"] == "running"


@pytest.mark.parametrize("extended_by", ["its worker", "another", "an earlier epoch"])
def test_a_live_worker_keeps_runs_whose_timeout_began_late(world, watch, extended_by):
    worker = world.worker(lease_seconds=3600)
    (run,) = world.started(worker, losses=leases.LOSS_BUDGET)
    world.db.execute("update start_batches set overdue_at = now() - interval '1 s'")
    by = {
        "its worker": worker,
        "another": world.worker(lease_seconds=3600),
        "an earlier epoch": worker._replace(epoch=worker.epoch - 1),
    }[extended_by]

    starts.extend_batches(world.db, by, {run.batch_id: 70.0})

    kept = extended_by == "its worker"
    assert [lost.id for lost in watch.look().lost] == ([] if kept else [run.id])
    assert world.run(run.id)["state"] == ("running" if kept else "dead")
    # It ends 60 s after those 70, and no extension makes it shorter.
    starts.extend_batches(world.db, by, {run.batch_id: 1.0})
    rows = world.column("select extract(epoch from overdue_at - started_at)::int from start_batches")
    assert rows == ([130] if kept else [])


def test_a_run_that_lost_several_workers_waits_longer_each_time(world, watch):
    waits = []
    worker = world.worker(lease_seconds=3600)
    (run,) = world.started(worker, losses=1)
    for losses in (2, 3, 4, 5, 6):
        world.started(worker)
        worker_lease.leave(world.db, worker)
        watch.look()
        row = world.run(run.id)
        assert (row["losses"], row["attempt"]) == (losses, 0)
        if losses < leases.LOSSES_BEFORE_WAIT:
            assert row["state"] == "queued"
        else:
            assert (row["state"], row["error"]) == ("retrying", "the worker was lost")
            waits.append(
                world.column(
                    "select extract(epoch from fire_at - noonmark_now())::float8 from timers where run_id = %s"
                    " order by fire_at desc limit 1",
                    run.id,
                )[0]
            )
            day = {"first": row["scheduled_for"], "last": row["scheduled_for"]}
            world.db.execute(statement("requeue_runs"), {"ids": [run.id], **day, "reason": ""})
        worker = world.worker(lease_seconds=3600)
        world.start(worker, [run.id])

    assert [10 * 2**n / 2 <= wait <= 10 * 2**n for n, wait in enumerate(waits)] == [True] * 4


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_the_wait_after_a_loss_is_bounded(spread):
    waits = [leases.wait_seconds(losses, spread) for losses in range(leases.LOSSES_BEFORE_WAIT, 2000)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (5 * (1 + spread), 300 * (1 + spread))


def test_a_run_that_was_being_cancelled_ends_with_its_worker(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    (run,) = world.started(worker, losses=leases.LOSS_BUDGET)
    world.db.execute("update runs set state = 'cancelling'")

    watch.keep_looking(LEASE + 4)

    row = world.run(run.id)
    assert (row["state"], row["reason"], row["fence"]) == ("cancelled", None, 2)
    assert [told["state"] for told in world.told()] == ["cancelled"]
    assert world.count("dead_letters") == 0


def test_a_worker_that_left_in_good_order_is_waited_for_by_nobody(world, watch):
    worker = world.worker(lease_seconds=3600)
    (run,) = world.started(worker)
    worker_lease.leave(world.db, worker)

    done = watch.look()

    assert (done.lapsed, [run.id for run in done.lost]) == (0, [run.id])
    assert world.run(run.id)["state"] == "queued"


def test_a_batch_past_every_timeout_is_taken_from_a_worker_that_still_beats(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    slow = world.start(worker, [world.put_run(job_id=world.job(timeout_seconds=3600))])
    (stuck,) = world.start(worker, [world.put_run(job_id=world.job(timeout_seconds=10))])

    before = watch.keep_looking(10 + starts.START_GRACE_SECONDS - 2, worker)
    after = watch.keep_looking(4, worker)

    assert [run for done in before for run in done.lost] == []
    assert [run.id for done in after for run in done.lost] == [stuck.id]
    assert lapsed(before + after) == 0
    assert world.run(slow[0].id)["state"] == "running"


def test_an_overdue_batch_does_not_take_a_run_that_its_worker_has_started_anew(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    job_id = world.job(timeout_seconds=10)
    ids = [world.put_run(job_id=job_id, scheduled_for=world.now() + timedelta(seconds=n)) for n in range(2)]
    stuck, retried = world.start(worker, ids)
    watch.keep_looking(60, worker)
    world.record(worker, [outcome(retried, RunState.RETRYING, error="boom", retry_seconds=0.0)])
    world.db.execute("update runs set state = 'queued', fence = 2 where id = %s", [retried.id])
    world.start(worker, [retried.id])

    lost = [run.id for done in watch.keep_looking(14, worker) for run in done.lost]

    assert lost == [stuck.id]
    assert world.run(retried.id)["state"] == "running"


def test_a_start_that_commits_after_the_lapse_is_found_by_the_next_pass(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    run_id = world.put_run()
    ticket = world.ticket(run_id)
    slow = world.another()
    slow.execute("begin")
    # The start sees a worker that lives; its commit comes when the worker is gone.
    slow.execute("set transaction isolation level repeatable read")
    slow.execute("select 1 from workers")
    passes = watch.keep_looking(LEASE + 4)
    assert lapsed(passes) == 1
    started, _ = starts.start(slow, worker, "default", [ticket])
    assert [run.id for run in started] == [run_id]
    assert watch.look(1).lost == []
    slow.execute("commit")

    (lost,) = watch.look(1).lost

    assert lost.id == run_id
    assert (world.run(run_id)["state"], world.run(run_id)["fence"]) == ("queued", 2)


def test_batches_of_a_worker_whose_row_is_gone_are_taken_up(world, watch):
    worker = world.worker(lease_seconds=LEASE)
    (run,) = world.started(worker)
    world.db.execute("delete from workers")

    assert [lost.id for lost in watch.look().lost] == [run.id]


def test_a_great_many_batches_are_taken_up_pass_by_pass(world, watch):
    for _ in range(45):
        worker = world.worker(lease_seconds=3600)
        world.started(worker)
        worker_lease.leave(world.db, worker)

    taken = [len(watch.look().lost) for _ in range(4)]

    assert taken == [20, 20, 5, 0]


def test_all_batches_of_a_worker_are_taken_up_together(world, watch):
    worker = world.worker(lease_seconds=3600)
    for _ in range(45):
        world.started(worker)
    worker_lease.leave(world.db, worker)

    assert [len(watch.look().lost) for _ in range(2)] == [45, 0]


def test_two_triggers_that_look_at_once_take_up_each_run_once(world, watch):
    for _ in range(10):
        worker = world.worker(lease_seconds=3600)
        world.started(worker)
        worker_lease.leave(world.db, worker)
    other = world.another()
    with other.transaction():
        first = leases._requeue_lost(other, TOPICS, shards=SHARDS, batches=6)
        second = watch.look().lost

    assert len(first) == 6
    assert len(second) == 4
    assert not {run.id for run in first} & {run.id for run in second}
    assert world.count("outbox") == 10


def test_a_beat_renews_only_a_lease_that_is_still_held(world):
    worker = world.worker()
    assert worker_lease.beat(world.db, worker)
    assert not worker_lease.beat(world.db, worker_lease.Identity(worker.worker, worker.epoch + 1))
    worker_lease.leave(world.db, worker)
    assert not worker_lease.beat(world.db, worker)


def test_every_process_start_is_a_worker_of_its_own(world):
    first, second = world.worker(), world.worker()

    assert first.worker != second.worker


def test_a_restarted_worker_gets_back_by_lease_what_it_lost(world, watch):
    """The same host and pid: the old row lapses, the new one lives, and the run goes to whoever takes it."""
    old = world.worker(lease_seconds=LEASE)
    (run,) = world.started(old)
    new = world.worker(lease_seconds=LEASE)
    watch.keep_looking(LEASE + 4, new)

    (again,) = world.start(new, [run.id])

    assert (again.attempt, again.losses) == (1, 1)
    assert world.record(new, [outcome(again, fence=2)]).states == {run.id: "succeeded"}
    assert isinstance(world.ticket(run.id), StartRequest)
