"""Pages of a backfill plan, read from the API, which returns at most 100 instants in one answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from noonmark.cli.connections.api_pages import or_missing
from noonmark.cli.connections.job_ref import any_id_of, missing_job
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.core.states import BackfillMode

_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Which past instants of which job are planned.

    Attributes:
        job: id or name of the job.
        namespace: namespace of a named job; None means that of the context or key.
        from_at: start of the range.
        until_at: end of the range, excluded; None means now.
        mode: which instants run.
    """

    job: str
    namespace: str | None
    from_at: datetime
    until_at: datetime | None
    mode: BackfillMode


@dataclass(frozen=True, slots=True)
class PlanPage:
    """One page of a plan.

    Attributes:
        summary: the API's answer for the whole range.
        job_state: state of the job.
        fires: instants of this page: `at`, `local` and `note`.
        next: the last instant of this page if more instants follow it, else None.
    """

    summary: Mapping[str, Any]
    job_state: str
    fires: list[Mapping[str, Any]]
    next: str | None


def read_plan(api: Client, request: PlanRequest, *, after: datetime | None, limit: int) -> PlanPage:
    """Read one page of a plan.

    Args:
        api: client of the API.
        request: what is planned.
        after: list only instants after this one.
        limit: maximum number of instants.

    Raises:
        CliError: the job does not exist, or such a backfill cannot be started.
    """
    from noonmark.core.schedules.schedule import TICK  # noqa: PLC0415

    job_id = any_id_of(api, request.job, request.namespace)
    summary = _plan(api, job_id, request, request.from_at, request.until_at)
    until_at = datetime.fromisoformat(summary["until_at"])
    fires: list[Mapping[str, Any]] = []
    rest: Mapping[str, Any] | None = summary
    if after is not None and after >= request.from_at:
        rest = _plan(api, job_id, request, after + TICK, until_at) if after + TICK < until_at else None
    more = False
    while rest is not None:
        listed = rest["fires"][: limit - len(fires)]
        fires += listed
        more = rest["to_run"] > len(listed)
        if not more or len(fires) >= limit:
            break
        rest = _plan(api, job_id, request, datetime.fromisoformat(listed[-1]["at"]) + TICK, until_at)
    state = api.jobs.get(job_id)["state"]
    return PlanPage(summary, state, fires, fires[-1]["at"] if more else None)


def _plan(
    api: Client, job_id: str, request: PlanRequest, from_at: datetime, until_at: datetime | None
) -> Mapping[str, Any]:
    from noonmark.client import ApiError  # noqa: PLC0415 - httpx takes a while to load

    try:
        with or_missing(missing_job(api, request.job, request.namespace)):
            return api.jobs.backfill(job_id, from_at, until_at, mode=request.mode.value, dry_run=True)
    except ApiError as error:
        if error.status != _CONFLICT:
            raise
        raise CliError(error.detail, ExitCode.USAGE) from error
