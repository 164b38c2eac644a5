"""Walks the ledger day by day, in steps that each are one short snapshot, and judges what they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from noonmark.cli.terminal.output import counted
from noonmark.cli.verify.event_log import EventLog, restricted
from noonmark.cli.verify.event_store import EventStore
from noonmark.cli.verify.findings import Report
from noonmark.cli.verify.instants import JOBS_OF_A_STEP, read_instants
from noonmark.cli.verify.pacing import Pacer
from noonmark.cli.verify.slices import (
    read_gone,
    read_queues,
    read_repeated,
    read_slice,
    read_stuck,
    read_unsent,
)
from noonmark.cli.verify.workflow_slices import parts, read_orphans, read_workflows
from noonmark.core.zones.zones import zone_data_version
from noonmark.kafka.consumers.ranges import RangeReader
from noonmark.kafka.topics import Topics
from noonmark.store.verify.reader import FIRST_ID, LAST_ID, LedgerReader, Span
from noonmark.verify import History
from noonmark.verify.history import DeadLetter, Run
from noonmark.verify.ledger import (
    CHECKED,
    EVENT_RULES,
    INSTANT_RULES,
    RUN_RULES,
    WORKFLOW_RULES,
    judge_rows,
)

SETTLED_AFTER: Final = timedelta(minutes=1)
"""Rows that changed later than this are not judged: the next check will."""

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Window:
    """What to check.

    Attributes:
        since: the first instant of runs; None: a week before the end.
        until: the first instant after the window; None: now, by the database's clock.
        namespaces: whose runs; empty: all.
        step: runs of one step.
        instants: whether the schedules of recurring jobs are compared with the ledger, too.
    """

    since: datetime | None = None
    until: datetime | None = None
    namespaces: Sequence[str] = ()
    step: int = 2000
    instants: bool = False


class EventSource(NamedTuple):
    """Where events come from, and where they are kept meanwhile."""

    kafka: RangeReader
    store: EventStore


class NamespaceError(Exception):
    """A namespace of the window does not exist."""


class ZoneDataError(Exception):
    """Instants cannot be compared, because this process has other zone data than the installation."""


class LedgerCheck:
    """One check of a window of the ledger.

    Args:
        reader: reads the rows, for the namespaces of the window.
        window: what to check.
        pacer: bounds the share of the time that steps take.
        topics: the names of the installation's topics.
        events: to compare the ledger with events, too; None: only the ledger is checked.
        progress: called after each step with what was done.
    """

    def __init__(
        self,
        reader: LedgerReader,
        window: Window,
        pacer: Pacer,
        topics: Topics,
        *,
        events: EventSource | None = None,
        progress: Callable[[str], None] = lambda _done: None,
    ) -> None:
        self._reader = reader
        self._window = window
        self._pacer = pacer
        self._topics = topics
        self._events = events
        self._log: EventLog | None = None
        self._progress = progress

    def run(self) -> Report:
        """Check the window, and return what was found.

        Raises:
            NamespaceError: a namespace does not exist.
            ZoneDataError: instants cannot be compared.
            KafkaException: events cannot be read.
            sqlite3.OperationalError: events cannot be kept.
        """
        with self._pacer.step(), self._reader.step() as now:
            if unknown := self._reader.unknown_namespaces():
                raise NamespaceError(
                    f"namespace {', '.join(map(repr, unknown))} does not exist; run `noonmark namespace list`"
                )
            until = self._window.until or now
            since = self._window.since or until - 7 * _DAY
            rules = self._rules()
            report = Report(now, since, until, self._window.namespaces, rules)
            days = self._reader.days(since, until)
            queues = read_queues(self._reader, now, now - SETTLED_AFTER)
            comparable = self._comparable_since(since) if self._window.instants else until
        _judge(report, queues, ("V3", "S16"))
        if self._events is not None:
            self._log = EventLog(self._events.store, self._topics, since, until)
            settled = now - SETTLED_AFTER
            self._log.collect(
                self._reader, self._events.kafka, self._pacer, settled=settled, progress=self._progress
            )
            report.events = self._log.counts
        for day in days:
            self._check_day(report, day)
            self._check_instants(report, day, comparable)
        self._check_letters(report)
        return report

    def _rules(self) -> tuple[str, ...]:
        events = EVENT_RULES if self._events is not None else ()
        return CHECKED + events + (INSTANT_RULES if self._window.instants else ())

    def _check_day(self, report: Report, day: datetime) -> None:
        since, until = max(report.since, day), min(report.until, day + _DAY)
        after, last = FIRST_ID, FIRST_ID
        while last != LAST_ID:
            with self._pacer.step(), self._reader.step() as now:
                last = self._reader.step_end(day, after, self._window.step) or LAST_ID
                span = Span(day, since, until, after, last)
                runs, histories = self._read(span, now)
                gone = self._read_gone(span, [*runs, *histories[0][0].runs], now)
            for history, rules in histories:
                _judge(report, history, rules)
            if self._log is not None:
                _judge_events(report, self._log, histories[0][0], runs, span)
                _judge(report, gone, EVENT_RULES, partway=False)
            self._check_workflows(report, span, [*runs, *histories[0][0].runs])
            report.runs += len(histories[0][0].runs)
            after = last
            self._progress(f"{day:%Y-%m-%d}: {counted(report.runs, 'run')} checked")

    def _check_workflows(self, report: Report, span: Span, runs: list[Run]) -> None:
        """Judge the workflow runs of a step, some at a time, each with the runs of its tasks of any step."""
        flows = [run for run in runs if run.is_workflow]
        tasks = [run for run in runs if run.is_task]
        some: list[list[Run]] = []
        if flows or tasks:
            with self._pacer.step(), self._reader.step() as now:
                some = parts(self._reader, flows, self._window.step)
                orphans = read_orphans(self._reader, tasks, span, now)
            _judge(report, orphans, ("W9",))
        for part in some:
            with self._pacer.step(), self._reader.step() as now:
                history = read_workflows(self._reader, part, span, now)
            _judge(report, history, WORKFLOW_RULES)

    def _check_instants(self, report: Report, day: datetime, comparable: datetime) -> None:
        """Compare a day with the schedules of all recurring jobs, some at a time."""
        since, until = max(comparable, day), min(report.until, day + _DAY)
        jobs: list[tuple[Any, ...]] = []
        while since < until:
            with self._pacer.step(), self._reader.step() as now:
                after = (jobs[-1][1], jobs[-1][2]) if jobs else ("", "")
                jobs = self._reader.recurring_jobs(after, JOBS_OF_A_STEP)
                history = read_instants(self._reader, jobs, since, until, now)
            _judge(report, history, INSTANT_RULES)
            if len(jobs) < JOBS_OF_A_STEP:
                return

    def _check_letters(self, report: Report) -> None:
        """Judge the dead letters whose run is gone: the others were judged with their run."""
        after, last = FIRST_ID, FIRST_ID
        while last != LAST_ID:
            with self._pacer.step(), self._reader.step() as now:
                last = self._reader.letters_end(after, self._window.step) or LAST_ID
                span = Span(report.since, report.since, report.until, after, last)
                letters = self._reader.letters_without_run(DeadLetter, span, now - SETTLED_AFTER)
            _judge(report, History(judged_at=now, dead_letters=letters), ("S11",))
            after = last

    def _comparable_since(self, since: datetime) -> datetime:
        """Return from when instants are those of the zone data of this process.

        Raises:
            ZoneDataError: the installation plans with another release.
        """
        active = self._reader.zone_data()
        if active is None or active[0] != zone_data_version():
            planned = active[0] if active is not None else "no zone data"
            raise ZoneDataError(
                f"--instants is not possible: the installation plans with {planned},"
                f" this process has {zone_data_version()}"
            )
        return max(since, active[1])

    def _read(self, span: Span, now: datetime) -> tuple[list[Run], list[tuple[History, Sequence[str]]]]:
        """Read the unfinished runs of a step, and what it shows, with the rules that judge it.

        The first history is that of all runs that have ended. With events, it is judged later, with them.
        """
        reader, settled = self._reader, now - SETTLED_AFTER
        runs = reader.runs(Run, span, settled)
        ended = [run for run in runs if run.finished_at is not None]
        unfinished = [run for run in runs if run.finished_at is None]
        return unfinished, [
            (read_slice(reader, ended, span, now), RUN_RULES if self._log is None else ()),
            *([(read_slice(reader, unfinished, span, now), RUN_RULES)] if unfinished else []),
            (read_repeated(reader, runs, span, now), ("S1",)),
            (read_unsent(reader, unfinished, span, now, self._passed()), ("S6",)),
            (read_stuck(reader, unfinished, span, now, settled), ("V2",)),
        ]

    def _read_gone(self, span: Span, runs: list[Run], now: datetime) -> History:
        """Read what events announced about runs of a step that do not exist."""
        announced = self._log.about_others(runs, span) if self._log is not None else []
        asked = self._window.namespaces
        return read_gone(
            self._reader, [one for one in announced if not asked or one.namespace in asked], span, now
        )

    def _passed(self) -> dict[tuple[str, int], datetime]:
        """Return up to when the group of a pool and lane has passed every message."""
        return {
            (lane[0], int(lane[1])): until
            for topic, until in self._reader.passed_topics()
            if (lane := self._topics.parse_runs(topic)) is not None
        }


def _judge(report: Report, history: History, rules: Sequence[str], *, partway: bool = True) -> None:
    names = {job.id: job.name for job in history.jobs}
    for violation in judge_rows(history, rules, bound=SETTLED_AFTER, partway=partway):
        report.add(violation, names)


def _judge_events(report: Report, log: EventLog, ended: History, unfinished: list[Run], span: Span) -> None:
    """Judge runs with their events: strictly, if none of these can be missing."""
    open_runs = History(judged_at=ended.judged_at, runs=unfinished, messages=None)
    _judge(report, log.with_events(open_runs, span), EVENT_RULES)
    judged = log.with_events(ended, span)
    whole = {run.id for run in judged.runs if log.is_whole(run)}
    for partway in (False, True):
        part = restricted(judged, [run for run in judged.runs if (run.id in whole) is not partway])
        _judge(report, part, RUN_RULES + EVENT_RULES, partway=partway)
    announced = [run for run in judged.runs if log.is_announced(run)]
    _judge(
        report, restricted(judged, [run for run in announced if log.has_death(run)]), ("S6",), partway=False
    )
    deaths_gone = restricted(judged, [run for run in announced if not log.has_death(run)])
    _judge(report, replace(deaths_gone, deaths=None), ("S6",), partway=False)
    log.counts.compared += len(announced)
    log.counts.not_compared += len(judged.runs) - len(announced)
