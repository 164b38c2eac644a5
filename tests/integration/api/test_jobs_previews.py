"""Previews and backfills over REST: what a schedule will do, and what it did not do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

pytestmark = pytest.mark.postgres

Call = Callable[..., httpx.Response]

NIGHTLY: dict[str, Any] = {"name": "nightly", "type": "python", "handler": "a.b", "schedule": "@daily"}
NEW_YORK: dict[str, Any] = {"cron": "30 2 * * *", "timezone": "America/New_York"}


def test_a_preview_marks_what_the_clocks_do(api: Call, token: Callable[..., str]) -> None:
    body = {"schedule": NEW_YORK, "from": "2026-03-07T12:00:00Z", "count": 2}
    assert api("POST", "/v1/preview", 200, json=body, key=token("viewer")).json() == {
        "fires": [
            {
                "at": "2026-03-08T07:00:00Z",
                "local": "2026-03-08T03:00:00-04:00",
                "note": "moved: 02:30 does not exist",
            },
            {"at": "2026-03-09T06:30:00Z", "local": "2026-03-09T02:30:00-04:00", "note": None},
        ],
        "complete": False,
        "removed": [],
        "document": None,
        "problems": [],
    }


def test_a_preview_of_a_document_is_that_of_the_job_made_of_it(api: Call) -> None:
    document = {**NIGHTLY, "schedule": NEW_YORK}
    body = {"document": document, "from": "2030-03-09T12:00:00Z", "count": 3}
    before = api("POST", "/v1/preview", 200, json=body).json()
    path = api("POST", "/v1/jobs", 202, json=document).headers["location"]
    after = api("GET", f"{path}/preview?from=2030-03-09T12:00:00Z&count=3", 200).json()
    assert before.pop("document") == api("GET", path, 200).json()["document"]
    assert {**before, "document": None} == after
    assert len(before["fires"]) == 3
    once = {"document": {"type": "python", "handler": "a.b", "run_at": "2100-01-01T00:00:00Z"}}
    shown = api("POST", "/v1/preview", 200, json=once).json()
    assert ([fire["at"] for fire in shown["fires"]], shown["complete"]) == (["2100-01-01T00:00:00Z"], True)


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, {""}),
        ({"schedule": "@daily", "document": NIGHTLY}, {""}),
        ({"schedule": "0 25 * * *"}, {"/schedule"}),
        (
            {"document": {**NIGHTLY, "schedule": {"cron": "@daily", "timezone": "Mars"}}},
            {"/document/schedule/timezone"},
        ),
        ({"schedule": "@daily", "count": 0}, {"/count"}),
        ({"schedule": "@daily", "from": "today"}, {"/from"}),
        ({"schedule": "@daily", "until": "2026-01-01"}, {"/until"}),
        ({"schedule": "@daily", "since": "x"}, {"/since"}),
    ],
)
def test_what_is_wrong_with_a_preview_has_its_pointer(
    api: Call, body: dict[str, Any], pointers: set[str]
) -> None:
    refused = api("POST", "/v1/preview", 422, json=body).json()
    assert {error["pointer"] for error in refused["errors"]} == pointers


def test_what_a_document_names_and_is_not_there_is_told_to_those_who_could_make_it(
    api: Call, token: Callable[..., str]
) -> None:
    body = {"document": {**NIGHTLY, "pool": "nowhere"}, "count": 1}
    shown = api("POST", "/v1/preview", 200, json=body).json()
    assert [problem["pointer"] for problem in shown["problems"]] == ["/pool"]
    assert len(shown["fires"]) == 1
    assert api("POST", "/v1/preview", 200, json=body, key=token("viewer")).json()["problems"] == []


@pytest.fixture
def days() -> tuple[str, str]:
    """A range of three midnights that have passed."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (today - timedelta(days=3)).isoformat(), (today - timedelta(hours=1)).isoformat()


def test_a_backfill_is_planned_started_and_cancelled(
    api: Call, days: tuple[str, str], database: psycopg.Connection
) -> None:
    path = api("POST", "/v1/jobs", 202, json=NIGHTLY).headers["location"]
    body = {"from": days[0], "until": days[1]}
    plan = api("POST", f"{path}/backfills", 200, json={**body, "dry_run": True}).json()
    assert (plan["id"], plan["total"], plan["to_run"], len(plan["instants"])) == (None, 3, 3, 3)
    assert database.execute("select count(*) from backfills").fetchone() == (0,)

    headers = {"Idempotency-Key": "fill"}
    started = api("POST", f"{path}/backfills", 202, json=body, headers=headers)
    again = api("POST", f"{path}/backfills", 202, json=body, headers=headers)
    assert (again.json(), again.headers["idempotent-replayed"]) == (started.json(), "true")
    taken = api("POST", f"{path}/backfills", 409, json=body)
    assert "is running in a part of this range" in taken.json()["detail"]

    shown = api("GET", started.headers["location"], 200).json()
    assert (shown["state"], shown["total"], shown["runs"]) == ("running", 3, {})
    listed = api("GET", f"{path}/backfills?state=running", 200).json()["items"]
    assert [item["id"] for item in listed] == [shown["id"]]
    ended = api(
        "POST", f"/v1/backfills/{shown['id']}/cancel", 200, json={"reason": "no need", "runs": True}
    ).json()
    assert (ended["backfill"]["state"], ended["backfill"]["state_reason"]) == ("cancelled", "no need")
    assert api("GET", f"{path}/backfills?state=running", 200).json()["items"] == []


def test_what_is_wrong_with_a_backfill_is_told(
    api: Call, days: tuple[str, str], token: Callable[..., str]
) -> None:
    path = api("POST", "/v1/jobs", 202, json={**NIGHTLY, "namespace": "acme"}).headers["location"]
    refused = api("POST", f"{path}/backfills", 422, json={"until": "x", "mode": "some", "dry_run": 1}).json()
    assert {error["pointer"] for error in refused["errors"]} == {"/from", "/mode", "/dry_run"}
    refused = api("POST", f"{path}/backfills", 422, json={"from": "x"}).json()
    assert {error["pointer"] for error in refused["errors"]} == {"/from"}
    api("POST", f"{path}/backfills", 409, json={"from": days[1], "until": days[0]})
    started = api("POST", f"{path}/backfills", 202, json={"from": days[0], "until": days[1]}).json()
    stranger, viewer = token("admin", "globex"), token("viewer", "acme")
    api("GET", f"/v1/backfills/{started['id']}", 404, key=stranger)
    api("POST", f"/v1/backfills/{started['id']}/cancel", 404, json={}, key=stranger)
    api("POST", f"/v1/backfills/{started['id']}/cancel", 403, json={}, key=viewer)
    api("GET", f"/v1/backfills/{started['id']}", 200, key=viewer)
