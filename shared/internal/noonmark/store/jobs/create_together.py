"""Creating jobs with one round trip: nothing is looked up, and the statement does nothing if that was wrong.

The checks of other paths need answers of Postgres before they write. Here everything that they look up comes
from caches, and the function of `create_jobs` compares the facts, the time and the idempotency keys before it
writes. Jobs that need more, and all jobs of a statement that did nothing, are created by `submit.accept`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from noonmark.core.ids import shard_of, uuid7_batch
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.core.states import JobState
from noonmark.schemas.jobs.job import JobSpec
from noonmark.store.access.audit import AuditEntry, columns_of_origin
from noonmark.store.database.columns import SmallInts, Texts, UuidBytes, folded
from noonmark.store.database.scope import API_ROLE
from noonmark.store.documents.columns import Due, first_due, spec_columns
from noonmark.store.jobs.requests import SOON, FactCache, unknown_limit
from noonmark.store.schedules.time_facts import TIME_FACTS_LOCK, Moment


class NewJob(NamedTuple):
    """A job to create.

    Attributes:
        id: its id.
        spec: the checked job.
        entry: the audit entry of its creation; object and result are those of the job.
        key: idempotency key of the request; None if it has none.
        request_hash: hash of the request, if it has a key.
        response: JSON text of the response to store under the key.
    """

    id: UUID
    spec: JobSpec
    entry: AuditEntry
    key: str | None
    request_hash: bytes | None
    response: str | None


class Creation(NamedTuple):
    """A call of the function.

    Attributes:
        parameters: of the statement `create_jobs`.
        begun: ids of the runs of jobs that are due on arrival, and ids of these jobs.
        due_soon: a timer is due within a second.
    """

    parameters: dict[str, Any]
    begun: Sequence[tuple[Sequence[UUID], Sequence[UUID]]]
    due_soon: bool


def needs_no_lookup(spec: JobSpec, moment: Moment, known: FactCache) -> bool:
    """Return whether all facts about a job are cached, and allow it."""
    facts = moment.facts
    recurs = spec.schedule is not None
    if spec.schedule is not None and (spec.schedule.zone is not None or spec.namespace in facts.bounded):
        return False
    if (recurs or spec.idempotency_key is not None) and known.has_conflicts("create_jobs"):
        return False
    if spec.limits and unknown_limit(spec.limits, spec.namespace, facts.limits_of(spec.namespace)):
        return False
    return known.admits(spec) and (recurs or spec.run_at is not None or known.has_day(moment.now))


def creation_of(
    jobs: Sequence[NewJob], moment: Moment, namespaces: Collection[str], *, shards: int
) -> Creation:
    """Return the call that creates jobs of which none needs a look-up.

    Args:
        jobs: the jobs.
        moment: the time of their creation, and the facts that they were checked with.
        namespaces: the namespaces that the transaction is restricted to.
        shards: number of shards of the installation.
    """
    now, facts = moment.now, moment.facts
    dues = [_due(job, now, facts) for job in jobs]
    at_once = [job.id for job, due in zip(jobs, dues, strict=True) if due.now]
    run_ids = uuid7_batch(len(at_once))
    fires = [due.fire_at for due in dues if due.fire_at is not None]
    parameters = {
        "role": API_ROLE,
        "namespaces": sorted(namespaces),
        "lock": TIME_FACTS_LOCK,
        "facts": facts.number,
        "ledger_floor": moment.ledger_floor,
        "now": now,
        **_of_jobs(jobs, dues, facts, shards),
        **_of_timers(dues, run_ids),
        **_of_requests(jobs),
    }
    return Creation(
        parameters, [(run_ids, at_once)] if at_once else [], bool(fires) and min(fires) <= now + SOON
    )


def _due(job: NewJob, now: datetime, facts: TimeFacts) -> Due:
    namespace = job.spec.namespace
    return first_due(
        job.spec,
        job.id,
        now,
        zone_data_is_active=True,
        paused=namespace in facts.paused,
        capped=namespace in facts.capped,
    )


def _of_jobs(jobs: Sequence[NewJob], dues: Sequence[Due], facts: TimeFacts, shards: int) -> dict[str, Any]:
    specs = [job.spec for job in jobs]
    return {
        "ids": UuidBytes.of(job.id for job in jobs),
        "shards": SmallInts([shard_of(job.id, shards) for job in jobs]),
        **folded(
            {
                "job_namespaces": [spec.namespace for spec in specs],
                **spec_columns(specs),
                "schedules": [due.schedule for due in dues],
                "unique_names": [spec.schedule is not None for spec in specs],
                "states": [_state(spec, due, facts) for spec, due in zip(specs, dues, strict=True)],
            }
        ),
    }


def _of_timers(dues: Sequence[Due], run_ids: Sequence[UUID]) -> dict[str, Any]:
    of_runs = iter(run_ids)
    return {
        "run_ids": [next(of_runs) if due.now else None for due in dues] if run_ids else None,
        **folded(
            {
                "fire_at": [due.fire_at for due in dues],
                "scheduled_for": [due.at for due in dues],
                "after_at": [due.after_at for due in dues],
                "after_offset": [due.after_offset for due in dues],
                "runs_left": [due.runs_left for due in dues],
                "timer_kinds": [int(due.kind) for due in dues],
                "start_by": [due.start_by for due in dues],
            }
        ),
    }


def _of_requests(jobs: Sequence[NewJob]) -> dict[str, Any]:
    keyed = [job for job in jobs if job.key is not None]
    return {
        **folded(columns_of_origin([job.entry for job in jobs])),
        "key_namespaces": [job.spec.namespace for job in keyed] or None,
        "key_texts": [job.key for job in keyed] or None,
        "keys": Texts([job.key for job in jobs]) if keyed else None,
        "request_hashes": [job.request_hash for job in jobs] if keyed else None,
        "responses": Texts([job.response for job in jobs]) if keyed else None,
    }


def _state(spec: JobSpec, due: Due, facts: TimeFacts) -> str:
    if due.at is None and not due.now:
        return JobState.COMPLETED.value
    return (JobState.PAUSED if spec.namespace in facts.paused else JobState.ACTIVE).value
