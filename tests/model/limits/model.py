"""The model of promotion by limits: two triggers promote waiting runs, workers end them, and slots are never too many.

A pass is one transaction under an advisory lock: it reads the slots in use, decides by `core.planning.promotion.grant`, and
queues the runs with their slots and messages. What it has decided becomes visible with its commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from tests.model.checker import Broken, Step
from tests.model.runs.rules import ALLOWED

from noonmark.core.planning.promotion import Candidate, GateCapacity, GateLimit, grant, limit_gate

NAMES = "AB"
LIMIT = 2
GATE = limit_gate("tests", "api", None)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
HOLDING = ("queued", "running", "retrying")

MUTANTS = {
    "no lock on the pass": "two triggers promote at the same time",
    "slot freed at the start": "a start releases the slot of its run",
    "slot kept after the end": "an outcome does not release the slot of its run",
    "cancel keeps the slot": "a cancel does not release the slot of its run",
    "retry takes another slot": "a retry that is promoted does not use the slot that its run holds",
    "promotion without message": "a promoted run is queued in one transaction and its message written in another",
}


class Run(NamedTuple):
    state: str = "waiting"
    fence: int = 1
    slots: tuple[int, ...] = ()
    message: bool = False


Decisions = tuple[tuple[int, int | None], ...]
"""Runs that an open pass queues, each with the slot that it takes."""


class State(NamedTuple):
    runs: tuple[Run, ...]
    passes: tuple[Decisions | None, Decisions | None] = (None, None)
    faults: int = 1
    failures: int = 1
    cancels: int = 1

    def with_run(self, number: int, run: Run) -> State:
        return self._replace(runs=(*self.runs[:number], run, *self.runs[number + 1 :]))

    def with_pass(self, number: int, decisions: Decisions | None) -> State:
        other = self.passes[1 - number]
        return self._replace(passes=(decisions, other) if number == 0 else (other, decisions))


class Limits:
    """The model: runs under one limit."""

    def __init__(self, runs: int = 3, *, broken: Broken = frozenset()) -> None:
        self.name = f"limits: {runs} runs, {LIMIT} at a time, 1 fault"
        self._first = State(tuple(Run() for _ in range(runs)))
        self._broken = broken

    def initial(self) -> State:
        return self._first

    def steps(self, state: State) -> Iterator[Step[State]]:
        for number, decisions in enumerate(state.passes):
            yield from self._pass(state, number, decisions)
        for number, run in enumerate(state.runs):
            yield from self._run(state, number, run)

    def _pass(self, state: State, number: int, decisions: Decisions | None) -> Iterator[Step[State]]:
        name = f"Trigger {NAMES[number]}"
        if decisions is None:
            locked = state.passes[1 - number] is not None and "no lock on the pass" not in self._broken
            granted = decide(tuple((run.state, run.slots) for run in state.runs))
            if locked:
                yield Step(("promote", number), f"{name} finds that the other one promotes", state)
            elif granted:
                said = ", ".join(f"run {which + 1}" for which, _ in granted)
                yield Step(
                    ("promote", number), f"{name} decides to queue {said}", state.with_pass(number, granted)
                )
            return
        after = state.with_pass(number, None)
        for which, slot in decisions:
            run = after.runs[which]
            if run.state == "waiting":
                slots = run.slots if slot is None else (*run.slots, slot)
                if "retry takes another slot" in self._broken and slot is None:
                    slots = (*run.slots, min(set(range(LIMIT + 1)) - set(_taken(after))))
                message = "promotion without message" not in self._broken
                after = after.with_run(which, Run("queued", run.fence + 1, slots, message))
        yield Step(("commit", number), f"{name} commits what it decided", after)
        if state.faults:
            dead = state.with_pass(number, None)._replace(faults=0)
            yield Step(("crash", number), f"{name} crashes before it commits", dead, True)

    def _run(self, state: State, number: int, run: Run) -> Iterator[Step[State]]:
        name = f"run {number + 1}"
        if run.state == "queued":
            slots = () if "slot freed at the start" in self._broken else run.slots
            started = state.with_run(number, run._replace(state="running", slots=slots, message=False))
            yield Step(("start", number), f"A worker starts {name}", started)
        if run.state == "running":
            kept = run.slots if "slot kept after the end" in self._broken else ()
            ended = state.with_run(number, run._replace(state="succeeded", slots=kept))
            yield Step(("succeed", number), f"A worker records that {name} succeeds", ended)
            if state.failures:
                failed = state.with_run(number, run._replace(state="retrying"))._replace(failures=0)
                yield Step(("fail", number), f"A worker records that {name} fails", failed, True)
        if run.state == "retrying":
            waiting = state.with_run(number, run._replace(state="waiting"))
            yield Step(("retry", number), f"The retry of {name} is due, and waits for the limit", waiting)
        promoted = any(number == which for decisions in state.passes for which, _ in decisions or ())
        # A cancel waits for the lock of a run that an open pass has queued.
        if state.cancels and run.state in ("waiting", "queued", "retrying") and not promoted:
            kept = run.slots if "cancel keeps the slot" in self._broken else ()
            ended = state.with_run(number, Run("cancelled", run.fence + 1, kept))._replace(cancels=0)
            yield Step(("cancel", number), f"A user cancels {name}", ended, True)

    def wrong(self, state: State) -> str | None:
        taken = _taken(state)
        if len(taken) > LIMIT:
            return f"{len(taken)} slots are taken, and the limit is {LIMIT}"
        if len(set(taken)) < len(taken):
            return "two runs have the same slot"
        for number, run in enumerate(state.runs):
            if run.state in HOLDING and not run.slots:
                return f"run {number + 1} is {run.state} without a slot"
            if run.state in ("succeeded", "cancelled") and run.slots:
                return f"run {number + 1} is {run.state} and keeps its slot"
            if run.message != (run.state == "queued"):
                return f"run {number + 1} is {run.state}, and its message says otherwise"
        return None

    def wrong_step(self, before: State, step: Step[State]) -> str | None:
        for number, (old, new) in enumerate(zip(before.runs, step.after.runs, strict=True)):
            retried = (old.state, new.state) == ("retrying", "waiting")
            if old.state != new.state and not retried and new.state not in ALLOWED[old.state]:
                return f"run {number + 1} moves from {old.state} to {new.state}, which no transition allows"
        return None

    def settled(self, state: State) -> bool:
        return all(run.state in ("succeeded", "cancelled") for run in state.runs) and state.passes == (
            None,
            None,
        )


def _taken(state: State) -> list[int]:
    return [slot for run in state.runs for slot in run.slots]


def decide(runs: tuple[tuple[str, tuple[int, ...]], ...]) -> Decisions:
    """Return what a pass decides that sees these states and slots, by the rule of the code."""
    taken = {slot for _, slots in runs for slot in slots}
    capacities = {GATE.key: GateCapacity(GateLimit(LIMIT), taken)}
    candidates = [
        Candidate(
            UUID(int=number),
            "tests",
            1,
            SINCE + timedelta(seconds=number),
            [GATE],
            frozenset([GATE.key] if slots else []),
        )
        for number, (state, slots) in enumerate(runs)
        if state == "waiting"
    ]
    return tuple(
        (decision.candidate.run_id.int, decision.slots[0][1] if decision.slots else None)
        for decision in grant(candidates, capacities)
        if decision.blocked_by is None
    )


SCOPES = (lambda broken: Limits(3, broken=broken),)
