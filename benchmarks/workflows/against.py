"""The plain path of two checkouts: the same burst of one-time runs in turns, each with servers of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Final

from benchmarks.stack import ROOT, BenchmarkError
from benchmarks.workflows.figures import Against, Turn

THIS: Final = "this"
OTHER: Final = "other"
_TURN_SECONDS: Final = 300.0
_GRACE_SECONDS: Final = 30.0


def order(pairs: int) -> list[str]:
    """Return whose turn it is: pairs whose order alternates, and at the end this checkout twice."""
    turns = [(THIS, OTHER) if pair % 2 else (OTHER, THIS) for pair in range(pairs)]
    return [which for pair in turns for which in pair] + [THIS, THIS]


def measure_against(
    other: Path,
    runs: int,
    pairs: int,
    say: Callable[[str], None],
    turn: Callable[[], AbstractContextManager[None]],
) -> Against:
    """Run the burst of both checkouts in turns.

    Args:
        other: the other checkout.
        runs: of a burst.
        pairs: how many turns each has.
        say: receives one line about each turn.
        turn: is entered for each turn.
    """
    turns: list[Turn] = []
    for place, which in enumerate(order(pairs), 1):
        with turn():
            say(f"turn {place} of {2 * pairs + 2}: {runs:,} one-time jobs, {which} checkout")
            turns.append(_burst(which, ROOT if which == THIS else other, runs))
        last = turns[-1]
        say(f"  {last.cpu_us_per_run} µs and {last.wal_bytes_per_run} bytes of WAL per run")
    return compared(str(other), runs, turns)


def compared(folder: str, runs: int, turns: Sequence[Turn]) -> Against:
    """Return medians of the ratios within pairs, this over the other, and the ratio of the last pair."""
    *paired, first, second = turns
    ratios = [
        (mine.cpu_us_per_run / its.cpu_us_per_run, mine.wal_bytes_per_run / its.wal_bytes_per_run)
        for mine, its in _pairs(paired)
    ]
    return Against(
        folder=folder,
        runs=runs,
        turns=list(turns),
        cpu_ratio=round(statistics.median(cpu for cpu, _ in ratios), 4),
        wal_ratio=round(statistics.median(wal for _, wal in ratios), 4),
        same_cpu_ratio=round(second.cpu_us_per_run / first.cpu_us_per_run, 4),
        same_wal_ratio=round(second.wal_bytes_per_run / first.wal_bytes_per_run, 4),
    )


def _pairs(turns: Sequence[Turn]) -> Iterator[tuple[Turn, Turn]]:
    """Yield this checkout and the other of each pair."""
    for place, (one, two) in enumerate(pairwise(turns)):
        if place % 2 == 0:
            yield (one, two) if one.which == THIS else (two, one)


def _burst(which: str, folder: Path, runs: int) -> Turn:
    with tempfile.TemporaryDirectory(prefix="noonmark-turn-") as kept:
        file = Path(kept) / "report.json"
        command = [sys.executable, "-m", "benchmarks.run", "--parts", "burst", "--size", str(runs)]
        process = subprocess.Popen(
            [*command, "--json", str(file)],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _, errors = process.communicate(timeout=_TURN_SECONDS)
        finally:
            _end(process)
        if not file.exists():
            raise BenchmarkError(f"the burst of {folder} failed:\n{errors[-2000:]}")
        burst = json.loads(file.read_text(encoding="utf-8"))["burst"]
    if burst is None:
        raise BenchmarkError(f"the burst of {folder} was not measured:\n{errors[-2000:]}")
    return Turn(
        which,
        burst["cpu_us_per_run"],
        burst["wal_bytes_per_run"],
        burst["runs_per_s"],
        burst["other_cpu_percent"],
    )


def environment(folder: Path) -> dict[str, str]:
    """Return variables with which Python imports noonmark and the benchmark from a checkout."""
    houses = [folder / "shared" / name for name in ("internal", "sdk", "tools")]
    shared = [house for house in houses if house.is_dir()] or [folder / "shared"]
    roots = [folder, folder / "services", *shared, folder / "schemas"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}


def _end(process: subprocess.Popen[str]) -> None:
    """Let a benchmark that still runs end its own processes."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
