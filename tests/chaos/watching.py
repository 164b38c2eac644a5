"""Looks at a system in passing: runs as they move, pauses of jobs, processes that are left behind."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import datetime
from typing import Final

import psutil
import psycopg
from tests.support.cluster import Cluster
from tests.support.patience import Budget
from tests.support.publish import Load

from noonmark.verify.history import Child, Pause, Sighting

LOOK_SECONDS = 0.25
LOG_VARIABLE = "NOONMARK_TEST_TARGET_LOG"


class Watch:
    """Reads the ledger of one namespace again and again, in a thread."""

    def __init__(self, dsn: str, namespace: str) -> None:
        self._dsn = dsn
        self._namespace = namespace
        self._last: dict[str, tuple[str, int]] = {}
        self._pauses: dict[tuple[str, datetime], datetime | None] = {}
        self._over = threading.Event()
        self.sightings: list[Sighting] = []
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    @property
    def pauses(self) -> list[Pause]:
        """Pauses that were seen."""
        return [Pause(job, since, until) for (job, since), until in self._pauses.items()]

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join(15)

    def _run(self) -> None:
        while not self._over.is_set():
            with suppress(psycopg.Error), psycopg.connect(self._dsn, autocommit=True) as connection:
                while not self._over.wait(LOOK_SECONDS):
                    self._look(connection)
            self._over.wait(LOOK_SECONDS)

    def _look(self, connection: psycopg.Connection) -> None:
        seen = connection.execute(
            "select id::text, state, fence from runs where namespace = %s", [self._namespace]
        ).fetchall()
        for run, state, fence in seen:
            if self._last.get(run) != (state, fence):
                self._last[run] = state, fence
                self.sightings.append(Sighting(run, state, fence))
        held = connection.execute(
            "select id::text, paused_at, resumed_at from jobs where namespace = %s"
            " and (paused_at is not null or resumed_at is not null)",
            [self._namespace],
        ).fetchall()
        for job, paused_at, resumed_at in held:
            if paused_at is not None:
                self._pauses.setdefault((job, paused_at), None)
            for (paused, since), until in list(self._pauses.items()):
                if paused == job and until is None and resumed_at is not None and resumed_at > since:
                    self._pauses[job, since] = resumed_at


def children(noonmark: Cluster) -> list[Child]:
    """Processes that work for a run now: handlers in processes, and scripts."""
    workers = {node.pid for node in noonmark.nodes if node.service == "worker" and node.alive}
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            environment = process.environ()
            run = environment.get("NOONMARK_RUN_ID")
            if run is None or environment.get("NOONMARK_TOPIC_PREFIX", noonmark.prefix) != noonmark.prefix:
                continue
            line = {parent.pid for parent in process.parents()}
            found.append(Child(process.pid, run, int(environment["NOONMARK_FENCE"]), bool(line & workers)))
    return found


def settled(check: object, within: float) -> float | None:
    """Seconds until something holds, which is looked at once at least; None where it did not in time.

    A look that a busy machine delays counts little of `within`; what is returned is the time that passed.
    """
    assert callable(check)
    begun, budget = time.monotonic(), Budget(within)
    while True:
        with suppress(psycopg.Error):
            if check():
                return time.monotonic() - begun
        budget.look()
        if budget.over:
            return None
        time.sleep(0.1)


class Rest:
    """Waits until a load is through and every offset is committed.

    Attributes:
        restless: what had not come to rest when it was last looked at, with its number.
    """

    NAMES: Final = {
        "jobs": "missing jobs",
        "timers": "timers",
        "unfinished": "unfinished runs",
        "outbox": "messages in the outbox",
        "batches": "start batches",
    }

    def __init__(self, noonmark: Cluster, load: Load) -> None:
        self._noonmark = noonmark
        self._load = load
        self.restless: dict[str, int] = {}

    def wait(self, within: float) -> float | None:
        """Seconds until all is at rest; None where it was not in time, and `restless` says what."""
        self.restless = {"databases that answer": 0}
        took = settled(self._is_through, within)
        lag = None if took is None else settled(self._has_no_lag, within - took)
        return None if took is None or lag is None else took + lag

    def _is_through(self) -> bool:
        # The plan does not say how many orders are refused; the lag shows that each event was handled.
        left = self._noonmark.unsettled(self._load)
        self.restless = {name: left[key] for key, name in self.NAMES.items() if key in left}
        return not self.restless

    def _has_no_lag(self) -> bool:
        lags = self._noonmark.lags()
        self.restless = {f"uncommitted records of {partition}": lag for partition, lag in lags.items()}
        return not lags
