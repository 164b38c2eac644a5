"""Jobs read, replaced, patched, ordered about and deleted: the state under the lock decides."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

pytestmark = pytest.mark.postgres

Call = Callable[..., httpx.Response]
Made = Callable[..., str]

NIGHTLY: dict[str, Any] = {
    "name": "nightly", "type": "python", "handler": "a.b", "schedule": "0 3 * * *", "payload": {"secret": "canary"}
}  # fmt: skip
ONCE: dict[str, Any] = {
    "type": "python",
    "handler": "a.b",
    "payload": {"n": 1},
    "run_at": "2100-01-01T00:00:00Z",
}


A_MINUTE_AGO = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()


@pytest.fixture
def made(api: Call) -> Made:
    """Makes a job; returns its path."""

    def make(document: dict[str, Any] = NIGHTLY, **fields: Any) -> str:
        return api("POST", "/v1/jobs", 202, json={**document, **fields}).headers["location"]

    return make


def row(database: psycopg.Connection, query: str) -> Any:
    found = database.execute(query).fetchone()
    assert found is not None
    return found if len(found) > 1 else found[0]


def test_a_job_is_read_with_every_default(api: Call, made: Made) -> None:
    job = api("GET", made(), 200).json()
    document = job.pop("document")
    assert document == {
        "name": "nightly", "type": "python", "handler": "a.b", "payload": {"secret": "canary"}, "run_at": None,
        "schedule": {
            "cron": "0 3 * * *", "timezone": "UTC", "dst_gap": "auto", "dst_overlap": "auto", "max_runs": None,
            "jitter_seconds": 0, "start": None, "end": None, "calendars": None,
        },
        "retry": {
            "max_retries": 3, "delay_seconds": 60, "factor": 2, "delays": None, "max_delay_seconds": 3600,
            "jitter": "full", "max_age_seconds": None, "only_on": None, "never_on": None,
        },
        "timeout_seconds": 3600, "deadline_seconds": None, "priority": "normal", "pool": "default",
        "namespace": "default", "labels": {}, "overlap": "skip", "delivery": "at_least_once", "limits": [],
        "misfire": {"policy": "fire_latest", "grace_seconds": 60, "look_back_seconds": None},
        "pause_after_failures": None, "start_deadline_seconds": None, "late_after_seconds": None, "idempotency_key": None,
        "description": None, "owner": None,
    }  # fmt: skip
    assert (job["state"], job["version"], job["last_run_at"], job["payload_hidden"]) == (
        "active",
        1,
        None,
        False,
    )
    assert job["next_run_at"].endswith("T03:00:00Z")


def test_a_payload_is_shown_to_those_who_may_read_payloads(api: Call, made: Made, token: Any) -> None:
    path = made()
    hidden = api("GET", path, 200, key=token("viewer")).json()
    assert (hidden["payload_hidden"], hidden["document"]["payload"]) == (True, None)
    assert api("GET", path, 200, key=token("operator")).json()["document"]["payload"] == {"secret": "canary"}
    listed = api("GET", "/v1/jobs", 200).json()["items"][0]
    assert (listed["payload_hidden"], listed["document"]["payload"]) == (True, None)
    paths = (f"{path}/versions", f"{path}/versions/1")
    assert all("canary" not in api("GET", one, 200, key=token("viewer")).text for one in paths)


def test_the_answer_put_back_changes_nothing(api: Call, made: Made, database: psycopg.Connection) -> None:
    for document in (
        NIGHTLY,
        {**ONCE, "name": "once"},
        {"type": "python", "handler": "a.b"},
        {**NIGHTLY, "name": "beat", "schedule": {"every": 60}, "labels": {"a": "b"}, "priority": "high"},
        {**NIGHTLY, "name": "several", "schedule": ["0 9 * * *", {"every": 60}], "max_retries": 0},
    ):
        path = made(document)
        before = api("GET", path, 200)
        timers = database.execute("select * from timers order by job_id").fetchall()
        after = api("PUT", path, 200, json=before.json()["document"])
        assert after.json() == before.json()
        assert after.headers["etag"] == before.headers["etag"]
        assert database.execute("select * from timers order by job_id").fetchall() == timers
    assert row(database, "select count(*) from job_versions") == 0


def test_a_change_is_made_of_what_was_seen_alone(api: Call, made: Made) -> None:
    path = made()
    seen = api("GET", path, 200).headers["etag"]
    changed = api("PUT", path, 200, json={**NIGHTLY, "owner": "me"}, headers={"If-Match": seen})
    assert changed.json()["version"] == 2
    late = api("PATCH", path, 412, json={"owner": "you"}, headers={"If-Match": seen})
    assert late.json()["type"] == "urn:noonmark:problem:precondition-failed"
    for order in ("pause", "cancel", "trigger"):
        api("POST", f"{path}/{order}", 412, json={}, headers={"If-Match": seen})
    api("DELETE", path, 412, headers={"If-Match": seen})
    assert api("GET", path, 200).json()["document"]["owner"] == "me"
    api("PATCH", path, 200, json={"owner": "you"}, headers={"If-Match": f'"x", {changed.headers["etag"]}'})


def test_of_changes_at_the_same_time_one_is_made_of_what_was_seen(api: Call, made: Made) -> None:
    path = made()
    headers = {"If-Match": api("GET", path, 200).headers["etag"]}
    with ThreadPoolExecutor(6) as threads:
        answers = list(
            threads.map(lambda n: api("PATCH", path, json={"owner": f"owner {n}"}, headers=headers), range(6))
        )
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412, 412, 412]
    assert api("GET", path, 200).json()["version"] == 2


def test_a_patch_changes_what_it_names(api: Call, made: Made, database: psycopg.Connection) -> None:
    path = made(labels={"team": "a", "tier": "1"}, max_retries=5, description="old")
    before = api("GET", path, 200).json()["document"]
    after = api(
        "PATCH",
        path,
        200,
        json={
            "payload": {"v": 2},
            "labels": {"team": "b", "tier": None},
            "max_retries": 2,
            "description": None,
            "schedule": {"timezone": "Europe/Berlin"},
        },
        headers={"Content-Type": "application/merge-patch+json"},
    ).json()
    expected = {
        **before,
        # Merged, as RFC 7396 has it: objects keep what is not named.
        "payload": {"secret": "canary", "v": 2},
        "labels": {"team": "b"},
        "description": None,
        "retry": {**before["retry"], "max_retries": 2},
        "schedule": {**before["schedule"], "timezone": "Europe/Berlin"},
    }
    assert after["document"] == expected
    assert (after["version"], row(database, "select count(*) from timers")) == (2, 1)
    refused = api("PATCH", path, 422, json={"schedule": {"every": 60}, "type": 3})
    assert {error["pointer"] for error in refused.json()["errors"]} >= {"/type"}
    assert api("GET", path, 200).json()["document"] == expected


def test_a_patch_of_a_job_that_ran_at_once_does_not_run_it_again(
    api: Call, made: Made, database: psycopg.Connection
) -> None:
    path = made({"type": "python", "handler": "a.b"})
    changed = api("PATCH", path, 200, json={"description": "first of its kind"}).json()
    assert (changed["version"], changed["document"]["description"]) == (2, "first of its kind")
    assert (row(database, "select count(*) from runs"), row(database, "select count(*) from timers")) == (
        1,
        0,
    )


@pytest.mark.parametrize("fields", [{"run_at": A_MINUTE_AGO}, {"limits": ["mails"]}, {"overlap": "skip"}])
def test_a_one_time_job_whose_instant_came_is_run_again_by_no_edit(
    api: Call, made: Made, database: psycopg.Connection, fields: dict[str, Any]
) -> None:
    """Whichever way its run came about; unless it is given another instant."""
    api("PUT", "/v1/limits/mails", json={"max_running": 1})
    document = {"type": "python", "handler": "a.b", **fields}
    path = made(document)
    # Not yet claimed: an edit moves nothing.
    due = row(database, "select fire_at from timers")
    assert api("PUT", path, 200, json=document).json()["version"] == 1
    assert api("PATCH", path, 200, json={"owner": "me"}).json()["version"] == 2
    assert row(database, "select fire_at from timers") == due

    database.execute("delete from timers")  # as a claim does
    edits = [("PATCH", {"labels": {"a": "b"}}), ("PUT", {**document, "owner": "you"}), ("PUT", document)]
    for method, edit in edits:
        assert api(method, path, 200, json=edit).json()["state"] == "completed"
    assert row(database, "select count(*) from timers") == 0
    assert row(database, "select version from jobs") == 5

    again = api("PATCH", path, 200, json={"run_at": "2100-01-01T00:00:00Z"}).json()
    assert (again["state"], row(database, "select count(*) from timers")) == ("active", 1)


def test_a_new_payload_is_for_what_is_not_yet_planned(
    api: Call, made: Made, database: psycopg.Connection
) -> None:
    path = made()
    api("POST", f"{path}/trigger", 202, json={})
    api("PATCH", path, 200, json={"payload": {"v": 2}})
    assert row(database, "select job_version from runs") == 1
    assert row(database, "select work ->> 'payload' from job_versions") == '{"secret":"canary"}'


def test_a_job_stays_in_its_namespace(api: Call, made: Made) -> None:
    path = made()
    refused = api("PUT", path, 422, json={**NIGHTLY, "namespace": "other"})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/namespace"]
    refused = api("PATCH", path, 422, json={"job_id": "x"})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/job_id"]


def test_delete_leaves_what_runs_and_cancel_stops_it(
    api: Call, made: Made, database: psycopg.Connection
) -> None:
    for act, running in (("delete", "running"), ("cancel", "cancelling")):
        path = made(name=act, overlap="allow")
        for state in ("running", "queued", "retrying"):
            run_id = api("POST", f"{path}/trigger", 202, json={}).json()["run_id"]
            owned = ", owner = 7, started_at = now()" if state == "running" else ""
            database.execute(f"update runs set state = %s {owned} where id = %s", [state, run_id])
        answer = api("DELETE", path, 200) if act == "delete" else api("POST", f"{path}/cancel", 200, json={})
        assert answer.json()["state"] == "cancelled"
        states = database.execute(
            "select state from runs where job_id = %s order by id", [answer.json()["id"]]
        ).fetchall()
        assert states == [(running,), ("cancelled",), ("cancelled",)]
    assert row(database, "select count(*) from timers") == 0
    api("POST", "/v1/jobs", 202, json={**NIGHTLY, "name": "delete"})
    api("PUT", path, 409, json=NIGHTLY)


def test_pause_and_resume(api: Call, made: Made) -> None:
    path = made()
    paused = api("POST", f"{path}/pause", 200, json={"reason": "target is down"}).json()
    assert (paused["state"], paused["state_reason"], paused["paused_by"]) == (
        "paused",
        "target is down",
        "job",
    )
    assert paused["next_run_at"] is None
    refused = api("POST", f"{path}/resume", 422, json={"missed": "some"})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/missed"]
    # Without a body, as with the command and the event: none of the missed instants runs.
    assert api("POST", f"{path}/resume", 200).json()["state"] == "active"
    refused = api("POST", f"{path}/pause", 422, json={"reason": "", "why": "x"})
    assert {error["pointer"] for error in refused.json()["errors"]} == {"/reason", "/why"}


def test_a_request_says_whether_it_changed_the_state_of_the_job(api: Call, made: Made) -> None:
    path = made()

    def changed(method: str, order: str, **body: str) -> bool:
        answer: bool = api(method, f"{path}{order}", 200, json=body or None).json()["changed"]
        return answer

    assert not changed("POST", "/resume")
    assert changed("POST", "/pause", reason="target is down")
    assert not changed("POST", "/pause", reason="target is down")
    assert changed("POST", "/pause", reason="target moves")
    assert changed("POST", "/resume")
    assert changed("POST", "/cancel", reason="over")
    assert not changed("POST", "/cancel", reason="over")
    assert not changed("DELETE", "")
    assert "changed" not in api("GET", path, 200).json()


def test_a_request_that_is_repeated_with_its_key_gets_the_first_answer(api: Call, made: Made) -> None:
    path = made()
    for _ in range(2):
        answer = api("POST", f"{path}/pause", 200, json={}, headers={"Idempotency-Key": "pause-1"})
        assert answer.json()["changed"]


def test_a_trigger_carries_a_payload_and_a_lane_of_its_own(
    api: Call, made: Made, database: psycopg.Connection
) -> None:
    path = made(overlap="allow")
    first = api("POST", f"{path}/trigger", 202, json={"payload": {"only": "now"}, "priority": 1})
    second = api("POST", f"{path}/trigger", 202, json={"payload": None})
    assert first.headers["location"] == f"/v1/runs/{first.json()['run_id']}"
    found = {
        str(run_id): (version, lane, payload)
        for run_id, version, lane, payload in database.execute(
            "select runs.id, version, runs.lane, work -> 'payload' from runs join job_versions as v"
            " on v.job_id = runs.job_id and v.version = runs.job_version"
        )
    }
    assert found == {
        first.json()["run_id"]: (1_000_000_000, 0, {"only": "now"}),
        second.json()["run_id"]: (1_000_000_001, 1, None),
    }
    assert row(database, "select work ->> 'timeout_seconds' from job_versions limit 1") == "3600.0"
    job = api("GET", path, 200).json()
    assert (job["version"], job["document"]["payload"]) == (1, {"secret": "canary"}), (
        "the job stays what it is"
    )
    assert len(api("GET", f"{path}/versions", 200).json()["items"]) == 1


def test_a_payload_of_ones_own_is_checked_and_needs_an_editor(api: Call, made: Made, token: Any) -> None:
    path = made(
        {"name": "call", "type": "http", "schedule": "@daily", "payload": {"url": "https://example.com/"}}
    )
    refused = api("POST", f"{path}/trigger", 422, json={"payload": {"url": "nowhere"}, "priority": 11})
    assert {error["pointer"] for error in refused.json()["errors"]} == {"/priority"}
    refused = api("POST", f"{path}/trigger", 422, json={"payload": {"url": "nowhere"}})
    assert {error["pointer"] for error in refused.json()["errors"]} == {"/payload/url"}
    operator = token("operator")
    api("POST", f"{path}/trigger", 403, json={"payload": {"url": "https://example.com/x"}}, key=operator)
    api("POST", f"{path}/trigger", 202, json={"priority": "low"}, key=operator)


def test_an_order_with_a_key_is_given_once(api: Call, made: Made, database: psycopg.Connection) -> None:
    path = made(overlap="allow")
    headers = {"Idempotency-Key": "go"}
    first = api("POST", f"{path}/trigger", 202, json={}, headers=headers)
    again = api("POST", f"{path}/trigger", 202, json={}, headers=headers)
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
    assert row(database, "select count(*) from runs") == 1
    api("POST", f"{path}/trigger", 422, json={"priority": "low"}, headers=headers)


def test_versions_and_what_changed_between_them(api: Call, made: Made, token: Any) -> None:
    path = made(labels={"a": "1"})
    api("PATCH", path, 200, json={"labels": {"a": "2", "b": "3"}, "payload": {"secret": "other"}})
    api("PATCH", path, 200, json={"priority": "low", "pool": "default"})
    items = api("GET", f"{path}/versions", 200).json()["items"]
    assert [item["version"] for item in items] == [3, 2, 1]
    assert [item["replaced_at"] is None for item in items] == [True, False, False]
    assert [item["document"]["priority"] for item in items] == ["low", "normal", "normal"]
    assert api("GET", f"{path}/versions/1", 200).json() == items[2]
    changes = api("GET", f"{path}/diff?from=1&to=3", 200).json()["changes"]
    assert changes == [
        {"pointer": "/payload/secret", "before": "canary", "after": "other"},
        {"pointer": "/priority", "before": "normal", "after": "low"},
        {"pointer": "/labels/a", "before": "1", "after": "2"},
        {"pointer": "/labels/b", "before": None, "after": "3"},
    ]
    hidden = api("GET", f"{path}/diff?from=1&to=3", 200, key=token("viewer")).json()
    assert {"pointer": "/payload", "before": None, "after": None} in hidden["changes"]
    assert "canary" not in str(hidden)
    api("GET", f"{path}/versions/4", 404)
    api("GET", f"{path}/diff?from=1&to=4", 404)


def test_strangers_learn_nothing_and_change_nothing(api: Call, made: Made, token: Any) -> None:
    path = made(namespace="acme")
    for key, read, changed in ((token("admin", "globex"), 404, 404), (token("viewer", "acme"), 200, 403)):
        for suffix in ("", "/versions", "/versions/1", "/diff?from=1&to=1", "/preview", "/backfills"):
            api("GET", path + suffix, read, key=key)
        for method, suffix, body in (
            ("PUT", "", NIGHTLY), ("PATCH", "", {"owner": "x"}), ("POST", "/pause", {}), ("POST", "/cancel", {}),
            ("POST", "/resume", {"missed": "all"}), ("POST", "/trigger", {}), ("POST", "/trigger", {"payload": 1}),
            ("POST", "/backfills", {"from": "2026-01-01T00:00:00Z"}),
        ):  # fmt: skip
            api(method, path + suffix, changed, key=key, json=body)
        api("DELETE", path, changed, key=key)
    assert api("GET", path, 200).json()["version"] == 1
    listed = api("GET", "/v1/jobs", 200, key=token("admin", "globex")).json()
    assert listed == {"items": [], "next_cursor": None}


def test_the_audit_log_has_both_sides_without_payloads(
    api: Call, made: Made, database: psycopg.Connection
) -> None:
    path = made()
    api("PATCH", path, 200, json={"owner": "me", "payload": {"secret": "canary2"}})
    before, after = row(database, "select before, after from audit_log where action = 'job.patch'")
    assert (before["document"]["owner"], after["document"]["owner"]) == (None, "me")
    assert before["document"]["payload_sha256"] != after["document"]["payload_sha256"]
    assert "canary" not in str(database.execute("select * from audit_log").fetchall())
