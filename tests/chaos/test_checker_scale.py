"""The work of the checker grows with the history, not with its square: a burst has 150,000 runs."""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import Any

import pytest
from tests.chaos.good_history import BOUND, NOON, NS, after, call, expected, good, run, tell

from noonmark.verify import Expected, History, judge
from noonmark.verify.history import Message, Passed


def burst(size: int) -> History:
    """As many jobs as `size`, half of them due on arrival, all due at noon and started within a minute."""
    history = good()
    history.poisoned = None  # every run waits in a queue
    job = {name: next(job for job in history.jobs if job.name == name) for name in ("now", "once")}
    version = {name: next(one for one in history.versions if one.job == job[name].id) for name in job}
    runs = []
    for number in range(size):
        like = "once" if number % 2 else "now"
        name = f"{like}-{number}"
        history.jobs.append(job[like]._replace(id=f"j-{name}", name=name))
        history.versions.append(version[like]._replace(job=f"j-{name}"))
        began = after(5 + 50 * number / size)
        times = {"queued_at": after(0.1), "started_at": began, "finished_at": after(59)}
        made = run(f"r-{name}", like, NOON, lane=number % 3, **times)
        runs.append(made._replace(job=f"j-{name}"))
    history.runs += runs
    history.calls += [call(one, 1, one.started_at) for one in runs if one.started_at]
    history.lifecycle += [tell(one) for one in runs]
    history.messages = [
        *(history.messages or ()),
        *(Message("t.runs", n, one.id, 1, NS, 1, NOON) for n, one in enumerate(runs)),
    ]
    history.passed += [Passed("t.runs", 0, n, one.id, 1) for n, one in enumerate(runs)]
    return history


def lines(history: History, plan: Expected | None) -> int:
    """Lines of Python that judging executes: what it costs, alike on every machine."""
    count = 0

    def trace(_frame: FrameType, what: str, _arg: Any) -> Any:
        nonlocal count
        count += what == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        report = judge(history, plan, bound=BOUND)
    finally:
        sys.settrace(before)
    assert {violation.kind for violation in report.violations} <= {"inversion"}
    return count


@pytest.mark.parametrize("planned", [False, True], ids=["by schedules", "by a plan"])
def test_four_times_as_many_runs_cost_four_times_as_much(planned: bool) -> None:
    def plan(history: History) -> Expected | None:
        if not planned:
            return None
        made = expected()
        for job in history.jobs:
            if "-" in job.name:
                made.instants[NS, job.name] = [NOON] if job.name.startswith("once") else None
        return made

    rest, few, many = (lines(burst(size), plan(burst(size))) for size in (0, 200, 800))

    assert many - rest < 4.4 * (few - rest)


def test_no_operation_inside_of_python_grows_with_the_square() -> None:
    # Such as the union of two sets for every run: it is one line, and costs as much as a line in small histories.
    def seconds(history: History) -> float:
        began = time.process_time()
        judge(history, None, bound=BOUND)
        return time.process_time() - began

    few, many = burst(1000), burst(32_000)

    # CPU time, which other processes change little: 32 to 40 times as much in fact, over 100 with such a union.
    assert seconds(many) < 80 * min(seconds(few) for _ in range(3))
