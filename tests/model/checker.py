"""An explicit-state model checker: every reachable state of a small model, breadth first, so that traces are the shortest.

A model is a set of pure functions over hashable states. The checker knows nothing of what they describe.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)

Action = tuple[Any, ...]
"""The name of an action and its arguments; the same for a model, its mutants and the real system."""

STUCK = "work is left that nothing will ever do"
"""The problem of a state from which the work cannot end without further faults."""

Broken = frozenset[str]
"""The names of the rules that a mutant of a model does not keep."""


class Step(NamedTuple, Generic[S]):
    """One atomic step of one process.

    Attributes:
        action: what is done.
        told: the step as a sentence.
        after: the state that it leads to.
        fault: whether it need not happen: a fault, or what a user does.
    """

    action: Action
    told: str
    after: S
    fault: bool = False


class Model(Protocol[S]):
    """What the checker needs of a model."""

    name: str

    def initial(self) -> S:
        """Return the first state."""

    def steps(self, state: S) -> Iterator[Step[S]]:
        """Return every step that a process can do in this state; a step that changes nothing is one that is refused."""

    def wrong(self, state: S) -> str | None:
        """Return which invariant the state violates."""

    def wrong_step(self, before: S, step: Step[S]) -> str | None:
        """Return which invariant the step violates."""

    def settled(self, state: S) -> bool:
        """Whether all work is done; without further faults every state must be able to lead here."""


class Trace(NamedTuple):
    """The shortest way to a violation: what is violated, and the steps."""

    problem: str
    steps: list[Step[Any]]

    def story(self) -> str:
        """Return the trace as numbered sentences."""
        lines = [f"{number}. {step.told}." for number, step in enumerate(self.steps, 1)]
        return "\n".join([*lines, f"=> {self.problem}"])


@dataclass(frozen=True)
class Explored:
    """What an exploration found: `kinds` of steps; `trace` is None if every invariant holds in every state."""

    states: int
    steps: int
    depth: int
    seconds: float
    trace: Trace | None
    kinds: frozenset[str]
    graph: _Graph


class _Graph:
    """The states found so far, each with the step by which it was reached first."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.parents: list[int] = []
        self.depths: list[int] = []
        self.actions: list[Action] = []
        self.back: list[list[int]] = []
        """For each state, those that lead to it without a fault."""

    def add(self, state: Any, parent: int, action: Action) -> int:
        number = self.numbers.setdefault(state, len(self.found))
        if number == len(self.found):
            self.found.append(state)
            self.parents.append(parent)
            self.actions.append(action)
            self.depths.append(self.depths[parent] + 1 if parent >= 0 else 0)
            self.back.append([])
        return number


def explore(model: Model[Any], *, most: int = 2_000_000) -> Explored:
    """Explore every reachable state; stop at the first violation.

    Args:
        model: what is explored.
        most: more states than this are a mistake in the model's bounds.

    Raises:
        RuntimeError: the model has more states.
    """
    began = time.process_time()
    graph = _Graph()
    taken = 0
    kinds: set[str] = set()

    def done(trace: Trace | None) -> Explored:
        seconds = time.process_time() - began
        return Explored(len(graph.found), taken, graph.depths[-1], seconds, trace, frozenset(kinds), graph)

    first = model.initial()
    graph.add(first, -1, ())
    if problem := model.wrong(first):
        return done(Trace(problem, []))
    at = 0
    while at < len(graph.found):
        state = graph.found[at]
        for step in model.steps(state):
            taken += 1
            kinds.add(step.action[0])
            problem = model.wrong_step(state, step)
            before = len(graph.found)
            number = graph.add(step.after, at, step.action)
            if problem is None and number == before:
                problem = model.wrong(step.after)
            if problem:
                return done(Trace(problem, [*_way(model, graph, at), step]))
            if not step.fault and number != at:
                graph.back[number].append(at)
        at += 1
        if len(graph.found) > most:
            raise RuntimeError(f"{model.name} has more than {most} states")
    stuck = _first_stuck(model, graph)
    return done(None if stuck is None else Trace(STUCK, _way(model, graph, stuck)))


def _first_stuck(model: Model[Any], graph: _Graph) -> int | None:
    """Return the first state from which no way without faults leads to rest."""
    reached = [model.settled(state) for state in graph.found]
    waiting = [number for number, ends in enumerate(reached) if ends]
    while waiting:
        for number in graph.back[waiting.pop()]:
            if not reached[number]:
                reached[number] = True
                waiting.append(number)
    return next((number for number, ends in enumerate(reached) if not ends), None)


def _way(model: Model[Any], graph: _Graph, number: int) -> list[Step[Any]]:
    actions: list[Action] = []
    while number > 0:
        actions.append(graph.actions[number])
        number = graph.parents[number]
    steps: list[Step[Any]] = []
    state = graph.found[0]
    for action in reversed(actions):
        step = follow(model, state, action)
        assert step is not None, f"{action} is not repeatable"
        steps.append(step)
        state = step.after
    return steps


def follow(model: Model[Any], state: Any, action: Action) -> Step[Any] | None:
    """Return the step of an action; None if the state does not allow it."""
    return next((step for step in model.steps(state) if step.action == action), None)


RARE = 0.15
"""How often a random walk tries a fault, or a step that changes nothing."""


def walk(model: Model[Any], explored: Explored, rng: Random, taken: Counter[str]) -> list[Step[Any]]:
    """Return a random walk: steps until all work is done.

    Three in four walks go the shortest way to a state drawn from all of them first, for most states are far from the first.

    Args:
        model: where to walk.
        explored: the exploration of the model.
        rng: decides.
        taken: how often each kind of step was taken; those taken less often are preferred. This walk is added.
    """
    number = rng.randrange(explored.states) if rng.random() < 0.75 else 0
    steps = _way(model, explored.graph, number)
    state = explored.graph.found[number]
    while not model.settled(state):
        possible = list(model.steps(state))
        rare = [step for step in possible if step.fault or step.after == state]
        usual = [step for step in possible if not step.fault and step.after != state]
        among = rare if rare and (not usual or rng.random() < RARE) else usual
        (step,) = rng.choices(among, [(1 + taken[step.action[0]]) ** -0.5 for step in among])
        steps.append(step)
        state = step.after
    taken.update(step.action[0] for step in steps)
    return steps
