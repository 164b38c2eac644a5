"""Requests to the store, their results, the batch (one transaction) that they are part of, and its cache."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.monitoring.trace_context import SubmitTrace
from noonmark.core.planning.promotion import Limits
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.schemas.events.submissions import Submission
from noonmark.schemas.jobs.job import JobSpec
from noonmark.schemas.problems.refusal import FieldError, Refused, printable
from noonmark.schemas.problems.suggestions import suggestion
from noonmark.store.cluster.capabilities import without_workflows
from noonmark.store.cluster.catalogues import Catalogue, Misfit, live_catalogues
from noonmark.store.cluster.pools import pool_names
from noonmark.store.database.planned_once import planned_once
from noonmark.store.jobs.works import Work, pools_of, works_of
from noonmark.store.outcomes.events import EventTopics

_log = logging.getLogger(__name__)

SOON: Final = timedelta(seconds=1)
"""Timers that are due within this time need a hint for the triggers."""

_CATALOGUES_SECONDS: Final = 2.0
_CONFLICTS_SECONDS: Final = 60.0
_LIVE_SECONDS: Final = 10.0
"""A trigger or dispatcher without a heartbeat for longer is not live."""
_OF_THE_DATA: Final = ("22", "23", "44", "54", "P0")
"""SQLSTATE classes that are caused by the data: data, constraints, program limits, raised by a trigger."""


class EventRef(NamedTuple):
    """The event that carried a submission: identified by source and id, ordered per job by `sequence`.

    Source and id are unique within `scope`, so that no publisher can use up ids of another namespace.
    """

    source: str
    id: str
    sequence: int | None
    scope: str = ""

    @property
    def key(self) -> bytes:
        """The 16 bytes that identify it in the inbox."""
        # No part can contain U+0000, so no two events have the same text.
        name = f"{self.source}\0{self.id}\0{self.scope}" if self.scope else f"{self.source}\0{self.id}"
        return hashlib.blake2b(name.encode(), digest_size=16).digest()


class Request(NamedTuple):
    """A checked submission.

    Attributes:
        submission: what is requested.
        event: the event that carried it; None means that it is not checked for duplicates.
        within: the only namespaces whose jobs and runs it may access; None means all. A job or run in another
            namespace is treated as one that does not exist.
        trace: the client's trace; set only if tracing is on.
    """

    submission: Submission
    event: EventRef | None
    within: frozenset[str] | None = None
    trace: SubmitTrace | None = None


class Status(StrEnum):
    """The outcome of a request."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    """The event was accepted before; nothing was changed."""
    STALE = "stale"
    """A newer event of the job was accepted before; nothing was changed."""
    REJECTED = "rejected"


class Reason(StrEnum):
    """Why a well-formed request is rejected."""

    INVALID = "invalid"
    CONFLICT = "conflict"
    UNKNOWN_POOL = "unknown_pool"
    UNKNOWN_KIND = "unknown_kind"
    UNKNOWN_HANDLER = "unknown_handler"
    UNKNOWN_LIMIT = "unknown_limit"
    QUOTA = "quota"
    NOT_FOUND = "not_found"


class Result(NamedTuple):
    """The result of one request.

    Attributes:
        status: its outcome.
        job_id: the job that was created or changed, or that existed already; None if there is none.
        run_id: the run that a trigger created.
        reason: why it was rejected.
        refused: the problems of a rejected request; pointers are relative to the job document.
    """

    status: Status
    job_id: UUID | None = None
    run_id: UUID | None = None
    reason: Reason | None = None
    refused: Refused | None = None


class Taken(NamedTuple):
    """What `accept` did.

    Attributes:
        results: one per request, in their order.
        now: the database's time in this transaction.
        queued: runs were queued; hint the dispatchers after the commit.
        due_soon: a timer is due within a second; hint the triggers after the commit.
        freed: runs wait for a slot that may be free now; hint the triggers after the commit.
        settled: numbers of runs that their targets reported on, by (state, lane).
        begun: ids of runs that were queued on arrival, and ids of their jobs.
        traced: jobs that belong to traces of clients.
    """

    results: list[Result]
    now: datetime
    queued: bool
    due_soon: bool
    settled: Mapping[tuple[str, int], int] = MappingProxyType({})
    freed: bool = False
    begun: Sequence[tuple[Sequence[UUID], Sequence[UUID]]] = ()
    traced: Mapping[UUID, SubmitTrace] = MappingProxyType({})


class RejectedRequest(Exception):  # noqa: N818 - a decision on a request, not an error of ours
    """Stops the work on one request, so that its savepoint is rolled back."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result.refused))
        self.result = result


class FactCache:
    """What a process caches between batches, from committed rows: pools, ledger days, workers' catalogues.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self.pools: frozenset[str] = frozenset()
        self._days: set[date] = set()
        self._catalogues: Mapping[str, Catalogue] = {}
        self._catalogues_until = 0.0
        self._conflicts_until: dict[str, float] = {}

    def insert(self, name: str) -> LiteralString:
        """Return the call of an insert: after recent conflicts, the one that looks for them at once."""
        return planned_once(name, hopeful=not self.has_conflicts(name))

    def has_conflicts(self, name: str) -> bool:
        """Return whether an insert has recently failed because of a conflict, or left out rows."""
        return time.monotonic() < self._conflicts_until.get(name, 0.0)

    def note_conflict(self, name: str) -> None:
        """Record that an insert left out rows, or failed because of a conflict."""
        self._conflicts_until[name] = time.monotonic() + _CONFLICTS_SECONDS

    def unknown_pools(self, connection: psycopg.Connection, wanted: Iterable[str]) -> frozenset[str]:
        """Return those of the pools that do not exist; query Postgres only for pools that are not cached."""
        names = frozenset(wanted)
        if names <= self.pools:
            return frozenset()
        self.pools = frozenset(pool_names(connection))
        return names - self.pools

    def misfit(self, connection: psycopg.Connection, work: Work, *, fresh: bool = False) -> Misfit | None:
        """Return why no live worker of its pool can execute work; None if one can, or if none is live.

        The catalogues are read again every two seconds, or now if `fresh`.
        """
        now = time.monotonic()
        if fresh or now >= self._catalogues_until:
            self._catalogues = live_catalogues(connection)
            self._catalogues_until = now + _CATALOGUES_SECONDS
        return misfit_of(work, self._catalogues)

    def admits(self, spec: JobSpec) -> bool:
        """Return whether the cache is current and allows a job, by its pool and the pool's workers."""
        if spec.pool not in self.pools or time.monotonic() >= self._catalogues_until:
            return False
        catalogue = self._catalogues.get(spec.pool)
        return catalogue is None or catalogue.misfit(spec.pool, spec.kind, spec.handler) is None

    def has_day(self, at: datetime) -> bool:
        """Return whether the ledger is known to have a partition for the day of an instant."""
        return at.astimezone(UTC).date() in self._days

    def ensure_day(self, connection: psycopg.Connection, at: datetime) -> None:
        """Ensure that the ledger has a partition for the day of an instant, in the caller's transaction."""
        if self.has_day(at):
            return
        day = at.astimezone(UTC).date()
        row = connection.execute("select noonmark_make_day(%s)", [day]).fetchone()
        # A day created just now is not cached, because this transaction may be rolled back.
        if row is not None and not row[0]:
            self._days.add(day)


@dataclass(slots=True)
class Batch:
    """The transaction that requests are part of, and what to announce after its commit."""

    connection: psycopg.Connection
    shards: int
    topics: EventTopics
    known: FactCache
    now: datetime
    facts: TimeFacts = field(default_factory=TimeFacts)
    zone_data_is_active: bool = True
    queued: bool = False
    due_soon: bool = False
    settled: Counter[tuple[str, int]] = field(default_factory=Counter)
    freed: bool = False
    begun: list[tuple[Sequence[UUID], Sequence[UUID]]] = field(default_factory=list)
    catalogues_read: bool = False

    def misfit(self, spec: JobSpec) -> Misfit | None:
        """Return why no live workers can run a job; None if they can, or if none is live."""
        return next(filter(None, map(self._misfit, works_of(spec))), None)

    def _misfit(self, work: Work) -> Misfit | None:
        found = self.known.misfit(self.connection, work)
        if found is None or self.catalogues_read:
            return found
        # A worker that can run it may have started since the last read; one read per batch is enough.
        self.catalogues_read = True
        return self.known.misfit(self.connection, work, fresh=True)

    def note_timer(self, fire_at: datetime) -> None:
        """Record that the triggers need a hint if this timer is due soon."""
        if fire_at <= self.now + SOON:
            self.due_soon = True


def rejected(reason: Reason, pointer: str, message: str, expected: str = "") -> Result:
    """Return the result of a request that is rejected."""
    refused = Refused([FieldError(pointer, message, expected)])
    return Result(Status.REJECTED, reason=reason, refused=refused)


def misfit_of(work: Work, catalogues: Mapping[str, Catalogue]) -> Misfit | None:
    """Return why no live worker of its pool can execute work; None if one can, or if none is live."""
    catalogue = catalogues.get(work.pool)
    found = catalogue.misfit(work.pool, work.kind, work.handler) if catalogue is not None else None
    return found and found._replace(pointer=work.pointer + found.pointer)


def unknown_pool(spec: JobSpec, known: frozenset[str]) -> Result | None:
    """Return the result of a job for a pool that is not registered; None if all of its pools are."""
    for work in works_of(spec):
        if work.pool not in known:
            expected = f"one of: {', '.join(sorted(known)[:20])}" if known else "a pool; none is registered"
            message = f"no pool is named {work.pool!r}"
            return rejected(Reason.UNKNOWN_POOL, f"{work.pointer}/pool", message, expected)
    return None


def cannot_run(misfit: Misfit) -> Result:
    """Return the result of a job that no live worker of its pool can run."""
    reason = Reason.UNKNOWN_KIND if misfit.pointer.endswith("/type") else Reason.UNKNOWN_HANDLER
    return rejected(reason, misfit.pointer, misfit.message, misfit.expected)


def unknown_limit(limits: Limits, namespace: str, known: frozenset[str]) -> Result | None:
    """Return the result of a job that names a limit that its namespace does not have; None if it has all."""
    for place, (name, _) in enumerate(limits):
        if name not in known:
            return rejected(
                Reason.UNKNOWN_LIMIT,
                f"/limits/{place}",
                f"namespace {namespace!r} has no limit {name!r}{suggestion(name, sorted(known))}",
                f"one of: {', '.join(sorted(known)[:20])}"
                if known
                else f"a limit created by `noonmark limit set NAME --namespace {namespace} --max-running N`",
            )
    return None


def old_release(batch: Batch, spec: JobSpec) -> Result | None:
    """Return the result of a workflow while something live cannot have its part in it; None if all can."""
    if spec.workflow is None:
        return None
    old = without_workflows(batch.connection, pools_of([spec]), _LIVE_SECONDS)
    if not old:
        return None
    message = f"{old[0]} is of a release that cannot run workflows"
    return rejected(Reason.UNKNOWN_KIND, "/type", message, "the same job, once every process is upgraded")


def lacking(
    spec: JobSpec, limits: frozenset[str], pools: frozenset[str], catalogues: Mapping[str, Catalogue]
) -> list[FieldError]:
    """Return what a job names that does not exist, so that creating it would be rejected.

    Args:
        spec: the job.
        limits: names of its namespace's limits.
        pools: names of all pools.
        catalogues: what the live workers of each pool can run.
    """
    misfits = (misfit_of(work, catalogues) for work in works_of(spec))
    results = (
        unknown_limit(spec.limits, spec.namespace, limits),
        unknown_pool(spec, pools),
        *(cannot_run(misfit) for misfit in misfits if misfit is not None),
    )
    return [
        error
        for result in results
        if result is not None and result.refused is not None
        for error in result.refused.errors
    ]


UNFIT: Final = Exception
"""Errors of a request that cannot be stored, from here or Postgres. They must not stop other requests."""


def unplannable(error: Exception) -> Result:
    """Return the result of a request that cannot be stored.

    Raises:
        psycopg.Error: the error itself, if the database failed.
    """
    text = str(error)
    if isinstance(error, psycopg.Error):
        # psycopg refuses values that it cannot send, with no SQLSTATE.
        by_driver = error.sqlstate is None and isinstance(error, psycopg.DataError)
        if not by_driver and not (error.sqlstate or "").startswith(_OF_THE_DATA):
            raise error
        text = error.diag.message_primary or text
    else:
        _log.error("a checked request could not be stored", exc_info=error)
    return rejected(Reason.INVALID, "", f"cannot be stored: {printable(text)[:500]}")
