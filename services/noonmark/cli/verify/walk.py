"""Walks the ledger day by day, in steps that each are one short snapshot, and judges what they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from noonmark.cli.verify.findings import Report
from noonmark.cli.verify.pacing import Pacer
from noonmark.cli.verify.slices import read_repeated, read_slice
from noonmark.store.verify.reader import FIRST_ID, LAST_ID, LedgerReader, Span
from noonmark.verify import History
from noonmark.verify.history import Run
from noonmark.verify.ledger import RUN_RULES, judge_rows

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
    """

    since: datetime | None = None
    until: datetime | None = None
    namespaces: Sequence[str] = ()
    step: int = 2000


class LedgerCheck:
    """One check of a window of the ledger.

    Args:
        reader: reads the rows, for the namespaces of the window.
        window: what to check.
        pacer: bounds the share of the time that steps take.
        progress: called after each step with the day and the number of runs checked so far.
    """

    def __init__(
        self,
        reader: LedgerReader,
        window: Window,
        pacer: Pacer,
        progress: Callable[[datetime, int], None] | None = None,
    ) -> None:
        self._reader = reader
        self._window = window
        self._pacer = pacer
        self._progress = progress

    def run(self) -> Report:
        """Check the window, and return what was found."""
        with self._pacer.step(), self._reader.step() as now:
            until = self._window.until or now
            since = self._window.since or until - 7 * _DAY
            report = Report(now, since, until, self._window.namespaces)
            days = self._reader.days(since, until)
        for day in days:
            self._check_day(report, day)
        return report

    def _check_day(self, report: Report, day: datetime) -> None:
        since, until = max(report.since, day), min(report.until, day + _DAY)
        after, last = FIRST_ID, FIRST_ID
        while last != LAST_ID:
            with self._pacer.step(), self._reader.step() as now:
                last = self._reader.step_end(day, after, self._window.step) or LAST_ID
                histories = self._read(Span(day, since, until, after, last), now)
            for history, rules in histories:
                for violation in judge_rows(history, rules):
                    report.add(violation)
            report.runs += len(histories[0][0].runs)
            after = last
            if self._progress is not None:
                self._progress(day, report.runs)

    def _read(self, span: Span, now: datetime) -> list[tuple[History, Sequence[str]]]:
        """Read what a step shows, with the rules that judge it."""
        runs = self._reader.runs(Run, span, now - SETTLED_AFTER)
        ended = [run for run in runs if run.finished_at is not None]
        found: list[tuple[History, Sequence[str]]] = [(read_slice(self._reader, ended, now), RUN_RULES)]
        repeated = read_repeated(self._reader, runs, span, now)
        if repeated is not None:
            found.append((repeated, ("S1",)))
        return found
