"""`python -m benchmarks.verify_lateness`: how much later runs start while `noonmark verify` runs, as JSON.

A running stack starts runs at a steady rate next to a ledger of three days. Periods with checks, one after
the other, alternate with periods without; the order changes from pair to pair, so that a drift cancels out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final

import psycopg

from benchmarks.burst import SETTLED
from benchmarks.figures import Spread
from benchmarks.load import Load, evenly, load, sleep_until
from benchmarks.open_loop import lateness
from benchmarks.stack import BenchmarkError, Stack, wait_for
from benchmarks.verify import fill
from noonmark.devstack.options import CLI
from noonmark.devstack.processes.errors import DevStackError

WARM_UP_SECONDS: Final = 20.0
_CHANGE_SECONDS: Final = 2.0
"""The beginning of a period that is not measured: a check starts or ends then."""
_DRAIN_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0


@dataclass(slots=True)
class Checks:
    """What was checked meanwhile: completed checks, and the runs of the last one."""

    completed: int = 0
    runs: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verify_lateness", description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="runs per second (%(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="of periods (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of a period (%(default)s)")
    parser.add_argument("--history", type=int, default=500_000, help="runs of earlier days (%(default)s)")
    parser.add_argument("--share", type=float, default=0.25, help="--rate of the check (%(default)s)")
    parser.add_argument("--events", action="store_true", help="check with --events")
    chosen = parser.parse_args(arguments)
    if chosen.seconds <= 2 * _CHANGE_SECONDS or chosen.pairs < 1:
        parser.error(f"--seconds must be above {2 * _CHANGE_SECONDS:g}, and --pairs at least 1")
    command = [*CLI, "verify", "--json", "--rate", str(chosen.share), *(["--events"] * chosen.events)]
    try:
        with Stack(lambda line: print(line, file=sys.stderr, flush=True), {}) as stack:
            fill(stack.url, chosen.history)
            stack.start_services()
            with stack.connect() as connection:
                measured = _measure(stack, connection, chosen, command)
    except (BenchmarkError, DevStackError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    json.dump(measured, sys.stdout, indent=2)
    print()
    return 0


def _measure(
    stack: Stack, connection: psycopg.Connection, chosen: argparse.Namespace, command: Sequence[str]
) -> dict[str, object]:
    length = WARM_UP_SECONDS + 2 * chosen.pairs * chosen.seconds
    jobs = Load("bench-verify", evenly(chosen.rate, length))
    loaded = load(connection, jobs)
    settled_before = stack.counter("worker", SETTLED)
    begin = loaded.due + timedelta(seconds=WARM_UP_SECONDS)
    periods = _periods(begin, chosen.pairs, timedelta(seconds=chosen.seconds))
    checks = Checks()
    for since, checked in periods:
        sleep_until(connection, since)
        if checked:
            with _checking(stack, command, checks):
                sleep_until(connection, since + timedelta(seconds=chosen.seconds))
    wait_for(
        lambda: stack.counter("worker", SETTLED) - settled_before, jobs.size, timeout_seconds=_DRAIN_SECONDS
    )
    stack.require_services()
    skipped, whole = timedelta(seconds=_CHANGE_SECONDS), timedelta(seconds=chosen.seconds)
    spreads: dict[bool, list[Spread]] = {False: [], True: []}
    for since, checked in periods:
        late = Spread.of_seconds(lateness(connection, jobs.namespace, since + skipped, since + whole))
        if late is None:
            raise BenchmarkError(f"no run started in the period from {since}")
        spreads[checked].append(late)
    return figures(spreads[False], spreads[True]) | {
        "rate": chosen.rate,
        "share": chosen.share,
        "events": chosen.events,
        "checks_completed": checks.completed,
        "runs_of_a_check": checks.runs,
        "not_started": jobs.size - len(lateness(connection, jobs.namespace, loaded.due)),
    }


def figures(off: Sequence[Spread], on: Sequence[Spread]) -> dict[str, object]:
    """Return medians over pairs of periods without and with checks, and of the added p99 in a pair."""
    return {
        "p99_ms_off": round(statistics.median(one.p99 for one in off), 2),
        "p99_ms_on": round(statistics.median(one.p99 for one in on), 2),
        "added_p99_ms": round(statistics.median(b.p99 - a.p99 for a, b in zip(off, on, strict=True)), 2),
        "p50_ms_off": round(statistics.median(one.p50 for one in off), 2),
        "p50_ms_on": round(statistics.median(one.p50 for one in on), 2),
        "pairs": [{"off": asdict(a), "on": asdict(b)} for a, b in zip(off, on, strict=True)],
    }


def _periods(begin: datetime, pairs: int, length: timedelta) -> list[tuple[datetime, bool]]:
    """Return the begin of each period, and whether it is one with checks: off, on, on, off, …."""
    return [(begin + n * length, n % 4 in {1, 2}) for n in range(2 * pairs)]


@contextlib.contextmanager
def _checking(stack: Stack, command: Sequence[str], checks: Checks) -> Iterator[None]:
    """Run checks one after the other meanwhile.

    Raises:
        BenchmarkError: a check failed, or found something.
    """
    ended = threading.Event()
    failed: list[str] = []
    environment = stack.environment()

    def check() -> None:
        while not ended.is_set() and not failed:
            with subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process:
                watch = threading.Thread(target=_stop_when, args=(ended, process), daemon=True)
                watch.start()
                stdout, stderr = process.communicate()
                if process.returncode == 0:
                    checks.completed += 1
                    checks.runs = json.loads(stdout)["runs"]
                elif not ended.is_set():
                    failed.append(f"`noonmark verify` exited with {process.returncode}: {stderr or stdout}")

    thread = threading.Thread(target=check, name="checks")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failed:
        raise BenchmarkError(failed[0][:2000])


def _stop_when(ended: threading.Event, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        if ended.wait(0.2):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
            return


if __name__ == "__main__":
    sys.exit(main())
