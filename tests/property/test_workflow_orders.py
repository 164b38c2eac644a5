"""Workflows of every shape: how they end depends on how their tasks end, never on the order or on who counts them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import workflow_oracle as oracle
from tests.support.workflow_graphs import OwnIs, ResultIs, VerdictIs, graph

from noonmark.core.workflows.advancing import Advance, advance, choices_of
from noonmark.core.workflows.ancestors import ended_before
from noonmark.core.workflows.definition import Definition, Rule
from noonmark.core.workflows.progress import Choice, TaskProgress, all_ended, main_ended
from noonmark.core.workflows.resuming import rerun, resume
from noonmark.core.workflows.verdicts import Stop

ENDS = (
    *(TaskProgress.SUCCEEDED,) * 3,
    TaskProgress.FAILED,
    TaskProgress.CANCELLED,
    TaskProgress.SKIPPED_BY_FAILURE,
)
MOST_MAIN, MOST_LAST = 9, 3


def examples(number: int) -> settings:
    return settings(
        max_examples=number,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


seeds = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Flow:
    """A workflow, how its tasks end if they run, and their results."""

    definition: Definition
    ends: dict[int, TaskProgress]
    results: dict[int, bool]


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    numbers = range(draw(st.integers(1, MOST_MAIN)))
    last = range(len(numbers), len(numbers) + draw(st.integers(0, MOST_LAST)))
    fields: list[dict[str, Any]] = []
    for no in (*numbers, *last):
        parents = (
            draw(st.sets(st.sampled_from(earlier), max_size=4)) if (earlier := _earlier(no, last)) else ()
        )
        edges = [
            (f"t{parent}", OwnIs(draw(st.booleans()))) if draw(st.integers(0, 3)) == 0 else f"t{parent}"
            for parent in sorted(parents)
        ]
        fields.append(
            {"after": edges, "rule": draw(st.sampled_from(Rule)), "may_fail": draw(st.integers(0, 5)) == 0}
        )
        readable = _readable(fields, last)
        if readable and draw(st.integers(0, 3)) == 0:
            key = f"t{draw(st.sampled_from(readable))}"
            verdict = st.sampled_from(["succeeded", "failed", "skipped"])
            reads_result = draw(st.booleans())
            fields[no]["when"] = (
                ResultIs(key, draw(st.booleans())) if reads_result else VerdictIs(key, draw(verdict))
            )
        if parents and draw(st.integers(0, 4)) == 0:
            fields[no]["handles"] = [f"t{draw(st.sampled_from(sorted(parents)))}"]
    every = (*numbers, *last)
    return Flow(
        _compiled(fields, last),
        {no: draw(st.sampled_from(ENDS)) for no in every},
        {no: draw(st.booleans()) for no in every},
    )


def _earlier(no: int, last: range) -> list[int]:
    """Tasks that a task can depend on; those of `finally` depend on each other only."""
    return list(range(last.start if no in last else 0, no))


def _compiled(fields: list[dict[str, Any]], last: range) -> Definition:
    keyed = {f"t{no}": each for no, each in enumerate(fields)}
    return graph(
        {key: each for key, each in keyed.items() if int(key[1:]) not in last},
        {key: each for key, each in keyed.items() if int(key[1:]) in last},
    )


def _readable(fields: list[dict[str, Any]], last: range) -> list[int]:
    mask = ended_before(_compiled(fields, last).tasks)[-1]
    return [no for no in range(len(fields)) if mask >> no & 1]


@dataclass
class Play:
    """A run of a workflow in which tasks end in the order of a seed, several or none at a time.

    Every call is checked: it has no effects, a task is decided once, and nothing starts out of turn.
    """

    flow: Flow
    random: Random
    progress: bytes
    choices: bytes
    started: list[int] = field(default_factory=list)
    skipped: dict[int, str] = field(default_factory=dict)
    past: list[tuple[int, TaskProgress]] = field(default_factory=list)
    last: Advance | None = None
    stop: Stop | None = None

    @classmethod
    def new(cls, flow: Flow, seed: int) -> Play:
        definition = flow.definition
        return cls(flow, Random(seed), bytes(len(definition.tasks)), bytes(definition.choices))

    def to_the_end(self, *, stop: Stop | None = None, stop_after: int | None = None) -> Play:
        self.call([])
        calls = 0
        while self.live:
            if calls == stop_after and not main_ended(self.flow.definition, self.progress):
                self.stop = stop
            calls += 1
            self.call(self._next_ends())
        assert self.last is not None
        assert self.last.ending is not None
        return self

    @property
    def live(self) -> list[int]:
        return [no for no, byte in enumerate(self.progress) if byte == TaskProgress.LIVE]

    @property
    def verdict(self) -> str:
        assert self.last is not None
        assert self.last.ending is not None
        ending = self.last.ending
        return " ".join(filter(None, (ending.state, ending.reason, *ending.failed)))

    def call(self, ends: Iterable[tuple[int, TaskProgress]]) -> None:
        ends = list(ends)
        step = self._advance(ends)
        assert step == self._advance(ends)
        again = advance(
            self.flow.definition, step.progress, step.choices, ends, results=self._result, stop=self.stop
        )
        assert again == replace(step, started=[], skipped=[])
        self._check(step)
        self.started += step.started
        self.skipped |= {no: reason.value for no, reason in step.skipped}
        self.progress, self.choices, self.last = step.progress, step.choices, step
        self.past += ends

    def _check(self, step: Advance) -> None:
        decided = [*step.started, *(no for no, _ in step.skipped)]
        before, main = self.progress, self.flow.definition.main_count
        assert len(decided) == len(set(decided))
        assert all(before[no] == TaskProgress.UNDECIDED for no in decided)
        assert step.started == sorted(step.started)
        assert step.skipped == sorted(step.skipped)
        assert (step.ending is not None) is all_ended(step.progress)
        if not main_ended(self.flow.definition, step.progress):
            assert all(no < main for no in decided), "tasks of finally wait for all others"
        if self.stop is not None:
            assert all(no >= main for no in step.started), "nothing but finally starts after a stop"
        assert any(byte == TaskProgress.LIVE for byte in step.progress) or step.ending is not None, "stuck"

    def _next_ends(self) -> list[tuple[int, TaskProgress]]:
        random, live = self.random, self.live
        ends = [(no, self.flow.ends[no]) for no in random.sample(live, random.randint(0, len(live)))]
        repeated = random.choices([*ends, *self.past], k=random.randint(0, 3)) if ends or self.past else []
        ends += repeated
        random.shuffle(ends)
        return ends

    def _advance(self, ends: list[tuple[int, TaskProgress]]) -> Advance:
        return advance(
            self.flow.definition, self.progress, self.choices, ends, results=self._result, stop=self.stop
        )

    def _result(self, no: int) -> bool:
        return self.flow.results[no]


def ends_of(play: Play) -> dict[int, oracle.TaskEnd]:
    """What the run found, in the oracle's form."""
    return {
        no: oracle.TaskEnd(TaskProgress(byte), play.skipped.get(no)) for no, byte in enumerate(play.progress)
    }


def progress(found: dict[int, oracle.TaskEnd]) -> bytes:
    return bytes(found[no].end for no in range(len(found)))


def expected_choices(flow: Flow, found: dict[int, oracle.TaskEnd]) -> list[Choice]:
    choices = {}
    for task in flow.definition.tasks:
        for edge in task.edges:
            if edge.condition is not None:
                holds = edge.condition.holds(str, str, flow.results[edge.parent])
                known = found[edge.parent].end is TaskProgress.SUCCEEDED
                choices[edge.choice] = (
                    Choice.UNKNOWN if not known else Choice.HOLDS if holds else Choice.DOES_NOT_HOLD
                )
    return [choices[no] for no in sorted(choices)]


@examples(1000)
@given(flows(), st.lists(seeds, min_size=2, max_size=2))
def test_every_order_of_ends_gives_what_the_table_says(flow: Flow, orders: list[int]) -> None:
    expected = oracle.outcome(flow.definition, flow.ends, flow.results)
    for seed in orders:
        play = Play.new(flow, seed).to_the_end()
        assert ends_of(play) == expected
        assert sorted([*play.started, *play.skipped]) == list(range(len(expected))), "each is decided once"
        assert {*play.started} == {no for no, end in expected.items() if end.skipped is None}
        assert play.verdict == oracle.verdict(flow.definition, expected)
        assert list(play.choices) == expected_choices(flow, expected)
        assert choices_of(flow.definition, play.progress, flow.results.__getitem__) == play.choices


@examples(400)
@given(flows(), seeds, st.sampled_from(Stop), st.integers(0, 6))
def test_a_stop_at_any_time_leaves_nothing_open(flow: Flow, seed: int, stop: Stop, after: int) -> None:
    play = Play.new(flow, seed).to_the_end(stop=stop, stop_after=after)

    assert sorted([*play.started, *play.skipped]) == list(range(len(play.progress)))
    if play.stop is None:
        assert play.verdict == oracle.verdict(flow.definition, ends_of(play)), "all main tasks had ended"
        assert "cancelled" not in play.skipped.values()
    else:
        assert play.verdict == {Stop.CANCELLED: "cancelled", Stop.DEADLINE: "dead deadline"}[stop]
    for no, reason in play.skipped.items():
        assert (reason == "cancelled") is (play.progress[no] == TaskProgress.SKIPPED_BY_CANCEL)
        assert reason != "cancelled" or no < flow.definition.main_count


def continued(play: Play, seed: int, ends: dict[int, TaskProgress], state: tuple[bytes, bytes]) -> Play:
    flow = replace(play.flow, ends=play.flow.ends | ends)
    return Play(flow, Random(seed), *state).to_the_end()


def undecided(state: bytes) -> set[int]:
    return {no for no, byte in enumerate(state) if byte == TaskProgress.UNDECIDED}


def ancestors(definition: Definition, no: int) -> set[int]:
    parents = {edge.parent for edge in definition.tasks[no].edges}
    return parents.union(*(ancestors(definition, parent) for parent in parents))


@examples(400)
@given(flows(), seeds, seeds, st.sampled_from([None, *Stop]), st.integers(0, 6))
def test_a_redrive_in_which_all_succeeds_succeeds(
    flow: Flow, seed: int, next_seed: int, stop: Stop | None, after: int
) -> None:
    play = Play.new(flow, seed).to_the_end(stop=stop, stop_after=after)
    state = resume(flow.definition, play.progress, play.choices)
    assert resume(flow.definition, *state) == state

    again = undecided(state[0])
    all_succeed = dict.fromkeys(range(len(play.progress)), TaskProgress.SUCCEEDED)
    redriven = continued(play, next_seed, all_succeed, state)

    assert {*redriven.started, *redriven.skipped} == again, "what is kept is not decided again"
    assert redriven.verdict == "succeeded"
    assert redriven.progress == progress(oracle.outcome(flow.definition, all_succeed, flow.results))


@examples(400)
@given(flows(), seeds, seeds, st.data())
def test_a_redrive_gives_what_one_run_with_these_ends_would(
    flow: Flow, seed: int, next_seed: int, data: st.DataObject
) -> None:
    play = Play.new(flow, seed).to_the_end()
    state = resume(flow.definition, play.progress, play.choices)
    again = undecided(state[0])
    ends = {no: data.draw(st.sampled_from(ENDS)) for no in sorted(again)}
    kept = {no: TaskProgress(byte) for no, byte in enumerate(state[0]) if byte == TaskProgress.SUCCEEDED}
    redriven = continued(play, next_seed, ends, state)

    expected = oracle.outcome(flow.definition, flow.ends | kept | ends, flow.results)
    assert redriven.progress == progress(expected)
    assert redriven.verdict == oracle.verdict(flow.definition, expected)
    assert redriven.skipped == {
        no: end.skipped for no, end in expected.items() if end.skipped and no in again
    }


@examples(400)
@given(flows(), seeds)
def test_a_redrive_keeps_all_whose_ancestors_did_not_fail(flow: Flow, seed: int) -> None:
    play = Play.new(flow, seed).to_the_end()
    again = undecided(resume(flow.definition, play.progress, play.choices)[0])

    fine = {TaskProgress.SUCCEEDED, TaskProgress.SKIPPED}
    for no in range(flow.definition.main_count):
        affected = {no, *ancestors(flow.definition, no)}
        if all(play.progress[one] in fine for one in affected):
            assert no not in again
        if play.progress[no] not in fine:
            assert no in again
    assert again.issuperset(range(flow.definition.main_count, len(play.progress)))


@examples(400)
@given(flows(), seeds, seeds, st.data())
def test_a_rerun_with_all_below_gives_what_one_run_with_these_ends_would(
    flow: Flow, seed: int, next_seed: int, data: st.DataObject
) -> None:
    definition = flow.definition
    play = Play.new(flow, seed).to_the_end()
    named = data.draw(st.sets(st.integers(0, len(play.progress) - 1), min_size=1))
    state = rerun(definition, play.progress, play.choices, named, downstream=True)
    again = undecided(state[0])
    below = {no for no in range(len(play.progress)) if named & {no, *ancestors(definition, no)}}
    last = set(range(definition.main_count, len(play.progress)))
    assert again == (below | last if below - last else below)

    ends = {no: data.draw(st.sampled_from(ENDS)) for no in sorted(again)}
    rerunning = continued(play, next_seed, ends, state)
    expected = oracle.outcome(definition, flow.ends | ends, flow.results)
    assert rerunning.progress == progress(expected)
    assert rerunning.verdict == oracle.verdict(definition, expected)


@examples(400)
@given(flows(), seeds, st.data())
def test_a_rerun_of_tasks_alone_decides_only_them_and_those_between(
    flow: Flow, seed: int, data: st.DataObject
) -> None:
    definition = flow.definition
    play = Play.new(flow, seed).to_the_end()
    named = data.draw(st.sets(st.integers(0, len(play.progress) - 1), min_size=1))
    state = rerun(definition, play.progress, play.choices, named, downstream=False)

    last = set(range(definition.main_count, len(play.progress)))
    upstream = named.union(*(ancestors(definition, no) for no in named))
    between = {no for no in upstream if named & {no, *ancestors(definition, no)}}
    assert undecided(state[0]) == (between | last if between - last else between)
    rerunning = continued(play, seed, {}, state)
    assert {*rerunning.started, *rerunning.skipped} == undecided(state[0])
