"""Routes that control runs: cancel, retry, complete. All paths are also available below `/executions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Body, Response

from noonmark.api.backend.database import Session
from noonmark.api.backend.submit import parse, raise_rejected
from noonmark.api.http.etags import Conditions, Preconditions
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.idempotency import run_idempotent
from noonmark.api.requests.routing import AuditedChange, Caller, IdempotencyKey, needs, resource
from noonmark.api.routes.runs.runs import also_executions, missing_run
from noonmark.api.routes.runs.views import run_etag
from noonmark.core.access.roles import Permission
from noonmark.core.states import Origin, RunState
from noonmark.schemas.api.runs import RunCancel, RunChange, RunReport
from noonmark.schemas.events.submissions import COMPLETE_RUN, CancelRuns
from noonmark.schemas.problems.types import CONFLICT, TOO_MANY_REQUESTS
from noonmark.store.jobs.submit import Request
from noonmark.store.runs import dead_letters
from noonmark.store.runs.cancel import CANCELLABLE, RunKey, lock_runs
from noonmark.store.runs.dead_letters import DeadRun, Refusal
from noonmark.store.schedules.time_facts import Moment, share_time_facts
from noonmark.store.views import lookups
from noonmark.store.views.lookups import RunLocation
from noonmark.store.views.paging import Row

router = resource("runs")

_REPORTS_PER_MINUTE: Final = 10
"""Most reports about one run, from all senders."""

_WRONG_PER_MINUTE: Final = 60
"""Most invalid reports from one address."""

_INSTEAD: Final = {
    RunState.WAITING: "it waits, and is queued when it can start",
    RunState.QUEUED: "it is already queued",
    RunState.RUNNING: "it is running; cancel it first if it must not continue",
    RunState.RETRYING: "its next attempt is already planned",
    RunState.CANCELLING: "it is being cancelled; trigger its job once it has stopped",
    RunState.SUCCEEDED: "it has succeeded; trigger its job to run it again",
    RunState.SKIPPED: "its instant was skipped; run a backfill of its job over the instant",
    RunState.CANCELLED: "it was cancelled; trigger its job, or run a backfill over the instant",
    RunState.UNKNOWN: "its outcome is unknown; check the target, then trigger its job if it was not done",
    RunState.DISCARDED: "it was permanently discarded; trigger its job, or run a backfill over the instant",
}
_REFUSED: Final = {
    Refusal.NOT_DEAD: "it was redriven or discarded concurrently",
    Refusal.JOB_CANCELLED: "its job is cancelled",
    Refusal.JOB_GONE: "its job was deleted",
    Refusal.OVERLAP: "another run of its job is unfinished, and the job skips overlapping runs",
}


@also_executions(router.post, "/runs/{run_id}/cancel", status_code=202, response_model=RunChange)
def cancel_run(
    run_id: UUID,
    conditions: Conditions,
    body: Annotated[RunCancel | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.RUNS_OPERATE, "run.cancel"),
) -> Response:
    """Cancel a run: without a worker it is cancelled at once; a running one is asked to stop.

    The `reason` of the run contains who cancelled it and why. A run that is cancelled already, or being
    cancelled, does not change.
    """
    run = find_run(caller, run_id)
    principal = caller.principal
    reason = body.reason if body else None
    order = CancelRuns((run_id,), reason, f"{principal.id} ({principal.name})")
    submitter = caller.parts.submitter

    def read(_: Moment) -> Sequence[Request]:
        return [Request(order, None)]

    def change(act: AuditedChange) -> StoredResponse:
        raw = act.session.raw
        # First this lock, then the run's: changes of time facts take them in the same order.
        share_time_facts(raw, wait=True)
        lock_runs(raw, [RunKey(run_id, run.scheduled_for)], tuple(RunState))
        before = read_status(act.session, run_id, run, conditions)
        taken = submitter.accept_read(raw, read)
        raise_rejected(taken.results[0])
        after = read_status(act.session, run_id, run, Preconditions())
        if before["state"] not in (*CANCELLABLE, RunState.CANCELLED, RunState.CANCELLING):
            raise ProblemError(CONFLICT, f"run {run_id} is {before['state']}: it has already finished")
        act.before = {"state": before["state"]}
        act.after = {"state": after["state"], "reason": after["reason"]}
        return _changed(run_id, after)

    key = IdempotencyKeyHash.make(run.namespace, idempotency_key, caller.action, str(run_id), reason)
    reply = run_idempotent(caller, run.namespace, key, change, changes=f"run:{run_id}")
    if not reply.replayed:
        submitter.hint(queued=True, freed=True)
    return reply.response()


@also_executions(router.post, "/runs/{run_id}/retry", status_code=202, response_model=RunChange)
def retry_run(
    run_id: UUID,
    conditions: Conditions,
    idempotency_key: IdempotencyKey = None,
    caller: Caller = needs(Permission.RUNS_OPERATE, "run.retry"),
) -> Response:
    """Retry a dead run, with a new retry budget. A run that cannot start now waits.

    Only dead runs can be retried; for others, the response says what to do instead.
    """
    run = find_run(caller, run_id)
    submitter = caller.parts.submitter
    runs = [DeadRun(run_id, run.scheduled_for)]

    def change(act: AuditedChange) -> StoredResponse:
        raw = act.session.raw
        dead_letters.lock_dead(raw, runs)
        before = read_status(act.session, run_id, run, conditions)
        if before["state"] != RunState.DEAD:
            instead = _INSTEAD[RunState(before["state"])]
            raise ProblemError(CONFLICT, f"run {run_id} is {before['state']}, not dead: {instead}")
        if before["origin"] == Origin.TASK:
            workflow = before["request_id"].partition("/")[0]
            problem = f"run {run_id} is that of a task: retry its workflow run {workflow}"
            raise ProblemError(CONFLICT, problem)
        done = dead_letters.redrive(raw, submitter.events, runs, shards=submitter.shards)
        if run_id in done.refused:
            raise ProblemError(CONFLICT, f"run {run_id} is not retried: {_REFUSED[done.refused[run_id]]}")
        after = read_status(act.session, run_id, run, Preconditions())
        act.before, act.after = {"state": before["state"]}, {"state": after["state"]}
        return _changed(run_id, after)

    key = IdempotencyKeyHash.make(run.namespace, idempotency_key, caller.action, str(run_id))
    reply = run_idempotent(caller, run.namespace, key, change, changes=f"run:{run_id}")
    if not reply.replayed:
        submitter.hint(queued=True, freed=True)
    return reply.response()


@also_executions(router.post, "/runs/{run_id}/complete")
def complete_run(run_id: UUID, report: RunReport, caller: Caller = needs(None, "run.complete")) -> RunChange:
    """Report the outcome of a run whose target responded 202, with the token of its request.

    The token is the only credential, and is valid once. A report with a wrong or used token, with one of an
    earlier attempt, or after the deadline gets the status 409, which does not say which of these applies.
    """
    _check_rate(caller, f"run:{run_id}", _REPORTS_PER_MINUTE, f"run {run_id} received too many reports")
    submitter = caller.parts.submitter
    data = {**report.model_dump(exclude_unset=True), "run_id": str(run_id)}
    with caller.parts.database.reading(None) as session:
        namespace = lookups.namespace_of_run(session.sql, run_id)
    # If the run does not exist, the response is the same as for a wrong token.
    with caller.changing(namespace) as act:
        act.object = f"run:{run_id}"
        taken = submitter.accept_read(
            act.session.raw, lambda moment: [Request(parse(COMPLETE_RUN, data, moment), None)]
        )
        refused = taken.results[0].refused
        if refused is not None:
            _check_rate(caller, f"from:{caller.address}", _WRONG_PER_MINUTE, "too many invalid reports")
            raise_rejected(taken.results[0])
        run = lookups.locate_run(act.session.sql, run_id)
        assert run is not None
        after = read_status(act.session, run_id, run, Preconditions())
        act.after = {"state": after["state"], "reason": after["reason"]}
    submitter.record_accepted(taken)
    return RunChange(id=run_id, state=after["state"], reason=after["reason"])


def find_run(caller: Caller, run_id: UUID) -> RunLocation:
    """Return where a run is stored.

    Raises:
        ProblemError: it does not exist, or the caller must not see it.
    """
    with caller.reading() as session:
        found = lookups.locate_run(session.sql, run_id)
    if found is None or caller.principal.role_in(found.namespace) is None:
        raise missing_run(run_id)
    return found


def read_status(session: Session, run_id: UUID, run: RunLocation, conditions: Preconditions) -> Row:
    """Read the fields of a run's entity tag, and check the preconditions."""
    found = lookups.run_status(session.sql, run_id, run.scheduled_for)
    if found is None:
        raise missing_run(run_id)
    conditions.check(run_etag(found))
    return found


def _check_rate(caller: Caller, bucket: str, per_minute: int, detail: str) -> None:
    wait = caller.parts.guesses.take(bucket, per_minute)
    if wait:
        # Unauthenticated callers must not fill the audit log.
        caller.request.scope["noonmark.audited"] = True
        seconds = str(max(1, round(wait + 0.5)))
        raise ProblemError(TOO_MANY_REQUESTS, f"{detail}; wait {seconds} s", headers={"Retry-After": seconds})


def _changed(run_id: UUID, after: Mapping[str, Any]) -> StoredResponse:
    body = RunChange(id=run_id, state=after["state"], reason=after["reason"]).model_dump(mode="json")
    return StoredResponse(202, body, {"ETag": run_etag(after)})
