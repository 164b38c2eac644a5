"""What jobs and runs depend on, over the API: calendars, limits, namespaces, workers, lanes, rejections."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
from tests.integration.store.world import minute

from noonmark.api.backend import lag
from noonmark.core.states import TimerKind

pytestmark = pytest.mark.postgres

CRON = {"cron": "0 9 * * *", "timezone": "UTC"}
JOB = {"type": "http", "schedule": "0 9 * * 1", "payload": {"url": "https://example.com/"}}


def recurring(world, **columns):
    job = world.job(schedule=CRON, recurring=True, **columns)
    world.timer(job, minute(world.now()), kind=TimerKind.PLANNED)
    return job


def refused(api, path, body, pointer):
    """Check that the only problem of a body is at the pointer, with what is expected there."""
    problem = api("PUT", path, 422, json=body).json()
    assert [(error["pointer"], bool(error["expected"])) for error in problem["errors"]] == [
        (pointer, True)
    ], problem
    assert problem["errors"][0]["expected"] not in problem["errors"][0]["message"]
    return problem["errors"][0]


# calendars


def test_a_calendar_is_made_changed_and_deleted(api, database):
    path = "/v1/calendars/holidays?namespace=tests"
    foreseen = api("PUT", f"{path}&dry_run=true", 200, json={"dates": ["2026-12-25"]}).json()
    assert (foreseen["change"], foreseen["dry_run"]) == ("created", True)
    api("GET", path, 404)

    made = api("PUT", path, 200, json={"dates": ["2026-12-25"], "weekdays": ["SAT"]})
    assert made.json()["added"] == {"dates": ["2026-12-25"], "weekdays": ["SAT"]}
    read = api("GET", path, 200)
    assert (read.json()["dates"], read.json()["weekdays"], read.json()["jobs"]) == (
        ["2026-12-25"],
        ["SAT"],
        0,
    )
    assert read.headers["etag"] == made.headers["etag"]
    api("PUT", path, 412, json={"dates": []}, headers={"If-Match": '"older"'})
    changed = api(
        "PUT", path, 200, json={"dates": ["2026-12-24"]}, headers={"If-Match": made.headers["etag"]}
    )
    assert (changed.json()["change"], changed.json()["removed"]) == (
        "changed",
        {"dates": ["2026-12-25"], "weekdays": ["SAT"]},
    )
    assert [one["name"] for one in api("GET", "/v1/calendars?namespace=tests", 200).json()["items"]] == [
        "holidays"
    ]
    api("DELETE", path, 204)
    api("DELETE", path, 404)
    acts = database.execute("select action, outcome from audit_log order by id").fetchall()
    assert [act for act, outcome in acts if outcome == "done"] == ["calendar.put"] * 2 + ["calendar.delete"]


def test_what_is_wrong_with_a_calendar_is_told_with_its_place(api):
    problem = api("PUT", "/v1/calendars/c", 422, json={"dates": ["2026-12-25", "2026-13-01"]}).json()
    assert [(error["pointer"], error["expected"]) for error in problem["errors"]] == [
        ("/dates/1", "a date such as 2026-12-25, from 1970-01-01 to 2199-12-31")
    ]
    for body, pointer in (
        ({}, ""),
        ([], ""),
        ({"dates": "2026-12-25"}, "/dates"),
        ({"dates": ["today"]}, "/dates/0"),
        ({"ranges": [{"first": "2026-12-25"}]}, "/ranges/0"),
        ({"weekdays": ["FUNDAY"]}, "/weekdays/0"),
        ({"yearly": ["02-30"]}, "/yearly/0"),
        ({"days": ["2026-12-25"]}, "/days"),
    ):
        refused(api, "/v1/calendars/c", body, pointer)
    named = api("PUT", "/v1/calendars/UPPER", 400, json={"dates": []}).json()
    assert [bool(error["expected"]) for error in named["errors"]] == [True]


def test_a_calendar_that_a_job_uses_stays(api):
    api("PUT", "/v1/calendars/holidays", 200, json={"dates": ["2026-12-25"]})
    schedule = {"cron": "0 9 * * *", "timezone": "Europe/Berlin", "calendars": {"exclude": ["holidays"]}}
    api("POST", "/v1/jobs", 202, json={**JOB, "name": "report", "schedule": schedule})

    problem = api("DELETE", "/v1/calendars/holidays", 409).json()

    assert "is used by the job report" in problem["detail"]
    change = api("PUT", "/v1/calendars/holidays", 200, json={"dates": ["2026-12-24"]}).json()
    assert (change["jobs"], change["replanned"], change["used_by"]) == (1, 1, ["report"])


# limits


def test_a_limit_is_made_changed_and_deleted(api):
    path = "/v1/limits/stripe?namespace=tests"
    made = api("PUT", path, 200, json={"max_running": 5, "rate": "100/60s", "burst": 20})
    assert {name: made.json()[name] for name in ("max_running", "rate", "rate_count", "burst", "in_use")} == {
        "max_running": 5,
        "rate": "100/60s",
        "rate_count": 100,
        "burst": 20,
        "in_use": 0,
    }
    api("PUT", path, 412, json={"max_running": 6}, headers={"If-Match": '"older"'})
    changed = api("PUT", path, 200, json={"max_running": 6}, headers={"If-Match": made.headers["etag"]})
    assert changed.json()["rate"] is None
    assert api("GET", path, 200).headers["etag"] == changed.headers["etag"]
    assert [one["name"] for one in api("GET", "/v1/limits?namespace=tests", 200).json()["items"]] == [
        "stripe"
    ]
    api("DELETE", path, 204)
    api("GET", path, 404)


def test_figures_that_are_none_are_told_with_their_place(api):
    for body, pointer in {
        (): "",
        (("rate", "often"),): "/rate",
        (("burst", 3), ("max_running", 1)): "/burst",
        (("burst", 10**6), ("rate", "1/h")): "/burst",
        (("max_running", 0),): "/max_running",
        (("max_running", "5"),): "/max_running",
        (("max_running", 5), ("burst", 10**10), ("rate", "1/s")): "/burst",
        (("rate", "1/" + "s" * 40),): "/rate",
        (("concurrency", 1),): "/concurrency",
    }.items():
        refused(api, "/v1/limits/stripe", dict(body), pointer)
    assert refused(api, "/v1/limits/stripe", {"max_running": 0}, "/max_running") == {
        "pointer": "/max_running",
        "message": "0 is below 1",
        "expected": "an integer from 1 to 1000000000",
    }


def test_a_limit_that_a_job_names_stays(api):
    api("PUT", "/v1/limits/stripe", 200, json={"max_running": 5})
    api("POST", "/v1/jobs", 202, json={**JOB, "name": "charge", "limits": ["stripe"]})
    assert "is used by charge" in api("DELETE", "/v1/limits/stripe", 409).json()["detail"]


# namespaces


def test_a_namespace_has_defaults_until_it_is_set(api, token):
    defaults = api("GET", "/v1/namespaces/tests", 200)
    assert defaults.json()["timezone"] == "UTC"
    assert defaults.json()["max_jobs"] is None

    body = {"timezone": "Europe/Berlin", "max_in_flight": 7, "max_jobs": 3}
    etag = {"If-Match": defaults.headers["etag"]}
    changed = api("PUT", "/v1/namespaces/tests", 200, json=body, headers=etag)
    assert {name: changed.json()[name] for name in body} == body
    api("PUT", "/v1/namespaces/tests", 412, json=body, headers=etag)
    assert api("PUT", "/v1/namespaces/tests", 200, json={"max_jobs": 3}).json()["timezone"] == "UTC"
    for body, pointer in (
        ({"timezone": "Berlin"}, "/timezone"),
        ({"timezone": ""}, "/timezone"),
        ({"timezone": None}, "/timezone"),
        ({"max_in_flight": 0}, "/max_in_flight"),
        ({"max_jobs": 10**8}, "/max_jobs"),
        ({"max_jobs": True}, "/max_jobs"),
        ({"zone": "UTC"}, "/zone"),
    ):
        refused(api, "/v1/namespaces/tests", body, pointer)

    viewer = token("viewer", "tests")
    assert [one["name"] for one in api("GET", "/v1/namespaces", 200, key=viewer).json()["items"]] == ["tests"]
    api("GET", "/v1/namespaces/other", 404, key=viewer)
    api("DELETE", "/v1/namespaces/tests", 403, key=token("admin", "tests"))
    api("DELETE", "/v1/namespaces/tests", 204)
    assert api("GET", "/v1/namespaces", 200).json()["items"] == []
    api("DELETE", "/v1/namespaces/tests", 404)


def test_a_pause_holds_the_jobs_of_its_namespace_and_a_resume_lets_them_go(api, world):
    jobs = [recurring(world) for _ in range(3)]
    queued = world.put_run(job_id=jobs[0])

    paused = api("POST", "/v1/namespaces/tests/pause", 200, json={"reason": "moving"}).json()

    assert (paused["changed"], paused["jobs"], paused["runs"], paused["complete"]) == (True, 3, 1, True)
    read = api("GET", "/v1/namespaces/tests", 200).json()
    assert (read["state"], read["pause_reason"], read["recurring_jobs"]) == (
        "paused",
        "moving",
        {"paused_by_namespace": 3},
    )
    assert world.run(queued)["state"] == "waiting"
    api("DELETE", "/v1/namespaces/tests", 409)
    again = api("POST", "/v1/namespaces/tests/pause", 200).json()
    assert (again["changed"], again["jobs"]) == (False, 0)

    resumed = api("POST", "/v1/namespaces/tests/resume", 200, json={"missed": "latest"}).json()
    assert (resumed["changed"], resumed["jobs"], resumed["runs"], resumed["complete"]) == (True, 3, 1, True)
    assert world.run(queued)["state"] == "queued"
    unknown = api("POST", "/v1/namespaces/tests/resume", 422, json={"missed": "some"}).json()
    assert unknown["errors"] == [
        {"pointer": "/missed", "message": '"some" is not allowed', "expected": "skip, latest or all"}
    ]


def test_one_call_holds_a_bounded_number_of_jobs(api, world, monkeypatch):
    from noonmark.api.routes import namespaces  # noqa: PLC0415
    from noonmark.store.namespaces import batches as namespace_batches  # noqa: PLC0415

    monkeypatch.setattr(namespaces, "MOST", 2)
    monkeypatch.setattr(namespace_batches, "BATCH", 2)
    for _ in range(5):
        recurring(world)

    answers = [api("POST", "/v1/namespaces/tests/pause", 200).json() for _ in range(3)]

    assert [one["jobs"] for one in answers] == [2, 2, 1]
    assert [one["complete"] for one in answers] == [False, False, True]


def test_a_quota_of_jobs_holds_however_many_come_at_once(api, world):
    api("PUT", "/v1/namespaces/tests", 200, json={"max_jobs": 2})
    job = {**JOB, "namespace": "tests"}
    first = api("POST", "/v1/jobs", 202, json={**job, "name": "one"}).json()["id"]
    answers = []
    threads = [
        threading.Thread(
            target=lambda n=n: answers.append(api("POST", "/v1/jobs", json={**job, "name": f"job-{n}"}))
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409]
    refused = next(answer.json() for answer in answers if answer.status_code == 409)
    assert refused["type"] == "urn:noonmark:problem:quota-exceeded"
    assert "has reached its quota of 2 recurring jobs" in refused["detail"]
    # What runs once takes no room, and what is there already has its own answer.
    api(
        "POST",
        "/v1/jobs",
        202,
        json={**job, "name": "once", "schedule": None, "run_at": "2040-01-01T00:00:00Z"},
    )
    taken = api("POST", "/v1/jobs", 409, json={**job, "name": "one"}).json()
    assert taken["type"] == "urn:noonmark:problem:conflict"
    api("POST", "/v1/jobs", 202, json={**job, "namespace": "other", "name": "one"})
    api("DELETE", f"/v1/jobs/{first}")
    api("POST", "/v1/jobs", 202, json={**job, "name": "another"})


# the installation


def test_workers_and_pools_are_listed_without_what_is_secret(api, world, token):
    worker = world.worker()
    world.started(worker, 2)
    viewer = token("viewer", "elsewhere")

    (one,) = api("GET", "/v1/workers", 200, key=viewer).json()["items"]

    assert (one["id"], one["state"], one["started_runs"]) == (worker.worker, "alive", 2)
    assert api("GET", "/v1/workers?pool=other", 200).json()["items"] == []
    world.db.execute("update workers set left_at = now()")
    assert api("GET", "/v1/workers", 200).json()["items"] == []
    assert [one["state"] for one in api("GET", "/v1/workers?ended=true", 200).json()["items"]] == ["left"]
    pools = api("GET", "/v1/pools", 200, key=viewer).json()["items"]
    assert [(pool["name"], pool["workers"]) for pool in pools] == [("default", 0)]


def test_rejections_are_the_platforms_alone(api, database, token):
    for n in range(3):
        database.execute(
            """insert into rejections (topic, partition, record_offset, reason, errors, value, truncated, received_at)
               values ('t', 0, %s, 'invalid', '[{"pointer": "/data", "message": "is none", "expected": ""}]',
                       %s, false, now())""",
            [n, b"\xff{}"],
        )
    first = api("GET", "/v1/rejections?limit=2", 200).json()
    second = api("GET", f"/v1/rejections?limit=2&cursor={first['next_cursor']}", 200).json()
    assert [one["offset"] for one in first["items"] + second["items"]] == [2, 1, 0]
    read = api("GET", f"/v1/rejections/{first['items'][0]['id']}", 200).json()
    assert (read["value_base64"], read["errors"][0]["pointer"]) == ("/3t9", "/data")
    api("GET", "/v1/rejections/9999999", 404)
    api("GET", "/v1/rejections", 403, key=token("admin", "tests"))


def test_lanes_without_kafka_say_so_within_bounds(api, monkeypatch):
    monkeypatch.setattr(lag, "WAIT_SECONDS", 0.2)

    answer = api("GET", "/v1/lanes", 503)

    assert answer.json()["detail"].startswith("Kafka does not respond: ")
    assert answer.headers["retry-after"]


def test_settings_of_others_answer_like_those_that_are_not_there(api, token):
    api("PUT", "/v1/calendars/c?namespace=tests", 200, json={"dates": []})
    api("PUT", "/v1/limits/l?namespace=tests", 200, json={"max_running": 1})
    stranger = token("admin", "elsewhere")
    nowhere = f"n{uuid4().hex[:8]}"
    for path in ("calendars/c", "limits/l", "calendars", "limits"):
        theirs, nobodys = (
            api("GET", f"/v1/{path}?namespace={name}", 404, key=stranger).json()
            for name in ("tests", nowhere)
        )
        assert theirs["detail"].replace("tests", nowhere) == nobodys["detail"]
    api("GET", "/v1/calendars/c", 404, key=stranger)
