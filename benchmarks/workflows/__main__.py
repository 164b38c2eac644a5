"""`python -m benchmarks.workflows`: start a stack, measure workflows on it, end every process."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psycopg
from confluent_kafka import KafkaException
from rich.console import Console

from benchmarks.burst import measure_burst
from benchmarks.interrupts import interruptible
from benchmarks.machine import describe_machine
from benchmarks.plan import positive, setting
from benchmarks.stack import BenchmarkError, Say, Stack
from benchmarks.workflows.against import measure_against
from benchmarks.workflows.figures import Report
from benchmarks.workflows.graph import measure_graph
from benchmarks.workflows.report import show
from benchmarks.workflows.windows import (
    measure_hop,
    measure_idle_workflows,
    measure_plain,
    measure_wide,
)
from noonmark.devstack.processes.errors import DevStackError

PARTS: Final = ("wide", "hop", "graph", "idle")
_WARM_WORKFLOWS: Final = 50
_WARM_RUNS: Final = 10_000
_CHAIN: Final = 10
_LAYERS: Final = 10
_IDLE_SECONDS: Final = 10.0
_PART_ERRORS: Final = (BenchmarkError, DevStackError, KafkaException, psycopg.Error, OSError, KeyError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Returns:
        0 when all was measured and every run succeeded; 1 otherwise; 130 when interrupted.
    """
    options = _parser().parse_args(arguments)
    report = Report(datetime.now(UTC).isoformat(timespec="seconds"), settings_changed=dict(options.set))
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    try:
        with interruptible():
            if options.against is None:
                with _turn(options.lock):
                    _measure(options, report, say)
            else:
                with _part(report, "against"):
                    report.against = measure_against(
                        *(options.against.resolve(), options.size, options.pairs, say),
                        lambda: _turn(options.lock),
                    )
    except KeyboardInterrupt:
        print("interrupted; every process was ended", file=sys.stderr)
        return 130
    except _PART_ERRORS as error:
        report.failed["stack"] = f"{type(error).__name__}: {error}"
    report.seconds = round(time.monotonic() - began, 1)
    show(report, Console(width=None if sys.stdout.isatty() else 120))
    if options.json is not None:
        options.json.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
        print(f"written to {options.json}")
    return 0 if report.is_sound else 1


def _measure(options: argparse.Namespace, report: Report, say: Say) -> None:
    with Stack(say, dict(options.set), options.dir) as stack, stack.connect() as connection:
        report.machine = describe_machine(connection, stack.folder)
        if "graph" in options.parts:
            with _part(report, "graph"), stack.other_database("graph") as url:
                say(f"a graph of {_LAYERS} layers of {options.width}")
                report.graph = measure_graph(url, count=_LAYERS, width=options.width)
        if set(options.parts) - {"graph"}:
            stack.start_services()
            _measure_services(options, report, say, stack, connection)
        say("ending every process")


def _measure_services(
    options: argparse.Namespace, report: Report, say: Say, stack: Stack, connection: psycopg.Connection
) -> None:
    say("a burst and some workflows to warm broker and services, not reported")
    measure_burst(stack, connection, stack.meter(connection), _WARM_RUNS, kind="warm-up")
    measure_wide(stack, connection, workflows=_WARM_WORKFLOWS, tasks=100, plain=None, namespace="bench-warm")
    if "wide" in options.parts:
        with _part(report, "wide"):
            plain = None
            if not options.without_plain:
                say(f"{options.workflows * options.tasks:,} one-time jobs due at one instant")
                plain = measure_plain(stack, connection, options.workflows * options.tasks)
            say(f"{options.workflows:,} workflows of {options.tasks} tasks due at one instant")
            report.wide = measure_wide(
                stack, connection, workflows=options.workflows, tasks=options.tasks, plain=plain
            )
    if "hop" in options.parts:
        with _part(report, "hop"):
            say(f"{options.rate:g} chains of {_CHAIN} tasks due per second")
            report.hop = measure_hop(
                stack, connection, rate=options.rate, seconds=options.seconds, tasks=_CHAIN
            )
    if "idle" in options.parts:
        with _part(report, "idle"):
            say(f"{options.open:,} workflows that wait")
            report.idle = measure_idle_workflows(
                stack, connection, workflows=options.open, seconds=_IDLE_SECONDS
            )


@contextlib.contextmanager
def _part(report: Report, name: str) -> Iterator[None]:
    """Keep what a part failed with and let the others go on."""
    try:
        yield
    except _PART_ERRORS as error:
        report.failed[name] = f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _turn(lock: Path | None) -> Iterator[None]:
    """Hold a lock file, if one is named, so that measurements on one machine do not overlap."""
    if lock is None:
        yield
        return
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.workflows",
        description="Measures workflows on this machine, with a Postgres and a Kafka of its own.",
    )
    add = parser.add_argument
    add("--parts", type=_parts, default=PARTS, metavar="A,B", help=f"only these of {', '.join(PARTS)}")
    add("--json", metavar="FILE", type=Path, help="also write every figure to this file")
    add("--workflows", type=positive, default=1000, help="of the part wide (default %(default)s)")
    add("--tasks", type=positive, default=100, help="of each of them (default %(default)s)")
    add("--without-plain", action="store_true", help="leave out the plain burst of the part wide")
    add("--rate", type=float, default=200.0, help="chains per second of the part hop (default %(default)g)")
    add("--seconds", type=float, default=8.0, help="how long they come due (default %(default)g)")
    add(
        "--width", type=positive, default=100, help="tasks of a layer of the part graph (default %(default)s)"
    )
    add("--open", type=positive, default=10_000, help="workflows of the part idle (default %(default)s)")
    add("--set", type=setting, action="append", default=[], metavar="NAME=VALUE", help="change a setting")
    add("--dir", type=Path, help="folder for the data (default: the temporary one)")
    add("--lock", type=Path, metavar="FILE", help="hold a lock on this file while measuring")
    add(
        "--against",
        type=Path,
        metavar="FOLDER",
        help="instead of all parts: bursts of one-time jobs of this checkout and that one in turns",
    )
    add("--size", type=positive, default=100_000, help="jobs of such a burst (default %(default)s)")
    add("--pairs", type=positive, default=3, help="turns of each checkout (default %(default)s)")
    return parser


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if unknown := [part for part in parts if part not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part is called {', '.join(unknown)}; known: {', '.join(PARTS)}")
    return parts


if __name__ == "__main__":
    sys.exit(main())
