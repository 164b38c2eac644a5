"""What is asked of the store and what it answers: requests, results, and the batch they are part of."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.monitoring.trace_context import SubmitTrace
from noonmark.core.planning.promotion import Limits
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.schemas.events.submissions import Submission
from noonmark.schemas.jobs.job import JobSpec
from noonmark.schemas.problems.refusal import FieldError, Refused, printable, suggestion
from noonmark.store.cluster.catalogues import Catalogue, Misfit
from noonmark.store.jobs.fact_cache import FactCache
from noonmark.store.outcomes.events import EventTopics

_log = logging.getLogger(__name__)

_SOON: Final = timedelta(seconds=1)
_OF_THE_DATA: Final = ("22", "23", "44", "54", "P0")
"""SQLSTATE classes that blame what was written: data, constraints, program limits, raised by a trigger."""


class EventRef(NamedTuple):
    """The event that carried a submission: told apart by source and id, ordered per job by `sequence`.

    `scope` is where source and id are unique: nobody can use up the names of events of another namespace.
    """

    source: str
    id: str
    sequence: int | None
    scope: str = ""

    @property
    def key(self) -> bytes:
        """The 16 bytes it is remembered by."""
        # No part can hold U+0000, so no two events give one text.
        name = f"{self.source}\0{self.id}\0{self.scope}" if self.scope else f"{self.source}\0{self.id}"
        return hashlib.blake2b(name.encode(), digest_size=16).digest()


class Request(NamedTuple):
    """A checked submission.

    Attributes:
        submission: what is asked for.
        event: what it came by; None: it is taken in without looking for repeats.
        within: the only namespaces whose jobs and runs it may be about; None: all. A job or run elsewhere is
            not found, exactly as one that does not exist.
        trace: of the client's; set only where traces are on.
    """

    submission: Submission
    event: EventRef | None
    within: frozenset[str] | None = None
    trace: SubmitTrace | None = None


class Status(StrEnum):
    """What became of a request."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    """It had been taken in before; nothing was changed."""
    STALE = "stale"
    """A newer event of the job had been taken in before; nothing was changed."""
    REJECTED = "rejected"


class Reason(StrEnum):
    """Why a request that was sound in itself is rejected."""

    INVALID = "invalid"
    CONFLICT = "conflict"
    UNKNOWN_POOL = "unknown_pool"
    UNKNOWN_KIND = "unknown_kind"
    UNKNOWN_HANDLER = "unknown_handler"
    UNKNOWN_LIMIT = "unknown_limit"
    QUOTA = "quota"
    NOT_FOUND = "not_found"


class Result(NamedTuple):
    """The answer to one request.

    Attributes:
        status: what became of it.
        job_id: the job made, changed, or found in its place; None where there is none.
        run_id: the run that a trigger made.
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
        queued: runs were queued: after the commit, hint the dispatchers.
        due_soon: a timer is due within a second: after the commit, hint the triggers.
        freed: runs wait for room, and there may be some: after the commit, hint the triggers of that.
        settled: how many runs got which state, by (state, lane): those that their targets reported on.
        begun: ids of runs that were queued on arrival, and those of their jobs.
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


class RejectedRequest(Exception):  # noqa: N818 - a verdict on a request, not a fault of ours
    """Ends the work on one request, so that its savepoint is rolled back."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result.refused))
        self.result = result


@dataclass(slots=True)
class Batch:
    """The transaction that requests are part of, and what it must tell after its commit."""

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
        """Say why no live worker of a job's pool can run it; None where one can, or none is alive."""
        catalogues = self.known.catalogues
        found = catalogues.misfit(self.connection, spec.pool, spec.kind, spec.handler)
        if found is None or self.catalogues_read:
            return found
        # A worker that can may have started since they were read; once for a batch is enough.
        self.catalogues_read = True
        catalogues.read(self.connection)
        return catalogues.misfit(self.connection, spec.pool, spec.kind, spec.handler)

    def note_timer(self, fire_at: datetime) -> None:
        """Remember to hint the triggers if this timer is due soon."""
        if fire_at <= self.now + _SOON:
            self.due_soon = True


def rejected(reason: Reason, pointer: str, message: str, expected: str = "") -> Result:
    """Make the answer to a request that is not taken."""
    refused = Refused([FieldError(pointer, message, expected)])
    return Result(Status.REJECTED, reason=reason, refused=refused)


def unknown_pool(pool: str, known: frozenset[str]) -> Result:
    """Make the answer to a job for a pool that is not registered."""
    names = ", ".join(sorted(known)[:20]) or "none is registered"
    return rejected(Reason.UNKNOWN_POOL, "/pool", f"no pool is named {pool!r}", f"one of: {names}")


def cannot_run(misfit: Misfit) -> Result:
    """Make the answer to a job that no live worker of its pool can run."""
    reason = Reason.UNKNOWN_KIND if misfit.pointer == "/type" else Reason.UNKNOWN_HANDLER
    return rejected(reason, misfit.pointer, misfit.message, misfit.expected)


def unknown_limit(limits: Limits, namespace: str, known: frozenset[str]) -> Result | None:
    """Make the answer to a job that names a limit which its namespace has not; None: it has all of them."""
    for place, (name, _) in enumerate(limits):
        if name not in known:
            return rejected(
                Reason.UNKNOWN_LIMIT,
                f"/limits/{place}",
                f"namespace {namespace!r} has no limit {name!r}{suggestion(name, sorted(known))}",
                f"one of: {', '.join(sorted(known)[:20])}"
                if known
                else f"a limit made by `noonmark limit set NAME --namespace {namespace} --max-running N`",
            )
    return None


def lacking(
    spec: JobSpec, limits: frozenset[str], pools: frozenset[str], catalogues: Mapping[str, Catalogue]
) -> list[FieldError]:
    """Return what a job names that is not there, by which its creation would be rejected.

    Args:
        spec: of the job.
        limits: those of its namespace.
        pools: all there are.
        catalogues: what the live workers of each pool can run.
    """
    workers = catalogues.get(spec.pool)
    misfit = workers.misfit(spec.pool, spec.kind, spec.handler) if workers is not None else None
    results = (
        unknown_limit(spec.limits, spec.namespace, limits),
        unknown_pool(spec.pool, pools) if spec.pool not in pools else None,
        cannot_run(misfit) if misfit is not None else None,
    )
    return [
        error
        for result in results
        if result is not None and result.refused is not None
        for error in result.refused.errors
    ]


UNFIT: Final = Exception
"""What a request that cannot be stored may raise, on our side or in Postgres: it must not stop the others."""


def unplannable(error: Exception) -> Result:
    """Make the answer to a request that cannot be stored.

    Raises:
        psycopg.Error: the error itself, where it is the database that failed.
    """
    text = str(error)
    if isinstance(error, psycopg.Error):
        # psycopg itself refuses what it cannot send, without any SQLSTATE.
        by_driver = error.sqlstate is None and isinstance(error, psycopg.DataError)
        if not by_driver and not (error.sqlstate or "").startswith(_OF_THE_DATA):
            raise error
        text = error.diag.message_primary or text
    else:
        _log.error("a checked request could not be stored", exc_info=error)
    return rejected(Reason.INVALID, "", f"it cannot be stored: {printable(text)[:500]}")
