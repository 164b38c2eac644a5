"""Routes that explain why a job or a run has not run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated
from uuid import UUID

import psycopg
from fastapi import Query

from noonmark.api.http.problems import ProblemError
from noonmark.api.http.query_parameters import Text
from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.core.why.facts import Bounds, Facts
from noonmark.core.why.jobs import explain, lane_in_question, without_errors
from noonmark.schemas.api.why import Why, why_document
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.views import lookups
from noonmark.store.views.why import Setup, facts_of_job, facts_of_run

router = resource("why")

Gather = Callable[[psycopg.Connection, UUID, Setup], Facts | None]


@router.get("/jobs/{job_id}/why", name="job")
def why_job(job_id: UUID, caller: Caller = needs(Permission.JOBS_READ)) -> Why:
    """Explain why a job has not run: actual blockers first, each with what to do about it."""
    return _answer(caller, job_id, facts_of_job, f"there is no job {job_id}")


@router.get("/runs/{run_id}/why", name="run")
@router.get(
    "/executions/{run_id}/why", name="run_execution", openapi_extra={"x-alias-of": "/v1/runs/{run_id}/why"}
)
def why_run(
    run_id: UUID,
    task: Annotated[
        Text | None,
        Query(description="Of a workflow run: key of the task to explain, also if it has no run yet."),
    ] = None,
    caller: Caller = needs(Permission.RUNS_READ),
) -> Why:
    """Explain why a run has not run, or its outcome."""
    missing = f"there is no run {run_id}"
    if task is None:
        return _answer(caller, run_id, facts_of_run, missing)
    gather = partial(facts_of_run, task=task)
    return _answer(caller, run_id, gather, f"{missing}, or it is not of a workflow with a task {task}")


def _answer(caller: Caller, target: UUID, gather: Gather, missing: str) -> Why:
    # Over all namespaces: outbox rows ahead of a run belong to others, too. The response has only their
    # number; the runs that it names hold slots of the namespace's own limits.
    with caller.parts.database.reading(None) as session:
        facts = gather(session.raw, target, _setup(caller))
        state = lookups.job_state(session.sql, target) if facts is not None and facts.run is None else None
    about = facts.run or facts.job if facts is not None else None
    if facts is None or about is None or caller.principal.role_in(about.namespace) is None:
        raise ProblemError(NOT_FOUND, missing)
    caller.require(about.namespace)
    # After the transaction, because Kafka may be slow.
    if (lane := lane_in_question(facts)) is not None:
        facts = replace(facts, backlog=caller.parts.backlogs.measure(*lane))
    if not caller.may(Permission.PAYLOADS_READ, about.namespace):
        facts = without_errors(facts)
    return why_document(facts, explain(facts), state or about.state)


def _setup(caller: Caller) -> Setup:
    settings = caller.parts.settings
    return Setup(
        settings.owner_timeout_seconds,
        Bounds(settings.outbox_age_limit_seconds, settings.outbox_depth_limit),
        caller.parts.topics.runs,
    )
