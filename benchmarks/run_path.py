"""`python -m benchmarks.run_path`: the functions of noonmark between a submission and its recorded verdict.

Starts a stack, publishes the submission of one `python` job that is due in a second, and lists the files
of noonmark in which a function was entered until the verdict was recorded and its event was relayed: per
service, in the order of the first call. `--tree DIR` measures another working copy, such as one of an
older release.

Definitions:

- A *station* is a function or method of noonmark (by file and qualified name) that was entered or resumed
  in every measured window and in no idle window. A warm-up job runs first, so that neither imports nor
  first uses count. Lambdas and comprehensions are parts of their functions.
- A *file* is on the path if it has a station.
- An idle window is as long as a measured one; loops that poll without work are subtracted with it.

Only the processes of intake, trigger, dispatcher and worker are recorded, not the helpers that the worker
starts (heartbeat, child processes). Functions are recorded with `sys.setprofile`, so no time is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
from confluent_kafka import Producer

from benchmarks.load import Load, at_once, database_now, document
from benchmarks.stack import ROOT, BenchmarkError, Stack, wait_for, wait_for_empty_outbox
from noonmark.core.ids import uuid7_batch
from noonmark.kafka.config import KafkaConfig
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, render_structured
from noonmark.schemas.events.submissions import CREATE

SERVICES: Final = ("intake", "trigger", "dispatcher", "worker")
_RECORDING: Final = ROOT / "benchmarks" / "recording"
_NAMESPACE: Final = "run-path"
_SOURCE: Final = "/benchmark/run-path"
_DUE_SECONDS: Final = 1.0
_SWITCH_SECONDS: Final = 10.0

Calls = dict[tuple[str, str], float]
"""Files and qualified names of functions, each with the time of its first call."""


@dataclass(frozen=True, slots=True)
class FileOnPath:
    """A file with at least one station.

    Attributes:
        file: path from the root of the tree.
        lines: of the whole file.
        stations: qualified names of the functions, in the order of their first call.
    """

    file: str
    lines: int
    stations: list[str]


class Windows:
    """Begins windows in the recorders of the services, and collects what they wrote."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self._folder, self._tree = folder, tree
        self._number = 0

    def begin(self) -> int:
        """End the last window and begin another; return its number once every service records into it."""
        self._number += 1
        written = self._folder / "window.part"
        written.write_text(str(self._number), encoding="utf-8")
        written.rename(self._folder / "window")
        for service in SERVICES:
            self._wait_for(self._folder / f"{service}-{self._number}.begun")
        return self._number

    def calls(self, window: int) -> dict[str, Calls]:
        """Return the calls of a window that has ended, by service."""
        found = {}
        for service in SERVICES:
            file = self._folder / f"{service}-{window}.json"
            self._wait_for(file)
            found[service] = {
                (str(Path(call["file"]).relative_to(self._tree)), call["function"]): call["at"]
                for call in json.loads(file.read_text(encoding="utf-8"))
            }
        return found

    @staticmethod
    def _wait_for(file: Path) -> None:
        give_up_at = time.monotonic() + _SWITCH_SECONDS
        while not file.exists():
            if time.monotonic() > give_up_at:
                raise BenchmarkError(f"a service did not write {file.name} within {_SWITCH_SECONDS:.0f} s")
            time.sleep(0.02)


def stations(runs: Sequence[Calls], idle: Sequence[Calls]) -> list[tuple[str, str]]:
    """Return what every run entered and no idle window did, in the order of the first run."""
    common = set.intersection(*(set(calls) for calls in runs)).difference(*idle)
    return sorted(common, key=lambda station: runs[0][station])


def files_on_path(found: Sequence[tuple[str, str]], tree: Path) -> list[FileOnPath]:
    """Group stations by file, in the order of the first call."""
    by_file: dict[str, list[str]] = {}
    for file, function in found:
        by_file.setdefault(file, []).append(function)
    return [
        FileOnPath(file, len((tree / file).read_text(encoding="utf-8").splitlines()), functions)
        for file, functions in by_file.items()
    ]


def measure(
    stack: Stack, connection: psycopg.Connection, windows: Windows, *, runs: int, seconds: float
) -> tuple[dict[str, list[Calls]], dict[str, list[Calls]]]:
    """Record idle windows and windows with one run each; return the calls of both, by service."""
    numbers: dict[bool, list[int]] = {True: [], False: []}
    for index in range(runs):
        # The order changes from pair to pair, so that nothing periodic meets only windows with a run.
        for has_run in (False, True) if index % 2 == 0 else (True, False):
            numbers[has_run].append(windows.begin())
            until = time.monotonic() + seconds
            if has_run:
                run_one(stack, connection, f"measured-{index}")
                if time.monotonic() > until:
                    raise BenchmarkError("the run took longer than the window; raise --window")
            time.sleep(max(0.0, until - time.monotonic()))
    windows.begin()
    both = []
    for has_run in (True, False):
        calls = [windows.calls(number) for number in numbers[has_run]]
        both.append({service: [one[service] for one in calls] for service in SERVICES})
    return both[0], both[1]


def run_one(stack: Stack, connection: psycopg.Connection, name: str) -> None:
    """Publish one job, and wait until its run has a verdict and its event was relayed.

    Raises:
        BenchmarkError: the run did not succeed in time.
    """
    due = database_now(connection) + timedelta(seconds=_DUE_SECONDS)
    data = document(Load(_NAMESPACE, at_once(1)), name, due)
    event_id = str(next(iter(uuid7_batch(1))))
    value = render_structured(id=event_id, source=_SOURCE, type=CREATE, data=data)
    producer = Producer(KafkaConfig(stack.bootstrap).client(client_id="benchmark", enable_idempotence=True))
    headers: Any = list(STRUCTURED_HEADERS)
    producer.produce(stack.topics.submissions, value, f"{_NAMESPACE}/{name}".encode(), headers=headers)
    producer.flush(_SWITCH_SECONDS)

    def succeeded() -> float:
        row = connection.execute(
            "select count(*) from runs r join jobs j on j.id = r.job_id"
            " where j.namespace = %s and j.name = %s and r.state = 'succeeded'",
            [_NAMESPACE, name],
        ).fetchone()
        return float(row[0]) if row else 0.0

    if not wait_for(succeeded, 1, timeout_seconds=20, interval_seconds=0.05):
        stack.require_services()
        raise BenchmarkError(f"the run of {name} did not succeed")
    if not wait_for_empty_outbox(connection):
        raise BenchmarkError(f"the event about the run of {name} was not relayed")


def report(runs: dict[str, list[Calls]], idle: dict[str, list[Calls]], tree: Path) -> dict[str, Any]:
    """Return files, lines and stations, by service and in total; a file that two services use counts once."""
    by_service = {
        service: files_on_path(stations(runs[service], idle[service]), tree) for service in SERVICES
    }
    every = {file.file: file.lines for files in by_service.values() for file in files}
    distinct = {(one.file, name) for files in by_service.values() for one in files for name in one.stations}
    return {
        "tree": str(tree),
        "services": {
            service: {
                **counts({file.file: file.lines for file in files}, sum(len(one.stations) for one in files)),
                "path": [asdict(file) for file in files],
            }
            for service, files in by_service.items()
        },
        "total": counts(every, len(distinct)),
    }


def counts(lines: Mapping[str, int], stations_entered: int) -> dict[str, int]:
    """Return the three figures of a service or of the whole path."""
    return {"files": len(lines), "lines": sum(lines.values()), "stations": stations_entered}


def show(found: dict[str, Any]) -> None:
    """Print the tables."""
    for service, one in found["services"].items():
        print(f"\n{service}: {one['files']} files, {one['lines']} lines, {one['stations']} stations")
        for file in one["path"]:
            print(f"  {file['lines']:5d}  {len(file['stations']):3d}  {file['file']}")
    print(f"\n{'service':<12}{'files':>7}{'lines':>8}{'stations':>10}")
    for service, one in [*found["services"].items(), ("total", found["total"])]:
        print(f"{service:<12}{one['files']:>7}{one['lines']:>8}{one['stations']:>10}")


def environment(tree: Path, folder: Path) -> dict[str, str]:
    """Return variables with which services load the tree and record themselves."""
    houses = [tree / "shared" / name for name in ("internal", "sdk", "tools")]
    shared = [house for house in houses if house.is_dir()] or [tree / "shared"]
    roots = [_RECORDING, tree / "services", *shared, tree / "schemas"]
    return {
        "PYTHONPATH": os.pathsep.join(str(root) for root in roots),
        "RUN_PATH_TREE": str(tree),
        "RUN_PATH_FOLDER": str(folder),
        "RUN_PATH_SERVICES": " ".join(SERVICES),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run_path",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tree", type=Path, default=ROOT, help="working copy to measure (this one)")
    parser.add_argument("--runs", type=int, default=3, help="measured runs, and idle windows (3)")
    parser.add_argument("--window", type=float, default=8.0, help="length of a window in seconds (8)")
    parser.add_argument("--json", action="store_true", help="print JSON with every station instead of tables")
    options = parser.parse_args(arguments)
    tree = options.tree.resolve()
    if not (tree / "services" / "noonmark").is_dir():
        parser.error(f"{tree} is not a working copy of noonmark: it has no services/noonmark")
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", file=sys.stderr, flush=True)

    with (
        tempfile.TemporaryDirectory(prefix="noonmark-run-path-") as name,
        Stack(say, environment(tree, Path(name))) as stack,
        stack.connect() as connection,
    ):
        stack.start_services()
        windows = Windows(Path(name), tree)
        say("warming up")
        run_one(stack, connection, "warm-up")
        say(f"measuring {options.runs} runs in windows of {options.window:g} s")
        runs, idle = measure(stack, connection, windows, runs=options.runs, seconds=options.window)
        say("stopping every process")
    found = report(runs, idle, tree)
    if options.json:
        json.dump(found, sys.stdout, indent=2)
        print()
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
