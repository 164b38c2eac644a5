"""What the figures should be, and whether they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.figures import Report


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the comparison.

    Attributes:
        figure: what is measured.
        measured: the value.
        at_least: must be reached.
        aim: should be reached.
        unit: of the three.
        more: whether more is better; of most figures less is.
    """

    figure: str
    measured: float
    at_least: float
    aim: float
    unit: str = ""
    more: bool = False

    @property
    def verdict(self) -> str:
        """`aim`, `reached` or `missed`."""
        if self._holds(self.aim):
            return "aim"
        return "reached" if self._holds(self.at_least) else "missed"

    def _holds(self, limit: float) -> bool:
        return self.measured >= limit if self.more else self.measured <= limit


def targets(report: Report) -> list[Target]:
    """Compare what was measured with what is wanted of two cores that carry all processes."""
    return [*_of_bursts(report), *_of_windows(report), *_of_the_rest(report)]


def _of_bursts(report: Report) -> Iterator[Target]:
    burst, recurring = report.burst, report.recurring
    if burst is not None:
        share = round(100 * burst.share_of_copy_jobs, 1)
        loaded = burst.wal_bytes_per_run_with_load
        yield Target("CPU per run, burst of one-time jobs", burst.cpu_us_per_run, 120, 55, "µs")
        yield Target("complete runs in that burst", burst.runs_per_s, 12_000, 30_000, "/s", more=True)
        yield Target("  or as a share of COPY jobs/s", share, 9, 22, "%", more=True)
        yield Target("WAL per run, one-time", burst.wal_bytes_per_run, 2500, 2000, "B")
        yield Target("  with loading job and timer", loaded, 2500, 2000, "B")
    if recurring is not None:
        yield Target("WAL per run, recurring", recurring.wal_bytes_per_run, 2000, 1500, "B")
    for one in (burst, recurring):
        if one is not None:
            yield Target(f"lost runs, {one.kind}", one.lost, 0, 0)
            yield Target(f"second verdicts, {one.kind}", one.second_verdicts, 0, 0)


def _of_windows(report: Report) -> Iterator[Target]:
    for rate, at_least, aim in ((1000, 50, 25), (5000, 100, 40)):
        window = report.open_loop(rate)
        if window is not None and window.lateness_ms is not None:
            yield Target(f"start lateness p99 at {rate:,}/s", window.lateness_ms.p99, at_least, aim, "ms")
    busy = report.open_loop(100)
    if busy is not None:
        yield Target("CPU of everything at 100 runs/s", busy.cpu_percent_all, 40, 20, "% of a core")
    if report.idle is not None:
        own = report.idle.cpu_percent_noonmark
        yield Target("CPU of noonmark's processes, idle", own, 5, 3, "% of a core")


def _of_the_rest(report: Report) -> Iterator[Target]:
    for kind, taken in report.submissions.items():
        yield Target(f"submissions through intake, {kind}", taken.per_s, 8000, 25_000, "/s", more=True)
    for claim in report.claim_backlog[1:]:
        added = round(100 * (claim.ratio_cpu - 1), 1)
        # "Flat" is what repeats of one size differ by.
        yield Target(f"claim CPU with {claim.waiting:,} waiting", added, 25, 5, "% more")
    if report.priority is not None and report.priority.added_p99_ms is not None:
        added = report.priority.added_p99_ms
        yield Target("high-lane p99 while low jobs drain", added, 200, 50, "ms more")
