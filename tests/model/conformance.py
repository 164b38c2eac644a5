"""A model beside the real system: the same steps are done in both, and after each step the rows must be equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any, Protocol

import psycopg
from tests.model.checker import STUCK, Action, Explored, Model, Step, Trace, follow, walk

_MOST_STEPS = 100

_EMPTY = "; ".join(
    f"delete from {table}"
    for table in (
        *(
            "runs",
            "outbox",
            "timers",
            "workers",
            "members",
            "start_batches",
            "attempts",
            "dead_letters",
            "waits",
        ),
        *("slots", "limit_slots"),
    )
)


def empty(db: psycopg.Connection) -> None:
    """Delete what a walk left, but its jobs and limits."""
    db.execute(_EMPTY)


class Real(Protocol):
    """The statements of the real system, one method for each kind of step."""

    def begin(self) -> None:
        """Bring the database into the first state of the model."""

    def do(self, action: Action, before: Any) -> None:
        """Do a step; `before` is the state of the model."""

    def rows(self) -> Any:
        """Return what the database contains."""

    def expected(self, state: Any) -> Any:
        """Return what it must contain in a state of the model."""


def repeat(model: Model[Any], real: Real, steps: Iterable[Step[Any]]) -> None:
    """Do steps of the model in the real system, and compare the rows after each."""
    real.begin()
    before = model.initial()
    assert real.rows() == real.expected(before)
    told: list[str] = []
    for step in steps:
        real.do(step.action, before)
        told.append(step.told)
        rows, expected = real.rows(), real.expected(step.after)
        assert rows == expected, "\n".join([*told, f"=> Postgres: {rows}", f"   the model: {expected}"])
        before = step.after


def repeat_walks(model: Model[Any], real: Real, explored: Explored, *, seed: int, walks: int) -> Counter[str]:
    """Do random walks, which the seed decides; return how many steps of each kind there were."""
    rng = Random(seed)
    taken: Counter[str] = Counter()
    for _ in range(walks):
        repeat(model, real, walk(model, explored, rng, taken))
    return taken


def refuses(model: Model[Any], real: Real, trace: Trace) -> bool:
    """Do what a mutant did in the real system; return whether it takes no part in the violation.

    Each action is done as the unbroken model and the real system do it, and both must agree. The last action of the
    trace is the violation. It must be impossible, or must lead to another state than the mutant's, one without a violation;
    if the mutant is stuck there, the real system must be able to finish its work.
    """
    real.begin()
    state = model.initial()
    for done in trace.steps:
        step = follow(model, state, done.action)
        if step is None:
            return True
        state = _checked(model, real, state, step)
    if trace.problem != STUCK:
        return bool(state != trace.steps[-1].after)
    rng = Random(0)
    for _ in range(_MOST_STEPS):
        usual = [step for step in model.steps(state) if not step.fault and step.after != state]
        if model.settled(state) or not usual:
            break
        state = _checked(model, real, state, rng.choice(usual))
    return model.settled(state)


def _checked(model: Model[Any], real: Real, state: Any, step: Step[Any]) -> Any:
    """Do a step, which must violate nothing and leave the same rows; return the state after it."""
    real.do(step.action, state)
    assert real.rows() == real.expected(step.after), step.told
    assert model.wrong(step.after) is None
    assert model.wrong_step(state, step) is None
    return step.after
