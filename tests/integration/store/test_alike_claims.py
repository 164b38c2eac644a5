"""Claims of recurring jobs that share a plan, and of those that do not although they look alike."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.integration.store.test_planned_claims import PLANNER, claim, next_at, recurring, verdicts

from noonmark.core.states import RunState
from noonmark.store.claims import claims

pytestmark = pytest.mark.postgres


@pytest.fixture
def alike(world):
    due = world.now() - timedelta(seconds=5)
    first = recurring(world, due=due, policy={"overlap": "skip"})
    return [first, *world.copies(first, 9)]


def test_each_job_gets_its_run_its_message_and_its_next_instant(world, alike):
    due = world.value("select min(scheduled_for) from timers")

    result = claim(world)

    assert (result.claimed, result.queued) == (10, 10)
    runs = world.rows("select * from runs")
    assert {run["job_id"] for run in runs} == set(alike)
    assert {run["scheduled_for"] for run in runs} == {due}
    assert {(run["fence"], run["state"], run["origin"], run["holds_slot"]) for run in runs} == {
        (1, "queued", "schedule", True)
    }
    assert set(world.column("select run_id from outbox")) == {run["id"] for run in runs}
    assert {next_at(world, job_id) for job_id in alike} == {due + timedelta(minutes=1)}
    assert set(world.column("select after_at from timers")) == {due}


def test_nobody_plans_them_one_by_one(world, alike, monkeypatch):
    monkeypatch.setattr(claims, "carry_out", None)
    assert claim(world).queued == 10


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ("update jobs set state = 'paused'", None),
        ("update jobs set resumed_at = now(), resume_choice = 'skip'", ("skipped", "paused")),
        ('update jobs set policy = \'{"overlap": "allow", "start_deadline_seconds": 9}\'', ("queued", None)),
        ("update timers set runs_left = 1", ("queued", None)),
        ("update namespaces set max_in_flight = 1", ("waiting", "fairness")),
    ],
)
def test_a_job_with_something_of_its_own_gets_what_its_plan_says(world, alike, change, verdict):
    odd = alike[3]
    key = {"jobs": "id", "timers": "job_id"}
    table = change.split()[1]
    if table in key:
        world.db.execute(f"{change} where {key[table]} = %s", [odd])
    else:
        world.db.execute(
            "insert into namespaces (name, created_at) values ('tests', now()) on conflict do nothing"
        )
        world.db.execute(change)

    claim(world)

    assert verdicts(world, odd) == ([verdict] if verdict else [])
    if table in key:
        assert world.count("runs", "state = 'queued'") == 9 + (verdict == ("queued", None))


def test_an_instant_that_is_in_the_ledger_already_is_not_run_again(world, alike):
    due = world.value("select min(scheduled_for) from timers")
    world.put_run(RunState.SUCCEEDED, job_id=alike[0], scheduled_for=due)

    assert claim(world).queued == 9

    assert verdicts(world, alike[0]) == [("succeeded", None)]
    assert {next_at(world, job_id) for job_id in alike} == {due + timedelta(minutes=1)}
    assert world.count("outbox", "run_id is not null") == 9


def test_more_groups_than_a_claim_compares_are_all_claimed(world):
    due = world.now() - timedelta(seconds=5)
    for number in range(40):
        recurring(world, due=due, period=f"PT{number + 1}M")

    assert claim(world, plan=PLANNER).queued == 40
