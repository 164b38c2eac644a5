"""Noonmark in relation to the bare design, and recurring runs in relation to one-time runs.

Both sides of a ratio are measured within minutes on the same servers, so a ratio says more about noonmark
than a rate does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from benchmarks.figures import BareDesign, Report
from benchmarks.plan import LATENESS_RATES
from benchmarks.targets import Target


def ratios(report: Report) -> dict[str, Target]:
    """Return each ratio that was measured, with its floor and its aim, by its name in the JSON."""
    found = dict(_over_one_time(report))
    if report.bare is not None:
        found = {**dict(_over_bare(report, report.bare)), **found}
    if report.pairs is not None:
        alone = fmean((report.pairs.one.runs_per_s, report.pairs.one_after.runs_per_s))
        rate = _ratio(report.pairs.two.runs_per_s, alone)
        figure = "runs/s of two triggers, dispatchers, workers, over one of each"
        found["pairs_runs_per_s"] = Target(figure, rate, 1.0, 1.1, "x", more=True)
    return found


def ratios_as_json(report: Report) -> dict[str, Any]:
    """Return what the JSON file holds about the ratios."""
    return {name: {**dataclasses.asdict(one), "verdict": one.verdict} for name, one in ratios(report).items()}


def _over_bare(report: Report, bare: BareDesign) -> Iterator[tuple[str, Target]]:
    own, others = report.burst, bare.bursts
    if own is not None and others:
        # A machine can change its speed within minutes: the mean of both is nearest to that between.
        cpu = _ratio(own.cpu_us_per_run, fmean(one.cpu_us_per_run for one in others))
        yield "cpu_over_bare", Target("CPU per run, over the bare design", cpu, 1.3, 0.9, "x")
        rate = _ratio(own.runs_per_s, fmean(one.runs_per_s for one in others))
        yield "runs_per_s_over_bare", Target("runs/s, over the bare design", rate, 0.75, 1.0, "x", more=True)
    for at in LATENESS_RATES:
        mine, theirs = report.open_loop(at), bare.open_loop(at)
        if mine is not None and theirs is not None and mine.lateness_ms and theirs.lateness_ms:
            late = _ratio(mine.lateness_ms.p99, theirs.lateness_ms.p99)
            figure = f"start lateness p99 at {at:,}/s, over the bare design"
            yield f"p99_over_bare_{at}", Target(figure, late, 1.5, 1.0, "x")


def _over_one_time(report: Report) -> Iterator[tuple[str, Target]]:
    once, recurring = report.burst, report.recurring
    if once is not None and recurring is not None:
        cpu = _ratio(recurring.cpu_us_per_run, once.cpu_us_per_run)
        yield "recurring_cpu", Target("CPU per run, recurring over one-time", cpu, 1.5, 1.25, "x")
        wal = _ratio(recurring.wal_bytes_per_run, once.wal_bytes_per_run)
        yield "recurring_wal", Target("WAL per run, recurring over one-time", wal, 1.6, 1.3, "x")


def _ratio(measured: float, base: float) -> float:
    return round(measured / base, 3) if base else float("inf")
