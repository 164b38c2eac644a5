"""The sentence about a created job says when it is due."""

from datetime import UTC, datetime

import pytest

from noonmark.cli.jobs.created import due_of

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)
CRON = {"cron": "0 9 * * *", "timezone": "UTC"}


def job(*, schedule=None, run_at=None, state="active", next_run_at=None):
    document = {"schedule": schedule, "run_at": run_at}
    return {"state": state, "next_run_at": next_run_at, "document": document}


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (job(), "due now"),
        (job(run_at="2026-06-02T10:00:00+02:00"), "due 2026-06-02T08:00:00Z"),
        (job(run_at="2026-06-01T08:45:00Z"), "due 2026-06-01T08:45:00Z, which is in the past: now"),
        (job(schedule=CRON, next_run_at="2026-06-02T09:00:00Z"), "next due 2026-06-02T09:00:00Z"),
        (job(schedule=CRON), "with no instant ahead"),
        (job(schedule=CRON, state="paused"), "paused, as its namespace is"),
    ],
)
def test_a_created_job_is_told_with_when_it_is_due(made, told):
    assert due_of(made, NOW) == told
