"""Two releases of handlers in one pool: a run that one worker does not have the handler for is executed by another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg.types.json import Jsonb
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World
from tests.integration.worker.desk import Desk

from noonmark.core.next_state import REJECTION_BUDGET
from noonmark.core.states import AttemptOutcome, DeliverySemantics, Lane, RunState
from noonmark.handlers import Retry
from noonmark.store.claims import claims
from noonmark.store.outcomes.earlier_attempts import read_earlier_attempts
from noonmark.store.runs import dead_letters, held_runs
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.runs.finish import Outcome

NEW = "release.two"


@pytest.fixture
def older(world: World) -> Iterator[Desk]:
    """A worker of the release that does not have the new handler."""
    older = Desk(world)
    yield older
    older.close()


class Rollout:
    """One run whose handler only the newer worker has; its retries are claimed as a trigger claims them."""

    def __init__(self, world: World, work: dict[str, object]) -> None:
        self.world = world
        job_id = world.job(handler=NEW)
        world.db.execute("update jobs set work = %s where id = %s", [Jsonb(work), job_id])
        self.run_id = world.put_run(job_id=job_id)

    @property
    def row(self) -> dict[str, object]:
        """State, reason, attempts and fence of the run."""
        return {name: self.world.run(self.run_id)[name] for name in ("state", "reason", "attempt", "fence")}

    def offer(self, desk: Desk) -> Outcome:
        """Start the run on a worker, and wait for what it records."""
        (run,) = self.world.start(desk.identity, [self.run_id])
        desk.batches.started([run])
        attempt = desk.attempt(run)
        if (earlier := read_earlier_attempts(self.world.db, [run.id]).get(run.id)) is not None:
            attempt.rejections = earlier.rejections
        desk.executors.submit([attempt])
        return desk.wait_for(attempt)

    def queue_again(self) -> None:
        """Let the wait pass, and queue the run as a trigger does."""
        self.world.db.execute("update timers set fire_at = now() - interval '1 s'")
        assert claims.claim_retries(self.world.db, Lane.NORMAL, EVERY_SHARD, 10).queued == 1

    def reject_until_dead(self, desk: Desk) -> int:
        """Offer the run to a worker without its handler until it is dead; return the number of rejections."""
        for number in range(1, 100):
            outcome = self.offer(desk)
            assert outcome.attempt_outcome is AttemptOutcome.REJECTED
            if outcome.state is RunState.DEAD:
                return number
            self.queue_again()
        raise AssertionError("the run is never dead")


ONCE = {"retry": {"max_retries": 0}, "delivery": "at_most_once"}


@pytest.mark.parametrize("delivery", DeliverySemantics)
def test_a_rejected_run_uses_up_no_attempt_and_goes_on_to_a_worker_that_has_the_handler(
    world, desk, older, delivery
):
    calls = []
    desk.registry.add(lambda ctx: calls.append((ctx.attempt, ctx.fence)), name=NEW)
    rollout = Rollout(world, ONCE | {"delivery": delivery.value})
    for fence in (1, 2, 3):
        rejected = rollout.offer(older)
        assert rollout.row == {"state": "retrying", "reason": None, "attempt": 0, "fence": fence}
        assert rejected.error.startswith(f"no handler is registered as '{NEW}' in this worker")
        assert world.value("select max(fire_at) - noonmark_now() > '2 s' from timers")
        rollout.queue_again()

    assert rollout.offer(desk).state is RunState.SUCCEEDED

    assert calls == [(1, 4)]
    assert rollout.row == {"state": "succeeded", "reason": None, "attempt": 1, "fence": 4}
    assert world.column("select outcome from attempts") == ["rejected"] * 3


def test_rejections_leave_all_retries_to_the_handler(world, desk, older):
    def busy(ctx):
        raise Retry(in_=1, reason=f"attempt {ctx.attempt}")

    desk.registry.add(busy, name=NEW)
    rollout = Rollout(world, {"retry": {"max_retries": 1}})
    for worker, state, attempt in [
        (older, "retrying", 0),
        (desk, "retrying", 1),
        (older, "retrying", 1),
        (older, "retrying", 1),
        (desk, "dead", 2),
    ]:
        rollout.offer(worker)
        assert (rollout.row["state"], rollout.row["attempt"]) == (state, attempt)
        if state == "retrying":
            rollout.queue_again()
    assert rollout.row["reason"] == "retries_exhausted"


def test_a_run_whose_handler_no_worker_has_is_dead_and_a_redrive_renews_its_budget(world, older):
    rollout = Rollout(world, ONCE)

    assert rollout.reject_until_dead(older) == REJECTION_BUDGET
    assert (rollout.row["state"], rollout.row["reason"], rollout.row["attempt"]) == ("dead", "rejected", 0)
    (letter,) = world.rows("select reason, error from dead_letters")
    assert letter["reason"] == "rejected"
    assert f"no handler is registered as '{NEW}'" in letter["error"]

    dead_letters.redrive(
        world.db,
        TOPICS,
        dead_letters.find(world.db, DeadSelection(runs=[rollout.run_id])),
        shards=SHARDS,
    )
    assert rollout.reject_until_dead(older) == REJECTION_BUDGET


def test_only_rejections_after_the_last_call_count(world, desk, older):
    def fails(ctx):
        raise Retry(in_=1)

    desk.registry.add(fails, name=NEW)
    rollout = Rollout(world, {"retry": {"max_retries": 5}})
    for _ in range(REJECTION_BUDGET - 1):
        rollout.offer(older)
        rollout.queue_again()
    assert rejections(world, rollout) == REJECTION_BUDGET - 1
    rollout.offer(desk)
    rollout.queue_again()
    assert rejections(world, rollout) == 0

    rollout.offer(older)
    rollout.queue_again()
    (run,) = world.start(desk.identity, [rollout.run_id])
    fence = world.run(run.id)["fence"]
    assert (
        held_runs.requeue_unfinished(world.db, desk.identity, [(run.id, run.scheduled_for, fence)]).requeued
        == 1
    )

    # A worker that hands the run back has not called its handler.
    assert rejections(world, rollout) == 1


def rejections(world: World, rollout: Rollout) -> int:
    earlier = read_earlier_attempts(world.db, [rollout.run_id])
    return earlier[rollout.run_id].rejections if earlier else 0
