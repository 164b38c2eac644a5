"""The figures of one run of `make bench`, as the model needs them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.fleet.machine import ModelError

SESSIONS: Final = {
    "claim": "noonmark-claim",
    "hint": "noonmark-hints",
    "relay": "noonmark-relay",
    "start": "noonmark-worker",
    "record": "noonmark-recorder",
}
"""Parts of the path that are sessions of Postgres, by `application_name`."""

_PROCESSES: Final = ("trigger", "dispatcher", "worker", "kafka")
_BATCHES: Final = {
    "trigger": ("claim",),
    "claim": ("claim",),
    "hint": ("claim",),
    "dispatcher": ("relay",),
    "relay": ("relay",),
    "kafka": ("relay",),
    "worker": ("start", "record"),
    "start": ("start",),
    "record": ("record",),
}
"""Stages whose batches a part serves; the worker serves two, and half of its cost belongs to each."""

BACKGROUND: Final = ("rest", "observer", "intake", "api")
"""What has no batches. `rest` is of Postgres: vacuum, events, the observer's statements, leases."""


@dataclass(frozen=True, slots=True)
class Window:
    """A measured burst or open loop.

    Attributes:
        rate: runs due per second; of a burst, runs done per second.
        cpu_us: per run, by part, `rest` of Postgres and background services among them.
        batches: per run, by part.
        other_cores: that the rest of the machine used.
        lateness_ms: p50 and p99 of the start.
        seconds: of the whole.
        claim_ms: mean time of a claim with its commit.
        relay_ms: mean time of a relay round.
    """

    runs: int
    rate: float
    seconds: float
    cpu_us: dict[str, float]
    batches: dict[str, float]
    wal_bytes: float
    messages: float
    other_cores: float
    lateness_ms: tuple[float, float]
    claim_ms: float
    relay_ms: float

    @property
    def total_us(self) -> float:
        """CPU of everything for each run."""
        return sum(self.cpu_us.values())


@dataclass(frozen=True, slots=True)
class Measured:
    """One report of the benchmark."""

    name: str
    machine: str
    cores: int
    burst: Window
    recurring: Window | None
    loops: dict[int, Window]
    commit_ms: tuple[float, float]
    trip_ms: tuple[float, float]
    stored_bytes: dict[str, float]
    recurring_stored_bytes: dict[str, float]
    submission_us: dict[str, float]
    idle_percent: float


def read_measured(file: Path) -> Measured:
    """Read the JSON of `make bench JSON=file`.

    Raises:
        ModelError: it is missing, is something else, is older than what the model needs, or lacks a part.
    """
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(
            f"{file} cannot be read ({error.strerror}): write it with `make bench JSON={file}`"
        ) from error
    except ValueError as error:
        raise ModelError(f"{file} is not JSON: {error}") from error
    if not isinstance(report, dict) or "yardsticks" not in report or "open_loops" not in report:
        raise ModelError(f"{file} is not a report of `make bench`")
    return measured_of(report, file.name)


def measured_of(report: Mapping[str, Any], name: str) -> Measured:
    """Take what the model needs from a report.

    Raises:
        ModelError: it was written by an older benchmark, or a part was not measured.
    """
    parts = {name: report.get(name) for name in ("burst", "idle")}
    loops = {round(loop["rate"]): loop for loop in report["open_loops"]}
    missing = [name for name, found in parts.items() if not found]
    missing += [f"open loop at {rate:,}/s" for rate in (1000, 5000) if rate not in loops]
    if missing:
        raise ModelError(
            f"{name} lacks {', '.join(missing)}: measure at least the parts idle, burst and open"
        )
    burst: Mapping[str, Any] = parts["burst"] or {}
    yardsticks = _mean_of(report["yardsticks"], report.get("yardsticks_after") or {})
    if "commit_p99_ms" not in yardsticks or not burst.get("stages") or not burst.get("stored_bytes_per_run"):
        raise ModelError(
            f"{name} is of an older benchmark, without batches, waits and stored bytes: measure again:"
            f" `make bench JSON={name}`"
        )
    facts, recurring, taken = report["machine"], report.get("recurring"), report.get("submissions") or {}
    return Measured(
        name=name,
        machine="{cores} cores, {cpu}, Postgres {postgres}, Kafka {kafka}".format_map(facts),
        cores=facts["cores"],
        burst=_burst(burst),
        recurring=_burst(recurring) if recurring else None,
        loops={rate: _open_loop(loop) for rate, loop in loops.items() if loop["lateness_ms"]},
        commit_ms=(yardsticks["commit_p50_ms"], yardsticks["commit_p99_ms"]),
        trip_ms=(yardsticks["trip_p50_ms"], yardsticks["trip_p99_ms"]),
        stored_bytes=burst["stored_bytes_per_run"],
        recurring_stored_bytes=(recurring or burst)["stored_bytes_per_run"],
        submission_us={kind: one["cpu_us_per_submission"] for kind, one in taken.items()},
        idle_percent=(parts["idle"] or {})["cpu_percent_all"],
    )


def _mean_of(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: (value + after.get(name, value)) / 2 for name, value in before.items()}


def _burst(burst: Mapping[str, Any]) -> Window:
    return _window(burst, burst["runs_per_s"], burst["seconds"], burst["start_ms"])


def _open_loop(loop: Mapping[str, Any]) -> Window:
    # Percent of one core, for each run.
    each = 1e4 * loop["seconds"] / loop["runs"]
    scaled = {
        **loop,
        "cpu_us_by_process": {name: value * each for name, value in loop["cpu_percent"].items()},
        "cpu_us_by_backend": {name: value * each for name, value in loop["cpu_percent_by_backend"].items()},
    }
    return _window(scaled, loop["rate"], loop["seconds"], loop["lateness_ms"])


def _window(raw: Mapping[str, Any], rate: float, seconds: float, late: Mapping[str, float]) -> Window:
    by_process, by_session = raw["cpu_us_by_process"], raw["cpu_us_by_backend"]
    cpu = {part: by_process.get(part, 0.0) for part in (*_PROCESSES, *BACKGROUND)}
    cpu |= {part: by_session.get(session, 0.0) for part, session in SESSIONS.items()}
    cpu["rest"] = max(0.0, by_process.get("postgres", 0.0) - sum(cpu[part] for part in SESSIONS))
    stages = raw["stages"]
    batches = {
        part: sum(stages[stage]["batches"] for stage in names) / len(names) / raw["runs"]
        for part, names in _BATCHES.items()
    }
    return Window(
        runs=raw["runs"],
        rate=rate,
        seconds=seconds,
        cpu_us=cpu,
        batches=batches,
        wal_bytes=raw["wal_bytes_per_run"],
        messages=sum(raw["messages"].values()) / raw["runs"],
        other_cores=raw["other_cpu_percent"] / 100,
        lateness_ms=(late["p50"], late["p99"]),
        claim_ms=stages["claim"]["batch_ms"],
        relay_ms=stages["relay"]["batch_ms"],
    )
