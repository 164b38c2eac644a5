"""Jobs changed by hand so that nothing can read them: each ends its own run, once, and harms no other."""

from __future__ import annotations

import pytest
from tests.integration.store.world import SHARDS, TOPICS

from noonmark.store.jobs import self_pauses
from noonmark.store.runs import leases

BROKEN = [r'{"payload": "\ud800", "pause_after_failures": 1}', '"x"', "[1]", "[" * 2000 + "]" * 2000]


@pytest.mark.parametrize("work", BROKEN, ids=["half a pair", "a text", "a list", "too deep"])
def test_a_run_of_an_unreadable_job_is_dead_at_once_and_the_others_run(world, desk, work):
    called = []
    desk.registry.add(lambda ctx: called.append(ctx.run_id), name="h.called")
    jobs = [world.job(handler="h.called") for _ in range(2)]
    world.db.execute("update jobs set work = %s where id = %s", [work, jobs[0]])
    runs = world.start(desk.identity, [world.put_run(job_id=job) for job in jobs])
    desk.batches.started(runs)
    hands = [desk.attempt(run) for run in runs]

    desk.executors.submit(hands)
    for hand in hands:
        desk.wait_for(hand)

    (odd,), (plain,) = (world.runs_of(job) for job in jobs)
    assert (odd["state"], odd["reason"], odd["attempt"]) == ("dead", "rejected", 0)
    assert odd["error"].startswith("this worker cannot read the job of this run: ")
    assert (plain["state"], called) == ("succeeded", [plain["id"]])
    assert (world.count("timers"), world.count("dead_letters")) == (0, 1)
    assert self_pauses.failing(world.db, jobs) == []


def test_a_lost_run_of_an_unreadable_job_is_requeued_with_the_others(world):
    worker = world.worker()
    odd, plain = world.job(), world.job()
    world.db.execute("update jobs set work = %s where id = %s", [BROKEN[0], odd])
    world.start(worker, [world.put_run(job_id=job) for job in (odd, plain)])
    world.db.execute("update start_batches set overdue_at = now() - interval '1 s'")

    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)

    assert [world.runs_of(job)[0]["state"] for job in (odd, plain)] == ["queued", "queued"]
