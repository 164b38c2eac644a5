"""Route that cancels runs by filter, step by step. Also available below `/executions`."""

from __future__ import annotations

from typing import Final

from fastapi import Response

from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.idempotency import run_idempotent
from noonmark.api.requests.routing import AuditedChange, Caller, IdempotencyKey, needs, resource
from noonmark.api.routes.runs.runs import also_executions
from noonmark.core.access.roles import Permission
from noonmark.core.states import Lane, RunState
from noonmark.schemas.api.runs import RunFilter, RunsCancel, RunsCancelled
from noonmark.store.runs.cancel import CANCELLABLE, RunKey, because, cancel
from noonmark.store.views.runs import WINDOW, Found, RunSearch, search_runs

router = resource("runs")

_ORDERS: Final = "run-cancels"
_FIRST: Final = 20


@also_executions(router.post, "/runs/cancel", response_model=RunsCancelled)
def cancel_many_runs(
    order: RunsCancel,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.RUNS_OPERATE, "run.cancel"),
) -> Response:
    """Cancel unfinished runs by filter: those without a worker at once; others are asked to stop.

    One call cancels up to 1,000 runs, in the order of the listing of runs, all of them or none. It reads a
    bounded number of runs, so it may find fewer, or none, and still return `next_after`: send the same filter
    with that value as `after` to continue. Repeating a call is safe.
    """
    wanted = _search(order.filter, caller.namespace(order.filter.namespace))
    if order.dry_run:
        return StoredResponse(200, _foreseen(caller, wanted, order.after).model_dump(mode="json")).response()
    principal, submitter = caller.principal, caller.parts.submitter
    reason = because(f"by {principal.id} ({principal.name})", order.reason)
    place = _place(caller, wanted, order.after)

    def change(act: AuditedChange) -> StoredResponse:
        found = search_runs(act.session.sql, wanted, limit=order.limit, place=place)
        runs = [RunKey(row["id"], row["scheduled_for"]) for row in found.rows]
        done = cancel(
            act.session.raw,
            submitter.events,
            runs,
            states=wanted.states,
            reason=reason,
            shards=submitter.shards,
        )
        changed = {RunState.CANCELLED: len(done.ended), RunState.CANCELLING: len(done.stopping)}
        counts = {state.value: count for state, count in changed.items() if count}
        act.before = {"filter": order.filter.model_dump(mode="json", exclude_none=True)}
        act.after = {"runs": counts, "reason": reason}
        answer = RunsCancelled(
            dry_run=False,
            matched=len(runs),
            first=[],
            runs=counts,
            stopping=[run.id for run in done.stopping],
            next_after=_next_after(caller, wanted, found),
        )
        return StoredResponse(200, answer.model_dump(mode="json"))

    key = IdempotencyKeyHash.make(
        wanted.namespace, idempotency_key, caller.action, order.model_dump(mode="json")
    )
    reply = run_idempotent(caller, wanted.namespace, key, change, changes="runs")
    if RunState.CANCELLED in reply.body["runs"] and not reply.replayed:
        submitter.hint(queued=True, freed=True)
    return reply.response()


def _foreseen(caller: Caller, wanted: RunSearch, after: str | None) -> RunsCancelled:
    with caller.reading() as session:
        found = search_runs(session.sql, wanted, limit=WINDOW, place=_place(caller, wanted, after))
    return RunsCancelled(
        dry_run=True,
        matched=len(found.rows),
        first=[row["id"] for row in found.rows[:_FIRST]],
        runs={},
        stopping=[],
        next_after=_next_after(caller, wanted, found),
    )


def _place(caller: Caller, wanted: RunSearch, after: str | None) -> list[str] | None:
    place: list[str] | None = caller.parts.cursors.read(_ORDERS, _filters(wanted), after)
    return place


def _next_after(caller: Caller, wanted: RunSearch, found: Found) -> str | None:
    return caller.parts.cursors.make(_ORDERS, _filters(wanted), found.place) if found.place else None


def _filters(wanted: RunSearch) -> dict[str, str]:
    return {name: str(getattr(wanted, name) or "") for name in RunSearch.__slots__}


def _search(given: RunFilter, namespace: str) -> RunSearch:
    return RunSearch(
        namespace,
        job=given.job_id,
        job_name=given.job_name,
        states=[RunState(state) for state in given.state or CANCELLABLE],
        lanes=[Lane.from_priority(word) for word in given.priority or ()],
        pool=given.pool,
        origin=given.origin,
        since=given.since,
        until=given.until,
        labels=given.labels,
    )
