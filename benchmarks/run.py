"""`python -m benchmarks.run`: start a stack, measure it, print tables, write JSON, end every process."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import psycopg
from confluent_kafka import KafkaException
from rich.console import Console

from benchmarks.bare.measure import measure_bare, measure_bare_again
from benchmarks.burst import measure_burst
from benchmarks.claim_backlog import ClaimBench
from benchmarks.figures import Burst, Pairs, Report, with_ratios
from benchmarks.interrupts import interruptible
from benchmarks.machine import describe_machine
from benchmarks.meter import Meter
from benchmarks.open_loop import measure_idle, measure_open_loop
from benchmarks.plan import WARM_RUNS, WINDOWS, Plan, plan_of
from benchmarks.priority import measure_priority
from benchmarks.ratios import ratios_as_json
from benchmarks.stack import BenchmarkError, Stack
from benchmarks.submissions import measure_submissions
from benchmarks.tables import show
from benchmarks.yardsticks import measure_yardsticks, warm_broker
from noonmark.devstack.processes.errors import DevStackError

_PAIRED: Final = ("trigger", "dispatcher", "worker")
_IDLE_SECONDS: Final = 10.0
_SETTLE_SECONDS: Final = 2.0
_WARM_RECORDS: Final = 500_000
_WARM_SECONDS: Final = 10.0
_BUDGET_SECONDS: Final = 155.0
"""A backlog that was not requested is left out after this time, so that the whole stays below 3 minutes."""

# What a part may end with without taking the others along.
_PART_ERRORS: Final = (BenchmarkError, DevStackError, KafkaException, psycopg.Error, OSError, KeyError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Returns:
        0 when all was measured, nothing lost and no verdict given twice; 1 otherwise; 130 when interrupted.
    """
    plan = plan_of(arguments)
    report = Report(plan.size, datetime.now(UTC).isoformat(timespec="seconds"))
    report.settings_changed = plan.settings
    began = time.monotonic()
    try:
        with interruptible():
            _measure(plan, report, _Clock(began))
    except KeyboardInterrupt:
        print("interrupted; every process was ended", file=sys.stderr)
        return 130
    except _PART_ERRORS as error:
        report.failed["stack"] = f"{type(error).__name__}: {error}"
    report.seconds = round(time.monotonic() - began, 1)
    show(report, Console(width=None if sys.stdout.isatty() else 120))
    _print_settings(report)
    if plan.json_file is not None:
        shown = {**report.as_json(), "ratios": ratios_as_json(report)}
        plan.json_file.write_text(json.dumps(shown, indent=2) + "\n", encoding="utf-8")
        print(f"written to {plan.json_file}")
    return 0 if _sound(report) else 1


class _Clock:
    """Says on stderr what is being done, so that stdout is the report; knows how long that has taken."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._allowed_seconds = _BUDGET_SECONDS

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def is_over(self) -> bool:
        """Whether the time for parts that were not requested is used up."""
        return self.seconds > self._allowed_seconds

    def allow_more(self) -> None:
        """Do not count the time until now."""
        self._allowed_seconds = _BUDGET_SECONDS + self.seconds

    def say(self, what: str) -> None:
        print(f"{self.seconds:6.1f} s  {what}", file=sys.stderr, flush=True)


def _measure(plan: Plan, report: Report, clock: _Clock) -> None:
    with Stack(clock.say, plan.settings, plan.folder) as stack, stack.connect() as connection:
        report.machine = describe_machine(connection, stack.folder)
        clock.say("warming the broker")
        sent = warm_broker(stack, _WARM_RECORDS, limit_seconds=_WARM_SECONDS)
        report.machine["warm_up_records"] = sent
        clock.say("yardsticks")
        report.yardsticks = measure_yardsticks(stack, connection, share=plan.share)
        if plan.bare:
            with _part(report, "bare"):
                report.bare = measure_bare(stack, plan, clock.say)
            clock.allow_more()
        if plan.parts - {"claims"} or plan.priority or plan.pairs:
            stack.start_services()
            _measure_services(plan, report, clock, stack, connection)
            stack.stop_services()
            if report.bare is not None and report.burst is not None:
                with _part(report, "bare_after"):
                    report.bare.burst_after = measure_bare_again(stack, plan, clock.say)
        if "claims" in plan.parts:
            with _part(report, "claims"):
                _measure_claims(plan, report, clock, stack)
        clock.say("yardsticks once more")
        with _part(report, "yardsticks_after"):
            report.yardsticks_after = measure_yardsticks(stack, connection, share=plan.share)
        clock.say("ending every process")


def _measure_services(
    plan: Plan, report: Report, clock: _Clock, stack: Stack, connection: psycopg.Connection
) -> None:
    meter = stack.meter(connection)
    clock.say("a burst to warm broker and services on their own path, not reported")
    measure_burst(stack, connection, meter, plan.scaled(WARM_RUNS), kind="warm-up")
    if "idle" in plan.parts:
        with _part(report, "idle"):
            time.sleep(_SETTLE_SECONDS)
            clock.say("idle")
            report.idle = measure_idle(stack, meter, seconds=plan.window(_IDLE_SECONDS))
    if "burst" in plan.parts:
        with _part(report, "burst"):
            clock.say(f"W1: {plan.size:,} one-time jobs due at one instant")
            report.burst = measure_burst(stack, connection, meter, plan.size, kind="one-time")
    if "recurring" in plan.parts:
        with _part(report, "recurring"):
            size = plan.scaled(30_000)
            clock.say(f"W1: {size:,} recurring jobs due at one instant")
            report.recurring = measure_burst(stack, connection, meter, size, kind="recurring")
    if "open" in plan.parts:
        for rate, seconds in WINDOWS:
            with _part(report, f"open_loop_{rate:.0f}"):
                clock.say(f"W2: {rate:,.0f} jobs due per second")
                report.open_loops.append(
                    measure_open_loop(stack, connection, meter, rate=rate, seconds=plan.window(seconds))
                )
    if "submissions" in plan.parts:
        _measure_submissions(plan, report, clock, stack, connection, meter)
    if plan.priority:
        with _part(report, "priority"):
            clock.say(f"W5: the high lane next to {plan.priority:,} low jobs")
            report.priority = measure_priority(stack, connection, plan.priority)
    if plan.pairs:
        with _part(report, "pairs"):
            report.pairs = _measure_pairs(plan, clock, stack, connection)


def _measure_pairs(plan: Plan, clock: _Clock, stack: Stack, connection: psycopg.Connection) -> Pairs:
    """Measure a burst with two triggers, dispatchers and workers between bursts with one of each."""

    def measure(kind: str, *, warm: bool) -> Burst:
        meter = stack.meter(connection)
        if warm:
            measure_burst(stack, connection, meter, plan.scaled(WARM_RUNS), kind=f"warm-{kind}")
        clock.say(f"W6: {plan.size:,} one-time jobs, {kind}")
        return measure_burst(stack, connection, meter, plan.size, kind=kind)

    one = measure("one-of-each", warm=False)
    stack.start_second(_PAIRED)
    two = measure("two-of-each", warm=True)
    stack.stop_second()
    return Pairs(one, two, measure("one-again", warm=True))


def _measure_submissions(
    plan: Plan,
    report: Report,
    clock: _Clock,
    stack: Stack,
    connection: psycopg.Connection,
    meter: Meter,
) -> None:
    for kind, full in (("once", 60_000), ("cron", 30_000)):
        with _part(report, f"submissions_{kind}"):
            count = plan.scaled(full)
            clock.say(f"W3: {count:,} submissions, {kind}")
            report.submissions[kind] = measure_submissions(stack, connection, meter, count, kind=kind)


def _measure_claims(plan: Plan, report: Report, clock: _Clock, stack: Stack) -> None:
    with stack.other_database("claims") as url:
        bench = ClaimBench(stack, url)
        for waiting in plan.backlogs:
            if waiting > plan.backlogs[0] and not plan.backlogs_asked_for and clock.is_over:
                report.skipped[f"claims with {waiting:,} waiting"] = "time is up; ask for it with --backlog"
                continue
            clock.say(f"W4: claims with {waiting:,} timers waiting")
            report.claim_backlog = with_ratios([*report.claim_backlog, bench.measure(waiting)])


@contextlib.contextmanager
def _part(report: Report, name: str) -> Iterator[None]:
    """Keep what a part failed with and let the others go on."""
    try:
        yield
    except _PART_ERRORS as error:
        report.failed[name] = f"{type(error).__name__}: {error}"


def _sound(report: Report) -> bool:
    pairs = report.pairs.bursts if report.pairs is not None else ()
    bursts = [one for one in (report.burst, report.recurring, *pairs) if one is not None]
    bare = report.bare
    finished = bare is None or (
        all(one.lost == 0 for one in bare.bursts) and all(one.not_started == 0 for one in bare.open_loops)
    )
    whole = all(one.lost == one.second_verdicts == one.without_event == 0 for one in bursts)
    taken = all(one.missing == one.rejected == 0 for one in report.submissions.values())
    started = all(one.not_started == 0 for one in report.open_loops)
    drained = report.priority is None or report.priority.not_started == 0
    return finished and whole and taken and started and drained and not report.failed


def _print_settings(report: Report) -> None:
    if report.settings_changed:
        changed = ", ".join(f"{name}={value}" for name, value in report.settings_changed.items())
        print(f"settings that differ from the shipped defaults: {changed}")
    else:
        print(
            "settings: the shipped defaults; given are only addresses, the handlers' module and sizes;"
            " fsync and synchronous_commit on, acks=all"
        )
    print(f"took {report.seconds:.0f} s")


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
