"""`python -m benchmarks.race`: measure every entrant on one stack, and write one table."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, TypeVar

import psycopg
from confluent_kafka import KafkaException

from benchmarks.bare.measure import measure_bare
from benchmarks.burst import measure_burst
from benchmarks.figures import OpenLoop, OtherWindow
from benchmarks.interrupts import interruptible
from benchmarks.machine import describe_machine
from benchmarks.open_loop import measure_open_loop
from benchmarks.plan import LATENESS_RATES, WARM_RUNS, WINDOWS
from benchmarks.race.installation import install, missing
from benchmarks.race.measure import measure_rival_burst, measure_rival_open_loop
from benchmarks.race.plan import RacePlan, race_plan_of
from benchmarks.race.results import Entry, Race
from benchmarks.race.rivals import RIVALS, Rival
from benchmarks.stack import BenchmarkError, Say, Stack
from benchmarks.yardsticks import measure_yardsticks, warm_broker
from noonmark.devstack.processes.errors import DevStackError

_WARM_RECORDS: Final = 500_000
_WARM_SECONDS: Final = 10.0
_RACE_WINDOWS: Final = tuple(window for window in WINDOWS if window[0] in LATENESS_RATES)

Window = TypeVar("Window", OpenLoop, OtherWindow)

# What a part may end with while the others continue.
_PART_ERRORS: Final = (
    BenchmarkError,
    DevStackError,
    KafkaException,
    psycopg.Error,
    OSError,
    subprocess.SubprocessError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a race, or install rivals.

    Returns:
        0 if every installed entrant was measured and ran every job; 1 otherwise; 130 when interrupted.
    """
    plan = race_plan_of(arguments)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    if plan.install:
        return _install(plan, say)
    race = Race(plan.size, datetime.now(UTC).isoformat(timespec="seconds"))
    try:
        with interruptible():
            _run(plan, race, say)
    except KeyboardInterrupt:
        print("interrupted; every process was ended", file=sys.stderr)
        return 130
    except _PART_ERRORS as error:
        print(f"the race was given up: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    race.seconds = round(time.monotonic() - began, 1)
    _write(plan, race)
    return 0 if all(entry.is_whole for entry in race.entries) else 1


def _install(plan: RacePlan, say: Say) -> int:
    failed = False
    for name in plan.install:
        try:
            install(RIVALS[name], plan.rivals_folder, say)
        except (BenchmarkError, OSError) as error:
            print(error, file=sys.stderr)
            failed = True
    return 1 if failed else 0


def _run(plan: RacePlan, race: Race, say: Say) -> None:
    with Stack(say, {}, plan.folder) as stack, stack.connect() as connection:
        race.machine = describe_machine(connection, stack.folder)
        say("warming the broker")
        warm_broker(stack, _WARM_RECORDS, limit_seconds=_WARM_SECONDS)
        say("yardsticks")
        race.yardsticks = measure_yardsticks(stack, connection, share=plan.share)
        for name in plan.entrants:
            if name == "bare":
                race.entries.append(_bare(stack, plan, say))
            elif name == "noonmark":
                race.entries.append(_noonmark(stack, connection, plan, say))
            else:
                race.entries.append(_rival(stack, RIVALS[name], plan, say))
        say("yardsticks once more")
        race.yardsticks_after = measure_yardsticks(stack, connection, share=plan.share)
        say("ending every process")


def _bare(stack: Stack, plan: RacePlan, say: Say) -> Entry:
    entry = Entry("bare design", history="kept", settings="1 process each of trigger, dispatcher and worker")
    with _part(entry, "bare design"):
        measured = measure_bare(stack, plan, say)
        entry.burst, entry.open_loops = measured.burst, measured.open_loops
    return entry


def _noonmark(stack: Stack, connection: psycopg.Connection, plan: RacePlan, say: Say) -> Entry:
    entry = Entry("noonmark", "kept", "1 process of each service, the shipped defaults", version("noonmark"))
    with _part(entry, "services"):
        stack.start_services()
        try:
            meter = stack.meter(connection)
            say("noonmark: a burst to warm it, not reported")
            measure_burst(stack, connection, meter, plan.scaled(WARM_RUNS), kind="warm-up")
            with _part(entry, "burst"):
                say(f"noonmark: {plan.size:,} jobs due at one instant")
                entry.burst = measure_burst(stack, connection, meter, plan.size, kind="one-time")
            entry.open_loops = _open_loops(
                entry,
                plan,
                say,
                lambda rate, seconds: measure_open_loop(stack, connection, meter, rate=rate, seconds=seconds),
            )
        finally:
            stack.stop_services()
    return entry


def _rival(stack: Stack, rival: Rival, plan: RacePlan, say: Say) -> Entry:
    entry = Entry(rival.name, rival.history, rival.settings, rival.version)
    entry.absent = missing(rival, plan.rivals_folder)
    if entry.absent is not None:
        say(f"{rival.name} takes no part: {entry.absent}")
        return entry
    installed = plan.rivals_folder / rival.name
    with _part(entry, "burst"):
        say(f"{rival.name}: {plan.size:,} jobs due at one instant")
        entry.burst = measure_rival_burst(stack, rival, installed, plan.size)
    entry.open_loops = _open_loops(
        entry,
        plan,
        say,
        lambda rate, seconds: measure_rival_open_loop(stack, rival, installed, rate=rate, seconds=seconds),
    )
    return entry


def _open_loops(
    entry: Entry, plan: RacePlan, say: Say, measure: Callable[[float, float], Window]
) -> list[Window]:
    """Measure the open loop at each rate; `measure` gets the rate and the seconds."""
    found: list[Window] = []
    for rate, seconds in _RACE_WINDOWS:
        with _part(entry, f"open loop at {rate:,.0f}/s"):
            say(f"{entry.name}: {rate:,.0f} jobs due per second")
            found.append(measure(rate, plan.window(seconds)))
    return found


@contextlib.contextmanager
def _part(entry: Entry, name: str) -> Iterator[None]:
    """Keep the reason if a part fails, and let the others continue."""
    try:
        yield
    except _PART_ERRORS as error:
        entry.failed[name] = f"{type(error).__name__}: {error}"


def _write(plan: RacePlan, race: Race) -> None:
    table = race.as_markdown()
    print(table, end="")
    if plan.markdown_file is not None:
        plan.markdown_file.write_text(table, encoding="utf-8")
    if plan.json_file is not None:
        plan.json_file.write_text(json.dumps(race.as_json(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
