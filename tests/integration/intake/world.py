"""A database with the use-case code in front of it, and a worker that starts and ends runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import dict_row

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.schemas.events.envelope import parse_event, render_structured
from noonmark.schemas.events.submissions import parse_submission
from noonmark.store.database.connect import connect
from noonmark.store.database.row_types import StartedRun
from noonmark.store.jobs.submit import EventRef, FactCache, Request, Result, Taken, accept
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import finish, starts, worker_lease
from noonmark.store.schedules.time_facts import read_time_facts

TOPICS = EventTopics(lifecycle="t.lifecycle", dead="t.dead")
LATER = "2100-01-01T00:00:00Z"
SHARDS = 4


def event(
    kind: str, *, source: str = "/tests", event_id: str = "", sequence: int | None = None, **data: Any
) -> Request:
    """Build an event, and read it as intake does."""
    value = render_structured(
        id=event_id or str(uuid4()),
        source=source,
        type=f"noonmark.job.{kind}.v1",
        sequence=sequence,
        data=data,
    )
    parsed = parse_event(value, None)
    now = datetime.now(UTC)
    submission = parse_submission(parsed, now=now, ledger_floor=now - timedelta(days=30))
    return Request(submission, EventRef(parsed.source, parsed.id, parsed.sequence))


def create(**data: Any) -> Request:
    """Build a create of a one-time Python job unless `data` says otherwise."""
    return event("create", **{"type": "python", "handler": "tests.noop", **data})


def nightly(name: str = "nightly", **data: Any) -> Request:
    """Build a create of a recurring job."""
    return create(**{"name": name, "schedule": "0 3 * * *", **data})


@dataclass
class World:
    """One connection, one process's knowledge."""

    url: str
    connection: psycopg.Connection
    known: FactCache = field(default_factory=FactCache)
    _worker: worker_lease.Identity | None = None

    def take(self, *requests: Request) -> list[Result]:
        """Take requests in as one batch and commit."""
        return self.taken(*requests).results

    def taken(self, *requests: Request) -> Taken:
        """Take requests in as one batch and commit; return everything that is told."""
        with self.connection.transaction():
            facts = read_time_facts(self.connection)
            return accept(
                self.connection, requests, shards=SHARDS, topics=TOPICS, known=self.known, facts=facts
            )

    def one(self, request: Request) -> Result:
        """Take one request in."""
        return self.take(request)[0]

    def job_id(self, request: Request) -> UUID:
        """Make a job and return its id."""
        result = self.one(request)
        assert result.job_id is not None, result
        return result.job_id

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Read rows."""
        with self.connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, values).fetchall()

    def row(self, query: str, *values: object) -> dict[str, Any]:
        """Read the only row."""
        (row,) = self.rows(query, *values)
        return row

    def job(self, job_id: UUID) -> dict[str, Any]:
        """Read a job."""
        return self.row("select * from jobs where id = %s", job_id)

    def run(self, job_id: UUID) -> dict[str, Any]:
        """Read the only run of a job."""
        return self.row("select * from runs where job_id = %s", job_id)

    def timers(self, job_id: UUID) -> list[dict[str, Any]]:
        """Read the timers of a job."""
        return self.rows("select * from timers where job_id = %s order by kind, fire_at", job_id)

    def outbox(self, run_id: UUID) -> list[dict[str, Any]]:
        """Read the messages of a run that are not sent yet."""
        return self.rows("select * from outbox where run_id = %s", run_id)

    @property
    def worker(self) -> worker_lease.Identity:
        """A worker with a lease."""
        if self._worker is None:
            self._worker = worker_lease.register(
                self.connection, pool="default", host="here", pid=1, lease_seconds=60
            )
        return self._worker

    def start(self, job_id: UUID) -> StartedRun:
        """Let the worker start the queued run of a job."""
        run = self.row("select * from runs where job_id = %s and state = 'queued'", job_id)
        ticket = starts.StartRequest(run["id"], run["scheduled_for"], run["fence"])
        started, refused = starts.start(self.connection, self.worker, "default", [ticket])
        assert not refused
        return started[0]

    def end(self, run: StartedRun, state: RunState = RunState.SUCCEEDED, fence: int = 1) -> finish.Recorded:
        """Let the worker record how a run ended."""
        failed = state is not RunState.SUCCEEDED
        outcome = finish.Outcome(
            run,
            fence,
            state,
            AttemptOutcome.FAILED if failed else AttemptOutcome.SUCCEEDED,
            error="it failed" if failed else None,
            retry_seconds=3600,
        )
        with self.connection.transaction():
            return finish.record(self.connection, self.worker, TOPICS, [outcome], [], shards=SHARDS)


@contextmanager
def open_world(url: str) -> Iterator[World]:
    """Connect to a migrated database."""
    with connect(url, application="tests", autocommit=True) as connection:
        yield World(url, connection)
