"""Creates many jobs with one request: one transaction, and a result for each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final

import psycopg

from noonmark.api.backend.submit import SubmissionAcceptor, parse
from noonmark.api.http.problems import ProblemError, problem_document
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.routing import DEFAULT_NAMESPACE, Caller, named_namespace
from noonmark.schemas.events.submissions import CREATE
from noonmark.schemas.problems.refusal import FieldError, Refused, kind_of
from noonmark.store.access.audit import AuditEntry, Outcome, write_entries
from noonmark.store.jobs.requests import Request, Result, Status, Taken
from noonmark.store.schedules.time_facts import Moment

Item = dict[str, Any]

_MOST_DENIED: Final = 20
"""Most namespaces that get an audit entry about one request that cannot write there."""

_PART: Final = 2_000
"""Documents per statement."""


def create_many(
    caller: Caller, documents: Sequence[Any], namespace: str | None, key: str | None
) -> StoredResponse:
    """Create jobs; the result of each job contains its problem, if any.

    Args:
        caller: a caller who can write jobs in some namespace.
        documents: the job documents as received.
        namespace: namespace of documents that name none.
        key: value of `Idempotency-Key`.

    Raises:
        ProblemError: if the caller can write in none of the named namespaces.
    """
    home = namespace or caller.principal.home or DEFAULT_NAMESPACE
    targets = _namespaces(documents, home)
    denials = {name: caller.denial(name) for name in {*targets, home}}
    allowed = {name for name, denial in denials.items() if denial is None}
    if not allowed & set(targets):
        caller.require(targets[0])
    base = home if home in allowed else min(allowed)
    caller.request.scope["noonmark.namespace"] = base
    # A caller with access to fewer of the namespaces makes a different request and gets another response.
    of_request = IdempotencyKeyHash.make(
        base, key, "job.create_bulk", home, documents, sorted(allowed & set(targets))
    )
    submitter, database = caller.parts.submitter, caller.parts.database
    with database.changing(allowed) as session:
        if of_request is not None and (before := of_request.before(session.raw)) is not None:
            write_entries(session.raw, [caller.entry(base, Outcome.DONE)._replace(after={"replayed": True})])
            caller.request.scope["noonmark.audited"] = True
            return before
        reading = _Reading(documents, targets, denials)
        taken = _accept_all(submitter, session.raw, reading)
        results = [result for part in taken for result in part.results]
        reply = _reply(reading, results, caller.request_id)
        write_entries(session.raw, _done(caller, targets, allowed, reply))
        if of_request is not None:
            of_request.keep(session.raw, reply)
    caller.request.scope["noonmark.audited"] = True
    if denied := Counter(target for target in targets if target not in allowed):
        # Separately: the transaction above cannot write in namespaces without permission.
        with database.changing(denied) as session:
            write_entries(session.raw, _denied(caller, denied))
    for part in taken:
        submitter.record_accepted(part)
    return reply


def _accept_all(
    submitter: SubmissionAcceptor, connection: psycopg.Connection, reading: _Reading
) -> list[Taken]:
    """Accept all documents in parts: while the database writes one part, the next one is checked."""
    parts = [range(start, min(start + _PART, reading.count)) for start in range(0, reading.count, _PART)]
    taken: list[Taken] = []
    with ThreadPoolExecutor(1, "bulk") as ahead:
        checked: Future[list[Request]] | None = None
        for number, part in enumerate(parts):

            def read(moment: Moment, number: int = number, part: range = part) -> list[Request]:
                nonlocal checked
                requests = checked.result() if checked is not None else reading(moment, part)
                following = parts[number + 1] if number + 1 < len(parts) else None
                # What is valid now stays valid until the transaction ends.
                checked = ahead.submit(reading, moment, following) if following else None
                return requests

            taken.append(submitter.accept_read(connection, read))
    return taken


class _Reading:
    """Checks the documents and collects their problems by index."""

    def __init__(
        self, documents: Sequence[Any], targets: Sequence[str], denials: Mapping[str, ProblemError | None]
    ) -> None:
        self._documents = documents
        self._places = targets
        self._denials = denials
        self.refused: dict[int, ProblemError] = {}
        self.asked: list[int] = []

    @property
    def count(self) -> int:
        """Number of documents."""
        return len(self._documents)

    def __call__(self, moment: Moment, part: range) -> list[Request]:
        """Check some documents; return the requests of the valid ones, in order."""
        requests = []
        for index in part:
            document, target = self._documents[index], self._places[index]
            if (denial := self._denials[target]) is not None:
                self.refused[index] = denial
                continue
            try:
                order = parse(CREATE, _with_namespace(document, target), moment)
            except Refused as refused:
                self.refused[index] = ProblemError.of_refused(refused)
            else:
                requests.append(Request(order, None))
                self.asked.append(index)
        return requests


def _with_namespace(document: object, target: str) -> dict[str, Any]:
    """Return a document with its namespace filled in."""
    if not isinstance(document, dict):
        raise Refused([FieldError("", f"is {kind_of(document)}", "a job document: a JSON object")])
    return {"namespace": target, **document}


def _namespaces(documents: Sequence[Any], home: str) -> list[str]:
    """Return the namespace of each document. Invalid names are refused later, with their document."""
    found = []
    for document in documents:
        named = named_namespace(document) if isinstance(document, dict) else None
        found.append(named or home)
    return found


def _reply(reading: _Reading, results: Sequence[Result], request_id: str) -> StoredResponse:
    items: list[Item] = [
        {"index": index, **_refusal(problem, request_id)} for index, problem in reading.refused.items()
    ]
    for index, result in zip(reading.asked, results, strict=True):
        if result.status is Status.REJECTED:
            items.append({"index": index, **_refusal(ProblemError.of_result(result), request_id)})
        else:
            status = 202 if result.status is Status.ACCEPTED else 200
            items.append({"index": index, "status": status, "id": str(result.job_id), "problem": None})
    items.sort(key=lambda item: int(item["index"]))
    accepted = sum(item["problem"] is None for item in items)
    return StoredResponse(200, {"items": items, "accepted": accepted, "rejected": len(items) - accepted})


def _refusal(problem: ProblemError, request_id: str) -> Item:
    document = problem_document(problem.kind, request_id, problem.detail, problem.errors)
    return {"status": problem.kind.status, "id": None, "problem": document}


def _done(
    caller: Caller, targets: Sequence[str], allowed: Collection[str], reply: StoredResponse
) -> list[AuditEntry]:
    """Return the audit entries of the changed namespaces, each with its own jobs only."""
    entries: dict[str, dict[str, Any]] = {}
    for item in reply.body["items"]:
        target = targets[item["index"]]
        if target not in allowed:
            continue
        of = entries.setdefault(target, {"accepted": 0, "rejected": 0, "jobs": []})
        of["rejected" if item["problem"] else "accepted"] += 1
        if item["status"] == HTTPStatus.ACCEPTED:
            of["jobs"].append(item["id"])
    return [caller.entry(target, Outcome.DONE)._replace(after=after) for target, after in entries.items()]


def _denied(caller: Caller, denied: Counter[str]) -> list[AuditEntry]:
    """Return the audit entries of other namespaces about the denied attempt to write there."""
    return [
        caller.entry(target, Outcome.DENIED, reason=f"{count} jobs: the credential cannot write jobs here")
        for target, count in denied.most_common(_MOST_DENIED)
    ]
