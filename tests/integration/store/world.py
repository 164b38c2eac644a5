"""A database as a test wants it: jobs, timers and runs put in place, and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Json
from tests.support import kept_sessions
from tests.support.emptying import turn_clock

from noonmark.core.ids import shard_of, uuid7, uuid7_batch
from noonmark.core.states import AttemptOutcome, Lane, RunState, TimerKind
from noonmark.core.zones.zones import zone_data_version
from noonmark.store.claims.planned_runs import TimerPlan
from noonmark.store.database.connect import connect
from noonmark.store.database.row_types import DueTimer, StartedRun
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import finish, starts, worker_lease
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.starts import StartRequest
from noonmark.store.runs.worker_lease import Identity

SHARDS = 4
EVERY_SHARD = tuple(range(SHARDS))
TOPICS = EventTopics(lifecycle="t.lifecycle", dead="t.dead")

OWNED = ("running", "cancelling")
ENDED = ("succeeded", "skipped", "cancelled", "unknown", "dead", "discarded")


class Planned:
    """A planning of a test's own."""

    zone_data = zone_data_version()

    def __init__(self, plan: Callable[[DueTimer], TimerPlan]) -> None:
        self._plan = plan

    def prepare(self, connection: psycopg.Connection, timers: Sequence[DueTimer]) -> None:
        """Need nothing."""

    def __call__(self, timer: DueTimer) -> TimerPlan:
        """Plan as the test says."""
        return self._plan(timer)


class World:
    """One database and what tests do to it. `db` commits every statement."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.db = self._session = kept_sessions.take(url)
        self._others: list[psycopg.Connection] = []

    def close(self) -> None:
        for connection in self._others:
            connection.close()
        kept_sessions.give_back(self.url, self._session)

    def today(self) -> date:
        return self.value("select (now() at time zone 'UTC')::date")

    def another(self) -> psycopg.Connection:
        """A further session, closed with the world."""
        connection = connect(self.url, application="test", autocommit=True)
        self._others.append(connection)
        return connection

    # what is there

    def now(self) -> datetime:
        return self.value("select noonmark_now()")

    def value(self, query: str, *params: Any) -> Any:
        row = self.db.execute(query, params).fetchone()
        assert row is not None, f"no row: {query}"
        return row[0]

    def column(self, query: str, *params: Any) -> list[Any]:
        return [row[0] for row in self.db.execute(query, params)]

    def rows(self, query: str, *params: Any) -> list[dict[str, Any]]:
        with self.db.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, params).fetchall()

    def count(self, table: str, where: str = "true") -> int:
        return self.value(f"select count(*) from {table} where {where}")

    def run(self, run_id: UUID) -> dict[str, Any]:
        (row,) = self.rows("select * from runs where id = %s", run_id)
        return row

    def runs_of(self, job_id: UUID) -> list[dict[str, Any]]:
        return self.rows("select * from runs where job_id = %s order by scheduled_for, request_id", job_id)

    def messages(self, run_id: UUID) -> list[dict[str, Any]]:
        """Outbox rows that would start a run, oldest first."""
        return self.rows("select * from outbox where run_id = %s order by seq", run_id)

    def told(self, topic: str = TOPICS.lifecycle) -> list[dict[str, Any]]:
        """Outcomes in the events of a topic, in order; for the topic of the dead, its events' data."""
        told: list[dict[str, Any]] = []
        for value in self.column("select value from outbox where topic = %s order by seq", topic):
            data = orjson.loads(value)["data"]
            told += data.get("outcomes", [data])
        return told

    # how it comes about

    def turn_clock(self, by: timedelta) -> None:
        """Let the system's one clock run ahead by so much (or behind)."""
        turn_clock(self.db, by)

    def job(
        self,
        *,
        schedule: dict[str, Any] | None = None,
        policy: dict[str, Any] | None = None,
        state: str = "active",
        lane: Lane = Lane.NORMAL,
        version: int = 1,
        handler: str = "tests.noop",
        timeout_seconds: float = 60.0,
        recurring: bool = False,
    ) -> UUID:
        job_id = uuid7()
        self.db.execute(
            """insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, policy, work, unique_name,
                                 state, version, created_at, updated_at)
               values (%s, 'tests', %s, 'python', %s, %s, 'default', %s, %s, %s, %s, %s, %s, %s, now(), now())""",
            [
                job_id,
                str(job_id),
                handler,
                int(lane),
                shard_of(job_id, SHARDS),
                Json(schedule) if schedule is not None else None,
                Json(policy) if policy is not None else None,
                Json({"payload": {"n": 1}, "timeout_seconds": timeout_seconds}),
                recurring,
                state,
                version,
            ],
        )
        return job_id

    def timer(
        self,
        job_id: UUID,
        at: datetime,
        *,
        kind: TimerKind = TimerKind.ONCE,
        lane: Lane = Lane.NORMAL,
        version: int = 1,
        run_id: UUID | None = None,
        scheduled_for: datetime | None = None,
    ) -> None:
        self.db.execute(
            """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
               values (%s, %s, %s, %s, %s, %s, %s, %s, 'tests', 'default')""",
            [
                at,
                scheduled_for or at,
                job_id,
                run_id,
                version,
                shard_of(job_id, SHARDS),
                int(lane),
                int(kind),
            ],
        )

    def due_once(self, count: int, *, ago: timedelta = timedelta(seconds=1)) -> list[UUID]:
        """One-time jobs due since a moment, spread over shards and lanes."""
        ids = uuid7_batch(count)
        lanes = [n % 3 for n in range(count)]
        shards = [shard_of(job_id, SHARDS) for job_id in ids]
        self.db.execute(
            """insert into jobs (id, namespace, kind, handler, lane, pool, shard, work, unique_name, state, version,
                                 created_at, updated_at)
               select id, 'tests', 'python', 'tests.noop', lane, 'default', shard, '{"timeout_seconds":60}', false, 'active',
                      1, now(), now()
               from unnest(%s::uuid[], %s::smallint[], %s::smallint[]) as u (id, lane, shard)""",
            [ids, lanes, shards],
        )
        self.db.execute(
            """insert into timers (fire_at, scheduled_for, job_id, job_version, shard, lane, kind, namespace, pool)
               select now() - %s, now() - %s, id, 1, shard, lane, 0, 'tests', 'default'
               from unnest(%s::uuid[], %s::smallint[], %s::smallint[]) as u (id, lane, shard)""",
            [ago, ago, ids, lanes, shards],
        )
        return ids

    def copies(self, job_id: UUID, count: int) -> list[UUID]:
        """More jobs such as one that has a timer, each with a timer like that."""
        ids = uuid7_batch(count)
        for table, key in (("jobs", "id"), ("timers", "job_id")):
            columns = self.column(
                "select column_name::text from information_schema.columns where table_name = %s and column_name <> %s",
                table,
                key,
            )
            columns = [column for column in columns if column != "name"]  # theirs alone
            names = ", ".join(columns)
            self.db.execute(
                f"insert into {table} ({key}, {names}) select u.id, {', '.join(f'one.{c}' for c in columns)}"
                f" from {table} as one, unnest(%s::uuid[]) as u (id) where one.{key} = %s",
                [ids, job_id],
            )
        return ids

    def put_run(
        self,
        state: RunState | str = RunState.QUEUED,
        *,
        job_id: UUID | None = None,
        owner: Identity | None = None,
        **columns: Any,
    ) -> UUID:
        """A run in any state, with what the state demands."""
        state = RunState(state).value
        now = self.now()
        row: dict[str, Any] = {
            "id": uuid7(),
            "scheduled_for": now,
            "queued_at": now,
            "job_id": job_id or self.job(),
            "job_version": 1,
            "fence": 1,
            "attempt": 0 if state in {"waiting", "queued", "skipped"} else 1,
            "lane": int(Lane.NORMAL),
            "state": state,
            "origin": "schedule",
            "namespace": "tests",
            "pool": "default",
        }
        if state in OWNED:
            row |= {
                "owner": owner.worker if owner else 0,
                "epoch": owner.epoch if owner else 0,
                "started_at": now,
            }
        elif owner is not None:
            row |= {"owner": owner.worker, "epoch": owner.epoch, "started_at": now}
        if state in ENDED:
            row["finished_at"] = now
        row |= columns
        row.setdefault("shard", shard_of(row["job_id"], SHARDS))
        names = ", ".join(row)
        marks = ", ".join(f"%({name})s" for name in row)
        self.db.execute(f"insert into runs ({names}) values ({marks})", row)
        if state == "waiting":
            self.db.execute(
                "insert into waits (run_id, scheduled_for, job_id, reason, since) values (%s, %s, %s, %s, %s)",
                [row["id"], row["scheduled_for"], row["job_id"], row.get("reason") or "paused", now],
            )
        return row["id"]

    def worker(self, *, lease_seconds: float = 15.0, pool: str = "default") -> Identity:
        return worker_lease.register(self.db, pool=pool, host="here", pid=1, lease_seconds=lease_seconds)

    def ticket(self, run_id: UUID, *, fence: int | None = None) -> StartRequest:
        row = self.run(run_id)
        return StartRequest(run_id, row["scheduled_for"], row["fence"] if fence is None else fence)

    def start(self, worker: Identity, run_ids: Iterable[UUID]) -> list[StartedRun]:
        started, refused = starts.start(
            self.db, worker, "default", [self.ticket(run_id) for run_id in run_ids]
        )
        assert not refused
        return started

    def started(self, worker: Identity, count: int = 1, **columns: Any) -> list[StartedRun]:
        """Fresh runs that a worker has just started."""
        return self.start(worker, [self.put_run(**columns) for _ in range(count)])

    def record(
        self, worker: Identity, outcomes: list[Outcome], ended_batches: Iterable[int] = ()
    ) -> finish.Recorded:
        with self.db.transaction():
            return finish.record(self.db, worker, TOPICS, outcomes, list(ended_batches), shards=SHARDS)


def outcome(run: StartedRun, state: RunState = RunState.SUCCEEDED, *, fence: int = 1, **more: Any) -> Outcome:
    """What a worker reports of a run."""
    how = {
        RunState.SUCCEEDED: AttemptOutcome.SUCCEEDED,
        RunState.CANCELLED: AttemptOutcome.CANCELLED,
    }.get(state, AttemptOutcome.FAILED)
    return Outcome(run, fence, state, more.pop("attempt_outcome", how), pool="default", **more)


@contextmanager
def open_world(url: str) -> Iterator[World]:
    world = World(url)
    try:
        yield world
    finally:
        world.close()


def minute(at: datetime) -> datetime:
    """The full minute an instant lies in."""
    return at.astimezone(UTC).replace(second=0, microsecond=0)


def dumps(value: Any) -> str:
    return json.dumps(value)
