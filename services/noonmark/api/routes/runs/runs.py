"""Routes of runs and their output. All paths are also available below `/executions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

from fastapi import Query, Request, Response
from starlette.responses import PlainTextResponse

from noonmark.api.http.accept import accepted_type
from noonmark.api.http.cursors import DEFAULT_LIMIT, CursorText, Limit
from noonmark.api.http.event_streams import EVENT_STREAM
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.query_parameters import PoolName, PriorityWords, Since, Text, Texts, Until, lanes_of
from noonmark.api.requests.routing import Caller, NamespaceParameter, needs, resource
from noonmark.api.routes.runs.log_streams import FollowedRun, LastLogId, follow_logs
from noonmark.api.routes.runs.views import logs_of, logs_text, run_etag, run_of, summary_of
from noonmark.core.access.roles import Permission
from noonmark.core.states import Origin, RunState
from noonmark.schemas.api.common import Page
from noonmark.schemas.api.runs import Run, RunLogs, RunSummary
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.views import attempts as attempt_views
from noonmark.store.views import lookups, paging
from noonmark.store.views.runs import RunSearch, search_runs

router = resource("runs")

_LISTING: Final = "runs"
_TEXT: Final = "text/plain"
_LOG_TYPES: Final = ("application/json", _TEXT, EVENT_STREAM)
_F = TypeVar("_F", bound=Callable[..., Any])

States = Annotated[list[RunState], Query(max_length=20, description="Only runs in these states; repeatable.")]
Reasons = Annotated[Texts, Query(description="Only runs with these reasons, such as overlap; repeatable.")]
OriginWord = Annotated[Origin | None, Query(description="Only runs with this origin.")]
WithTasks = Annotated[
    bool, Query(description="Include the runs of workflows' tasks, which are left out otherwise.")
]


def also_executions(
    register: Callable[..., Callable[[_F], _F]], path: str, **options: Any
) -> Callable[[_F], _F]:
    """Serve a path of runs, and an alias below `/executions`, the name in other schedulers.

    Args:
        register: a method of the router, such as `router.get`.
        path: the path, which contains `/runs`.
        options: options of the route.
    """

    def add(function: _F) -> _F:
        alias = path.replace("/runs", "/executions")
        shown = path.replace(":uuid}", "}")
        register(
            alias,
            **options,
            name=f"{function.__name__}_execution",
            summary=f"Alias of {shown}",
            openapi_extra={"x-alias-of": f"/v1{shown}"},
        )(function)
        return register(path, **options)(function)

    return add


@also_executions(router.get, "/runs")
def list_runs(
    *,
    namespace: NamespaceParameter = None,
    job_id: Annotated[UUID | None, Query(description="Only runs of the job with this id.")] = None,
    job_name: Annotated[
        Text | None,
        Query(description="Only runs of the recurring job with this name; if none exists, of one-time jobs."),
    ] = None,
    state: States = [],  # noqa: B006 - FastAPI copies defaults
    reason: Reasons = [],  # noqa: B006
    priority: PriorityWords = [],  # noqa: B006
    pool: PoolName = None,
    origin: OriginWord = None,
    since: Since = None,
    until: Until = None,
    tasks: WithTasks = False,
    workflow_id: Annotated[
        UUID | None, Query(description="Only runs of the tasks of the workflow run with this id.")
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.RUNS_READ),
) -> Page[RunSummary]:
    """List runs of a namespace, newest first; runs of one job by their due instants.

    A page reads a bounded number of runs. It may contain fewer than `limit`, or none, although more follow:
    continue until `next_cursor` is null.
    """
    wanted = RunSearch(
        caller.namespace(namespace),
        job_id,
        job_name,
        state,
        reason,
        lanes_of(priority),
        pool,
        origin.value if origin else None,
        since,
        until,
        tasks=tasks,
        workflow=workflow_id,
    )
    return _page(caller, wanted, limit, cursor)


@also_executions(router.get, "/jobs/{job_id}/runs")
def list_runs_of_job(
    *,
    job_id: UUID,
    state: States = [],  # noqa: B006
    reason: Reasons = [],  # noqa: B006
    origin: OriginWord = None,
    since: Since = None,
    until: Until = None,
    tasks: WithTasks = False,
    limit: Limit = DEFAULT_LIMIT,
    cursor: CursorText = None,
    caller: Caller = needs(Permission.RUNS_READ),
) -> Page[RunSummary]:
    """List the runs of a job, latest due instant first."""
    with caller.reading() as session:
        namespace = lookups.namespace_of_job(session.sql, job_id)
    if namespace is None or caller.principal.role_in(namespace) is None:
        raise ProblemError(NOT_FOUND, f"there is no job {job_id}")
    caller.require(namespace)
    wanted = RunSearch(
        namespace,
        job_id,
        states=state,
        reasons=reason,
        origin=origin.value if origin else None,
        since=since,
        until=until,
        tasks=tasks,
    )
    return _page(caller, wanted, limit, cursor)


def _page(caller: Caller, wanted: RunSearch, limit: int, cursor: str | None) -> Page[RunSummary]:
    filters = {name: str(getattr(wanted, name) or "") for name in RunSearch.__slots__}
    place = caller.parts.cursors.read(_LISTING, filters, cursor)
    with caller.reading() as session:
        found = search_runs(session.sql, wanted, limit=limit, place=place)
    payloads = caller.may(Permission.PAYLOADS_READ, wanted.namespace)
    return Page(
        items=[summary_of(row, payloads=payloads) for row in found.rows],
        next_cursor=caller.parts.cursors.make(_LISTING, filters, found.place) if found.place else None,
    )


@also_executions(router.get, "/runs/{run_id:uuid}")
def read_run(run_id: UUID, response: Response, caller: Caller = needs(Permission.RUNS_READ)) -> Run:
    """Read a run with its attempts, its progress, and the limit that it waits for.

    The run of a task has `workflow_id`, `task` and `generation`; `GET /v1/runs/{id}/tasks` lists the tasks of
    a workflow run.

    Only credentials with `payloads:read` see results, errors and checkpoints.
    """
    with caller.reading() as session:
        found = paging.show_run(session.sql, run_id)
        if found is None or caller.principal.role_in(found["namespace"]) is None:
            raise missing_run(run_id)
        caller.require(found["namespace"])
        attempts = attempt_views.run_attempts(session.sql, found)
        note = attempt_views.run_note(session.sql, run_id)
    response.headers["ETag"] = run_etag(found)
    payloads = caller.may(Permission.PAYLOADS_READ, found["namespace"])
    return run_of(found, attempts, note, payloads=payloads)


@also_executions(
    router.get,
    "/runs/{run_id}/logs",
    response_model=RunLogs,
    responses={
        200: {"content": {media_type: {"schema": {"type": "string"}} for media_type in _LOG_TYPES[1:]}},
        204: {"description": "A stream that was closed after its event `end` has nothing more."},
    },
)
def read_logs(
    run_id: UUID,
    request: Request,
    attempt: Annotated[
        int | None, Query(ge=1, le=1_000_000, description="Only output of this attempt.")
    ] = None,
    *,
    follow: Annotated[
        bool,
        Query(description="Stream output until the run finishes; also with `Accept: text/event-stream`"),
    ] = False,
    last_event_id: LastLogId = None,
    caller: Caller = needs(Permission.PAYLOADS_READ),
) -> RunLogs | Response:
    """Read the output and logs of the attempts of a run: the last 64 KB of each stream.

    Output of a running attempt is about a second old. With `Accept: text/plain`, the response is text. With
    `follow`, it is a stream of server-sent events: `output` has new text of one stream of an attempt, `gap`
    the number of bytes that were dropped before it, `lost` an attempt whose worker was lost, and `end` the
    state of the finished run. Later attempts follow, too. The `id` of an event resumes a broken stream after
    it. An `Accept` that allows none of these types gets the status 406, unless `follow` is given.
    """
    with caller.reading() as session:
        namespace = lookups.namespace_of_run(session.sql, run_id)
        if namespace is None or caller.principal.role_in(namespace) is None:
            raise missing_run(run_id)
        caller.require(namespace)
        accepted = EVENT_STREAM if follow else accepted_type(request.headers.get("accept"), _LOG_TYPES)
        if accepted == EVENT_STREAM:
            followed = FollowedRun(run_id, namespace, attempt)
            return follow_logs(request, caller, session.sql, followed, last_event_id)
        rows = attempt_views.run_logs(session.sql, run_id, attempt)
    if accepted == _TEXT:
        return PlainTextResponse(logs_text(rows))
    return logs_of(run_id, rows)


def missing_run(run_id: UUID) -> ProblemError:
    """Create the problem about a run that does not exist, or that the caller must not see."""
    return ProblemError(NOT_FOUND, f"there is no run {run_id}")
