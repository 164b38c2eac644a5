"""The file of a campaign: one JSON object a line, one line a seed, which a kill at any moment leaves readable."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from noonmark.verify import INVARIANTS

Record = dict[str, Any]

KINDS = {
    "killed: broker": "broker killed",
    "killed: backend of Postgres": "postgres backend killed",
    "killed: primary, with failover": "failover, primary killed",
    "stopped at once: Postgres": "postgres immediate stop",
    "paused": "pause",
    "starved": "starvation",
    "clock of a process set": "clock step",
    "clock of Postgres set ahead": "database clock ahead",
}
"""Faults that are shown even if there were none, and their names in a record."""


def read(file: Path) -> list[Record]:
    """Read all whole lines; what a kill left of the last one is not read.

    Raises:
        ValueError: a whole line is no JSON object: the file was changed by something else.
    """
    return [_parsed(line, number) for number, line in enumerate(_whole(file).splitlines(), start=1)]


def append(file: Path, record: Record) -> None:
    """Add a line, after dropping what a kill left of the last one; it is on the disk on return."""
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = len(_whole(file))
    with file.open("ab") as out:
        out.truncate(whole)
        out.write(json.dumps(record, sort_keys=True, default=str).encode() + b"\n")
        out.flush()
        os.fsync(out.fileno())


def hurt(records: Iterable[Record]) -> int:
    """Return the number of kills and pauses of a campaign."""
    return sum(record.get("kills", 0) + record.get("pauses", 0) for record in records)


def _whole(file: Path) -> bytes:
    data = file.read_bytes() if file.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def _parsed(line: bytes, number: int) -> Record:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"line {number} is not JSON: {error}") from None
    if not isinstance(record, dict) or "seed" not in record:
        raise ValueError(f"line {number} is not the record of a seed")
    return record


def summary(records: list[Record]) -> Iterator[str]:
    """Return a summary in Markdown, line by line."""
    judged = [record for record in records if "error" not in record]
    seeds = sorted(record["seed"] for record in records)
    commits = sorted({str(record.get("commit", "unknown")) for record in records})
    yield f"{len(seeds)} seed{'' if len(seeds) == 1 else 's'} ({_ranges(seeds)}), {_sum(judged, 'rounds')} rounds, commits {', '.join(commits)}."
    yield ""
    yield "| figure | number |"
    yield "|---|---|"
    yield f"| planned instants | {_sum(judged, 'planned')} |"
    yield f"| runs | {_sum(judged, 'runs')} |"
    yield f"| kills and pauses | {hurt(judged)} |"
    yield f"| rounds that did not settle | {_sum(judged, 'restless_rounds')} |"
    yield f"| seeds without a verdict | {len(records) - len(judged)} |"
    yield f"| findings | {_sum(judged, 'violations')} |"
    yield ""
    yield "| fault | number |"
    yield "|---|---|"
    for name, count in _faults(judged):
        yield f"| {name} | {count} |"
    yield ""
    yield from _releases(judged)
    yield "| rule | rounds judged | violations |"
    yield "|---|---|---|"
    rounds, violations = dict(_added(judged, "judged_rounds")), dict(_added(judged, "violated"))
    for item in INVARIANTS:
        shown = violations.get(item.id, 0) if rounds.get(item.id) else "not judged"
        yield f"| {item.id} {item.title} | {rounds.get(item.id, 0)} | {shown} |"
    yield from _findings(records)


def _faults(records: list[Record]) -> Iterator[tuple[str, int]]:
    """Kills by what was killed, then pauses, then the rest, by their names."""
    counts = dict(_added(records, "faults"))
    counts.pop("kill", None)
    yield from ((f"killed: {name}", count) for name, count in _added(records, "kills_by_service"))
    for shown, name in KINDS.items():
        yield shown, counts.pop(name, 0)
    yield from counts.items()


def _releases(records: list[Record]) -> Iterator[str]:
    """Processes of each release, if any record says of which they were."""
    if not (releases := _added(records, "releases")):
        return
    both = [record["seed"] for record in records if len(record.get("releases", {})) > 1]
    yield f"Seeds in which two releases ran side by side: {_ranges(sorted(both))}."
    yield ""
    yield "| release | processes started |"
    yield "|---|---|"
    for name, count in releases:
        yield f"| {name} | {count} |"
    yield ""


def _findings(records: list[Record]) -> Iterator[str]:
    """Findings of one kind in one round are one paragraph, which shows the first."""
    for record in sorted(records, key=lambda record: int(record["seed"])):
        if "error" in record:
            yield f"\nSeed {record['seed']} has no verdict: `{record['error']}`"
        kinds: dict[tuple[int, str, str], list[str]] = {}
        for found in record.get("findings", ()):
            kinds.setdefault((found["round"], found["invariant"], found["kind"]), []).append(found["what"])
        for (number, invariant, kind), said in kinds.items():
            more = f" {len(said)} findings, such as" if len(said) > 1 else ""
            yield f"\nSeed {record['seed']}, round {number}, {invariant} {kind}:{more} `{said[0][:600]}`"


def _sum(records: Iterable[Record], name: str) -> int:
    return sum(record.get(name, 0) for record in records)


def _added(records: Iterable[Record], name: str) -> list[tuple[str, int]]:
    added: dict[str, int] = {}
    for record in records:
        for key, count in record.get(name, {}).items():
            added[key] = added.get(key, 0) + count
    return sorted(added.items())


def _ranges(numbers: list[int]) -> str:
    """Write numbers as ranges: 1-3, 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts) or "none"
