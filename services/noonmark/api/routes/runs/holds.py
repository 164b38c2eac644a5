"""Routes that hold a workflow run, and let it go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from fastapi import Response

from noonmark.api.backend.database import Session
from noonmark.api.http.etags import Conditions, Preconditions
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.idempotency import run_idempotent
from noonmark.api.requests.routing import AuditedChange, Caller, IdempotencyKey, needs, resource
from noonmark.api.routes.runs.control import find_run, read_status
from noonmark.api.routes.runs.runs import also_executions
from noonmark.api.routes.runs.views import run_etag
from noonmark.core.access.roles import Permission
from noonmark.core.states import Origin, RunState
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.ids import TaskKey
from noonmark.schemas.api.runs import RunHold
from noonmark.schemas.problems.types import CONFLICT
from noonmark.store.runs.cancel import RunKey, lock_runs
from noonmark.store.views.lookups import RunLocation
from noonmark.store.workflows import holds
from noonmark.store.workflows.holds import Hold

router = resource("runs")

_NOT_OPEN: Final = frozenset({RunState.WAITING, RunState.QUEUED, RunState.RETRYING})
_Change = Callable[[Session, RunLocation, Mapping[str, Any], Hold], None]


@also_executions(router.post, "/runs/{run_id}/hold", response_model=RunHold)
def hold_run(
    run_id: UUID,
    conditions: Conditions,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.RUNS_OPERATE, "run.hold"),
) -> Response:
    """Hold an open workflow run: no more of its tasks start until it is released.

    Tasks that are queued, waiting, running or retrying go on. A cancel of the run and its deadline are not
    held back. A run that is held already does not change.
    """

    def change(session: Session, _: RunLocation, before: Mapping[str, Any], known: Hold) -> None:
        if before["state"] == RunState.CANCELLING or known.stopping is not None:
            why = "its deadline has passed" if known.stopping == "deadline" else "it is being cancelled"
            raise ProblemError(
                CONFLICT, f"run {run_id} cannot be held: {why}, and its tasks are being stopped"
            )
        holds.hold(session.raw, [run_id])

    return _changed(caller, run_id, conditions, idempotency_key, change).response()


@also_executions(router.post, "/runs/{run_id}/release", response_model=RunHold)
def release_run(
    run_id: UUID,
    conditions: Conditions,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.RUNS_OPERATE, "run.release"),
) -> Response:
    """Let a held workflow run go on. An open run that is not held does not change."""

    def change(session: Session, _: RunLocation, __: Mapping[str, Any], known: Hold) -> None:
        if known.held_at is not None:
            holds.release(session.raw, [run_id])

    reply = _changed(caller, run_id, conditions, idempotency_key, change)
    if not reply.replayed:
        caller.parts.submitter.hint(ended=True)
    return reply.response()


def _changed(
    caller: Caller, run_id: UUID, conditions: Preconditions, idempotency_key: str | None, change: _Change
) -> StoredResponse:
    """Change whether a workflow run is held, once it is locked and known to be open."""
    run = find_run(caller, run_id)

    def make(act: AuditedChange) -> StoredResponse:
        known = holds.lock(act.session.raw, [run_id]).get(run_id)
        lock_runs(act.session.raw, [RunKey(run_id, run.scheduled_for)], tuple(RunState), timers=False)
        before = read_status(act.session, run_id, run, conditions)
        if known is None:
            raise ProblemError(CONFLICT, _not_open(run_id, before))
        change(act.session, run, before, known)
        after = read_status(act.session, run_id, run, Preconditions())
        act.before, act.after = ({"held_at": _text(one["held_at"])} for one in (before, after))
        body = RunHold(id=run_id, state=after["state"], held_at=after["held_at"])
        return StoredResponse(200, body.model_dump(mode="json"), {"ETag": run_etag(after)})

    key = IdempotencyKeyHash.make(run.namespace, idempotency_key, caller.action, str(run_id))
    return run_idempotent(caller, run.namespace, key, make, changes=f"run:{run_id}")


def _not_open(run_id: UUID, run: Mapping[str, Any]) -> str:
    """Say why a run can be neither held nor released, and what to do instead."""
    if run["origin"] == Origin.TASK:
        workflow = TaskKey.parse(run["request_id"]).workflow_id
        return f"run {run_id} is that of a task: hold or release its workflow run {workflow}"
    if run["pool"] != WORKFLOW_POOL:
        return f"run {run_id} is not of a workflow: pause its job, so that none starts, or cancel it"
    if run["state"] in _NOT_OPEN:
        return (
            f"run {run_id} is {run['state']}, so none of its tasks has started: pause its job, or hold the"
            " run once it is running"
        )
    return f"run {run_id} is {run['state']}: it has already ended"


def _text(held_at: Any) -> str | None:
    return None if held_at is None else held_at.isoformat()
