"""Route of a job's statistics, which the observer computes from its outcomes."""

from __future__ import annotations

from uuid import UUID

from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.core.monitoring.recent import Rates, percentile, rates_of
from noonmark.schemas.api.job_stats import JobOutcomes, JobStats
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.alerts import statistics
from noonmark.store.views.jobs import find_job

router = resource("jobs")


@router.get("/jobs/{job_id}/stats")
def stats(job_id: UUID, caller: Caller = needs(Permission.RUNS_READ)) -> JobStats:
    """Read the statistics of a job: usual duration, failures in a row, outcomes of the last hour.

    They lag behind the runs as much as the observer does, and are not updated while no observer runs.
    """
    with caller.reading() as session:
        job = find_job(session.sql, job_id)
        found = statistics.stats_of(session.raw, [job_id]).by_job.get(job_id.int)
    if job is None or caller.principal.role_in(job["namespace"]) is None:
        raise ProblemError(NOT_FOUND, f"there is no job {job_id}")
    caller.require(job["namespace"])
    payloads = caller.may(Permission.PAYLOADS_READ, job["namespace"])
    error = found.last_error if found else None
    return JobStats(
        job_id=job_id,
        runs=found.runs if found else 0,
        usual_seconds=found.usual_seconds if found else None,
        failures=found.failures if found else 0,
        failure_cause=found.failure_cause if found else None,
        last_error=error if payloads else None,
        error_hidden=error is not None and not payloads,
        last_run_id=found.last_run_id if found else None,
        last_failure_at=found.last_failure_at if found else None,
        last_success_at=found.last_success_at if found else None,
        last_hour=_outcomes(rates_of(found.recent if found else {})),
    )


def _outcomes(rates: Rates) -> JobOutcomes:
    attempts = rates.succeeded + rates.failed
    return JobOutcomes(
        succeeded=rates.succeeded,
        failed=rates.failed,
        dead=rates.dead,
        skipped=rates.skipped,
        other=rates.other,
        failure_rate=rates.failed / attempts if attempts else None,
        p50_seconds=percentile(rates.seconds_buckets, 0.5),
        p99_seconds=percentile(rates.seconds_buckets, 0.99),
    )
