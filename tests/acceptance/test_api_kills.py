"""The API is killed, cut off and ended under load: what clients repeat by their keys takes effect once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.cluster import Cluster
from tests.support.keys import make_token
from tests.support.node import Node

from noonmark.client import ApiError, Client, NoAnswerError

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(180)]

CLIENTS = 8
CALLS = 60
JOB: dict[str, Any] = {"type": "python", "handler": "a.b"}
SESSIONS = (
    "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like '%%api%%'"
)


def token_of(noonmark: Cluster) -> str:
    with psycopg.connect(noonmark.dsn, autocommit=True) as connection:
        return make_token(connection)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def until_answered(call: Callable[[], Any], over: threading.Event) -> Any:
    """Do as api.md tells clients: where no answer came, or a 5xx, send it again with its key."""
    while not over.is_set():
        try:
            return call()
        except NoAnswerError:
            continue
        except ApiError as error:
            if error.status < 500:
                raise
    raise AssertionError("the test is over before every call has an answer")


def test_whatever_ends_the_api_each_key_takes_effect_once(noonmark: Cluster) -> None:
    token, port, over = token_of(noonmark), free_port(), threading.Event()
    settings = {"api_port": port, "api_rate_per_minute": "0"}
    (api,) = noonmark.start("api", **settings)
    with Client(f"http://127.0.0.1:{port}", token) as client:
        recurring = client.jobs.create({**JOB, "name": "kept", "schedule": "@yearly"})["id"]

    def load(number: int) -> list[tuple[str, str]]:
        answers = []
        with Client(f"http://127.0.0.1:{port}", token, timeout=5) as client:
            for turn in range(CALLS):
                key = f"{number}-{turn}"

                def call(key: str = key, turn: int = turn) -> Any:
                    if turn % 10 == 3:
                        return client.jobs.trigger(recurring, idempotency_key=key)
                    if turn % 10 == 6:
                        return client.request(
                            "POST", "/v1/jobs/bulk", json={"jobs": [{**JOB, "labels": {"key": key}}] * 3},
                            headers={"Idempotency-Key": key},
                        ).data  # fmt: skip
                    return client.jobs.create({**JOB, "labels": {"key": key}}, idempotency_key=key)

                answer = until_answered(call, over)
                found = answer.get("items", [answer])
                answers += [(key, one.get("run_id") or one["id"]) for one in found]
        return answers

    def kept() -> int:
        return int(noonmark.value("select count(*) from idempotency"))

    with ThreadPoolExecutor(CLIENTS) as pool:
        loads = [pool.submit(load, number) for number in range(CLIENTS)]
        try:
            for turn in range(1, 7):
                noonmark.wait(lambda turn=turn: kept() >= CLIENTS * CALLS * turn // 8, "more calls", 60)
                if turn % 2:
                    api.kill()
                    (api,) = noonmark.start("api", **settings)
                else:
                    noonmark.rows(SESSIONS)
            answers = [one for done in loads for one in done.result(90)]
        finally:
            over.set()

    assert kept() == CLIENTS * CALLS + 1
    made = noonmark.rows("select labels ->> 'key', id::text from jobs where name is null")
    triggered = noonmark.rows("select id::text from runs where job_id = %s", recurring)
    assert sorted(made) == sorted((key, found) for key, found in answers if (found,) not in set(triggered))
    assert len(triggered) == CLIENTS * CALLS // 10
    assert {found for _, found in answers} >= {run for (run,) in triggered}
    told = dict(noonmark.rows("select action, count(*) from audit_log where outcome = 'done' group by 1"))
    assert told["job.trigger"] >= len(triggered)


def test_an_api_that_is_ended_leaves_nothing_done_that_it_has_not_answered(noonmark: Cluster) -> None:
    token = token_of(noonmark)
    (api,) = noonmark.start("api", api_port="0", api_rate_per_minute="0", drain_seconds="30")

    def load(api: Node) -> list[str]:
        made = []
        with httpx.Client(base_url=api.api_url, headers={"Authorization": f"Bearer {token}"}) as client:
            while True:
                try:
                    answer = client.post("/v1/jobs", json=JOB)
                except httpx.TransportError:
                    return made
                assert answer.status_code == 202, answer.text
                made.append(answer.json()["id"])

    with ThreadPoolExecutor(CLIENTS) as pool:
        loads = [pool.submit(load, api) for _ in range(CLIENTS)]
        noonmark.wait(lambda: noonmark.value("select count(*) from jobs") > 200, "load")
        api.terminate()
        answered = [one for done in loads for one in done.result(60)]
    assert api.process.wait(30) == 0
    assert sorted(answered) == sorted(found for (found,) in noonmark.rows("select id::text from jobs"))
