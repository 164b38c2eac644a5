"""Creates the jobs of concurrent requests with one statement, which is all that most batches need."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import orjson
import psycopg
from psycopg.errors import UniqueViolation

from noonmark.api.backend.database import Database, is_lost
from noonmark.api.backend.group_commit import StartNext
from noonmark.api.backend.job_creation import CreateRequest, JobCreator, reply_of
from noonmark.api.backend.submit import SubmissionAcceptor, parse
from noonmark.api.http.replies import StoredResponse
from noonmark.core.ids import uuid7_batch
from noonmark.schemas.events.submissions import CREATE, CreateJob
from noonmark.schemas.jobs.job import JobSpec
from noonmark.schemas.problems.refusal import Refused
from noonmark.service.database_errors import DbFault, classify
from noonmark.store.database.planned_once import planned_call
from noonmark.store.jobs.create_together import NewJob, creation_of, needs_no_lookup
from noonmark.store.jobs.requests import Taken
from noonmark.store.schedules.time_facts import Moment
from noonmark.store.views.job_versions import JobStamp

_CHECK_SECONDS: Final = 1.0
"""Longest time of checks. The rest is checked separately, so that the others need not wait."""

_CREATE: Final = "create_jobs"


class TogetherCreator:
    """Creates jobs with one statement per batch; leaves to `JobCreator` what needs more. Thread-safe."""

    def __init__(self, database: Database, submitter: SubmissionAcceptor) -> None:
        self._database = database
        self._submitter = submitter
        self._others = JobCreator(database, submitter)

    def __call__(
        self, requests: Sequence[CreateRequest], start_next: StartNext
    ) -> Sequence[StoredResponse | Exception]:
        """Return the result of each request: the created job, or an error.

        Args:
            requests: requests of different callers.
            start_next: called when this batch only waits for the database.
        """
        answers: dict[int, StoredResponse | Exception] = {}
        moment = self._submitter.cached_moment()
        if moment is not None and (checked := self._check(requests, moment)):
            if len(checked) == len(requests):
                start_next()
            answers |= self._create(requests, checked, moment)
        left = [index for index in range(len(requests)) if index not in answers]
        if left:
            others = self._others([requests[index] for index in left], start_next)
            answers |= zip(left, others, strict=True)
        return [answers[index] for index in range(len(requests))]

    def _check(self, requests: Sequence[CreateRequest], moment: Moment) -> dict[int, JobSpec]:
        """Return the jobs that one statement can create, by index.

        A refusal is left out, too: it counts only if it was decided under the lock on the facts.
        """
        until = time.monotonic() + _CHECK_SECONDS
        known, keys = self._submitter.known, set()
        checked: dict[int, JobSpec] = {}
        for index, request in enumerate(requests):
            if time.monotonic() >= until:
                break
            if request.trace is not None:
                continue
            if request.key is not None:
                # The same key twice: the second request must find the response to the first.
                if request.key.of in keys:
                    continue
                keys.add(request.key.of)
            try:
                order = parse(CREATE, request.document, moment)
            except Refused:
                continue
            assert isinstance(order, CreateJob)
            if needs_no_lookup(order.spec, moment, known):
                checked[index] = order.spec
        return checked

    def _create(
        self, requests: Sequence[CreateRequest], checked: Mapping[int, JobSpec], moment: Moment
    ) -> dict[int, StoredResponse]:
        """Create the jobs; return the responses, or none if they must be created in another way."""
        replies: dict[int, StoredResponse] = {}
        jobs = []
        for job_id, (index, spec) in zip(uuid7_batch(len(checked)), checked.items(), strict=True):
            request = requests[index]
            stamp = JobStamp(job_id, spec.namespace, spec.name, 1, moment.now)
            reply = replies[index] = reply_of(stamp, created=True)
            key = request.key
            kept = orjson.dumps(reply.kept(key.request_hash).body).decode() if key is not None else None
            jobs.append(
                NewJob(
                    job_id,
                    spec,
                    request.entry,
                    key.of.key if key is not None else None,
                    key.request_hash if key is not None else None,
                    kept,
                )
            )
        namespaces = {requests[index].namespace for index in checked}
        try:
            creation = creation_of(jobs, moment, namespaces, shards=self._submitter.shards)
            row = self._database.call(planned_call(_CREATE), creation.parameters)
        except psycopg.Error as error:
            if isinstance(error, UniqueViolation):
                self._submitter.known.note_conflict(_CREATE)
            elif classify(error) is not DbFault.PERMANENT and not is_lost(error):
                raise
            return {}
        if row is None:
            return {}
        self._submitter.record_accepted(
            Taken([], moment.now, bool(creation.begun), creation.due_soon, begun=creation.begun)
        )
        return replies
