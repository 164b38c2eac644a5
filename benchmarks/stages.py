"""The stages of a window: how many batches each part of the path ran, how large, how long, how far apart.

Claims, starts and records are counted in the ledger: all runs of one statement have the same instant. The
seconds of claims and relay rounds are those of the services' own histograms, with the wait for the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Final

import psycopg

from benchmarks.figures import Spread, Stage, mean_batch
from benchmarks.stack import Stack

_TIMED: Final = {
    "claim": ("trigger", "noonmark_claim_seconds"),
    "relay": ("dispatcher", "noonmark_relay_seconds"),
}
_COUNTED: Final = {
    "claim": ("queued_at", "scheduled_for"),
    "start": ("started_at", "queued_at"),
    "record": ("finished_at", "started_at"),
}
"""The column that a stage writes, and that of the stage before."""

STAGES: Final = ("claim", "relay", "start", "record")
"""In the order of a run."""

Timed = Mapping[str, tuple[float, float]]
"""Batches and their seconds of the stages that time themselves, since their process started."""


def read_timed(stack: Stack) -> Timed:
    """Read the histograms of claims and relay rounds; outside of windows, because the services answer."""
    return {
        stage: (stack.counter(service, f"{name}_count"), stack.counter(service, f"{name}_sum"))
        for stage, (service, name) in _TIMED.items()
    }


def stages_of(
    connection: psycopg.Connection, namespace: str, since: datetime, before: Timed, after: Timed
) -> dict[str, Stage]:
    """Return what each stage did for the runs of a namespace that were due since an instant.

    Args:
        connection: in autocommit.
        namespace: of the runs.
        since: the first due instant.
        before: histograms before the window.
        after: the same afterwards.
    """
    timed = {
        stage: (after[stage][0] - before[stage][0], after[stage][1] - before[stage][1]) for stage in _TIMED
    }
    stages = {}
    for stage, (written, last) in _COUNTED.items():
        waits, instants = _ledger(connection, written, last, namespace, since)
        stages[stage] = Stage(
            batches=len(instants),
            runs_per_batch=mean_batch(len(waits), len(instants)),
            batch_ms=_mean_ms(*timed[stage]) if stage in timed else None,
            wait_ms=Spread.of_seconds(waits),
            gap_ms=Spread.of_seconds(
                [(after - before).total_seconds() for before, after in pairwise(instants)]
            ),
        )
    rounds = round(timed["relay"][0])
    runs = stages["claim"].wait_ms.count if stages["claim"].wait_ms else 0
    stages["relay"] = Stage(rounds, mean_batch(runs, rounds), _mean_ms(*timed["relay"]), None, None)
    return {stage: stages[stage] for stage in STAGES}


def _ledger(
    connection: psycopg.Connection, written: str, last: str, namespace: str, since: datetime
) -> tuple[list[float], list[datetime]]:
    """Return the seconds between two instants of each run, and the different later ones in order."""
    rows = connection.execute(
        f"select extract(epoch from {written} - {last})::float8, {written} from runs"
        f" where namespace = %s and scheduled_for >= %s and {written} is not null",
        [namespace, since],
    ).fetchall()
    return [row[0] for row in rows], sorted({row[1] for row in rows})


def _mean_ms(batches: float, seconds: float) -> float | None:
    return round(1000 * seconds / batches, 3) if batches else None
