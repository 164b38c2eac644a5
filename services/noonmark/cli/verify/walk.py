"""Walks the ledger day by day, in steps that each are one short snapshot, and judges what they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from noonmark.cli.verify.findings import Report
from noonmark.cli.verify.instants import JOBS_OF_A_STEP, read_instants
from noonmark.cli.verify.pacing import Pacer
from noonmark.cli.verify.slices import read_queues, read_repeated, read_slice, read_stuck, read_unsent
from noonmark.core.zones.zones import zone_data_version
from noonmark.kafka.topics import Topics
from noonmark.store.verify.reader import FIRST_ID, LAST_ID, LedgerReader, Span
from noonmark.verify import History
from noonmark.verify.history import DeadLetter, Run
from noonmark.verify.ledger import CHECKED, INSTANT_RULES, RUN_RULES, judge_rows

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


class ZoneDataError(Exception):
    """Instants cannot be compared, because this process has other zone data than the installation."""


class LedgerCheck:
    """One check of a window of the ledger.

    Args:
        reader: reads the rows, for the namespaces of the window.
        window: what to check.
        pacer: bounds the share of the time that steps take.
        topics: the names of the installation's topics.
        progress: called after each step with the day and the number of runs checked so far.
    """

    def __init__(
        self,
        reader: LedgerReader,
        window: Window,
        pacer: Pacer,
        topics: Topics,
        progress: Callable[[datetime, int], None] | None = None,
    ) -> None:
        self._reader = reader
        self._window = window
        self._pacer = pacer
        self._topics = topics
        self._progress = progress

    def run(self) -> Report:
        """Check the window, and return what was found."""
        with self._pacer.step(), self._reader.step() as now:
            until = self._window.until or now
            since = self._window.since or until - 7 * _DAY
            rules = CHECKED + INSTANT_RULES if self._window.instants else CHECKED
            report = Report(now, since, until, self._window.namespaces, rules)
            days = self._reader.days(since, until)
            queues = read_queues(self._reader, now, now - SETTLED_AFTER)
            comparable = self._comparable_since(since) if self._window.instants else until
        _judge(report, queues, ("V3",))
        for day in days:
            self._check_day(report, day)
            self._check_instants(report, day, comparable)
        self._check_letters(report)
        return report

    def _check_day(self, report: Report, day: datetime) -> None:
        since, until = max(report.since, day), min(report.until, day + _DAY)
        after, last = FIRST_ID, FIRST_ID
        while last != LAST_ID:
            with self._pacer.step(), self._reader.step() as now:
                last = self._reader.step_end(day, after, self._window.step) or LAST_ID
                histories = self._read(Span(day, since, until, after, last), now)
            for history, rules in histories:
                _judge(report, history, rules)
            report.runs += len(histories[0][0].runs)
            after = last
            if self._progress is not None:
                self._progress(day, report.runs)

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
                f"the installation plans with {planned}, this process has {zone_data_version()}"
            )
        return max(since, active[1])

    def _read(self, span: Span, now: datetime) -> list[tuple[History, Sequence[str]]]:
        """Read what a step shows, with the rules that judge it; first all runs that have ended."""
        reader, settled = self._reader, now - SETTLED_AFTER
        runs = reader.runs(Run, span, settled)
        ended = [run for run in runs if run.finished_at is not None]
        unfinished = [run for run in runs if run.finished_at is None]
        return [
            (read_slice(reader, ended, now), RUN_RULES),
            (read_repeated(reader, runs, span, now), ("S1",)),
            (read_unsent(reader, unfinished, span, now, self._passed()), ("S6",)),
            (read_stuck(reader, unfinished, span, now, settled), ("V2",)),
        ]

    def _passed(self) -> dict[tuple[str, int], datetime]:
        """Return up to when the group of a pool and lane has passed every message."""
        return {
            (lane[0], int(lane[1])): until
            for topic, until in self._reader.passed_topics()
            if (lane := self._topics.parse_runs(topic)) is not None
        }


def _judge(report: Report, history: History, rules: Sequence[str]) -> None:
    for violation in judge_rows(history, rules, bound=SETTLED_AFTER):
        report.add(violation)
