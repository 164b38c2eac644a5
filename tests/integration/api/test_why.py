"""`GET /v1/jobs/{id}/why` and `/v1/runs/{id}/why`: who gets which answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.intake.world import open_world
from tests.integration.why.scene import Scene
from tests.support.settings_orders import pause_namespace

from noonmark.core.states import RunState
from noonmark.kafka.lag import backlog
from noonmark.store.access.audit import AuditEntry, Outcome, write_entries

pytestmark = pytest.mark.postgres


@pytest.fixture
def scene(emptied_database: str, tmp_path: Path) -> Iterator[Scene]:
    with open_world(emptied_database) as world:
        made = Scene(world, tmp_path)
        made.everybody()
        yield made


def ordered(action: str, thing: str) -> AuditEntry:
    return AuditEntry(
        "key:abc", "alice", action, "default", thing, Outcome.DONE, None, None, None, "r1", None
    )


def test_the_first_answer_about_a_job_names_who_paused_it_with_facts_for_programs(
    api: Any, scene: Scene
) -> None:
    job = scene.minutely()
    scene.order("pause", job, reason="target is down")
    write_entries(scene.db, [ordered("job.pause", f"job:{job}")])

    found = api("GET", f"/v1/jobs/{job}/why", 200).json()

    assert (found["kind"], found["id"], found["job_name"], found["state"]) == (
        "job",
        str(job),
        "tick",
        "paused",
    )
    assert found["asked_at"] == scene.told(0)
    first = found["answers"][0]
    assert (first["code"], first["blocks"]) == ("job_paused", True)
    assert first["sentence"] == f"the job has been paused since {scene.told(0)} by alice: target is down"
    assert first["remedy"].startswith("`noonmark job resume tick --namespace default`")
    assert first["facts"] == {
        "job": "tick",
        "namespace": "default",
        "since": scene.told(0),
        "held_instants": 0,
        "reason": "target is down",
        "by": "alice",
    }


def test_a_pause_of_the_namespace_names_who_ordered_it(api: Any, scene: Scene) -> None:
    job = scene.submit(run_at=scene.told(3600))
    pause_namespace(scene.db, "default", "moving")
    write_entries(scene.db, [ordered("namespace.pause", "namespace:default")])

    first = api("GET", f"/v1/jobs/{job}/why", 200).json()["answers"][0]

    assert (
        first["sentence"] == f"its namespace default has been paused since {scene.told(0)} by alice: moving"
    )


@pytest.mark.parametrize("kind", ["runs", "executions"])
def test_a_run_is_asked_about_by_its_own_id(api: Any, scene: Scene, kind: str) -> None:
    job = scene.submit()
    scene.clock(30, "trigger", "worker")

    found = api("GET", f"/v1/{kind}/{scene.run(job)}/why", 200).json()

    assert (found["kind"], found["id"], found["job_id"]) == ("run", str(scene.run(job)), str(job))
    assert [one["code"] for one in found["answers"] if one["blocks"]] == ["dispatcher_stopped"]


def test_error_texts_are_for_those_who_may_read_them(api: Any, scene: Scene, token: Any) -> None:
    job = scene.submit()
    scene.end(
        scene.start(scene.run(job)), RunState.DEAD, reason="retries_exhausted", error="card 4711 refused"
    )
    path = f"/v1/runs/{scene.run(job)}/why"

    viewer = api("GET", path, 200, key=token("viewer", "default"))
    operator = api("GET", path, 200, key=token("operator", "default"))

    assert "4711" not in viewer.text
    assert viewer.json()["answers"][0]["sentence"].endswith("after 1 attempt (retries_exhausted)")
    assert operator.json()["answers"][0]["facts"]["error"] == "card 4711 refused"


@pytest.mark.parametrize("kind", ["jobs", "runs", "executions"])
def test_a_stranger_and_who_asks_for_nothing_that_is_there_get_the_same(
    api: Any, scene: Scene, token: Any, kind: str
) -> None:
    job = scene.submit()
    target = job if kind == "jobs" else scene.run(job)
    stranger = token("admin", "elsewhere")

    foreign = api("GET", f"/v1/{kind}/{target}/why", 404, key=stranger).json()
    missing = api("GET", f"/v1/{kind}/{(nowhere := uuid4())}/why", 404, key=stranger).json()

    assert foreign["detail"] == missing["detail"].replace(str(nowhere), str(target))


def test_messages_of_other_namespaces_count_but_are_not_told_of(api: Any, scene: Scene, token: Any) -> None:
    jobs = [
        scene.submit(namespace=namespace) for namespace in ("default", "acme", "acme", "acme", "acme", "acme")
    ]
    scene.clock(30, "trigger", "dispatcher", "worker")
    slices = scene.world.rows("select slice, count(*) from outbox where lane = 1 group by 1")
    mine = scene.world.row("select slice from outbox where run_id = %s", scene.run(jobs[0]))["slice"]

    first = api("GET", f"/v1/jobs/{jobs[0]}/why", 200, key=token("viewer", "default")).json()["answers"][0]

    assert first["code"] == "dispatcher_behind"
    assert first["facts"]["unsent"] == {row["slice"]: row["count"] for row in slices}[mine]


def test_a_kafka_that_does_not_answer_is_an_answer(
    api: Any, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "TIMEOUT_SECONDS", 0.2)
    job = scene.submit()
    scene.relay()

    first = api("GET", f"/v1/jobs/{job}/why", 200).json()["answers"][0]

    assert first["code"] == "kafka_away"
    assert first["sentence"].startswith("its message is in Kafka, but its lane cannot be measured now: ")


def test_a_one_time_job_that_has_had_its_run_has_the_state_that_listings_show(api: Any, scene: Scene) -> None:
    job = scene.submit()
    scene.start_and_end(job)

    listed = api("GET", f"/v1/jobs/{job}", 200).json()

    assert api("GET", f"/v1/jobs/{job}/why", 200).json()["state"] == listed["state"] == "completed"
