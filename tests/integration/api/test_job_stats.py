"""What is usual for a job, over the API."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from uuid import uuid4

import pytest

from noonmark.core.monitoring.recent import DEAD, FAILED, SKIPPED, encode, key_of, success_in

pytestmark = pytest.mark.postgres


@pytest.fixture
def job(world):
    """A job with a history of ten runs, and outcomes of this hour and of the one before."""
    job, now = world.job(), world.now()
    counts = Counter()
    for age, succeeded in ((5, 30), (10, 66), (120, 1000)):
        at = now - timedelta(minutes=age)
        counts[key_of(at, success_in(0.7))] += succeeded - 1
        counts[key_of(at, success_in(4.0))] += 1
        counts[key_of(at, FAILED)] += 1
        counts[key_of(at, DEAD)] += 1
        counts[key_of(at, SKIPPED)] += 5
    world.db.execute(
        """insert into job_stats (job_id, namespace, kind, runs, usual_seconds, failures, failure_cause, last_error, recent)
           values (%s, 'tests', 'http', 10, 3.5, 2, '0f1e2d3c4b5a6978', 'card 4711', %s)""",
        [job, encode(counts)],
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


def test_an_hour_later_nothing_of_it_counts(api, world, job):
    world.turn_clock(timedelta(minutes=61))

    found = api("GET", f"/v1/jobs/{job}/stats", 200).json()

    assert (found["runs"], found["last_hour"]["succeeded"], found["last_hour"]["p50_seconds"]) == (
        10,
        0,
        None,
    )


def test_a_row_of_release_0_2_has_no_last_hour(api, world, job):
    world.db.execute("update job_stats set recent = null")

    found = api("GET", f"/v1/jobs/{job}/stats", 200).json()

    assert (found["runs"], found["last_hour"]["succeeded"], found["last_hour"]["failure_rate"]) == (
        10,
        0,
        None,
    )


def test_the_last_error_is_hidden_from_those_who_may_not_see_it(api, job, token):
    found = api("GET", f"/v1/jobs/{job}/stats", 200, key=token("viewer", "tests")).json()

    assert (found["last_error"], found["error_hidden"], found["failures"]) == (None, True, 2)
    api("GET", f"/v1/jobs/{job}/stats", 404, key=token("admin", "other"))
