"""Runs of every end, written by the statements that workers use, and a check of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World, outcome

from noonmark.cli.verify.findings import Report
from noonmark.cli.verify.pacing import Pacer
from noonmark.cli.verify.walk import LedgerCheck, Window
from noonmark.core.states import Lane, RunState
from noonmark.kafka.topics import Topics
from noonmark.store.claims.claims import claim_retries
from noonmark.store.database.connect import connect
from noonmark.store.runs import cancel, dead_letters, leases, worker_lease
from noonmark.store.runs.cancel import RunKey
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.runs.worker_lease import Identity
from noonmark.store.verify.reader import LedgerReader

PREFIX = "verified"
LATER = timedelta(minutes=10)


@dataclass(frozen=True)
class Ledger:
    """What was written: runs by what became of them."""

    world: World
    plain: UUID
    retried: UUID
    dead: UUID
    unknown: UUID
    cancelled: UUID
    lost: UUID
    redriven: UUID

    def check(self, **window: Any) -> Report:
        return check(self.world, **window)

    def broken(self, **window: Any) -> set[str]:
        return set(self.check(**window).counts)


def check(world: World, *, pacer: Pacer | None = None, **window: Any) -> Report:
    with connect(world.url, application="test", autocommit=True) as connection:
        given = Window(**window)
        reader = LedgerReader(connection, namespaces=given.namespaces)
        return LedgerCheck(reader, given, pacer or Pacer(1), Topics(PREFIX)).run()


def good_ledger(world: World) -> Ledger:
    """Write runs of every end, and relay what they announce; then time passes."""
    ledger = write_ledger(world)
    world.db.execute("delete from outbox")
    world.turn_clock(LATER)
    return ledger


def write_ledger(world: World) -> Ledger:
    """Write runs of every end; what they announce is in the outbox."""
    worker = world.worker(lease_seconds=3600)
    plain, retried, dead, redriven = (world.put_run() for _ in range(4))
    unknown = world.put_run(attempt=0)
    world.record(worker, [outcome(*world.start(worker, [plain]), result='"done"')])
    fail(world, worker, retried, RunState.RETRYING, retry_seconds=0.0)
    claim_retries(world.db, Lane.NORMAL, EVERY_SHARD, 10)
    (again,) = world.start(worker, [retried])
    world.record(worker, [outcome(again, fence=world.run(retried)["fence"])])
    fail(world, worker, dead, RunState.DEAD, reason="retries_exhausted")
    fail(world, worker, redriven, RunState.DEAD, reason="retries_exhausted")
    found = dead_letters.find(world.db, DeadSelection(runs=[redriven]))
    dead_letters.redrive(world.db, TOPICS, found, shards=SHARDS)
    (again,) = world.start(worker, [redriven])
    world.record(worker, [outcome(again, fence=world.run(redriven)["fence"])])
    fail(world, worker, unknown, RunState.UNKNOWN, reason="lost")
    cancelled = world.put_run()
    cancel.cancel(world.db, TOPICS, [RunKey(cancelled, world.run(cancelled)["scheduled_for"])], shards=SHARDS)
    lost = lose(world, worker)
    return Ledger(world, plain, retried, dead, unknown, cancelled, lost, redriven)


def fail(world: World, worker: Identity, run: UUID, state: RunState, **more: Any) -> None:
    """Start a run, and let its attempt fail."""
    (started,) = world.start(worker, [run])
    world.record(worker, [outcome(started, state, error="no luck", **more)])


def lose(world: World, other: Identity) -> UUID:
    """A run whose first worker was lost, and that another finished."""
    silent = world.worker()
    (started,) = world.started(silent)
    worker_lease.lapse(world.db, silent)
    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)
    (again,) = world.start(other, [started.id])
    world.record(other, [outcome(again, fence=world.run(started.id)["fence"])])
    return started.id
