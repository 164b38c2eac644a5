"""What must be true of workflow runs at every moment, recounted from the ledger of a test's database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from tests.integration.store.world import ENDED, World

from noonmark.core.states import RunState, SkipReason
from noonmark.core.workflows.advancing import choices_of
from noonmark.core.workflows.conditions import NOTHING
from noonmark.core.workflows.definition import Definition
from noonmark.core.workflows.ids import TaskKey
from noonmark.core.workflows.progress import TaskProgress, progress_of
from noonmark.core.workflows.rules import Decision, decide_task
from noonmark.core.workflows.stored import definition_of
from noonmark.core.workflows.verdicts import Stop, ending_of

Row = dict[str, Any]
_LIVE = TaskProgress.LIVE
_SKIPS = {
    SkipReason.UPSTREAM_FAILED.value: Decision.UPSTREAM_FAILED,
    SkipReason.UPSTREAM_SKIPPED.value: Decision.UPSTREAM_SKIPPED,
    SkipReason.NOT_NEEDED.value: Decision.NOT_NEEDED,
    SkipReason.CONDITION.value: Decision.RUN,
}
"""What the rule of a task said that was skipped for a reason."""
_PARKED = "fire_at >= '9999-12-31 00:00+00'"


@dataclass
class _Flow:
    """A workflow run with the runs of its tasks, and its state and timers if it is open."""

    row: Row
    definition: Definition
    runs: list[tuple[TaskKey, Row]] = field(default_factory=list)
    open: Row | None = None
    timers: list[Row] = field(default_factory=list)

    @property
    def generation(self) -> int:
        return max((key.generation for key, _ in self.runs), default=1)

    def newest(self, generation: int) -> Mapping[int, Row]:
        """The row that counts for each task, as of a generation."""
        found: dict[int, tuple[int, Row]] = {}
        for key, row in self.runs:
            if key.generation <= generation and found.get(key.task_no, (0, row))[0] < key.generation:
                found[key.task_no] = (key.generation, row)
        return {no: row for no, (_, row) in found.items()}

    def state_at(self, generation: int, at: Any = None) -> tuple[bytes, bytes]:
        """Progress and choices as of a generation; of ends after a moment nothing is known."""
        rows = self.newest(generation)
        progress = bytearray(len(self.definition.tasks))
        for no, row in rows.items():
            if at is None or (row["finished_at"] is not None and row["finished_at"] <= at):
                progress[no] = progress_of(RunState(row["state"]), row["reason"])

        def result(no: int) -> object:
            text = rows[no]["result_text"]
            return NOTHING if text is None else orjson.loads(text)

        return bytes(progress), choices_of(self.definition, bytes(progress), result)


def assert_consistent(world: World, *, stopped: bool = True) -> None:
    """Check all that must hold of the workflow runs of a database, at any moment between two transactions.

    Args:
        world: the database.
        stopped: whether nothing changes it now, so that every open run must have a reason to be open.
    """
    found = [problem for flow in _flows(world) for problem in _problems(world, flow, stopped=stopped)]
    found += _strays(world)
    assert not found, "\n".join(found[:20])


def _flows(world: World) -> Sequence[_Flow]:
    tasks: defaultdict[tuple[UUID, int], list[tuple[str, Any]]] = defaultdict(list)
    for row in world.rows("select job_id, version, key, graph from workflow_tasks order by 1, 2, task_no"):
        tasks[row["job_id"], row["version"]].append((row["key"], row["graph"]))
    definitions = {version: definition_of(rows) for version, rows in tasks.items()}
    flows = {
        row["id"]: _Flow(row, definitions[row["job_id"], row["job_version"]])
        for row in world.rows("select * from runs where pool = '$workflow'")
    }
    for row in world.rows("select *, result::text as result_text from runs where origin = 'task'"):
        key = TaskKey.parse(row["request_id"])
        flows[key.workflow_id].runs.append((key, row))
    for row in world.rows("select * from workflows"):
        flows[row["run_id"]].open = row
    owner = {row["id"]: flow for flow in flows.values() for _, row in flow.runs} | flows
    for row in world.rows(f"select *, {_PARKED} as parked from timers where kind = 5"):
        if (flow := owner.get(row["run_id"])) is not None:
            flow.timers.append(row)
    return list(flows.values())


def _problems(world: World, flow: _Flow, *, stopped: bool) -> Iterator[str]:
    name = f"workflow run {flow.row['id']} ({flow.row['state']}): "
    checks = [*_keys(flow), *_due(flow), *_finals(flow), *_letters(world, flow)]
    if flow.row["state"] in ENDED:
        checks += [*_closed(flow, stopped=stopped), *_verdict(flow)]
    elif flow.open is not None:
        checks += [*_counted(flow), *_goes_on(world, flow, stopped=stopped)]
    elif flow.row["state"] in ("running", "cancelling"):
        checks.append("it is under way without a state")
    for problem in checks:
        yield name + problem


def _keys(flow: _Flow) -> Iterator[str]:
    """W1 and W9: one row for each task, index and generation; one version."""
    keys = [key for key, _ in flow.runs]
    if len(keys) != len(set(keys)):
        yield "two runs have one key"
    for key, row in flow.runs:
        if key.map_index or not key.task_no < len(flow.definition.tasks):
            yield f"there is no task {key}"
        if (row["job_version"], row["scheduled_for"]) != (flow.row["job_version"], flow.row["scheduled_for"]):
            yield f"the run of task {key.task_no} is of another version or instant"


def _due(flow: _Flow) -> Iterator[str]:
    """W2 and W3: each run and each skip follows from verdicts that were there before."""
    for key, row in flow.runs:
        task = flow.definition.tasks[key.task_no]
        if row["reason"] == SkipReason.CANCELLED and row["state"] == "skipped":
            if key.generation < flow.generation:
                continue
            if not (flow.row["state"] in ("cancelling", "cancelled") or _stopped(flow)):
                yield f"task {task.key} was skipped as cancelled, and nobody stopped the run"
            continue
        progress, choices = flow.state_at(key.generation, row["due_at"])
        skip = row["reason"] if row["state"] == "skipped" and row["attempt"] == 0 else None
        expected = _SKIPS.get(skip or "", Decision.RUN)
        decision = decide_task(task, progress, choices)
        if decision is not expected:
            yield f"task {task.key} is {row['state']} ({skip}), when its rule said {decision.name}"


def _stopped(flow: _Flow) -> bool:
    return flow.row["reason"] == "deadline" or (flow.open is not None and flow.open["stopping"] is not None)


def _finals(flow: _Flow) -> Iterator[str]:
    """W8: the tasks of `finally` come after all others."""
    for key, row in flow.runs:
        if not flow.definition.tasks[key.task_no].is_final:
            continue
        newest = flow.newest(key.generation)
        main = [newest.get(task.no) for task in flow.definition.tasks if not task.is_final]
        if any(one is None or not _ended_by(one, row["due_at"]) for one in main):
            yield f"task {key.task_no} of finally came before the others had ended"


def _ended_by(row: Row, at: Any) -> bool:
    return row["finished_at"] is not None and row["finished_at"] <= at


def _letters(world: World, flow: _Flow) -> Iterator[str]:
    """W13: one dead letter for a dead workflow run, none for the run of a task."""
    ids = [row["id"] for _, row in flow.runs]
    if ids and world.value("select count(*) from dead_letters where run_id = any (%s)", ids):
        yield "the run of a task has a dead letter"
    dead = world.value("select count(*) from dead_letters where run_id = %s", flow.row["id"])
    if dead != (flow.row["state"] == "dead"):
        yield f"it has {dead} dead letters"


def _closed(flow: _Flow, *, stopped: bool) -> Iterator[str]:
    """W5: nothing is left of a run that has ended; a timer that a rival wrote meanwhile goes with the next pass."""
    if flow.open is not None:
        yield "it has ended and has a state"
    if flow.timers and stopped:
        yield f"it has ended and has {len(flow.timers)} timers"
    live = [key.task_no for key, row in flow.runs if row["state"] not in ENDED]
    if live:
        yield f"it has ended and its tasks {live} have not"


def _verdict(flow: _Flow) -> Iterator[str]:
    """W7: the verdict follows from those of the tasks; each task has one, if the run was opened."""
    if flow.row["started_at"] is None:
        return
    progress, choices = flow.state_at(flow.generation)
    if TaskProgress.UNDECIDED in progress:
        yield "a task has no verdict"
        return
    state, reason = flow.row["state"], flow.row["reason"]
    stop = Stop.CANCELLED if state == "cancelled" else Stop.DEADLINE if reason == "deadline" else None
    ending = ending_of(flow.definition, progress, choices, stop)
    if (state, None if state == "cancelled" else reason) != (ending.state.value, ending.reason):
        yield f"its verdict is {reason}, and its tasks say {ending}"


def _counted(flow: _Flow) -> Iterator[str]:
    """W6: what is known of each task is what the ledger says, but for what a timer is about to tell."""
    assert flow.open is not None
    told = {row["run_id"] for row in flow.timers}
    newest = flow.newest(flow.open["generation"])
    for no, known in enumerate(flow.open["progress"]):
        row = newest.get(no)
        if known == TaskProgress.UNDECIDED:
            if row is not None and TaskKey.parse(row["request_id"]).generation == flow.open["generation"]:
                yield f"task {no} is undecided and has a run"
            continue
        if row is None:
            yield f"task {no} is {TaskProgress(known).name} and has no run"
            continue
        reached = progress_of(RunState(row["state"]), row["reason"])
        if known != reached and not (known == _LIVE and row["id"] in told):
            yield f"task {no} is {TaskProgress(known).name}, its run {row['state']}, and no timer tells it"


def _goes_on(world: World, flow: _Flow, *, stopped: bool) -> Iterator[str]:
    """W4: something of an open run is under way, or a timer will wake it, or a person holds it."""
    assert flow.open is not None
    held = flow.open["held_at"] is not None or _paused(world, flow)
    live = [row for _, row in flow.runs if row["state"] not in ENDED]
    if not live and not flow.timers:
        yield "it is open and nothing of it goes on"
    if stopped and not held:
        if any(row["parked"] for row in flow.timers):
            yield "its timers are parked and nobody holds it"
        if any((row["state"], row["reason"]) == ("waiting", "paused") for row in live):
            yield "its tasks wait for a resume and nobody has paused it"


def _paused(world: World, flow: _Flow) -> bool:
    return world.value(
        "select count(*) > 0 from jobs left join namespaces as space on space.name = jobs.namespace"
        " where jobs.id = %s and (state = 'paused' or space.paused_at is not null)",
        flow.row["job_id"],
    )


def _strays(world: World) -> Iterator[str]:
    """Waits, slots and timers without a run that needs them."""
    live = "(select id from runs where state not in ('" + "', '".join(ENDED) + "'))"
    for table in ("waits", "slots", "limit_slots"):
        if left := world.count(table, f"run_id not in {live}"):
            yield f"{left} rows of {table} are of runs that have ended"
    if queued := world.count(
        "runs",
        "origin = 'task' and state = 'waiting' and not exists (select from waits where run_id = runs.id)",
    ):
        yield f"{queued} runs of tasks wait in no queue"
