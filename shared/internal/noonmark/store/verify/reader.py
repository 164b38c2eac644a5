"""Reads the ledger in steps: each is one short read-only snapshot of some rows of one day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString, NamedTuple, TypeVar
from uuid import UUID

import psycopg

from noonmark.store.database.instants import read_any_instant
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER

T = TypeVar("T", bound=tuple[Any, ...])

FIRST_ID: Final = UUID(int=0)
LAST_ID: Final = UUID(int=2**128 - 1)
_DAY: Final = timedelta(days=1)
SOON: Final = timedelta(minutes=1)
"""What is dated later than this from now is in the future, whichever clock said so."""
_ROW_CHARS: Final = 100
"""Characters of an error that are read to compare rows."""
_EVENT_CHARS: Final = 4000
"""Characters of an error that are read to compare it with an event, which contains at most these."""
_CAP: Final = 10_000
"""Rows of a table that are looked up to count those that are left over."""


class Queues(NamedTuple):
    """What `measure_queues` returns: the age of the oldest outbox row in seconds, and counts of rows."""

    outbox_seconds: float
    refused: int
    slots: int
    limit_slots: int
    waits: int


class Strays(NamedTuple):
    """What `count_strays` returns: the number of rows that nothing will process."""

    ended_timers: int
    misplaced_timers: int
    misplaced_messages: int
    future_messages: int


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of one step.

    Attributes:
        day: the day of the ledger, at midnight UTC.
        since: the first instant that is judged.
        until: the first instant that is not judged any more.
        after: the last run of the step before.
        last: the last run of this step.
    """

    day: datetime
    since: datetime
    until: datetime
    after: UUID
    last: UUID


class LedgerReader:
    """Reads on one connection, which is only used for this.

    Rows are returned as the tuples that the caller names, one field per column of the statement.

    Args:
        connection: outside of any transaction; its transactions become read-only snapshots.
        namespaces: only their runs; None: all.
        timeout_seconds: the server cancels a statement after this.
        digests: whether to compute digests of results and errors, and to read more of errors, to compare them
            with events.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        *,
        namespaces: Sequence[str] | None = None,
        timeout_seconds: float = 30,
        digests: bool = False,
    ) -> None:
        self._connection = connection
        self._namespaces = list(namespaces) if namespaces else None
        self._timeout_ms = int(timeout_seconds * 1000)
        self._compared = {"digests": digests, "error_chars": _EVENT_CHARS if digests else _ROW_CHARS}
        self._now = datetime.min.replace(tzinfo=UTC)
        connection.autocommit = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True

    @contextmanager
    def step(self) -> Iterator[datetime]:
        """Open the snapshot of a step; yield the database's time."""
        with self._connection.transaction():
            limits = {"timeout_ms": self._timeout_ms}
            row = self._connection.execute(statement("begin_verify_step"), limits).fetchone()
            assert row is not None
            self._now = row[-1]
            yield self._now

    def unknown_namespaces(self) -> list[str]:
        """Return those of the namespaces of this reader that do not exist."""
        names = {"names": self._namespaces or []}
        return [
            name
            for (name,) in self._connection.execute(statement("find_unknown_namespaces"), names).fetchall()
        ]

    def days(self, since: datetime, until: datetime) -> list[datetime]:
        """Return the days of the ledger with instants of a window, oldest first."""
        window = {"since": since, "until": until}
        return [day for (day,) in self._connection.execute(statement("list_ledger_days"), window).fetchall()]

    def step_end(self, day: datetime, after: UUID, rows: int) -> UUID | None:
        """Return the last id of the next `rows` runs of a day; None if the day has fewer."""
        where = {"day": day, "day_end": day + _DAY, "after": after, "rows": rows}
        found = self._connection.execute(statement("find_step_end"), where).fetchone()
        return found[0] if found is not None else None

    def runs(self, kind: type[T], span: Span, settled: datetime) -> list[T]:
        """Return the runs of a step that have not changed since `settled`, or are dated in the future."""
        return self._rows(kind, statement("read_settled_runs"), self._range(span, settled) | self._compared)

    def repeated_runs(self, span: Span, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return pairs of a run and a later one with the same key."""
        where = {"ids": ids, "since": span.since, "until": span.until}
        return self._connection.execute(statement("find_repeated_runs"), where).fetchall()

    def missing_runs(self, span: Span, ids: Sequence[str]) -> set[str]:
        """Return those runs of a day that do not exist, in any namespace; none if the day was dropped."""
        where = {"ids": ids, "day": span.day, "day_end": span.day + _DAY}
        return {run_id for (run_id,) in self._connection.execute(statement("find_missing_runs"), where)}

    def attempts(self, kind: type[T], ids: Sequence[str]) -> list[T]:
        """Return the recorded attempts of runs."""
        return self._rows(kind, statement("read_attempts_of_runs"), {"ids": ids} | self._compared)

    def dead_letters(self, kind: type[T], ids: Sequence[str]) -> list[T]:
        """Return the dead letters of runs."""
        return self._rows(kind, statement("read_dead_letters_of_runs"), {"ids": ids} | self._compared)

    def letters_end(self, after: UUID, rows: int) -> UUID | None:
        """Return the run of the last of the next `rows` dead letters; None if there are fewer."""
        where = {"after": after, "rows": rows}
        found = self._connection.execute(statement("find_letters_end"), where).fetchone()
        return found[0] if found is not None else None

    def letters_without_run(self, kind: type[T], span: Span, settled: datetime) -> list[T]:
        """Return the dead letters of a step whose run does not exist."""
        return self._rows(
            kind, statement("read_letters_without_run"), self._range(span, settled) | self._compared
        )

    def jobs(self, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return jobs; the last field is since when the job is paused."""
        return self._tuples("read_jobs_of_runs", {"ids": ids})

    def versions(self, versions: Sequence[tuple[str, int]]) -> list[tuple[str, int, Any, bool]]:
        """Return (job, version, stored retry policy, whether targets report later) of existing versions."""
        which = {"jobs": [job for job, _ in versions], "versions": [version for _, version in versions]}
        return self._connection.execute(statement("read_versions_of_runs"), which).fetchall()

    def task_counts(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the number of tasks of versions of workflows."""
        which = {"jobs": [job for job, _ in versions], "versions": [version for _, version in versions]}
        rows = self._connection.execute(statement("count_workflow_tasks"), which)
        return {(job, version): count for job, version, count in rows}

    def graphs(self, versions: Sequence[tuple[str, int]]) -> list[tuple[str, int, int, str, str, str | None]]:
        """Return (job, version, number, key, stored graph, deadline in seconds) of tasks; JSON is text."""
        which = {"jobs": [job for job, _ in versions], "versions": [version for _, version in versions]}
        return self._connection.execute(statement("read_graphs"), which).fetchall()

    def workflow_runs(self, kind: type[T], span: Span, ids: Sequence[str]) -> list[T]:
        """Return workflow runs, and the runs of their tasks, without results and errors."""
        where = {"ids": ids, "since": span.since, "until": span.until}
        return self._rows(kind, statement("read_workflow_runs"), where)

    def open_workflows(self, kind: type[T], ids: Sequence[str]) -> list[T]:
        """Return what is kept of those of the workflow runs that are open."""
        return self._rows(kind, statement("read_open_workflows"), {"ids": ids})

    def workflow_timers(self, jobs: Sequence[str], ids: Sequence[str]) -> set[str]:
        """Return those of the runs of jobs that a timer of workflows is about."""
        return {row[0] for row in self._tuples("read_workflow_timers", {"jobs": jobs, "ids": ids})}

    def task_results(self, keys: Sequence[tuple[str, datetime, str]]) -> dict[str, str]:
        """Return the results of runs of tasks by their key, as JSON. `keys`: job, instant and key of each."""
        which = {
            "job_ids": [UUID(job) for job, _, _ in keys],
            "scheduled_for": [at for _, at, _ in keys],
            "keys": [key for _, _, key in keys],
        }
        rows = self._tuples("read_task_results", which)
        return {key: result for key, result, _ in rows if result is not None}

    def slot_holders(self, span: Span, ids: Sequence[str]) -> set[str]:
        """Return those of the unfinished runs for which the slot of their job is taken."""
        where = {"ids": ids, "since": span.since, "until": span.until}
        return {run_id for (run_id,) in self._connection.execute(statement("find_slot_holders"), where)}

    def install_facts(self) -> tuple[int, set[int]]:
        """Return the number of shards, and the ids of the releases of the zone data."""
        row = self._connection.execute(statement("read_install_facts")).fetchone()
        assert row is not None
        return int(row[0]), set(row[1])

    def workers(self, kind: type[T], ids: Sequence[int]) -> list[T]:
        """Return those of the workers whose rows are not pruned yet."""
        return self._rows(kind, statement("read_workers_of_runs"), {"ids": ids})

    def future_workers(self, kind: type[T]) -> list[T]:
        """Return the workers that have a time in the future."""
        return self._rows(kind, statement("read_future_workers"), {"soon": self._now + SOON})

    def newest_worker(self) -> int:
        """Return the highest id that was assigned to a worker; the highest possible if it is not readable."""
        row = self._connection.execute(statement("find_newest_worker")).fetchone()
        assert row is not None
        return int(row[0])

    def abandoned(self, span: Span, ids: Sequence[str], settled: datetime) -> set[str]:
        """Return those of the unfinished runs that nothing has been able to continue since `settled`."""
        where = {"ids": ids, "since": span.since, "until": span.until, "settled": settled}
        found = self._connection.execute(statement("find_abandoned_runs"), where).fetchall()
        return {run_id for (run_id,) in found}

    def passed_topics(self) -> list[tuple[str, datetime]]:
        """Return up to when the groups of topics of runs have passed every message."""
        rows = self._connection.execute(statement("read_resend_bounds")).fetchall()
        return [(topic, until) for topic, until, _ in rows]

    def lost_messages(
        self, span: Span, ids: Sequence[str], passed: Mapping[tuple[str, int], datetime]
    ) -> set[str]:
        """Return those of the queued runs whose message is neither in the outbox nor in Kafka.

        Args:
            span: the days of the runs.
            ids: unfinished runs.
            passed: up to when the group of a pool and lane has passed every message.
        """
        where = {"ids": ids, "since": span.since, "until": span.until, "passed_until": list(passed.values())}
        lanes = {"pools": [pool for pool, _ in passed], "lanes": [lane for _, lane in passed]}
        found = self._connection.execute(statement("find_lost_messages"), where | lanes).fetchall()
        return {run_id for (run_id,) in found}

    def queues(self, settled: datetime) -> Queues:
        """Measure what must be young or empty; runs that ended after `settled` are not considered."""
        (found,) = self._rows(Queues, statement("measure_queues"), {"settled": settled, "cap": _CAP})
        return found

    def strays(self, settled: datetime) -> Strays:
        """Count rows that nothing will process; runs that ended after `settled` are not considered."""
        where = {"settled": settled, "soon": self._now + SOON, "cap": _CAP}
        (found,) = self._rows(Strays, statement("count_strays"), where)
        return found

    def unsent_events(
        self, topics: Sequence[str], after: tuple[int, int, int], rows: int
    ) -> list[tuple[int, int, int, str, bytes]]:
        """Return the next (slice, lane, seq, topic, value) of events that are in the outbox.

        Args:
            topics: of the events.
            after: slice, lane and seq of the last row of the call before.
            rows: the most to return.
        """
        place = dict(zip(("slice", "lane", "seq"), after, strict=True))
        where = {"topics": topics, "rows": rows} | place
        return self._connection.execute(statement("read_unsent_events"), where).fetchall()

    def zone_data(self) -> tuple[str, datetime] | None:
        """Return the active release of the zone data, and since when it is active; None: there is none."""
        rows = self._connection.execute(statement("list_zone_data")).fetchall()
        return next(((row[0], row[2]) for row in rows if row[1]), None)

    def recurring_jobs(self, after: tuple[str, str], jobs: int) -> list[tuple[Any, ...]]:
        """Return the next jobs after (namespace, name); the last field is the instant a job waits for."""
        where = {"namespace": after[0], "name": after[1], "jobs": jobs, "namespaces": self._namespaces}
        where["never"] = NEVER
        return self._tuples("list_recurring_jobs", where)

    def schedules(self, ids: Sequence[str], since: datetime) -> list[tuple[Any, ...]]:
        """Return (job, version, schedule, since, until) of the versions that were valid after `since`."""
        return self._tuples("read_schedules", {"ids": ids, "since": since})

    def instants(self, ids: Sequence[str], since: datetime, until: datetime) -> list[tuple[Any, ...]]:
        """Return (run, job, first instant, last instant, state, reason) of runs of jobs in a window."""
        where = {"ids": ids, "since": since, "until": until}
        return self._tuples("read_instants", where)

    def _range(self, span: Span, settled: datetime) -> dict[str, Any]:
        where = {"since": span.since, "until": span.until, "after": span.after, "last": span.last}
        return where | {"settled": settled, "soon": self._now + SOON, "namespaces": self._namespaces}

    def _tuples(self, name: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        return self._fetch(self._connection.cursor(), statement(name), values)

    def _rows(self, kind: type[T], query: LiteralString, values: dict[str, Any]) -> list[T]:
        return self._fetch(self._connection.cursor(row_factory=row_of(kind)), query, values)

    def _fetch(self, cursor: psycopg.Cursor[T], query: LiteralString, values: dict[str, Any]) -> list[T]:
        with cursor:
            cursor.execute(query, values)
            try:
                return cursor.fetchall()
            except psycopg.DataError:
                # An instant that Python cannot represent. Reading all like this would slow down every check.
                read_any_instant(cursor)
                return cursor.execute(query, values).fetchall()
