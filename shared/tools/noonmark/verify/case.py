"""A history, indexed for the rules, and the violations that rules return."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from noonmark.core.instants import format_instant
from noonmark.core.schedules.schedule import Once, Schedule, load_schedule
from noonmark.core.states import Origin, RunState
from noonmark.core.transitions import VERDICTS
from noonmark.verify.expected import Expected
from noonmark.verify.flows import Flow
from noonmark.verify.history import (
    Attempt,
    Call,
    Death,
    History,
    Job,
    LifecycleRecord,
    OpenState,
    Run,
    Version,
    Worker,
)

EDGE: Final = timedelta(seconds=1)
"""A request takes its locks one by one: a start within this time after the first is not a violation."""

CLOCK_STEP: Final = timedelta(milliseconds=200)
"""Virtual machines correct their clocks in steps of some milliseconds, so a time may be a little earlier."""

RECORDING: Final = timedelta(minutes=10)
"""Longer than any transaction that records an outcome: statements and waits between them have timeouts."""

HOLDING: Final = frozenset({RunState.RUNNING, RunState.CANCELLING, RunState.SUCCEEDED})
"""States of a run whose newest attempt is counted, and leaves no row."""

_MOST: Final = 100_000
"""The most instants of one version that are checked."""

T = TypeVar("T")


class Violation(NamedTuple):
    """A broken invariant.

    Attributes:
        invariant: its id, such as S1.
        kind: how it was broken, in one word.
        what: a sentence for people.
        rows: the evidence: rows of the history, as objects.
    """

    invariant: str
    kind: str
    what: str
    rows: list[dict[str, Any]]


class Window(NamedTuple):
    """The time in which an attempt owned its run."""

    fence: int
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Judging:
    """How to judge.

    Attributes:
        bound: the time within which liveness must be reached, L.
        partway: the system is still running: only what must hold at every moment is judged.
    """

    bound: timedelta
    partway: bool


class Case:
    """A history and what was expected of it."""

    def __init__(self, history: History, expected: Expected | None, judging: Judging) -> None:
        self.history = history
        self.expected = expected or Expected()
        self.bound = judging.bound
        self.partway = judging.partway
        self.jobs: dict[str, Job] = {job.id: job for job in history.jobs}
        self.runs: dict[str, Run] = {run.id: run for run in history.runs}
        # Of a job: without the runs of tasks, which are found by their workflow run.
        self.runs_of: dict[str, list[Run]] = _grouped(
            (run.job, run) for run in history.runs if not run.is_task
        )
        self.tasks_of: dict[str, list[Run]] = _grouped(
            (run.request.partition("/")[0], run) for run in history.runs if run.is_task
        )
        self.versions: dict[tuple[str, int], Version] = {(v.job, v.version): v for v in history.versions}
        self.versions_of: dict[str, list[Version]] = _grouped((v.job, v) for v in history.versions)
        self.calls: dict[str, list[Call]] = _grouped((call.run, call) for call in history.calls)
        self.attempts: dict[str, list[Attempt]] = _grouped((a.run, a) for a in history.attempts)
        self.deaths: dict[str, list[Death]] = _grouped((death.run, death) for death in history.deaths or ())
        self.workers: dict[int, Worker] = {worker.id: worker for worker in history.workers or ()}
        self.retries: dict[str, list[LifecycleRecord]] = _grouped(
            (event.run, event) for event in history.lifecycle if event.state == RunState.RETRYING
        )
        self.lifecycle: dict[str, dict[str, LifecycleRecord]] = defaultdict(dict)
        for event in history.lifecycle:
            if event.state in VERDICTS:
                # The relay may send an event twice after a crash: a repeated event is not a second verdict.
                self.lifecycle[event.run][event.event] = event

    @cached_property
    def open_states(self) -> dict[str, OpenState]:
        """What is kept of open workflow runs."""
        return {state.run: state for state in self.history.open_states or ()}

    @cached_property
    def flows(self) -> list[Flow]:
        """The workflow runs whose graph is known, with the runs of their tasks."""
        history = self.history
        return [
            Flow(run, self.tasks_of.get(run.id, ()), graph, history.results)
            for run in history.runs
            if run.is_workflow and (graph := (history.graphs or {}).get((run.job, run.version))) is not None
        ]

    @cached_property
    def windows(self) -> dict[str, list[Window]]:
        """When each run was owned, by fence."""
        return {run.id: list(self._windows(run)) for run in self.history.runs}

    def _windows(self, run: Run) -> Iterator[Window]:
        attempts = self.attempts.get(run.id, ())
        found = [Window(a.fence, a.started_at, a.finished_at) for a in attempts if a.started_at is not None]
        # A run that waits for its next attempt still has the start of the one before.
        if run.started_at is not None and all(a.started_at != run.started_at for a in attempts):
            found.append(Window(run.fence, run.started_at, run.finished_at or self.history.judged_at))
        yield from sorted(found)

    def outcome(self, run: str, fence: int) -> str | None:
        """The outcome of the attempt; None: success, or not ended yet."""
        return next((a.outcome for a in self.attempts.get(run, ()) if a.fence == fence), None)

    def name(self, job: str) -> tuple[str, str]:
        """(namespace, name) of a job."""
        found = self.jobs.get(job)
        return (found.namespace, found.name) if found is not None else ("", job)

    def title(self, run: Run) -> str:
        """A run, for people."""
        return f"{self.name(run.job)[1]} of {format_instant(run.scheduled_for)} (run {run.id})"

    def subject(self, run_id: str) -> str:
        """A run that may not be in the history, for people."""
        run = self.runs.get(run_id)
        return self.title(run) if run is not None else f"run {run_id}"

    def version(self, run: Run) -> Version | None:
        """The version that the run was planned with."""
        return self.versions.get((run.job, run.version))

    @cached_property
    def schedules(self) -> dict[tuple[str, int], Schedule]:
        """The oracle: the schedule of each version that has one."""
        return {
            key: load_schedule(version.schedule)
            for key, version in self.versions.items()
            if version.schedule is not None and "calendars" not in version.schedule
        }

    def planned(self, job: Job) -> Iterator[datetime]:
        """Every instant of a job that must have its verdict by now, from the test's plan or the oracle."""
        last = self.history.judged_at - self.bound
        given = self.expected.instants.get((job.namespace, job.name), ())
        if given:
            # No recurring instant is due before its job exists.
            yield from (at for at in given if at <= last and (len(given) == 1 or at >= job.created_at))
            return
        for version in self.versions_of.get(job.id, ()):
            schedule = self.schedules.get((job.id, version.version))
            if schedule is not None:
                yield from self._instants(job, version, schedule, last)

    def _instants(self, job: Job, version: Version, schedule: Schedule, last: datetime) -> Iterator[datetime]:
        if isinstance(schedule, Once):
            if schedule.run_at <= last and job.state != "cancelled":
                yield schedule.run_at
            return
        ends = [last - timedelta(seconds=schedule.jitter_seconds)]
        # Close to an edit, the order of two transactions decides which version an instant belongs to.
        ends += [version.until - EDGE] if version.until is not None else []
        # A cancelled, broken or paused job owes only what was due before.
        ends += [job.changed_at - EDGE] if job.state in {"cancelled", "broken", "paused"} else []
        low = version.since if version.version == 1 else version.since + EDGE
        yield from schedule.between(low, min(ends), schedule.max_runs or _MOST)

    def by_schedule(self) -> Iterator[Run]:
        """Runs that the schedule requested."""
        return (run for run in self.history.runs if run.origin == Origin.SCHEDULE)


def offence(invariant: str, kind: str, what: str, *rows: Any) -> Violation:
    """Return a violation with its evidence."""
    return Violation(invariant, kind, what, [row._asdict() for row in rows if row is not None])


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found
