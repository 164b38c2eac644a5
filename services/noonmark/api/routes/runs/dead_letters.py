"""Routes of dead letters: list, group by cause, read, redrive, discard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

import psycopg
from fastapi import Query, Response

from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.query_parameters import Since, Text, Until
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.idempotency import run_idempotent
from noonmark.api.requests.routing import (
    AuditedChange,
    Caller,
    IdempotencyKey,
    NamespaceParameter,
    needs,
    resource,
)
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.common import Page
from noonmark.schemas.api.dead_letters import (
    DeadLetter,
    DeadLetterChange,
    DeadLetterDetail,
    DeadLetterDiscard,
    DeadLetterFilter,
    DeadLetterGroup,
    DeadLetterGroups,
    DeadLetterRedrive,
    RefusedRun,
)
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.runs import dead_letters
from noonmark.store.runs.dead_letters import DeadRun, DeadSelection, Refusal, Settled
from noonmark.store.views import dead_letters as dead_letter_views

router = resource("dead-letters")

_LISTING: Final = "dead-letters"
_FIRST: Final = 20
_NAMED: Final = 100

JobId = Annotated[UUID | None, Query(description="Only runs of the job with this id.")]
JobName = Annotated[Text | None, Query(description="Only runs of jobs with this name.")]
DeathReason = Annotated[Text | None, Query(description="Only runs that are dead for this reason.")]
Fingerprint = Annotated[str | None, Query(pattern="^[0-9a-f]{16}$", description="Only runs with this cause.")]

Step = Callable[[psycopg.Connection, Sequence[DeadRun]], Settled]


@router.get("/dead-letters")
def list_dead_letters(
    *,
    namespace: NamespaceParameter = None,
    job_id: JobId = None,
    job_name: JobName = None,
    fingerprint: Fingerprint = None,
    reason: DeathReason = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.RUNS_READ),
) -> Page[DeadLetter]:
    """List dead letters of a namespace, latest death first; `since` and `until` limit the time of death."""
    where = caller.namespace(namespace)
    wanted = DeadSelection(
        job=job_id,
        name=job_name,
        namespace=where,
        fingerprint=fingerprint,
        reason=reason,
        since=since,
        until=until,
    )
    filters = {name: str(getattr(wanted, name) or "") for name in DeadSelection.__slots__}
    place = caller.parts.cursors.read(_LISTING, filters, cursor)
    at = (datetime.fromisoformat(place[0]), UUID(place[1])) if place else None
    with caller.reading() as session:
        page = dead_letter_views.list_dead(session.sql, wanted, limit=limit, place=at)
    payloads = caller.may(Permission.PAYLOADS_READ, where)
    following = None
    if page.next is not None:
        last = page.rows[-1]
        following = [last["died_at"].isoformat(), str(last["run_id"])]
    return Page(
        items=[DeadLetter.model_validate(_shown(row, payloads=payloads)) for row in page.rows],
        next_cursor=caller.parts.cursors.make(_LISTING, filters, following) if following else None,
    )


@router.get("/dead-letters/groups")
def group_dead_letters(
    *,
    namespace: NamespaceParameter = None,
    job_id: JobId = None,
    job_name: JobName = None,
    reason: DeathReason = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = DEFAULT_LIMIT,
    caller: Caller = needs(Permission.RUNS_READ),
) -> DeadLetterGroups:
    """Count dead letters of a namespace by cause, most frequent first."""
    where = caller.namespace(namespace)
    wanted = DeadSelection(
        job=job_id, name=job_name, namespace=where, reason=reason, since=since, until=until
    )
    with caller.reading() as session:
        rows = dead_letter_views.group_dead(session.sql, wanted, limit=limit)
    payloads = caller.may(Permission.PAYLOADS_READ, where)
    return DeadLetterGroups(
        items=[DeadLetterGroup.model_validate(_shown(row, payloads=payloads)) for row in rows]
    )


@router.get("/dead-letters/{run_id:uuid}")
def read_dead_letter(run_id: UUID, caller: Caller = needs(Permission.RUNS_READ)) -> DeadLetterDetail:
    """Read a dead letter: why the run died, and all attempts that did not succeed."""
    with caller.reading() as session:
        found = dead_letter_views.show_dead(session.sql, run_id)
    if found is None or caller.principal.role_in(found["namespace"]) is None:
        raise ProblemError(NOT_FOUND, f"run {run_id} has no dead letter")
    caller.require(found["namespace"])
    payloads = caller.may(Permission.PAYLOADS_READ, found["namespace"])
    history = [_shown(row, payloads=payloads) for row in found["history"]]
    return DeadLetterDetail.model_validate({**_shown(found, payloads=payloads), "history": history})


@router.post("/dead-letters/redrive", response_model=DeadLetterChange)
def redrive_dead_letters(
    order: DeadLetterRedrive,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.RUNS_OPERATE, "dead_letter.redrive"),
) -> Response:
    """Enqueue dead runs again, with new retry budgets. Runs that cannot start now wait or are refused.

    One call processes up to 1,000 runs, in the order of their ids, all of them or none. To continue, send the
    same filter with `after`. Repeating a call is safe.
    """
    submitter = caller.parts.submitter

    def step(connection: psycopg.Connection, some: Sequence[DeadRun]) -> Settled:
        return dead_letters.redrive(connection, submitter.events, some, shards=submitter.shards)

    return _carry_out(caller, order, idempotency_key, step)


@router.post("/dead-letters/discard", response_model=DeadLetterChange)
def discard_dead_letters(
    order: DeadLetterDiscard,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.RUNS_OPERATE, "dead_letter.discard"),
) -> Response:
    """Discard dead runs permanently: their state becomes `discarded`. Continue as with redrives."""
    submitter = caller.parts.submitter

    def step(connection: psycopg.Connection, some: Sequence[DeadRun]) -> Settled:
        return dead_letters.discard(
            connection, submitter.events, some, reason=order.reason, shards=submitter.shards
        )

    return _carry_out(caller, order, idempotency_key, step)


def _carry_out(caller: Caller, order: DeadLetterRedrive, header: str | None, step: Step) -> Response:
    namespace = caller.namespace(order.filter.namespace)
    wanted = _selection(order.filter, namespace)
    if order.dry_run:
        return StoredResponse(200, _foreseen(caller, wanted, order.after).model_dump(mode="json")).response()
    if not (order.all or order.filter.model_fields_set):
        message = "is empty: it says which dead runs to change"
        raise Refused([FieldError("/filter", message, "a filter with a field, or `all`: true")])

    def change(act: AuditedChange) -> StoredResponse:
        raw, sql = act.session.raw, act.session.sql
        found = dead_letters.find(raw, wanted, limit=order.limit, after=order.after)
        done = step(raw, found) if found else Settled()
        last = found[-1].run_id if found else None
        remaining = dead_letter_views.count_dead(sql, wanted, after=last) if last else 0
        if order.filter.runs and order.after is None:
            missing = set(order.filter.runs) - {run.run_id for run in found}
            done.refused.update(dict.fromkeys(sorted(missing), Refusal.NOT_DEAD) if not remaining else {})
        refused = dict(Counter(reason.value for reason in done.refused.values()))
        act.before = {"filter": order.filter.model_dump(mode="json", exclude_none=True)}
        act.after = {"runs": dict(done.states), "refused": refused, "remaining": remaining}
        answer = DeadLetterChange(
            dry_run=False,
            matched=len(found),
            first=[],
            runs=dict(done.states),
            refused=refused,
            refused_runs=[
                RefusedRun(run_id=run, reason=why.value) for run, why in list(done.refused.items())[:_NAMED]
            ],
            remaining=remaining,
            next_after=last if remaining else None,
        )
        return StoredResponse(200, answer.model_dump(mode="json"))

    key = IdempotencyKeyHash.make(namespace, header, caller.action, order.model_dump(mode="json"))
    reply = run_idempotent(caller, namespace, key, change, changes="dead-letters")
    if reply.body["runs"] and not reply.replayed:
        caller.parts.submitter.hint(queued=True, freed=True)
    return reply.response()


def _foreseen(caller: Caller, wanted: DeadSelection, after: UUID | None) -> DeadLetterChange:
    with caller.reading() as session:
        first = dead_letters.find(session.raw, wanted, limit=_FIRST, after=after)
        matched = dead_letter_views.count_dead(session.sql, wanted, after=after)
    return DeadLetterChange(
        dry_run=True,
        matched=matched,
        first=[run.run_id for run in first],
        runs={},
        refused={},
        refused_runs=[],
        remaining=matched,
        next_after=None,
    )


def _selection(given: DeadLetterFilter, namespace: str) -> DeadSelection:
    return DeadSelection(
        runs=given.runs,
        job=given.job_id,
        name=given.job_name,
        namespace=namespace,
        fingerprint=given.fingerprint,
        reason=given.reason,
        since=given.since,
        until=given.until,
    )


def _shown(row: Mapping[str, Any], *, payloads: bool) -> dict[str, Any]:
    hidden = not payloads and row["error"] is not None
    shown = {**row, "error": row["error"] if payloads else None, "error_hidden": hidden}
    return {**shown, "type": row["kind"]} if "kind" in row else shown
