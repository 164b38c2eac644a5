"""`python -m benchmarks.http_runs`: HTTP runs against a target on loopback, everything recorded.

Without options it measures how many complete runs a second one worker process does: claimed, relayed,
started, signed and sent, answered, recorded, announced. With `--slow N` it holds N calls of `--seconds` each
open at once in one worker process, and reads its memory meanwhile. JSON goes to stdout, progress to stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from benchmarks.load import Load, at_once, load, sleep_until
from benchmarks.machine import describe_machine
from benchmarks.stack import ROOT, BenchmarkError, Stack, states_of, wait_for

_WARM_RUNS: Final = 3000
_RESERVE: Final = 1.15
"""Slots beyond the calls: a share of them only high runs may take."""
_HTTP: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Target:
    """A target process."""

    url: str
    pid: int

    def figures(self) -> dict[str, int]:
        """Ask it what it has counted."""
        with _HTTP.open(self.url.replace("/bench", "/figures"), timeout=10) as reply:
            counted: dict[str, int] = json.loads(reply.read())
        return counted


@contextlib.contextmanager
def target(delay: float) -> Iterator[Target]:
    """Start a target and end it afterwards."""
    command = [sys.executable, "-m", "benchmarks.http_target", "--delay", str(delay)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Target(f"http://127.0.0.1:{int(process.stdout.readline())}/bench", process.pid)
    finally:
        process.stdin.close()
        process.wait(10)


def measure_rate(stack: Stack, connection: psycopg.Connection, called: Target, size: int) -> dict[str, Any]:
    """Let `size` HTTP jobs come due at one instant; say how fast all of them were done, and at what cost."""
    meter = stack.meter(connection)
    _run(connection, called, "warm-up", _WARM_RUNS)
    _wait(connection, "warm-up", _WARM_RUNS)
    calls = called.figures()["calls"]
    due = _run(connection, called, "rate", size)
    sleep_until(connection, due, early_seconds=0.05)
    before = meter.read()
    _wait(connection, "rate", size)
    spent = meter.spent(before)
    row = connection.execute(
        "select extract(epoch from max(finished_at) - min(scheduled_for))::float8,"
        " extract(epoch from max(finished_at) - min(started_at))::float8"
        " from runs where namespace = 'rate'"
    ).fetchone()
    assert row is not None
    return {
        "runs": size,
        "states": states_of(connection, "rate"),
        "calls": called.figures()["calls"] - calls,
        "connections": called.figures()["connections"],
        "seconds_from_due": round(row[0], 2),
        "runs_per_s": round(size / row[0]),
        "runs_per_s_from_first_start": round(size / row[1]),
        "cpu_us_per_run": spent.cpu_us(size),
        "other_cpu_percent": spent.other_percent(),
    }


def measure_slow(
    stack: Stack, connection: psycopg.Connection, called: Target, size: int, seconds: float
) -> dict[str, Any]:
    """Hold `size` calls open at once; say what the worker's memory was before, and at its height."""
    meter = stack.meter(connection)
    before = meter.memory_mb()["worker"]
    _run(connection, called, "slow", size)
    height = before
    most = 0
    give_up_at = time.monotonic() + 120 + seconds
    while most < size and time.monotonic() < give_up_at:
        most = called.figures()["most_open_calls"]
        height = max(height, meter.memory_mb()["worker"])
        time.sleep(0.2)
    while (done := _done(connection, "slow")) < size and time.monotonic() < give_up_at + seconds:
        height = max(height, meter.memory_mb()["worker"])
        time.sleep(0.2)
    return {
        "calls": size,
        "seconds_each": seconds,
        "most_open_at_once": called.figures()["most_open_calls"],
        "worker_rss_mb_before": before,
        "worker_rss_mb_height": height,
        "kb_per_call": round((height - before) * 1000 / size, 1),
        "done": done,
        "states": states_of(connection, "slow"),
    }


def _run(connection: psycopg.Connection, called: Target, namespace: str, size: int) -> Any:
    return load(connection, Load(namespace, at_once(size), url=called.url)).due


def _done(connection: psycopg.Connection, namespace: str) -> float:
    row = connection.execute(
        "select count(*) from runs where namespace = %s and finished_at is not null", [namespace]
    ).fetchone()
    assert row is not None
    return float(row[0])


def _wait(connection: psycopg.Connection, namespace: str, size: int) -> None:
    if not wait_for(lambda: _done(connection, namespace), size, timeout_seconds=300):
        raise BenchmarkError(f"not all runs ended: {states_of(connection, namespace)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_runs", description=__doc__)
    parser.add_argument("--size", type=int, default=30_000, help="runs of the rate (30,000)")
    parser.add_argument("--slow", type=int, default=0, metavar="N", help="hold N calls open at once instead")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of a slow call (30)")
    parser.add_argument(
        "--slots", type=int, default=0, help="slots of the worker (its default; with --slow enough)"
    )
    options = parser.parse_args(arguments)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    slots = options.slots or (round(options.slow * _RESERVE) if options.slow else 0)
    settings = {"NOONMARK_HTTP_ALLOW_NETWORKS": "127.0.0.1/32"}
    if slots:
        settings["NOONMARK_WORKER_SLOTS"] = str(slots)
    with (
        target(options.seconds if options.slow else 0.0) as called,
        Stack(say, settings) as stack,
        stack.connect() as connection,
    ):
        stack.start_services()
        say("measuring")
        found = (
            measure_slow(stack, connection, called, options.slow, options.seconds)
            if options.slow
            else measure_rate(stack, connection, called, options.size)
        )
        report = {"machine": describe_machine(connection, stack.folder), "settings": settings, **found}
        say("ending every process")
    json.dump(report, sys.stdout, indent=2)
    print()
    return 0 if found["states"] == {"succeeded": options.slow or options.size} else 1


if __name__ == "__main__":
    sys.exit(main())
