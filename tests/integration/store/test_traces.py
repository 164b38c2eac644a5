"""What the store tells of runs where traces are on, and keeps of traces."""

from datetime import timedelta

from tests.integration.store.test_planned_claims import PLANNER, claim, recurring
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS

from noonmark.core.states import Lane, TimerKind
from noonmark.store.claims import claims
from noonmark.store.jobs import traces

ONE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_claim_names_the_runs_that_it_made_only_where_that_was_asked_for(world):
    world.due_once(30)
    plain = claims.claim_once(world.db, Lane.HIGH, EVERY_SHARD, 100)
    named = claims.claim_once(world.db, Lane.LOW, EVERY_SHARD, 100, named=True)

    assert (plain.claimed, plain.made) == (10, [])
    made = world.db.execute("select id, job_id from runs where lane = 2").fetchall()
    assert sorted(named.made) == sorted(made)
    assert claims.claim_once(world.db, Lane.LOW, EVERY_SHARD, 100, named=True).made == []


def test_contexts_are_kept_for_the_jobs_that_have_one(world):
    traced, plain = world.job(), world.job()
    traces.keep(world.db, {traced: ONE})

    assert traces.submitted(world.db, [traced, plain, traced]) == {traced: ONE}
    assert traces.submitted(world.db, []) == {}


def test_a_planned_claim_names_runs_that_go_on_and_not_those_that_are_skipped(world):
    due = world.now() - timedelta(seconds=35)
    runs = recurring(world, due=due, period="PT10S", policy={"overlap": "skip"})
    made = claims.claim_planned(
        world.db, Lane.NORMAL, EVERY_SHARD, 100,
        kind=TimerKind.PLANNED, plan=PLANNER, topics=TOPICS, install_shards=SHARDS, named=True,
    ).made  # fmt: skip

    states = {run["id"]: run["state"] for run in world.runs_of(runs)}
    assert set(states.values()) == {"skipped", "queued"}
    assert made == [(run_id, runs) for run_id, state in states.items() if state == "queued"]
    assert claim(world).made == []
