"""Making jobs: those that come at the same time are made together, each with its own answer."""

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
from noonmark.api.backend.group_commit import PassOn
from noonmark.api.backend.submit import SubmissionAcceptor, parse
from noonmark.api.http.etags import etag_of
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.core.monitoring.trace_context import SubmitTrace
from noonmark.schemas.events.submissions import CREATE, CreateJob
from noonmark.schemas.problems.refusal import Refused
from noonmark.service.database_clock import Moment
from noonmark.service.database_errors import DbFault, classify
from noonmark.store.access.audit import AuditEntry, write_entries
from noonmark.store.access.idempotency import answers_before, keep_answers
from noonmark.store.jobs.requests import Request, Status, Taken
from noonmark.store.views.job_versions import JobStamp, stamps_of

_CHECK_SECONDS: Final = 1.0
"""Spent on checking in one transaction, which is idle meanwhile: what is left then has one of its own."""


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A job that somebody asks for.

    Attributes:
        namespace: of the job; whoever asks may write there.
        document: as it came, without anything unfit to store.
        key: None: the request has no idempotency key.
        entry: for the audit log, but for what was made.
        trace: of the client's, where traces are on.
    """

    namespace: str
    document: Mapping[str, Any]
    key: IdempotencyKeyHash | None
    entry: AuditEntry
    trace: SubmitTrace | None = None


@dataclass(slots=True)
class _Batch:
    """What becomes of wishes, by their place."""

    requests: Sequence[CreateRequest]
    answers: dict[int, StoredResponse | Exception] = field(default_factory=dict)
    asked: dict[int, CreateJob] = field(default_factory=dict)
    """What the store was asked for."""
    left: list[int] = field(default_factory=list)
    """What there was no time to check."""


class JobCreator:
    """Makes jobs, one transaction for all that it is given. Safe to use from many threads."""

    def __init__(self, database: Database, submitter: SubmissionAcceptor) -> None:
        self._database = database
        self._submitter = submitter

    def __call__(
        self, requests: Sequence[CreateRequest], pass_on: PassOn
    ) -> Sequence[StoredResponse | Exception]:
        """Answer each wish: what was made, or why it was not.

        One that is refused fails nobody else. Where the database goes away, everybody is told so, and a
        repeat with the same key finds what became of it.

        Args:
            requests: of as many callers.
            pass_on: called when all is written and only the commit is left.
        """
        first, again = _apart(requests)
        answers = dict(zip(first, self._make([requests[place] for place in first], pass_on), strict=True))
        if again:
            # The same key twice at once: the second finds the answer to the first.
            answers |= zip(again, self([requests[place] for place in again], pass_on), strict=True)
        return [answers[place] for place in range(len(requests))]

    def _make(
        self, requests: Sequence[CreateRequest], pass_on: PassOn
    ) -> Sequence[StoredResponse | Exception]:
        for left in reversed(range(TRIES)):
            try:
                return self._transact(_Batch(requests), pass_on)
            except Exception as error:
                if left and is_lost(error):
                    give_way()
                    continue
                raw = error.orig if isinstance(error, DBAPIError) and error.orig else error
                if len(requests) == 1 or classify(raw) is not DbFault.PERMANENT:
                    raise
                return [answer for request in requests for answer in self._alone(request, pass_on)]
        raise AssertionError("unreachable")

    def _alone(self, request: CreateRequest, pass_on: PassOn) -> Sequence[StoredResponse | Exception]:
        try:
            return self._make([request], pass_on)
        except Exception as error:  # noqa: BLE001 - it is this one's answer
            return [error]

    def _transact(self, batch: _Batch, pass_on: PassOn) -> list[StoredResponse | Exception]:
        requests, taken = batch.requests, None
        with self._database.pipelining({request.namespace for request in requests}) as connection:
            _recall(connection, batch)
            if len(batch.answers) < len(requests):
                taken = self._submitter.accept_read(connection, lambda moment: _read(batch, moment))
                _answer(connection, batch, taken)
            pass_on()
        if taken is not None:
            self._submitter.record_accepted(taken)
        batch.answers |= zip(
            batch.left, self._later([requests[place] for place in batch.left], pass_on), strict=True
        )
        return [batch.answers[place] for place in range(len(requests))]

    def _later(
        self, requests: Sequence[CreateRequest], pass_on: PassOn
    ) -> Sequence[StoredResponse | Exception]:
        """Answer what was left of a batch whose others are committed."""
        try:
            return self._make(requests, pass_on) if requests else []
        except Exception as error:  # noqa: BLE001 - it is the answer of these, and not of the others
            return [error] * len(requests)


def _apart(requests: Sequence[CreateRequest]) -> tuple[list[int], list[int]]:
    """Return the places of wishes whose keys differ, and of those with the key of another."""
    seen, first, again = set(), list[int](), list[int]()
    for place, request in enumerate(requests):
        key = request.key.of if request.key else None
        (again if key in seen else first).append(place)
        if key is not None:
            seen.add(key)
    return first, again


def _recall(connection: psycopg.Connection, batch: _Batch) -> None:
    """Answer those whose key has an answer."""
    before = answers_before(connection, [request.key.of for request in batch.requests if request.key])
    entries = []
    for place, request in enumerate(batch.requests):
        if request.key is not None and (kept := before.get(request.key.of)) is not None:
            try:
                reply = batch.answers[place] = request.key.reply_of(kept)
            except ProblemError as problem:
                batch.answers[place] = problem
            else:
                object_ = f"job:{reply.body['id']}"
                entries.append(request.entry._replace(object=object_, after={"replayed": True}))
    write_entries(connection, entries)


def _read(batch: _Batch, moment: Moment) -> list[Request]:
    """Check what has no answer yet; what is refused has one then."""
    until = time.monotonic() + _CHECK_SECONDS
    for place, request in enumerate(batch.requests):
        if place in batch.answers:
            continue
        if batch.asked and time.monotonic() >= until:
            batch.left.append(place)
            continue
        try:
            order = parse(CREATE, request.document, moment)
        except Refused as refused:
            batch.answers[place] = ProblemError.of_refused(refused)
        else:
            assert isinstance(order, CreateJob)
            batch.asked[place] = order
    return [Request(order, None, None, batch.requests[place].trace) for place, order in batch.asked.items()]


def _answer(connection: psycopg.Connection, batch: _Batch, taken: Taken) -> None:
    """Make the answers of what the store took, with their audit entries, and keep them under their keys."""
    results = dict(zip(batch.asked, taken.results, strict=True))
    found = [result.job_id for result in results.values() if result.status is Status.DUPLICATE]
    stamps = stamps_of(connection, [job_id for job_id in found if job_id is not None])
    entries, kept = [], []
    for place, result in results.items():
        request, spec = batch.requests[place], batch.asked[place].spec
        if result.status is Status.REJECTED:
            batch.answers[place] = ProblemError.of_result(result)
            continue
        assert result.job_id is not None
        made = JobStamp(result.job_id, request.namespace, spec.name, 1, taken.now)
        reply = reply_of(stamps.get(result.job_id, made), created=result.status is Status.ACCEPTED)
        batch.answers[place] = reply
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
    """Return the entity tag of a job: it changes with whatever somebody changes of it, not with its runs."""
    return etag_of("job", version, updated_at.astimezone(UTC).isoformat())


def job_path(job_id: UUID) -> str:
    """Return where a job is read."""
    return f"/v1/jobs/{job_id}"


def reply_of(stamp: JobStamp, *, created: bool) -> StoredResponse:
    """Return the answer to the request for a job; one that there was already is answered with 200."""
    body = {
        "id": str(stamp.id),
        "namespace": stamp.namespace,
        "name": stamp.name,
        "version": stamp.version,
        "created": created,
    }
    headers = {"Location": job_path(stamp.id), "ETag": job_etag(stamp.version, stamp.updated_at)}
    return StoredResponse(202 if created else 200, body, headers)
