"""What is usual for a job, over the API."""

from __future__ import annotations

from uuid import uuid4

import pytest

pytestmark = pytest.mark.postgres


@pytest.fixture
def job(world):
    """A job with a history of ten runs, and outcomes of this hour and of the one before."""
    job = world.job()
    world.db.execute(
        """insert into job_stats (job_id, namespace, kind, runs, usual_seconds, failures, failure_cause, last_error)
           values (%s, 'tests', 'http', 10, 3.5, 2, '0f1e2d3c4b5a6978', 'card 4711')""",
        [job],
    )
    for age, succeeded in (("5 minutes", 30), ("10 minutes", 66), ("2 hours", 1000)):
        world.db.execute(
            """insert into outcome_windows (window_at, job_id, namespace, kind, succeeded, failed, dead, skipped, other,
                                            seconds_buckets)
               values (now() - %s::interval, %s, 'tests', 'http', %s, 2, 1, 5, 0, %s)""",
            [age, job, succeeded, [0] * 6 + [succeeded - 1, 0, 1] + [0] * 7],
        )
    return job


def test_it_tells_what_is_usual_and_how_the_last_hour_was(api, job):
    found = api("GET", f"/v1/jobs/{job}/stats", 200).json()

    assert (found["runs"], found["usual_seconds"], found["failures"]) == (10, 3.5, 2)
    assert (found["last_error"], found["error_hidden"]) == ("card 4711", False)
    assert found["last_hour"] == {
        "succeeded": 96,
        "failed": 4,
        "dead": 2,
        "skipped": 10,
        "other": 0,
        "failure_rate": 0.04,
        "p50_seconds": 1.0,
        "p99_seconds": 5.0,
    }


def test_a_job_without_history_has_none(api, world):
    found = api("GET", f"/v1/jobs/{world.job()}/stats", 200).json()

    assert (found["runs"], found["usual_seconds"], found["last_hour"]["failure_rate"]) == (0, None, None)
    assert found["last_hour"]["p99_seconds"] is None
    api("GET", f"/v1/jobs/{uuid4()}/stats", 404)


def test_the_last_error_is_hidden_from_those_who_may_not_see_it(api, job, token):
    found = api("GET", f"/v1/jobs/{job}/stats", 200, key=token("viewer", "tests")).json()

    assert (found["last_error"], found["error_hidden"], found["failures"]) == (None, True, 2)
    api("GET", f"/v1/jobs/{job}/stats", 404, key=token("admin", "other"))
