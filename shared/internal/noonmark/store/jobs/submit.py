"""Accepts submissions: the only way in which jobs are created and changed.

A batch is one transaction of the caller. Duplicate events are recognised, consecutive creates are written
together, and requests for existing jobs are executed one by one in between, so that the events of one job
keep their order.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import psycopg

from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.core.zones.zones import zone_data_version
from noonmark.schemas.events.submissions import CancelJob, CancelRuns, CompleteRun, CreateJob
from noonmark.store.database.columns import Texts, UuidBytes, folded
from noonmark.store.database.statements import statement
from noonmark.store.jobs.complete import complete
from noonmark.store.jobs.control import cancel_runs, control
from noonmark.store.jobs.create import Create, create_jobs
from noonmark.store.jobs.requests import Batch, EventRef, FactCache, Reason, Request, Result, Status, Taken
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.schedules.time_facts import active_zone_data

__all__ = ["EventRef", "FactCache", "Reason", "Request", "Result", "Status", "Taken", "accept"]

_NAME_LOCKS: Final = 0x6E6F6F6E
"""First key of the advisory locks on names."""

_NAME_BUCKETS: Final = 256


def accept(
    connection: psycopg.Connection,
    requests: Sequence[Request],
    *,
    shards: int,
    topics: EventTopics,
    known: FactCache,
    facts: TimeFacts,
) -> Taken:
    """Accept a batch of submissions inside the caller's open transaction.

    The caller has ensured, with `time_facts.share_time_facts` and `facts_number`, that `facts` stay valid
    until its transaction ends.

    Args:
        connection: a connection in a transaction at READ COMMITTED.
        requests: checked submissions in the order of their arrival.
        shards: number of shards of the installation.
        topics: topics for outcomes of cancelled runs.
        known: the pools and days that this process has cached; kept between batches.
        facts: the facts that the requests were checked with.

    Raises:
        psycopg.Error: the database failed, or broke a deadlock; roll back and retry the whole batch.
    """
    keys = [request.event.key if request.event else None for request in requests]
    now, repeated = _insert_events(connection, requests, keys, known)
    batch = Batch(connection, shards, topics, known, now, facts)
    if any(_may_need_zone_data(request) for request in requests):
        batch.zone_data_is_active = active_zone_data(connection) == zone_data_version()
    results: dict[int, Result] = {place: Result(Status.DUPLICATE) for place in repeated}
    fresh = [(place, request) for place, request in enumerate(requests) if place not in repeated]
    _lock_names(connection, [request for _, request in fresh])
    _accept_fresh(batch, fresh, results)
    in_order = [results[place] for place in range(len(requests))]
    # A rejected event may be sent again, for example once its pool exists.
    refused = [
        key
        for key, result in zip(keys, in_order, strict=True)
        if key is not None and result.status is Status.REJECTED
    ]
    if refused:
        connection.execute(statement("delete_inbox"), {"keys": UuidBytes(refused)})
    return Taken(in_order, batch.now, batch.queued, batch.due_soon, batch.settled, batch.freed, batch.begun)


def _insert_events(
    connection: psycopg.Connection,
    requests: Sequence[Request],
    keys: Sequence[bytes | None],
    known: FactCache,
) -> tuple[datetime, set[int]]:
    """Insert the events into the inbox; return the time, and the indexes of duplicates."""
    first: dict[bytes, int] = {}
    repeated: set[int] = set()
    for place, key in enumerate(keys):
        if key is not None and first.setdefault(key, place) != place:
            repeated.add(place)
    if not first:
        row = connection.execute("select noonmark_now()").fetchone()
        assert row is not None
        return row[0], repeated
    order = sorted(first)
    events = [event for event in (requests[first[key]].event for key in order) if event is not None]
    columns = {"sources": [event.source for event in events]}
    row = connection.execute(
        known.insert("insert_inbox"),
        {
            "keys": UuidBytes(order),
            "ids": Texts([event.id for event in events]),
            "wanted": len(order),
            **folded(columns),
        },
        binary=True,
    ).fetchone()
    assert row is not None
    now, kept, joined = row
    if kept < len(order):
        known.note_conflict("insert_inbox")
        fresh = {(joined or b"")[at : at + 16] for at in range(0, 16 * kept, 16)}
        repeated.update(first[key] for key in order if key not in fresh)
    return now, repeated


def _may_need_zone_data(request: Request) -> bool:
    """Return whether the request has a schedule in a time zone, or its existing job may have one."""
    submission = request.submission
    if isinstance(submission, CreateJob):
        schedule = submission.spec.schedule
        return schedule is not None and schedule.zone is not None
    return not isinstance(submission, CancelRuns | CompleteRun)


def _lock_names(connection: psycopg.Connection, requests: Sequence[Request]) -> None:
    """Serialize sequenced creates and cancels of the same names among all processes."""
    buckets: dict[int, bool] = {}
    for submission, event, *_ in requests:
        if event is None or event.sequence is None:
            continue
        if isinstance(submission, CreateJob) and submission.spec.schedule is not None:
            spec = submission.spec
            buckets.setdefault(_bucket(spec.namespace, spec.name), False)
        elif isinstance(submission, CancelJob) and submission.ref.name is not None:
            buckets[_bucket(submission.ref.namespace, submission.ref.name)] = True
    if buckets:
        connection.execute(
            statement("lock_job_names"),
            {"space": _NAME_LOCKS, "buckets": list(buckets), "exclusive": list(buckets.values())},
        )


def _bucket(namespace: str, name: str | None) -> int:
    return zlib.crc32(f"{namespace}\0{name}".encode()) % _NAME_BUCKETS


def _accept_fresh(batch: Batch, fresh: Sequence[tuple[int, Request]], results: dict[int, Result]) -> None:
    creates: list[Create] = []
    names: set[tuple[str, str | None]] = set()
    named = 0
    completions: list[tuple[int, CompleteRun]] = []
    for place, (submission, event, within, _) in fresh:
        if isinstance(submission, CreateJob):
            if completions:
                # Reports on a run and requests for it keep their order.
                complete(batch, completions, results)
            creates.append(Create(place, submission.spec, event.sequence if event else None))
            continue
        if isinstance(submission, CompleteRun):
            completions.append((place, submission))
            continue
        if completions:
            complete(batch, completions, results)
        if isinstance(submission, CancelRuns):
            # No client can know a run of the open group of creates yet.
            results[place] = cancel_runs(batch, submission, event, within)
            continue
        # Only a request for a job of the open group must wait for it. No client knows such a job's id yet.
        names.update((create.spec.namespace, create.spec.name) for create in creates[named:])
        named = len(creates)
        if submission.ref.job_id is None and (submission.ref.namespace, submission.ref.name) in names:
            create_jobs(batch, creates, results)
            creates, names, named = [], set(), 0
        results[place] = control(batch, submission, event, within)
    if creates:
        create_jobs(batch, creates, results)
    if completions:
        complete(batch, completions, results)
