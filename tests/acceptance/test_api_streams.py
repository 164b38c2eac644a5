"""Live events from real processes: a cancel over the API comes back on the stream, which ends with the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.cluster import Cluster
from tests.support.keys import make_token

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

JOB = {"name": "welcome", "type": "http", "payload": {"url": "https://example.com/"}}


def events(lines: Iterator[str], wanted: str) -> Any:
    """Read on to the next event of a name; return its data."""
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        if field == "data" and name == wanted:
            return json.loads(value)
    raise AssertionError(f"the stream is over before any {wanted}")


def test_a_stream_tells_of_a_cancel_and_does_not_hold_the_end_of_the_server(noonmark: Cluster) -> None:
    api, _ = noonmark.start("api", "dispatcher", api_port="0", drain_seconds="60")
    with psycopg.connect(noonmark.dsn, autocommit=True) as connection:
        token = make_token(connection)
    headers = {"Authorization": f"Bearer {token}"}
    with (
        httpx.Client(base_url=api.api_url, headers=headers, timeout=30) as client,
        client.stream("GET", "/v1/events") as stream,
    ):
        lines = stream.iter_lines()
        assert any(line == ": following" for line in lines)
        job_id = client.post("/v1/jobs", json=JOB).json()["id"]
        (run,) = client.get(f"/v1/jobs/{job_id}/executions").json()["items"]
        cancelled = client.post(f"/v1/runs/{run['id']}/cancel", json={"reason": "not today"})
        assert cancelled.status_code == 202, cancelled.text

        told = events(lines, "run")
        assert (told["run_id"], told["state"]) == (run["id"], "cancelled")
        assert told["reason"].endswith(": not today")

        # Long before the time is up that requests in hand may take.
        api.terminate()
        assert events(lines, "end")["reason"] == "shutdown"
        assert api.process.wait(20) == 0
