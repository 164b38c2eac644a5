"""The quick path for outcomes writes what the general one writes, whatever is mixed into a batch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from tests.integration.store.world import World, outcome

from noonmark.core.states import RunState
from noonmark.store.database.row_types import StartedRun
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import finish
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.worker_lease import Identity

_CASES = (
    "plain",
    "cancelling",
    "fenced",
    "taken",
    "repeated",
    "holds a slot",
    "result",
    "extras",
    "retrying",
    "dead",
    "cancelled",
)

_COMPARED = "state, reason, attempt, fence, losses, result::text, error, holds_slot, owner is null as free"


def _outcomes(world: World, worker: Identity, cases: Sequence[str]) -> list[tuple[StartedRun, list[Outcome]]]:
    """Start a run for each case; return it with what its worker reports."""
    runs = [_run(world, worker, case) for case in cases]
    return [(run, _reports(run, case)) for run, case in zip(runs, cases, strict=True)]


def _run(world: World, worker: Identity, case: str) -> StartedRun:
    (run,) = world.started(worker, holds_slot=case == "holds a slot")
    change = {
        "cancelling": "state = 'cancelling', reason = 'by a test'",
        "fenced": "state = 'queued', fence = 2, owner = null, epoch = null",
        "taken": "epoch = epoch + 1",
    }.get(case)
    if change:
        world.db.execute(f"update runs set {change} where id = %s", [run.id])
    if case == "holds a slot":
        world.db.execute(
            "insert into slots (key, slot_no, run_id, taken_at) values (%s, 0, %s, now())",
            [run.job_id, run.id],
        )
    return run


def _reports(run: StartedRun, case: str) -> list[Outcome]:
    match case:
        case "repeated":
            return [outcome(run), outcome(run)]
        case "result":
            return [outcome(run, result='{"n":1}')]
        case "extras":
            return [outcome(run, extras=OutcomeExtras())]
        case "retrying":
            return [outcome(run, RunState.RETRYING, error="boom", retry_seconds=60.0)]
        case "dead":
            return [outcome(run, RunState.DEAD, error="boom", reason="retries_exhausted")]
        case "cancelled":
            return [outcome(run, RunState.CANCELLED, reason="by_handler")]
        case _:
            return [outcome(run)]


def _written(world: World, run_ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """Everything that is stored and announced about each run, without ids and times."""
    told: dict[str, list[dict[str, Any]]] = {str(run_id): [] for run_id in run_ids}
    for event in world.told():
        if event["run_id"] in told:
            told[event["run_id"]].append(event)
    found = []
    for run_id in run_ids:
        row = world.rows(f"select {_COMPARED} from runs where id = %s", run_id)[0]
        ended = world.run(run_id)["finished_at"]
        row |= {
            table: world.count(table, f"run_id = '{run_id}'")
            for table in ("attempts", "dead_letters", "timers", "slots")
        }
        row["ended"] = ended is not None
        row["events"] = [
            {name: value for name, value in event.items() if not name.endswith(("_id", "_at", "_for"))}
            for event in told[str(run_id)]
        ]
        row["dated alike"] = [event["finished_at"] is not None for event in told[str(run_id)]]
        found.append(row)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_batch_is_recorded_as_each_of_its_outcomes_would_be_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    rare = rng.sample(_CASES[1:], rng.randrange(len(_CASES)))
    cases = ["plain"] * rng.randrange(1, 20) + rare
    rng.shuffle(cases)
    worker = world.worker()
    together = _outcomes(world, worker, cases)
    alone = _outcomes(world, worker, cases)

    batch = world.record(worker, [each for _, reports in together for each in reports])
    monkeypatch.setattr(finish, "_are_uniform", lambda _outcomes: False)
    singly = [world.record(worker, [each]) for _, reports in alone for each in reports]

    assert _written(world, [run.id for run, _ in together]) == _written(world, [run.id for run, _ in alone])
    twins = dict(zip([run.id for run, _ in together], [run.id for run, _ in alone], strict=True))
    assert {twins[run_id]: state for run_id, state in batch.states.items()} == {
        run_id: state for one in singly for run_id, state in one.states.items()
    }
    assert len(batch.fenced) == sum(len(one.fenced) for one in singly)


@pytest.mark.parametrize("odd", [case for case in _CASES[1:] if case != "holds a slot"])
def test_one_odd_outcome_sends_the_batch_the_general_way_and_changes_none_of_the_others(
    world: World, odd: str
) -> None:
    worker = world.worker()
    reports = _outcomes(world, worker, ["plain", odd, "plain"])

    recorded = world.record(worker, [each for _, some in reports for each in some])

    assert not recorded.plain
    first, _, last = _written(world, [run.id for run, _ in reports])
    assert first == last
    assert first["state"] == "succeeded"
    assert [event["state"] for event in first["events"]] == ["succeeded"]


def test_a_batch_of_plain_successes_takes_the_quick_path(world: World) -> None:
    worker = world.worker()
    cases = ["plain"] * 5 + ["holds a slot"] * 2
    reports = [one for _, some in _outcomes(world, worker, cases) for one in some]

    assert world.record(worker, reports).plain == reports
    assert world.count("slots") == 0
