"""The real intake and trigger code on a real Postgres whose clock a test sets.

`noonmark_now()` reads a setting of the session, so every session sees exactly the time it was given, and one that
was given none fails instead of reading the host's clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from tests.support.stack import Postgres
from tests.support.virtual_clock import install_clock, tell_time

from noonmark.schemas.events.envelope import parse_event, render_structured
from noonmark.schemas.events.submissions import parse_submission
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.cluster.members import Membership
from noonmark.store.database.connect import connect
from noonmark.store.database.hints import HintSender
from noonmark.store.jobs.submit import EventRef, FactCache, Request, Status, accept
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.schedules.time_facts import read_time_facts
from noonmark.telemetry.logs import get_logger
from noonmark.trigger.claim_loop import ClaimLoop

TOPICS = EventTopics(lifecycle="t.lifecycle", dead="t.dead")
NAMESPACE = "virtual"

_KEPT = ("alembic_version", "audit_log", "install", "pools", "pool_keys", "zone_data")


@contextmanager
def system_of(server: Postgres, template: str, start: datetime) -> Iterator[System]:
    """Open a system on a database of its own, for the tests of a module to take turns in."""
    name = f"virtual_{uuid4().hex[:12]}"
    server.run(f"create database {name} template {template}")
    system = System(server.url_of(name), start)
    try:
        yield system
    finally:
        system.close()
        server.run(f"drop database {name} with (force)")


class Trigger:
    """One trigger process: the claim loop with a membership, a planner and a session of its own."""

    def __init__(self, url: str, shards: int, **settings: Any) -> None:
        service = Service(
            "trigger",
            Settings(database_url=url, claim_pause_ms=0, **settings),
            Health(),
            threading.Event(),
            get_logger(),
        )
        self._hints = HintSender(url)
        self.membership = Membership("trigger", shards=shards, timeout_seconds=3.0)
        self.connection = connect(url, application="trigger", autocommit=True)
        self.loop = ClaimLoop(service, self.membership, TOPICS, self._hints, shards=shards)

    def pass_once(self) -> bool:
        """Go through the claim loop once; tell whether there may be more to do at this moment."""
        return self.loop.run_once(self.connection) == 0.0

    def close(self, *, leave: bool = False) -> None:
        """End it: as if killed, or handing over its shards first."""
        if leave:
            self.membership.leave(self.connection)
        self._hints.close()
        self.connection.close()


class System:
    """A database with a virtual clock, an intake, and the triggers that a test starts."""

    def __init__(self, url: str, start: datetime) -> None:
        self.url = url
        self.now = start
        self.db = connect(url, application="virtual", autocommit=True)
        install_clock(self.db)
        self.shards: int = self.value("select shards from install")
        self.triggers: list[Trigger] = []
        self.claiming: Trigger | None = None
        self.told = 0
        self._known = FactCache()
        self.turn_to(start)

    def close(self) -> None:
        """Close every session."""
        for trigger in self.triggers:
            trigger.close()
        self.db.close()

    def empty(self, at: datetime) -> None:
        """Forget all jobs and runs, keep the ledger's days, and turn the clock to `at`."""
        tables = self.column(
            "select tablename from pg_tables where schemaname = 'public' and tablename !~ '^runs_'"
            " and tablename <> all (%s)",
            list(_KEPT),
        )
        self.db.execute("; ".join(f"delete from {table}" for table in tables))
        self._known = FactCache()
        self.turn_to(at)

    # time

    def turn_to(self, at: datetime) -> None:
        """Let every session see this time."""
        self.now = at
        for connection in (self.db, *(trigger.connection for trigger in self.triggers)):
            tell_time(connection, self.now)

    # triggers

    def start_trigger(self, **settings: Any) -> Trigger:
        """Start a trigger; it owns shards from its first beat on."""
        trigger = Trigger(self.url, self.shards, **settings)
        tell_time(trigger.connection, self.now)
        self.triggers.append(trigger)
        return trigger

    def stop_trigger(self, trigger: Trigger, *, leave: bool = False) -> None:
        """End a trigger."""
        self.triggers.remove(trigger)
        trigger.close(leave=leave)

    def claim(self, *, until_idle: bool = True) -> int:
        """Let every trigger beat and claim at this moment; return the passes that claimed something."""
        passes = 0
        for trigger in self.triggers:
            self.claiming = trigger
            trigger.membership.beat(trigger.connection)
            while trigger.pass_once():
                passes += 1
                if not until_idle:
                    break
        self.relay()
        return passes

    def relay(self) -> None:
        """Take what the outbox holds, as a dispatcher would."""
        row = self.db.execute(
            "with gone as (delete from outbox returning run_id) select count(run_id) from gone"
        ).fetchone()
        self.told += row[0] if row else 0

    # intake

    def submit(self, kind: str, documents: Sequence[dict[str, Any]]) -> list[UUID]:
        """Take in events of one kind as intake does, in one batch; return the jobs' ids.

        Raises:
            AssertionError: one of them is not accepted.
        """
        with self.db.transaction():
            facts = read_time_facts(self.db)
            requests = []
            for document in documents:
                event = parse_event(
                    render_structured(
                        id=str(uuid4()), source="/tests", type=f"noonmark.job.{kind}.v1", sequence=None,
                        data=document,
                    ),
                    None,
                )  # fmt: skip
                submission = parse_submission(
                    event, now=self.now, ledger_floor=datetime(2000, 1, 1, tzinfo=UTC), facts=facts
                )
                requests.append(Request(submission, EventRef(event.source, event.id, event.sequence)))
            taken = accept(
                self.db, requests, shards=self.shards, topics=TOPICS, known=self._known, facts=facts
            )
        refused = [
            (document, result)
            for document, result in zip(documents, taken.results, strict=True)
            if result.status is not Status.ACCEPTED
        ]
        assert not refused, refused[:3]
        return [result.job_id for result in taken.results if result.job_id is not None]

    def create(self, name: str, schedule: object, **more: Any) -> UUID:
        """Make one job."""
        return self.submit("create", [job_document(name, schedule, **more)])[0]

    # what is there

    def value(self, query: str, *params: Any) -> Any:
        """Read one value."""
        row = self.db.execute(query, params).fetchone()
        assert row is not None, query
        return row[0]

    def column(self, query: str, *params: Any) -> list[Any]:
        """Read one column."""
        return [row[0] for row in self.db.execute(query, params)]

    def next_at(self) -> datetime | None:
        """Return when the next timer after this moment fires."""
        at: datetime | None = self.value("select min(fire_at) from timers where fire_at > %s", self.now)
        return at


def job_document(name: str, schedule: object, **more: Any) -> dict[str, Any]:
    """Return the document of a Python job that may overlap itself: no worker ends its runs here."""
    return {
        "namespace": NAMESPACE,
        "name": name,
        "type": "python",
        "handler": "tests.noop",
        "schedule": schedule,
        "overlap": "allow",
        **more,
    }


def utc(text: str) -> datetime:
    """Read an instant such as 2026-03-08T07:00Z."""
    return datetime.fromisoformat(text).astimezone(UTC)
