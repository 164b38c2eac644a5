"""POST /v1/jobs: taken when it is committed, once for each key, and refused with every problem."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from structlog.testing import capture_logs

from noonmark.api.backend import job_creation
from noonmark.api.backend.context import ApiContext
from noonmark.api.backend.database import Database

pytestmark = pytest.mark.postgres

Call = Callable[..., httpx.Response]

NIGHTLY: dict[str, Any] = {"name": "nightly", "type": "python", "handler": "a.b", "schedule": "0 3 * * *"}
ONCE: dict[str, Any] = {
    "type": "python",
    "handler": "a.b",
    "payload": {"n": 1},
    "run_at": "2100-01-01T00:00:00Z",
}


def count(database: psycopg.Connection, table: str) -> int:
    row = database.execute(f"select count(*) from {table}").fetchone()
    assert row is not None
    return int(row[0])


def test_a_job_is_committed_when_it_is_answered(api: Call, database: psycopg.Connection) -> None:
    made = api("POST", "/v1/jobs", 202, json=NIGHTLY)
    job_id = made.json()["id"]
    assert made.json() == {
        "id": job_id, "namespace": "default", "name": "nightly", "version": 1, "created": True
    }  # fmt: skip
    assert made.headers["location"] == f"/v1/jobs/{job_id}"
    assert database.execute("select state from jobs where id = %s", [job_id]).fetchone() == ("active",)
    assert count(database, "timers") == 1

    read = api("GET", made.headers["location"], 200)
    assert read.headers["etag"] == made.headers["etag"], "what was answered is what is there"


def test_a_key_makes_one_job_and_gets_one_answer(api: Call, database: psycopg.Connection) -> None:
    headers = {"Idempotency-Key": "order-42"}
    first = api("POST", "/v1/jobs", 202, json=ONCE, headers=headers)
    again = api("POST", "/v1/jobs", 202, json=ONCE, headers=headers)
    assert (again.json(), again.headers["location"], again.headers["etag"]) == (
        first.json(), first.headers["location"], first.headers["etag"]
    )  # fmt: skip
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert count(database, "jobs") == 1

    other = api("POST", "/v1/jobs", 422, json={**ONCE, "payload": {"n": 2}}, headers=headers)
    assert other.json()["type"] == "urn:noonmark:problem:idempotency-key-reused"
    assert count(database, "jobs") == 1


def test_a_refused_request_leaves_its_key_free(api: Call) -> None:
    headers = {"Idempotency-Key": "order-42"}
    api("POST", "/v1/jobs", 422, json={**ONCE, "max_retries": -1}, headers=headers)
    api("POST", "/v1/jobs", 202, json=ONCE, headers=headers)


def test_keys_of_two_namespaces_are_two(api: Call, token: Callable[..., str]) -> None:
    headers = {"Idempotency-Key": "k"}
    ids = {
        api("POST", "/v1/jobs", 202, json=ONCE, headers=headers, key=token("editor", name)).json()["id"]
        for name in ("acme", "globex")
    }
    assert len(ids) == 2


def test_the_documents_own_key_finds_the_job_that_has_it(api: Call, database: psycopg.Connection) -> None:
    first = api("POST", "/v1/jobs", 202, json={**ONCE, "idempotency_key": "invoice-7"})
    found = api("POST", "/v1/jobs", 200, json={**ONCE, "idempotency_key": "invoice-7", "payload": {"n": 2}})
    assert found.json() == {**first.json(), "created": False}
    assert found.headers["etag"] == first.headers["etag"]
    assert count(database, "jobs") == 1


def test_every_problem_has_its_pointer(api: Call, database: psycopg.Connection) -> None:
    refused = api(
        "POST",
        "/v1/jobs",
        422,
        json={
            "name": "x",
            "type": "http",
            "max_retries": "3",
            "nmae": "y",
            "schedule": "0 25 * * *",
            "payload": {"url": "nowhere"},
        },
    )
    assert refused.headers["content-type"] == "application/problem+json"
    assert {error["pointer"] for error in refused.json()["errors"]} == {
        "/max_retries", "/nmae", "/schedule", "/payload/url"
    }  # fmt: skip
    assert count(database, "jobs") == 0
    unread = api("POST", "/v1/jobs", 422, content=b"[1]", headers={"Content-Type": "application/json"})
    assert unread.json()["errors"][0]["pointer"] == ""
    unknown = api("POST", "/v1/jobs", 422, json={**ONCE, "pool": "nowhere", "limits": ["none"]})
    assert unknown.json()["errors"][0]["pointer"] == "/pool"


@pytest.mark.parametrize("namespace", ["NOT ONE", 'a"b', 'a","b', "{}", "", 7, None, "x" * 64])
def test_what_can_be_no_namespace_is_refused(api: Call, namespace: object) -> None:
    job = {**ONCE, "namespace": namespace}
    for path, body in (("/v1/jobs", job), ("/v1/preview", {"document": job})):
        refused = api("POST", path, 422, json=body).json()
        assert [error["pointer"].removeprefix("/document") for error in refused["errors"]] == ["/namespace"]
    (item,) = api("POST", "/v1/jobs/bulk", 200, json={"jobs": [job]}).json()["items"]
    assert [error["pointer"] for error in item["problem"]["errors"]] == ["/namespace"]


def test_a_taken_name_is_a_conflict(api: Call) -> None:
    api("POST", "/v1/jobs", 202, json=NIGHTLY)
    taken = api("POST", "/v1/jobs", 409, json=NIGHTLY)
    assert taken.json()["errors"][0]["pointer"] == "/name"


def test_who_may_not_write_makes_nothing(
    api: Call, token: Callable[..., str], database: psycopg.Connection
) -> None:
    api("POST", "/v1/jobs", 403, json=ONCE, key=token("operator", "acme"))
    api("POST", "/v1/jobs", 404, json={**ONCE, "namespace": "globex"}, key=token("admin", "acme"))
    assert count(database, "jobs") == 0
    row = database.execute(
        "select count(*) from audit_log where action = 'job.create' and outcome <> 'done'"
    ).fetchone()
    assert row == (2,)


def test_creates_at_the_same_time_fail_alone(api: Call, database: psycopg.Connection) -> None:
    """Good ones, bad ones, one key twice, one name twice, in two namespaces: each gets its own answer."""
    wishes: list[tuple[dict[str, Any], str | None, int]] = [
        *(({**ONCE, "namespace": f"ns{n % 2}"}, None, 202) for n in range(20)),
        *(({**ONCE, "max_retries": -n}, None, 422) for n in range(1, 5)),
        *(({**ONCE, "pool": "nowhere"}, None, 422) for n in range(4)),
        *((ONCE, "same", 202) for n in range(4)),
    ]
    with ThreadPoolExecutor(16) as threads:
        answers = list(
            threads.map(
                lambda wish: api(
                    "POST", "/v1/jobs", json=wish[0], headers={"Idempotency-Key": wish[1]} if wish[1] else {}
                ),
                wishes,
            )
        )
    assert [answer.status_code for answer in answers] == [status for _, _, status in wishes]
    assert len({UUID(answer.json()["id"]) for answer in answers if answer.status_code == 202}) == 21
    assert count(database, "jobs") == 21
    assert sum("idempotent-replayed" in answer.headers for answer in answers) == 3
    row = database.execute("select count(distinct object) from audit_log where outcome = 'done'").fetchone()
    assert row == (21,)


def test_one_name_is_given_once_whoever_asks_for_it_meanwhile(
    api: Call, database: psycopg.Connection
) -> None:
    with ThreadPoolExecutor(16) as threads:
        sent = [
            threads.submit(api, "POST", "/v1/jobs", json={**NIGHTLY, "name": f"nightly {n % 4}"})
            for n in range(32)
        ]
        answers = [one.result() for one in sent]
    assert sorted(answer.status_code for answer in answers) == [202] * 4 + [409] * 28
    assert {error["pointer"] for answer in answers for error in answer.json().get("errors", [])} == {"/name"}
    assert count(database, "jobs") == count(database, "timers") == 4


@pytest.fixture(params=["immediate", "deferred"])
def refusing(database: psycopg.Connection, request: pytest.FixtureRequest) -> Iterator[str]:
    """Let Postgres refuse every job of one name: when it is written, or only in the commit."""
    database.execute(
        "create function refuse_poison() returns trigger language plpgsql as"
        " $$ begin raise exception 'poison' using errcode = '22000'; end $$"
    )
    database.execute(
        f"create constraint trigger poison after insert on jobs deferrable initially {request.param}"
        " for each row when (new.name = 'poison') execute function refuse_poison()"
    )
    yield request.param
    database.execute("drop trigger poison on jobs")
    database.execute("drop function refuse_poison()")


def test_what_the_database_refuses_is_not_answered_as_made_and_fails_alone(
    api: Call, database: psycopg.Connection, refusing: str
) -> None:
    wishes = [{**ONCE, "name": "poison" if n % 5 == 3 else f"job {n}"} for n in range(20)]
    # Captured, because traces in colour take a second each.
    with capture_logs(), ThreadPoolExecutor(10) as threads:
        sent = [
            threads.submit(api, "POST", "/v1/jobs", json=wish, headers={"Idempotency-Key": f"k{n}"})
            for n, wish in enumerate(wishes)
        ]
        answers = [one.result().status_code for one in sent]
    refused = 422 if refusing == "immediate" else 500
    assert answers == [refused if wish["name"] == "poison" else 202 for wish in wishes]
    for table in ("jobs", "timers", "idempotency"):
        assert count(database, table) == 16
    row = database.execute("select count(*) from audit_log where outcome = 'done'").fetchone()
    assert row == (16,)


@pytest.mark.parametrize(
    ("table", "name"), [("audit_log", "after ->> 'name'"), ("idempotency", "body -> 'body' ->> 'name'")]
)
def test_what_fails_last_leaves_no_failed_transaction_to_the_next(
    api: Call, database: psycopg.Connection, table: str, name: str
) -> None:
    """Nobody waits for the answers to the last statements before the commit: that is what fails then."""
    database.execute(
        f"alter table {table} add constraint no_poison check (({name}) is distinct from 'poison') not valid"
    )
    try:
        for turn in range(6):
            headers = {"Idempotency-Key": f"k{turn}"}
            with capture_logs():
                api("POST", "/v1/jobs", 500, json={**ONCE, "name": "poison"}, headers=headers)
            api("POST", "/v1/jobs", 202, json={**ONCE, "name": f"job {turn}"}, headers=headers)
            api("GET", "/v1/jobs", 200)
    finally:
        database.execute(f"alter table {table} drop constraint no_poison")
    assert count(database, "jobs") == count(database, "idempotency") == 6
    told = database.execute("select outcome, count(*) from audit_log group by 1 order by 1").fetchall()
    assert told == [("done", 6), ("failed", 6)]


def test_documents_that_take_long_to_check_do_not_use_up_the_time_of_a_transaction(
    api: Call, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database ends a transaction that idles, and everybody's jobs with it: the others get another one."""
    monkeypatch.setattr(job_creation, "_CHECK_SECONDS", 0.0)
    wishes: list[tuple[dict[str, Any], str | None, int]] = [
        *((ONCE, None, 202) for _ in range(12)),
        *(({**ONCE, "max_retries": -n}, None, 422) for n in range(1, 4)),
        *((ONCE, "same", 202) for _ in range(3)),
    ]
    with ThreadPoolExecutor(18) as threads:
        sent = [
            threads.submit(
                api, "POST", "/v1/jobs", json=document, headers={"Idempotency-Key": key} if key else {}
            )
            for document, key, _ in wishes
        ]
        answers = [one.result().status_code for one in sent]
    assert answers == [status for _, _, status in wishes]
    assert count(database, "jobs") == 13


def test_a_database_that_goes_away_is_told_to_everybody(
    api: Call, database: psycopg.Connection, emptied_database: str
) -> None:
    def create(number: int) -> int:
        headers = {"Idempotency-Key": f"k{number}"}
        return api("POST", "/v1/jobs", json=ONCE, headers=headers).status_code

    stuck = "select pid from pg_stat_activity where application_name = 'noonmark-api' and wait_event_type = 'Lock'"
    with psycopg.connect(emptied_database) as blocker, ThreadPoolExecutor(4) as threads:
        blocker.execute("lock table jobs in exclusive mode")
        answers = [threads.submit(create, number) for number in range(4)]
        # Whatever they were gathered into: each batch that waits for the lock loses its connection.
        while not all(answer.done() for answer in answers):
            database.execute(f"select pg_terminate_backend(pid) from ({stuck}) as found")
            time.sleep(0.01)
        assert [answer.result() for answer in answers] == [503] * 4
    assert count(database, "jobs") == 0
    assert [create(number) for number in range(4)] == [202] * 4
    assert count(database, "jobs") == 4


def test_a_process_that_stops_between_two_statements_does_not_keep_its_locks(
    parts: ApiContext, database: psycopg.Connection
) -> None:
    """Postgres ends the sessions of those: of idle transactions, which one within a pipeline is to it, too."""
    with parts.database.pipelining(("acme",)) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        assert connection.execute("select 2").fetchall() == [(2,)]
        told = "select state from pg_stat_activity where pid = %s"
        seen = database.execute(told, [connection.info.backend_pid]).fetchone()
    assert seen == ("idle in transaction",)


def test_a_commit_without_a_reply_is_made_good_by_the_key(
    api: Call, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipelining = Database.pipelining
    lost: list[str] = []

    @contextmanager
    def losing(self: Database, namespaces: Any) -> Iterator[psycopg.Connection]:
        with pipelining(self, namespaces) as connection:
            yield connection
        if not lost:
            lost.append("reply")
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(Database, "pipelining", losing)
    headers = {"Idempotency-Key": "order-42"}
    unknown = api("POST", "/v1/jobs", 503, json=ONCE, headers=headers)
    assert (unknown.json()["type"], unknown.headers["retry-after"]) == (
        "urn:noonmark:problem:unavailable",
        "2",
    )
    again = api("POST", "/v1/jobs", 202, json=ONCE, headers=headers)
    assert again.headers["idempotent-replayed"] == "true"
    assert database.execute("select id::text from jobs").fetchall() == [(again.json()["id"],)]
