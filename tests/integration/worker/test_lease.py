"""The lease and its heartbeat process: slow starts, sudden ends, lapses."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.store.world import SHARDS, TOPICS, World

from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.database.connect import connect
from noonmark.store.runs import leases
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import REGISTRY
from noonmark.worker.leases.lease import Lease
from noonmark.worker.leases.shared_attempts import SharedAttempts

LEASE_SECONDS = 2.0
SLOW_START_SECONDS = 5.0
"""Longer than the lease, as on a machine where processes start slowly."""

SLOW = f"""
import os, sys, time
if "noonmark.worker.leases.heartbeat" in sys.orig_argv and not os.path.exists({{flag!r}}):
    time.sleep({SLOW_START_SECONDS})
"""


class Trigger:
    """Passes over the leases in a thread of its own, as a trigger's loop does; remembers who lapsed."""

    def __init__(self, url: str) -> None:
        self.lapsed = 0
        self._over = threading.Event()
        self._url = url
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with connect(self._url, application="test", autocommit=True) as connection:
            while not self._over.wait(0.1):
                self.lapsed += leases.run_pass(connection, TOPICS, shards=SHARDS, gap_seconds=60).lapsed

    def close(self) -> None:
        self._over.set()
        self._thread.join(30)


@pytest.fixture
def trigger(world: World) -> Iterator[Trigger]:
    trigger = Trigger(world.url)
    yield trigger
    trigger.close()


@pytest.fixture
def fast_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Heartbeat processes start slowly until this file exists."""
    flag = tmp_path / "fast"
    (tmp_path / "sitecustomize.py").write_text(SLOW.format(flag=str(flag)))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    return flag


@pytest.fixture
def lease(world: World) -> Iterator[Lease]:
    settings = Settings(database_url=world.url, lease_seconds=LEASE_SECONDS, beat_seconds=0.2)
    service = Service("worker", settings, Health(), threading.Event(), get_logger())
    signals, written = os.pipe()
    lease = Lease(service, "default", SharedAttempts(8), TOPICS, shards=SHARDS, signals_fd=signals)
    yield lease
    lease.close()
    os.close(signals)
    os.close(written)


def wait(condition: Callable[[], object], seconds: float = 40.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def take(world: World, lease: Lease) -> None:
    wait(lambda: lease.take(world.db, "{}"))
    wait(lambda: not lease.problem())


def heartbeats(lease: Lease) -> list[int]:
    """Process ids of the heartbeat processes of this test's worker."""
    return [lease._helper.pid] if lease._helper is not None else []


def test_a_heartbeat_process_that_starts_slower_than_a_lease_lasts_loses_none(
    world: World, lease: Lease, trigger: Trigger, fast_start: Path
) -> None:
    lease.start_heartbeat()
    assert not lease.take(world.db, "{}")
    assert lease.problem() == "the heartbeat process has not started yet"
    assert world.column("select count(*) from workers") == [0]

    take(world, lease)
    began = time.monotonic()
    wait(lambda: time.monotonic() - began > 2 * LEASE_SECONDS)

    assert world.column("select lapsed_at from workers") == [None]
    assert trigger.lapsed == 0


def test_the_lease_survives_the_end_of_its_heartbeat_process_although_the_next_one_starts_slowly(
    world: World, lease: Lease, trigger: Trigger, fast_start: Path
) -> None:
    fast_start.touch()
    lease.start_heartbeat()
    take(world, lease)
    first = heartbeats(lease)
    fast_start.unlink()

    os.kill(first[0], signal.SIGKILL)
    wait(lambda: heartbeats(lease) != first)
    wait(lambda: lease._is_ready)
    assert not lease.problem()

    assert not lease.lost.is_set()
    assert trigger.lapsed == 0
    assert world.column("select count(*) from workers") == [1]


def test_a_heartbeat_process_that_dies_before_there_is_a_lease_loses_none(
    world: World, lease: Lease, fast_start: Path
) -> None:
    fast_start.touch()
    for _ in range(3):
        if not heartbeats(lease):
            lease.start_heartbeat()
        (first,) = heartbeats(lease)
        os.kill(first, signal.SIGKILL)
        wait(lambda first=first: heartbeats(lease) not in ([], [first]))
        lease._is_ready = False  # so that this thread's heartbeats meanwhile are not over at once
    wait(lambda: lease._is_ready)

    assert not lease.lost.is_set()
    assert not lease._lapses
    take(world, lease)


def test_a_lock_on_the_row_of_a_worker_is_named_as_the_reason_of_a_missing_heartbeat(
    world: World, lease: Lease, capfd: pytest.CaptureFixture[str]
) -> None:
    lease.start_heartbeat()
    take(world, lease)
    said = ""

    def is_named() -> bool:
        nonlocal said
        said += capfd.readouterr().out
        return "another session has locked this worker's row of `workers`" in said

    other = world.another()
    with other.transaction():
        other.execute("select from workers for update")
        wait(is_named)
    wait(lambda: lease.age_seconds() < 1.0)


def test_nothing_is_started_before_the_first_heartbeat_of_a_lease(world: World, lease: Lease) -> None:
    lease.start_heartbeat()
    wait(lambda: lease._is_ready)
    os.kill(heartbeats(lease)[0], signal.SIGSTOP)
    try:
        assert lease.take(world.db, "{}")
        assert lease.problem() == "the lease has no heartbeat yet"
    finally:
        os.kill(heartbeats(lease)[0], signal.SIGCONT)
    wait(lambda: not lease.problem())


def test_late_heartbeats_stop_the_starts_before_the_lease_can_lapse(world: World, lease: Lease) -> None:
    lease.start_heartbeat()
    take(world, lease)
    seen_in_time = False
    until = time.monotonic() + 120
    while not seen_in_time:  # again if this test got no CPU in the moments that it is about
        assert time.monotonic() < until, "the heartbeats were never late before the lease could lapse"
        os.kill(heartbeats(lease)[0], signal.SIGSTOP)
        try:
            wait(lambda: lease.problem() == "the heartbeats of the lease are late")
            seen_in_time = lease.age_seconds() < LEASE_SECONDS
        finally:
            os.kill(heartbeats(lease)[0], signal.SIGCONT)
        wait(lambda: not lease.problem())


def test_the_age_of_a_heartbeat_counts_from_its_statement_and_not_from_its_late_report(
    world: World, lease: Lease
) -> None:
    age = "select extract(epoch from noonmark_now() - beat_at)::float8 from workers"
    lease.start_heartbeat()
    take(world, lease)
    helper = heartbeats(lease)[0]
    with lease._lock:
        # The worker records no report meanwhile, as one that gets no CPU.
        for _ in range(2):  # the second statement says that the first one's report is written
            sent = world.column("select beat_at from workers")
            wait(lambda sent=sent: world.column("select beat_at from workers") != sent)
        os.kill(helper, signal.SIGSTOP)
        wait(lambda: world.column(age)[0] > LEASE_SECONDS)
        before = lease._beaten_at
    try:
        wait(lambda: lease._beaten_at > before)
        assert lease.age_seconds() > LEASE_SECONDS * 0.9
        assert lease.problem() == "the heartbeats of the lease are late"
    finally:
        os.kill(helper, signal.SIGCONT)
    wait(lambda: not lease.problem())


def test_a_lease_is_not_live_as_soon_as_it_may_be_over_although_no_report_says_so(
    world: World, lease: Lease
) -> None:
    lease.start_heartbeat()
    assert not lease.is_live()
    take(world, lease)
    assert lease.is_live()
    os.kill(heartbeats(lease)[0], signal.SIGSTOP)
    try:
        wait(lambda: not lease.is_live())
        assert lease.age_seconds() >= LEASE_SECONDS
        assert not lease.lost.is_set()
    finally:
        os.kill(heartbeats(lease)[0], signal.SIGCONT)
    wait(lease.is_live)

    world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1")
    wait(lease.lost.is_set)
    assert not lease.is_live()


def test_one_process_renews_one_lease_after_the_other(world: World, lease: Lease) -> None:
    lease.start_heartbeat()
    take(world, lease)
    pids = heartbeats(lease)
    for _ in range(2):
        world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1 where lapsed_at is null")
        wait(lease.lost.is_set)
        lease.forget()
        taken_at = time.monotonic()
        assert lease.take(world.db, "{}")
        wait(lambda: lease._is_renewed)

    assert heartbeats(lease) == pids
    assert world.column("select count(*) from workers where lapsed_at is null") == [1]
    # The second lapse within a short time: the third lease must last before anything is started under it.
    keep_until, lease._keep_until = lease._keep_until, math.inf  # it may be over when this test gets to look
    assert keep_until >= taken_at + LEASE_SECONDS
    wait(lambda: lease.problem().startswith("the lease was lost repeatedly"))
    lease._keep_until = keep_until
    wait(lambda: not lease.problem())
    assert not lease.lost.is_set()


def test_a_heartbeat_that_hangs_is_seen_to_age(world: World, lease: Lease) -> None:
    lease.start_heartbeat()
    take(world, lease)
    (helper,) = heartbeats(lease)

    def age() -> float:
        lease._service.health.expose()
        return REGISTRY.get_sample_value("noonmark_heartbeat_age_seconds") or 0.0

    wait(lambda: 0 < age() < 1)
    # It waits for Postgres, as far as anyone can see: it says nothing, and does not end.
    os.kill(helper, signal.SIGSTOP)
    wait(lambda: age() > 2 * LEASE_SECONDS)
    os.kill(helper, signal.SIGCONT)
    wait(lambda: age() < 1)
