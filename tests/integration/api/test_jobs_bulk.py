"""POST /v1/jobs/bulk: each job is taken or not by itself."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import psycopg
import pytest

pytestmark = pytest.mark.postgres

Call = Callable[..., httpx.Response]

ONCE: dict[str, Any] = {"type": "python", "handler": "a.b", "run_at": "2100-01-01T00:00:00Z"}


def test_each_gets_its_own_verdict(api: Call, database: psycopg.Connection) -> None:
    recurring = {"name": "nightly", "type": "python", "handler": "a.b", "schedule": "@daily"}
    jobs: list[Any] = [
        ONCE,
        {**ONCE, "max_retries": -1, "x": 1},
        recurring,
        recurring,
        {**ONCE, "idempotency_key": "k"},
        {**ONCE, "idempotency_key": "k"},
        7,
        {**ONCE, "pool": "nowhere"},
        {**ONCE, "namespace": "NOT ONE"},
    ]
    answer = api("POST", "/v1/jobs/bulk", 200, json={"jobs": jobs}).json()
    items = answer["items"]
    assert [item["index"] for item in items] == list(range(len(jobs)))
    assert [item["status"] for item in items] == [202, 422, 202, 409, 202, 200, 422, 422, 422]
    assert (answer["accepted"], answer["rejected"]) == (4, 5)
    pointers = [
        [error["pointer"] for error in item["problem"]["errors"]] for item in items if item["problem"]
    ]
    assert [sorted(found) for found in pointers] == [
        ["/max_retries", "/x"], ["/name"], [""], ["/pool"], ["/namespace"]
    ]  # fmt: skip
    assert items[4]["id"] == items[5]["id"]
    row = database.execute("select count(*) from jobs").fetchone()
    assert row == (3,)


def test_namespaces_of_others_are_answered_as_those_that_do_not_exist(
    api: Call, token: Callable[..., str], database: psycopg.Connection
) -> None:
    api("POST", "/v1/jobs", 202, json={**ONCE, "namespace": "globex"})
    database.execute("delete from jobs")
    unknown = [{**ONCE, "namespace": name} for name in ("globex", "nowhere")]
    jobs = [ONCE, *unknown, {**ONCE, "namespace": "acme"}]
    key = token("editor", "acme")
    answer = api("POST", "/v1/jobs/bulk", 200, json={"jobs": jobs}, key=key).json()
    # What belongs to others is not told from what does not exist, here as with a single job.
    assert [item["status"] for item in answer["items"]] == [202, 404, 404, 202]
    details = [item["problem"]["detail"] for item in answer["items"][1:3]]
    assert details == ["there is no namespace 'globex'", "there is no namespace 'nowhere'"]
    assert database.execute("select distinct namespace from jobs").fetchall() == [("acme",)]
    api("POST", "/v1/jobs/bulk", 404, json={"jobs": jobs[1:2]}, key=key)
    api("POST", "/v1/jobs/bulk", 403, json={"jobs": jobs[:1]}, key=token("operator", "acme"))


def test_the_request_itself_is_checked(api: Call) -> None:
    for body in ({}, {"jobs": []}, {"jobs": [ONCE] * 10_001}, {"jobs": {}}):
        refused = api("POST", "/v1/jobs/bulk", 422, json=body).json()
        assert [error["pointer"] for error in refused["errors"]] == ["/jobs"]
    refused = api("POST", "/v1/jobs/bulk", 422, json={"jobs": [ONCE], "name": "x"}).json()
    assert [error["pointer"] for error in refused["errors"]] == ["/name"]


def test_a_bulk_that_loses_a_deadlock_is_made_again(
    api: Call, database: psycopg.Connection, emptied_database: str
) -> None:
    recurring = {"type": "python", "handler": "a.b", "schedule": "@daily"}
    api("POST", "/v1/jobs", 202, json={**recurring, "name": "kept"})
    with psycopg.connect(emptied_database) as rival, ThreadPoolExecutor(1) as threads:
        rival.execute("create temp table another as select * from jobs")

        def insert(name: str) -> None:
            rival.execute("update another set id = gen_random_uuid(), name = %s", [name])
            rival.execute("insert into jobs select * from another")

        insert("b")
        bulk = {"jobs": [{**recurring, "name": name} for name in "ab"]}
        made = threads.submit(api, "POST", "/v1/jobs/bulk", json=bulk)
        waiting = (
            "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
        while not database.execute(waiting).fetchone():
            assert not made.done(), made.result().text
        with suppress(psycopg.errors.DeadlockDetected):
            insert("a")  # what the bulk has, who waits for what is here
        rival.rollback()
        assert made.result().status_code == 200, made.result().text
    assert [item["status"] for item in made.result().json()["items"]] == [202, 202]


def test_a_key_makes_them_once(api: Call, database: psycopg.Connection) -> None:
    headers = {"Idempotency-Key": "import-7"}
    first = api("POST", "/v1/jobs/bulk", 200, json={"jobs": [ONCE, ONCE]}, headers=headers)
    again = api("POST", "/v1/jobs/bulk", 200, json={"jobs": [ONCE, ONCE]}, headers=headers)
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
    assert database.execute("select count(*) from jobs").fetchone() == (2,)
    api("POST", "/v1/jobs/bulk", 422, json={"jobs": [ONCE]}, headers=headers)


def test_the_audit_log_names_every_job(api: Call, database: psycopg.Connection) -> None:
    answer = api("POST", "/v1/jobs/bulk", 200, json={"jobs": [ONCE, ONCE]}).json()
    row = database.execute("select after from audit_log where action = 'job.create'").fetchone()
    assert row is not None
    assert row[0] == {"accepted": 2, "rejected": 0, "jobs": [item["id"] for item in answer["items"]]}
