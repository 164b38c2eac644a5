"""Jobs whose rows were changed by hand so that nothing can read them: what can be shown is, and a cancel works."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import psycopg
import pytest

pytestmark = pytest.mark.postgres

Call = Callable[..., httpx.Response]

NIGHTLY = {
    "name": "nightly",
    "type": "python",
    "handler": "a.b",
    "schedule": "0 3 * * *",
    "payload": {"n": 1},
}
BROKEN = [r'{"payload": "\ud800"}', '"x"', "null", "[1]", "[" * 2000 + "]" * 2000]
BROKEN_IDS = ["half a pair", "a text", "null", "a list", "too deep"]


@pytest.mark.parametrize("work", BROKEN, ids=BROKEN_IDS)
def test_a_job_whose_work_cannot_be_read_is_shown_and_cancelled(
    api: Call, database: psycopg.Connection, work: str
) -> None:
    path = api("POST", "/v1/jobs", 202, json=NIGHTLY).headers["location"]
    database.execute("update jobs set work = %s", [work])

    document = api("GET", path, 200).json()["document"]
    (listed,) = api("GET", "/v1/jobs", 200).json()["items"]
    api("GET", f"{path}/why", 200)

    assert (document["name"], document["handler"], document["payload"]) == ("nightly", "a.b", None)
    assert listed["document"]["name"] == "nightly"
    assert api("POST", f"{path}/cancel", 200, json={}).json()["state"] == "cancelled"


@pytest.mark.parametrize("work", BROKEN, ids=BROKEN_IDS)
def test_a_new_document_repairs_a_job_whose_work_cannot_be_read(
    api: Call, database: psycopg.Connection, work: str
) -> None:
    path = api("POST", "/v1/jobs", 202, json=NIGHTLY).headers["location"]
    database.execute("update jobs set work = %s", [work])

    api("PUT", path, 200, json=NIGHTLY)

    assert api("GET", path, 200).json()["document"]["payload"] == {"n": 1}


@pytest.mark.parametrize("instant", ["infinity", "-infinity", "200000-01-01 00:00+00"])
def test_a_job_whose_instants_cannot_be_read_is_shown_and_cancelled(
    api: Call, database: psycopg.Connection, instant: str
) -> None:
    path = api("POST", "/v1/jobs", 202, json=NIGHTLY).headers["location"]
    database.execute(
        "update timers set fire_at = %(at)s, scheduled_for = %(at)s, after_at = %(at)s", {"at": instant}
    )

    assert api("GET", path, 200).json()["next_run_at"] is None
    assert len(api("GET", "/v1/jobs", 200).json()["items"]) == 1
    assert api("POST", f"{path}/cancel", 200, json={}).json()["state"] == "cancelled"
