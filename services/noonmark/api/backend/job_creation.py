"""Creates jobs: concurrent requests share one transaction, and each gets its own response."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from sqlalchemy.exc import DBAPIError

from noonmark.api.backend.database import TRIES, Database, give_way, is_lost
from noonmark.api.backend.group_commit import StartNext
from noonmark.api.backend.submit import SubmissionAcceptor, parse
from noonmark.api.http.etags import etag_of
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.core.monitoring.trace_context import SubmitTrace
from noonmark.schemas.events.submissions import CREATE, CreateJob
from noonmark.schemas.problems.refusal import Refused
from noonmark.service.database_errors import DbFault, classify
from noonmark.store.access.audit import AuditEntry, write_entries
from noonmark.store.access.idempotency import answers_before, keep_answers
from noonmark.store.jobs.requests import Request, Status, Taken
from noonmark.store.schedules.time_facts import Moment
from noonmark.store.views.job_versions import JobStamp, stamps_of

_CHECK_SECONDS: Final = 1.0
"""Longest time of checks in one transaction, which is idle meanwhile; the rest gets another transaction."""


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A request to create a job.

    Attributes:
        namespace: namespace of the job; the caller is authorised to write there.
        document: the job document as received, screened.
        key: the idempotency key; None: the request has none.
        entry: the audit entry, still without the result.
        trace: trace context of the client, if traces are on.
    """

    namespace: str
    document: Mapping[str, Any]
    key: IdempotencyKeyHash | None
    entry: AuditEntry
    trace: SubmitTrace | None = None


@dataclass(slots=True)
class _Batch:
    """The requests of one transaction and their results, by index."""

    requests: Sequence[CreateRequest]
    answers: dict[int, StoredResponse | Exception] = field(default_factory=dict)
    asked: dict[int, CreateJob] = field(default_factory=dict)
    """Submissions that were passed to the store."""
    left: list[int] = field(default_factory=list)
    """Requests that were not checked in time."""


class JobCreator:
    """Creates jobs, in one transaction per batch. Thread-safe."""

    def __init__(self, database: Database, submitter: SubmissionAcceptor) -> None:
        self._database = database
        self._submitter = submitter

    def __call__(
        self, requests: Sequence[CreateRequest], start_next: StartNext
    ) -> Sequence[StoredResponse | Exception]:
        """Return the result of each request: the created job, or an error.

        A refused request does not affect the others. If the database fails, all requests get the error, and a
        repeat with the same key finds the outcome.

        Args:
            requests: requests of different callers.
            start_next: called when everything is written and only the commit is left.
        """
        first, again = _apart(requests)
        answers = dict(zip(first, self._make([requests[index] for index in first], start_next), strict=True))
        if again:
            # The same key twice in one batch: the second request finds the response to the first.
            answers |= zip(again, self([requests[index] for index in again], start_next), strict=True)
        return [answers[index] for index in range(len(requests))]

    def _make(
        self, requests: Sequence[CreateRequest], start_next: StartNext
    ) -> Sequence[StoredResponse | Exception]:
        for left in reversed(range(TRIES)):
            try:
                return self._transact(_Batch(requests), start_next)
            except Exception as error:
                if left and is_lost(error):
                    give_way()
                    continue
                raw = error.orig if isinstance(error, DBAPIError) and error.orig else error
                if len(requests) == 1 or classify(raw) is not DbFault.PERMANENT:
                    raise
                return [answer for request in requests for answer in self._alone(request, start_next)]
        raise AssertionError("unreachable")

    def _alone(self, request: CreateRequest, start_next: StartNext) -> Sequence[StoredResponse | Exception]:
        try:
            return self._make([request], start_next)
        except Exception as error:  # noqa: BLE001 - it is the result of this request
            return [error]

    def _transact(self, batch: _Batch, start_next: StartNext) -> list[StoredResponse | Exception]:
        requests, taken = batch.requests, None
        with self._database.pipelining({request.namespace for request in requests}) as connection:
            _recall(connection, batch)
            if len(batch.answers) < len(requests):
                taken = self._submitter.accept_read(connection, lambda moment: _read(batch, moment))
                _answer(connection, batch, taken)
            start_next()
        if taken is not None:
            self._submitter.record_accepted(taken)
        batch.answers |= zip(
            batch.left, self._later([requests[index] for index in batch.left], start_next), strict=True
        )
        return [batch.answers[index] for index in range(len(requests))]

    def _later(
        self, requests: Sequence[CreateRequest], start_next: StartNext
    ) -> Sequence[StoredResponse | Exception]:
        """Process the rest of a batch whose other requests are committed."""
        try:
            return self._make(requests, start_next) if requests else []
        except Exception as error:  # noqa: BLE001 - it is the result of these requests only
            return [error] * len(requests)


def _apart(requests: Sequence[CreateRequest]) -> tuple[list[int], list[int]]:
    """Return the indexes of requests with distinct keys, and of those that repeat a key."""
    seen, first, again = set(), list[int](), list[int]()
    for index, request in enumerate(requests):
        key = request.key.of if request.key else None
        (again if key in seen else first).append(index)
        if key is not None:
            seen.add(key)
    return first, again


def _recall(connection: psycopg.Connection, batch: _Batch) -> None:
    """Answer requests whose key has a stored response."""
    before = answers_before(connection, [request.key.of for request in batch.requests if request.key])
    entries = []
    for index, request in enumerate(batch.requests):
        if request.key is not None and (kept := before.get(request.key.of)) is not None:
            try:
                reply = batch.answers[index] = request.key.reply_of(kept)
            except ProblemError as problem:
                batch.answers[index] = problem
            else:
                object_ = f"job:{reply.body['id']}"
                entries.append(request.entry._replace(object=object_, after={"replayed": True}))
    write_entries(connection, entries)


def _read(batch: _Batch, moment: Moment) -> list[Request]:
    """Check the requests without a result; refused ones get their error as result."""
    until = time.monotonic() + _CHECK_SECONDS
    for index, request in enumerate(batch.requests):
        if index in batch.answers:
            continue
        if batch.asked and time.monotonic() >= until:
            batch.left.append(index)
            continue
        try:
            order = parse(CREATE, request.document, moment)
        except Refused as refused:
            batch.answers[index] = ProblemError.of_refused(refused)
        else:
            assert isinstance(order, CreateJob)
            batch.asked[index] = order
    return [Request(order, None, None, batch.requests[index].trace) for index, order in batch.asked.items()]


def _answer(connection: psycopg.Connection, batch: _Batch, taken: Taken) -> None:
    """Build the responses with their audit entries, and store them under their idempotency keys."""
    results = dict(zip(batch.asked, taken.results, strict=True))
    found = [result.job_id for result in results.values() if result.status is Status.DUPLICATE]
    stamps = stamps_of(connection, [job_id for job_id in found if job_id is not None])
    entries, kept = [], []
    for index, result in results.items():
        request, spec = batch.requests[index], batch.asked[index].spec
        if result.status is Status.REJECTED:
            batch.answers[index] = ProblemError.of_result(result)
            continue
        assert result.job_id is not None
        made = JobStamp(result.job_id, request.namespace, spec.name, 1, taken.now)
        reply = reply_of(stamps.get(result.job_id, made), created=result.status is Status.ACCEPTED)
        batch.answers[index] = reply
        entries.append(
            request.entry._replace(object=f"job:{result.job_id}", after=_outcome_fields(spec.kind, reply))
        )
        if request.key is not None:
            kept.append((request.key.of, reply.kept(request.key.request_hash)))
    write_entries(connection, entries)
    keep_answers(connection, kept)


def _outcome_fields(kind: str, reply: StoredResponse) -> dict[str, Any]:
    return {"type": kind, **reply.body}


def job_etag(version: int, updated_at: datetime) -> str:
    """Return the entity tag of a job: every change of the job changes it, but its runs do not."""
    return etag_of("job", version, updated_at.astimezone(UTC).isoformat())


def job_path(job_id: UUID) -> str:
    """Return the path of a job."""
    return f"/v1/jobs/{job_id}"


def reply_of(stamp: JobStamp, *, created: bool) -> StoredResponse:
    """Return the response to a request for a job: 202 for a new job, 200 for an existing one."""
    body = {
        "id": str(stamp.id),
        "namespace": stamp.namespace,
        "name": stamp.name,
        "version": stamp.version,
        "created": created,
    }
    headers = {"Location": job_path(stamp.id), "ETag": job_etag(stamp.version, stamp.updated_at)}
    return StoredResponse(202 if created else 200, body, headers)
