"""What must hold of workflow runs at every moment (W2 to W9), recounted from the runs of their tasks.

W1, W4 and W13 have no rules of their own: S1, V2 and S11 judge them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from noonmark.core.states import RunState, SkipReason
from noonmark.core.workflows.definition import Task
from noonmark.core.workflows.progress import Choice, TaskProgress
from noonmark.core.workflows.verdicts import WorkflowFailure
from noonmark.verify.case import Case, Violation, offence
from noonmark.verify.flows import BY_RULE, CLOCK, End, Flow, Rows, end_of, read_key, was_decided
from noonmark.verify.history import OpenState, Run

OPEN: Final = frozenset({RunState.RUNNING, RunState.CANCELLING})
_ENDED: Final = frozenset({RunState.SUCCEEDED, RunState.DEAD, RunState.CANCELLED, RunState.DISCARDED})
_PROGRESS: Final = {
    RunState.SUCCEEDED: TaskProgress.SUCCEEDED,
    RunState.CANCELLED: TaskProgress.CANCELLED,
    RunState.SKIPPED: TaskProgress.SKIPPED_BY_FAILURE,
}


def tasks_start_by_their_rule(case: Case) -> Iterator[Violation]:
    """W2: a task starts once in a generation, and not before its rule is met by verdicts that are there."""
    for flow, generation, task, run in _rows(case):
        if task.no in flow.kept(generation):
            what = (
                f"{_title(case, flow, task)} has a run again in generation {generation}, but its end was kept"
            )
            yield offence("W2", "again", what, run, flow.run)
        elif not was_decided(run):
            yield from _start(case, flow, generation, task, run)


def _start(case: Case, flow: Flow, generation: int, task: Task, run: Run) -> Iterator[Violation]:
    rows = flow.counted(generation)
    said = flow.says(task, rows, run.due)
    if said != "run":
        what = f"{_title(case, flow, task)} was due at {run.due}, but {task.rule} said {said} then"
        yield offence("W2", "early", what, run, flow.run)
    elif task.when is not None and flow.holds(task, rows, run.due) is False:
        what = f"{_title(case, flow, task)} was due at {run.due}, but its condition did not hold"
        yield offence("W2", "condition", what, run, flow.run)


def skips_follow_from_rules(case: Case) -> Iterator[Violation]:
    """W3: a task was skipped for the reason that its rule gives, or because its workflow run was stopped."""
    for flow, generation, task, run in _rows(case):
        if run.state != RunState.SKIPPED or run.finished_at is None or task.no in flow.kept(generation):
            continue
        if (why := _wrong_skip(case, flow, generation, task, run)) is not None:
            what = f"{_title(case, flow, task)} was skipped as {run.reason}, but {why}"
            yield offence("W3", "skip", what, run, flow.run)


def _wrong_skip(case: Case, flow: Flow, generation: int, task: Task, run: Run) -> str | None:
    """Return why the reason of a skipped run is wrong; None: it is not."""
    assert run.finished_at is not None
    if run.reason == SkipReason.START_DEADLINE:
        late = run.start_by is not None and run.finished_at >= run.start_by - CLOCK
        return None if late else "it has no start deadline that had passed"
    if not was_decided(run):
        return "it had been queued" if run.reason in BY_RULE else None
    if run.reason == SkipReason.CANCELLED:
        wrong = "tasks of finally always run" if task.is_final else "nobody stopped the workflow run"
        return None if not task.is_final and _may_have_stopped(case, flow, generation) else wrong
    return _wrong_decision(flow, flow.counted(generation), task, run, run.finished_at)


def _wrong_decision(flow: Flow, rows: Rows, task: Task, run: Run, at: datetime) -> str | None:
    said = flow.says(task, rows, at)
    by_condition = run.reason == SkipReason.CONDITION
    if said != ("run" if by_condition else run.reason):
        return f"{task.rule} said {said}"
    if by_condition and (task.when is None or flow.holds(task, rows, at)):
        return "it has no condition" if task.when is None else "its condition held"
    return None


def _may_have_stopped(case: Case, flow: Flow, generation: int) -> bool:
    """Whether a workflow run was cancelled or missed its deadline: not recorded of earlier generations."""
    run = flow.run
    if generation < flow.newest or run.state not in {*OPEN, RunState.SUCCEEDED, RunState.DEAD}:
        return True
    state = case.open_states.get(run.id)
    asked = run.state == RunState.CANCELLING or run.reason == WorkflowFailure.DEADLINE
    return asked or (state is not None and state.stopping is not None)


def closed_runs_leave_nothing(case: Case) -> Iterator[Violation]:
    """W5: of a workflow run that is not open there is no state, no timer and no unfinished run of a task."""
    for state in case.history.open_states or ():
        run = case.runs.get(state.run)
        if run is None or run.state not in OPEN:
            what = f"{case.subject(state.run)} is not open, but has a state"
            yield offence("W5", "state", what, run)
    for flow in case.flows:
        run = flow.run
        if run.state in OPEN:
            continue
        for one in case.tasks_of.get(run.id, ()):
            if one.finished_at is None:
                what = f"{case.title(run)} is {run.state}, but the run {one.id} of a task is {one.state}"
                yield offence("W5", "task", what, run, one)
        if run.state in _ENDED and run.finished_at is not None:
            yield from _timers(case, run)


def _timers(case: Case, run: Run) -> Iterator[Violation]:
    """A timer that another trigger holds at the end is deleted soon after."""
    if run.finished_at is None or run.finished_at > case.history.judged_at - case.bound:
        return
    for one in (run, *case.tasks_of.get(run.id, ())):
        if one.id in case.history.reported:
            what = f"{case.title(run)} has ended, but a timer is about run {one.id}"
            yield offence("W5", "timer", what, run)


def states_equal_the_ledger(case: Case) -> Iterator[Violation]:
    """W6: the state of an open workflow run says of each task and conditional edge what the ledger says."""
    for flow in case.flows:
        if flow.run.state in OPEN:
            state = case.open_states.get(flow.run.id)
            why = "has no state" if state is None else _difference(case, flow, state)
            if why is not None:
                yield offence("W6", "state", f"{case.title(flow.run)} is open, and {why}", flow.run)


def _difference(case: Case, flow: Flow, state: OpenState) -> str | None:
    definition = flow.graph.definition
    if (len(state.progress), len(state.choices)) != (len(flow.tasks), definition.choices):
        return "its state is of another number of tasks or conditions"
    if state.generation < flow.newest:
        return f"its state is of generation {state.generation}, but tasks of {flow.newest} have runs"
    rows = flow.counted(state.generation)
    for task in flow.tasks:
        byte, run = state.progress[task.no], rows.get(task.no)
        if byte not in _allowed(case, run):
            known = "it has no run" if run is None else f"run {run.id} is {run.state} ({run.reason})"
            return f"its state says {byte} of task {task.key!r}, but {known}"
        for place, edge in enumerate(task.edges):
            if edge.condition is None:
                continue
            chosen, kept = _choice(flow, state, task, place, rows), state.choices[edge.choice]
            if kept != chosen:
                parent = flow.tasks[edge.parent].key
                return f"its state says {kept} of the edge from task {parent!r} to {task.key!r}, not {chosen}"
    return None


def _allowed(case: Case, run: Run | None) -> set[int]:
    """What may be kept of a task: the end of its run, or that it is live, while a timer has yet to tell."""
    if run is None:
        return {TaskProgress.UNDECIDED}
    if run.finished_at is None:
        return {TaskProgress.LIVE}
    end = _PROGRESS.get(RunState(run.state), TaskProgress.FAILED)
    if run.state == RunState.SKIPPED and end_of(run) is End.SKIPPED:
        end = TaskProgress.SKIPPED
    elif run.state == RunState.SKIPPED and run.reason == SkipReason.CANCELLED:
        end = TaskProgress.SKIPPED_BY_CANCEL
    return {end, TaskProgress.LIVE} if run.id in case.history.reported else {end}


def _choice(flow: Flow, state: OpenState, task: Task, place: int, rows: Rows) -> Choice:
    if state.progress[task.edges[place].parent] != TaskProgress.SUCCEEDED:
        return Choice.UNKNOWN
    return Choice.HOLDS if flow.chosen(task.no, place, rows) else Choice.DOES_NOT_HOLD


def verdicts_follow_from_tasks(case: Case) -> Iterator[Violation]:
    """W7: a workflow run that has ended has the verdict that those of its tasks give, or was stopped."""
    for flow in case.flows:
        run = flow.run
        if run.state not in _ENDED or (
            flow.newest == 0 and run.state in {RunState.CANCELLED, RunState.DISCARDED}
        ):
            continue
        rows = flow.counted(flow.newest)
        missing = [task.key for task in flow.tasks if not task.is_final and task.no not in rows]
        why = f"task {missing[0]!r} has no verdict" if missing else _wrong_verdict(flow, rows)
        if why is not None:
            yield offence("W7", "verdict", f"{case.title(run)} is {run.state} ({run.reason}), but {why}", run)


def _wrong_verdict(flow: Flow, rows: Rows) -> str | None:
    run = flow.run
    if run.state in {RunState.CANCELLED, RunState.DISCARDED}:
        return None
    if run.reason == WorkflowFailure.DEADLINE:
        return _wrong_deadline(flow)
    failures = list(flow.failures(rows))
    state, reason = RunState.DEAD if failures else RunState.SUCCEEDED, None
    if failures:
        main = not all(task.is_final for task in failures)
        reason = WorkflowFailure.TASK_FAILED if main else WorkflowFailure.FINALLY_FAILED
    if (run.state, run.reason) == (state, reason):
        return None
    named = ", ".join(task.key for task in failures[:5])
    return f"tasks failed that nothing dealt with: {named}" if failures else "no failure of a task is left"


def _wrong_deadline(flow: Flow) -> str | None:
    seconds, run = flow.graph.deadline_seconds, flow.run
    if seconds is None:
        return "its workflow has no deadline"
    begun = run.scheduled_for if flow.newest <= 1 else run.started_at
    if (
        begun is not None
        and run.finished_at is not None
        and run.finished_at + CLOCK < begun + timedelta(seconds=seconds)
    ):
        return "its deadline had not passed"
    return None


def final_tasks_come_last(case: Case) -> Iterator[Violation]:
    """W8: a task of `finally` has one verdict in each generation that has ended, after all other tasks."""
    for flow in case.flows:
        main, final = _parts(flow)
        for generation in flow.generations() if final else ():
            rows = flow.counted(generation)
            ended = generation < flow.newest or flow.run.state in _ENDED
            for task in final:
                row = rows.get(task.no)
                if row is None and ended:
                    what = (
                        f"{_title(case, flow, task)} has no run in generation {generation}, which has ended"
                    )
                    yield offence("W8", "missing", what, flow.run)
                elif row is not None and (before := _not_ended(main, rows, row)) is not None:
                    if ended and before.no not in rows:
                        continue  # it has no verdict at all
                    what = f"{_title(case, flow, task)} was due at {row.due}; {before.key!r} had not ended"
                    yield offence("W8", "early", what, row, flow.run)


def _parts(flow: Flow) -> tuple[list[Task], list[Task]]:
    return [task for task in flow.tasks if not task.is_final], [task for task in flow.tasks if task.is_final]


def _not_ended(main: list[Task], rows: Rows, row: Run) -> Task | None:
    return next((task for task in main if end_of(rows.get(task.no), row.due) is End.PENDING), None)


def tasks_have_their_version(case: Case) -> Iterator[Violation]:
    """W9: the run of a task belongs to a workflow run, and has its version."""
    for run in case.history.runs:
        if (
            run.is_workflow
            and case.history.graphs is not None
            and (run.job, run.version) not in case.history.graphs
        ):
            what = f"{case.title(run)} is of version {run.version}, which has no tasks that can be read"
            yield offence("W9", "no_graph", what, run)
        if not run.is_task:
            continue
        key = read_key(run)
        flow = case.runs.get(key.workflow) if key is not None else None
        if flow is None or not flow.is_workflow:
            what = f"{case.title(run)} is of a task, but {run.request!r} is the key of no workflow run"
            yield offence("W9", "orphan", what, run)
        elif (run.job, run.version) != (flow.job, flow.version):
            what = f"{case.title(run)} is of version {run.version}, its workflow run of {flow.version}"
            yield offence("W9", "version", what, run, flow)
    for flow_of in case.flows:
        for stranger in flow_of.strangers:
            if read_key(stranger) is not None:
                what = f"{case.title(stranger)} is of no task of its workflow: {stranger.request!r}"
                yield offence("W9", "no_task", what, stranger, flow_of.run)


def _rows(case: Case) -> Iterator[tuple[Flow, int, Task, Run]]:
    """The runs of tasks, with their workflow run, generation and task."""
    for flow in case.flows:
        for generation in flow.generations():
            for no, run in flow.rows[generation].items():
                yield flow, generation, flow.tasks[no], run


def _title(case: Case, flow: Flow, task: Task) -> str:
    return f"{case.title(flow.run)}: task {task.key!r}"
