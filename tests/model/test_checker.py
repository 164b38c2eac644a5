"""The checker itself: on a counter that can be explored by hand."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from random import Random

import pytest
from tests.model.checker import STUCK, Step, explore, follow, walk


class Counter:
    """Counts to a number by ones, or by twos as a fault; from `stuck_at` on only faults go on."""

    name = "counter"

    def __init__(self, *, to: int = 5, bad: int | None = None, stuck_at: int | None = None) -> None:
        self._to, self._bad, self._stuck_at = to, bad, stuck_at

    def initial(self) -> int:
        return 0

    def steps(self, state: int) -> Iterator[Step[int]]:
        if state < self._to and state != self._stuck_at:
            yield Step(("one",), "It counts one", state + 1)
        if state + 2 <= self._to:
            yield Step(("two",), "It counts two", state + 2, True)

    def wrong(self, state: int) -> str | None:
        return "it is bad" if state == self._bad else None

    def wrong_step(self, before: int, step: Step[int]) -> str | None:
        return None

    def settled(self, state: int) -> bool:
        return state == self._to


class Jumping(Counter):
    """Its step by two is not allowed."""

    def wrong_step(self, before: int, step: Step[int]) -> str | None:
        return "it jumps" if step.after > before + 1 else None


def test_it_counts_states_steps_and_the_longest_of_the_shortest_ways():
    found = explore(Counter())

    assert (found.states, found.steps, found.depth, found.trace) == (6, 9, 3, None)


def test_it_finds_the_shortest_way_to_a_bad_state():
    trace = explore(Counter(bad=4)).trace

    assert trace is not None
    assert [step.action for step in trace.steps] == [("two",), ("two",)]
    assert trace.story() == "1. It counts two.\n2. It counts two.\n=> it is bad"


def test_it_finds_a_bad_first_state_and_a_bad_step():
    first, step = explore(Counter(bad=0)).trace, explore(Jumping()).trace

    assert first is not None
    assert first.steps == []
    assert step is not None
    assert (step.problem, [one.action for one in step.steps]) == ("it jumps", [("two",)])


def test_a_state_that_only_a_fault_leads_out_of_is_stuck():
    trace = explore(Counter(stuck_at=3)).trace

    assert trace is not None
    assert trace.problem == STUCK
    # The first state from which counting by ones does not get to five is where it begins.
    assert trace.steps == []
    assert explore(Counter(stuck_at=5)).trace is None


def test_too_many_states_are_an_error():
    with pytest.raises(RuntimeError, match="more than 3 states"):
        explore(Counter(), most=3)


def test_walks_follow_the_model_to_its_end_and_are_repeatable():
    model = Counter(to=9)
    explored = explore(model)
    taken: Tally[str] = Tally()
    steps = walk(model, explored, Random(1), taken)

    assert steps == walk(model, explored, Random(1), Tally())
    assert taken == Tally(step.action[0] for step in steps)
    state = 0
    for step in steps:
        assert follow(model, state, step.action) == step
        state = step.after
    assert state == 9
    assert follow(model, 9, ("one",)) is None
