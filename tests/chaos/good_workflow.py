"""The workflow run of a good history: it died, was redriven, and succeeded with a failure that is allowed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.chaos.good_rows import FIRST, NOON, NS, STEP, after, run

from noonmark.core.workflows.stored import definition_of
from noonmark.verify.history import Attempt, Death, Graph, Run

TASKS: dict[str, dict[str, Any]] = {
    "extract": {},
    "load": {"edges": [[0, {"at": "/rows", "gt": 0}]]},
    "alarm": {"edges": [[0, {"at": "/rows", "eq": 0}]]},
    "risky": {"edges": [0]},
    "join": {"edges": [1, 3]},
    "repair": {"edges": [3], "rule": "one_failed"},
    "optional": {"edges": [0], "when": {"result": "extract", "at": "/rows", "gt": 100}},
    "allowed": {"edges": [0], "may_fail": True},
    "clean": {"edges": [4], "rule": "all_done", "final": True},
}
GRAPH = Graph(definition_of(TASKS.items()))
NUMBERS = {key: no for no, key in enumerate(TASKS)}
OF_WORKFLOWS = {"owner": -1, "epoch": 0, "pool": "$workflow"}
NEVER = {"result": None, "attempt": 0, "started_at": None, "queued_at": None, "owner": None, "epoch": None}
_FAILED = {"state": "dead", "reason": "not_retryable", "error": "no luck", "result": None}


def task(key: str, generation: int, due: datetime, flow: str = "flow", **other: Any) -> Run:
    """The run of a task that succeeded."""
    made = run(f"{flow}-{key}-{generation}", "flow", NOON, origin="task")
    times = {"due_at": due, "queued_at": due, "started_at": due + STEP, "finished_at": due + 10 * STEP}
    return made._replace(request=f"{flow}/{NUMBERS[key]}/0/{generation}", shard=3, **times | other)


def skipped(key: str, generation: int, due: datetime, reason: str, flow: str = "flow") -> Run:
    """The run of a task that was skipped when it was decided upon."""
    return task(key, generation, due, flow, state="skipped", reason=reason, **NEVER, finished_at=due)


def failed(key: str, generation: int, due: datetime, flow: str = "flow") -> Run:
    """The run of a task that failed at its first attempt."""
    return task(key, generation, due, flow, **_FAILED)


def runs() -> list[Run]:
    """The workflow run, and the runs of its tasks of both generations."""
    times = {"queued_at": after(19), "started_at": after(20), "finished_at": after(23)}
    again = {"fence": 2, "result": None, "holds_slot": False}
    return [
        run("flow", "flow", NOON, **times, **again, **OF_WORKFLOWS),
        task("extract", 1, NOON + STEP, result='{"rows": 3}'),
        task("load", 1, after(1)),
        skipped("alarm", 1, after(1), "upstream_skipped"),
        failed("risky", 1, after(1)),
        skipped("optional", 1, after(1), "condition"),
        failed("allowed", 1, after(1)),
        skipped("join", 1, after(2), "upstream_failed"),
        task("repair", 1, after(2)),
        task("clean", 1, after(3)),
        task("risky", 2, after(20)),
        failed("allowed", 2, after(20)),
        task("join", 2, after(21)),
        skipped("repair", 2, after(21), "not_needed"),
        task("clean", 2, after(22)),
    ]


def attempts(of: list[Run] | None = None) -> list[Attempt]:
    """The attempts of the tasks that failed."""
    return [
        Attempt(one.id, 1, 1, "failed", one.started_at, one.finished_at, one.error, FIRST.id, NOON)
        for one in of or runs()
        if one.is_task and one.state == "dead" and one.finished_at is not None
    ]


def died() -> Run:
    """The workflow run as it was before it was redriven."""
    error = "tasks risky failed: no luck"
    dead = {"state": "dead", "reason": "task_failed", "error": error, "fence": 1}
    return runs()[0]._replace(**dead, started_at=NOON + STEP, finished_at=after(4))


def death() -> Death:
    """The event of its death."""
    dead = died()
    return Death("flow", NS, 1, 1, dead.reason, dead.error, "workflow", "flow", "1f0c6a39be2d5e72", (), NOON)
