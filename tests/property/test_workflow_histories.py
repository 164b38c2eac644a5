"""The checker agrees with every workflow run that the product plays, at every moment, and finds a wrong decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.test_workflow_orders import Flow, examples, flows, seeds
from tests.support import workflow_oracle as oracle
from tests.support.workflow_graphs import graph

from noonmark.core.states import SkipReason
from noonmark.core.workflows.advancing import Advance, advance, choices_of
from noonmark.core.workflows.definition import Definition
from noonmark.core.workflows.progress import TaskProgress, main_ended, progress_of
from noonmark.core.workflows.resuming import resume
from noonmark.core.workflows.verdicts import Stop
from noonmark.verify import History
from noonmark.verify.history import Graph, Job, OpenState, Run
from noonmark.verify.ledger import WORKFLOW_RULES, judge_rows

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
JOB = Job("j", "shop", "flow", "completed", 1, NOON, NOON)
STATES = {
    TaskProgress.SUCCEEDED: ("succeeded", None),
    TaskProgress.FAILED: ("dead", "retries_exhausted"),
    TaskProgress.CANCELLED: ("cancelled", None),
    TaskProgress.SKIPPED_BY_FAILURE: ("skipped", SkipReason.START_DEADLINE.value),
}


class Ledger:
    """A workflow run as a trigger would write it, in steps of a second."""

    def __init__(self, flow: Flow, seed: int, judged_as: Definition | None = None) -> None:
        self.flow, self.random = flow, Random(seed)
        self.graph = Graph(judged_as or flow.definition, deadline_seconds=0.0)
        self.now, self.generation = NOON, 0
        self.rows: dict[tuple[int, int], Run] = {}
        self.told: set[str] = set()
        self.state: OpenState | None = None
        self.stop: Stop | None = None
        self.run = _row("flow", "", NOON)._replace(origin="manual", pool="$workflow", state="queued")

    def open(self) -> None:
        definition = self.flow.definition
        nothing = bytes(len(definition.tasks)), bytes(definition.choices)
        progress, choices = nothing
        if self.generation:
            known = bytearray(progress)
            for (_, no), row in sorted(self.rows.items()):
                known[no] = progress_of(row.state, row.reason)
            choices = choices_of(definition, bytes(known), self.flow.results.__getitem__)
            progress, choices = resume(definition, bytes(known), choices)
        self.generation += 1
        self.stop = None
        self.run = self.run._replace(state="running", started_at=self.now, finished_at=None, reason=None)
        self._advance(progress, choices, [])

    def end(self) -> None:
        """Let some runs of tasks end."""
        live = [key for key, row in self.rows.items() if row.finished_at is None]
        for key in self.random.sample(live, self.random.randint(min(1, len(live)), len(live))):
            self._end(key, self.flow.ends[key[1]])

    def notice(self) -> None:
        """Take some of the timers, or all."""
        told = sorted(self.told)
        some = set(self.random.sample(told, self.random.randint(min(1, len(told)), len(told))))
        self.told -= some
        ends = [
            (no, progress_of(row.state, row.reason))
            for (generation, no), row in self.rows.items()
            if row.id in some and generation == self.generation
        ]
        assert self.state is not None
        self._advance(self.state.progress, self.state.choices, ends)

    def cancel(self, stop: Stop) -> None:
        assert self.state is not None
        if stop is Stop.CANCELLED:
            self.run = self.run._replace(state="cancelling")
        ends: list[tuple[int, TaskProgress]] = []
        if not main_ended(self.flow.definition, self.state.progress):
            self.stop = stop
            for key, row in list(self.rows.items()):
                if key[0] != self.generation:
                    continue
                if row.finished_at is None and key[1] < self.flow.definition.main_count:
                    self._end(key, self.random.choice([TaskProgress.CANCELLED, TaskProgress.SUCCEEDED]))
                now = self.rows[key]
                if now.finished_at is not None:
                    ends.append((key[1], progress_of(now.state, now.reason)))
        self._advance(self.state.progress, self.state.choices, ends)

    def history(self) -> History:
        results = {row.id: orjson.dumps(self.flow.results[no]).decode() for (_, no), row in self.rows.items()}
        return History(
            judged_at=self.now,
            jobs=[JOB],
            runs=[self.run, *self.rows.values()],
            graphs={("j", 1): self.graph},
            open_states=[] if self.state is None else [self.state],
            reported=set(self.told),
            results=results,
        )

    def broken(self) -> list[str]:
        return [f"{one.invariant}: {one.what}" for one in judge_rows(self.history(), WORKFLOW_RULES)]

    def _end(self, key: tuple[int, int], progress: TaskProgress) -> None:
        self.now += timedelta(seconds=1)
        state, reason = STATES[progress]
        self.rows[key] = self.rows[key]._replace(
            state=state,
            reason=reason,
            finished_at=self.now,
            start_by=self.now if reason == "start_deadline" else None,
        )
        self.told.add(self.rows[key].id)

    def _advance(self, progress: bytes, choices: bytes, ends: Sequence[tuple[int, TaskProgress]]) -> None:
        self.now += timedelta(seconds=1)
        decided = advance(
            self.flow.definition,
            progress,
            choices,
            ends,
            results=self.flow.results.__getitem__,
            stop=self.stop,
        )
        self._write(decided)

    def _write(self, decided: Advance) -> None:
        for no in decided.started:
            self._add(no, state="queued", queued_at=self.now)
        for no, reason in decided.skipped:
            self._add(no, state="skipped", reason=reason.value, finished_at=self.now)
        stopping = None if self.stop is None else self.stop.value
        self.state = OpenState("flow", self.generation, decided.progress, decided.choices, stopping)
        if decided.ending is not None:
            state = "cancelled" if self.run.state == "cancelling" else decided.ending.state.value
            reason = None if state == "cancelled" else decided.ending.reason
            self.run = self.run._replace(state=state, reason=reason, finished_at=self.now)
            self.state, self.told = None, set()

    def _add(self, no: int, **more: Any) -> None:
        key = self.generation, no
        assert key not in self.rows
        self.rows[key] = _row(
            f"t{no}-{self.generation}", f"flow/{no}/0/{self.generation}", self.now
        )._replace(**more)

    def play(self, most: int = 60) -> list[str]:
        """Play for some steps; return what the checker says of any moment."""
        found = []
        self.open()
        for _ in range(most):
            found += self.broken()
            choice = self.random.random()
            if self.run.state == "dead" and self.generation < 3:
                self.run = self.run._replace(state="queued", reason=None, finished_at=None)
                found += self.broken()
                self.open()
            elif self.state is None:
                break
            elif choice < 0.04:
                self.cancel(self.random.choice(list(Stop)))
            elif self.told and choice < 0.5:
                self.notice()
            else:
                self.end()
        return found + self.broken()


def _row(run_id: str, request: str, due: datetime) -> Run:
    times = (None, None, None)
    made = Run(run_id, "j", 1, "shop", NOON, None, "task", request, "queued", None, 0, 1, 1, *times)
    return made._replace(due_at=due)


@examples(600)
@given(flows(), seeds)
def test_what_the_product_decides_is_never_a_finding(flow: Flow, seed: int) -> None:
    assert Ledger(flow, seed).play() == []


@examples(400)
@given(flows(), seeds, st.integers(1, 4))
def test_what_is_decided_by_the_rules_of_another_workflow_is_a_finding(
    flow: Flow, seed: int, by: int
) -> None:
    """A bug of the decisions: each rule is mistaken for another, and all that is written is consistent with it."""
    # What a condition of a task reads has ended by its own rules only.
    right = Definition([replace(task, when=None) for task in flow.definition.tasks])
    wrong = Definition([replace(task, rule=_other(task.rule, by)) for task in right.tasks])
    ledger = Ledger(replace(flow, definition=wrong), seed, judged_as=right)
    found = ledger.play()
    if ledger.generation == 1 and ledger.state is None and ledger.stop is None:
        ends = oracle.outcome(right, flow.ends, flow.results)
        skips = {no: row.reason if row.queued_at is None else None for (_, no), row in ledger.rows.items()}
        if any(end.skipped != skips[no] for no, end in ends.items()):
            assert found


def _other(rule: Any, shift: int) -> Any:
    rules = list(type(rule))
    return rules[(rules.index(rule) + shift) % len(rules)]


DIAMOND = {
    "a": {},
    "b": {"after": ["a"]},
    "c": {"after": ["a"], "rule": "all_done"},
    "d": {"after": ["b", "c"]},
}


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"d": {"after": ["b", "c"], "rule": "one_succeeded"}}, "W2"),
        ({"d": {"after": ["c"]}}, "W2"),
        ({"b": {"after": ["a"], "rule": "one_failed"}}, "W3"),
        ({"a": {"may_fail": True}}, "W7"),
    ],
)
def test_each_mistake_is_found_by_its_rule(changed: dict[str, Any], rule: str) -> None:
    failed = rule == "W7"
    ends = {no: TaskProgress.FAILED if failed and no == 0 else TaskProgress.SUCCEEDED for no in range(4)}
    flow = Flow(graph(DIAMOND | changed), ends, dict.fromkeys(range(4), True))
    found = [one for seed in range(20) for one in Ledger(flow, seed, judged_as=graph(DIAMOND)).play()]
    assert rule in {one.partition(":")[0] for one in found}
