"""How many statements a pass over workflows sends: as many for a thousand tasks as for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.workflow_room import Flows
from tests.integration.store.world import SHARDS, TOPICS, World, outcome

from noonmark.core.states import RunState
from noonmark.store.runs import cancel, dead_letters
from noonmark.store.runs.cancel import RunKey
from noonmark.store.runs.dead_letters import DeadSelection

MOST = 6
LAYERS, WIDTH = 10, 100


@pytest.fixture
def flows(world: World) -> Flows:
    return Flows(world)


@contextmanager
def counted() -> Iterator[list[str]]:
    """Note the statements that are sent, without those that find nothing to do: the pass is run until nothing is due."""
    sent: list[str] = []
    plain = psycopg.Cursor.execute

    def execute(self: psycopg.Cursor, query: Any, *args: Any, **more: Any) -> Any:
        sent.append(str(query)[:60])
        return plain(self, query, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", execute)
        yield sent


def one_pass(flows: Flows) -> list[str]:
    """Run the passes that find something; return their statements."""
    with counted() as sent:
        done = flows.advance()
    assert len(done) == 1, "one pass takes all"
    # Twice for each lane; the passes that find nothing send one statement each.
    idle = 5
    assert sent[-3:] == [sent[-1]] * 3
    return sent[: len(sent) - idle]


def few(flows: Flows) -> None:
    sent = one_pass(flows)
    assert len(sent) <= MOST, "\n".join(sent)


def record(flows: Flows, ids: Sequence[UUID], state: RunState = RunState.SUCCEEDED, **more: Any) -> None:
    world = flows.world
    worker = world.worker()
    fences = dict(world.db.execute("select id, fence from runs where id = any (%s)", [list(ids)]).fetchall())
    runs = world.start(worker, ids)
    world.record(worker, [outcome(run, state, fence=fences[run.id], **more) for run in runs])


def queued(world: World) -> list[UUID]:
    return world.column("select id from runs where origin = 'task' and state = 'queued' order by id")


def test_ten_layers_of_a_hundred_tasks_each_after_all_of_the_last_are_decided_in_few_statements(
    flows: Flows,
) -> None:
    world = flows.world
    tasks: dict[str, Any] = {f"t0-{n}": {} for n in range(WIDTH)}
    for layer in range(1, LAYERS):
        parents = [f"t{layer - 1}-{n}" for n in range(WIDTH)]
        tasks |= {f"t{layer}-{n}": {"depends_on": parents} for n in range(WIDTH)}
    flows.create(tasks)
    flows.claim()
    flows.hand_over()
    few(flows)
    for _ in range(LAYERS):
        layer = queued(world)
        assert len(layer) == WIDTH
        record(flows, layer)
        few(flows)
    assert world.count("runs", "state = 'succeeded'") == LAYERS * WIDTH + 1
    assert_consistent(world)


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.DEAD])
def test_many_runs_that_end_with_results_and_errors_need_no_more_statements_than_one(
    flows: Flows, state: RunState
) -> None:
    costs = {}
    for count in (1, 60):
        tasks = {"a": {}, "b": {"depends_on": [{"task": "a", "if": {"at": "/x", "eq": 1}}]}}
        more = {"when": {"result": "a", "at": "/x", "eq": 1}, "rule": "all_done"}
        tasks |= {f"c{n}": {"depends_on": ["b" if n == 0 else f"c{n - 1}"], **more} for n in range(5)}
        for n in range(count):
            flows.create(tasks, name=f"flow {count} {n}", result={"result": "a"})
        flows.claim()
        flows.hand_over()
        one_pass(flows)
        how = {"reason": "x", "error": "boom"} if state is RunState.DEAD else {"result": '{"x": 2}'}
        record(flows, queued(flows.world), state, **how)
        costs[count] = len(one_pass(flows))
        assert flows.world.count("workflows") == 0
    assert costs[60] == costs[1]
    assert_consistent(flows.world)


def test_many_runs_that_stop_and_many_that_are_redriven_need_no_more_statements_than_one(
    flows: Flows,
) -> None:
    world = flows.world
    stops, redrives = {}, {}
    for count in (1, 40):
        tasks = {
            "a": {},
            "b": {"depends_on": [{"task": "a", "if": {"at": "/x", "eq": 1}}]},
            "c": {"depends_on": ["b"]},
        }
        for n in range(count):
            flows.create(tasks, name=f"flow {count} {n}", result={"result": "a"})
            flows.create(tasks, name=f"other {count} {n}")
        flows.claim()
        flows.hand_over()
        flows.advance()
        mine = world.rows(
            "select runs.id, runs.scheduled_for, name from runs join workflows on run_id = runs.id join jobs on jobs.id = runs.job_id"
        )
        dying = [row["id"] for row in mine if row["name"].startswith("flow")]
        record(flows, queued(world), result='{"x": 1}')
        flows.advance()
        keys = [RunKey(row["id"], row["scheduled_for"]) for row in mine if row["name"].startswith("other")]
        cancel.cancel(world.db, TOPICS, keys, reason="x", shards=SHARDS)
        stops[count] = len(one_pass(flows))
        record(flows, queued(world), RunState.DEAD, reason="x", error="boom")
        flows.advance()
        dead = dead_letters.find(world.db, DeadSelection(runs=dying))
        assert dead_letters.redrive(world.db, TOPICS, dead, shards=SHARDS).done == count
        flows.hand_over()
        redrives[count] = len(one_pass(flows))
        assert world.count("workflows") == count
        record(flows, queued(world))
        flows.advance()
        record(flows, queued(world))
        flows.advance()
        assert_consistent(world)
    assert stops[40] == stops[1]
    assert redrives[40] == redrives[1]
