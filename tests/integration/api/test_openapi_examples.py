"""Every example of the OpenAPI document, sent as it stands, gets the answer that the document promises."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest
from tests.integration.api.scene import HOME, ROUTES, Scene
from tests.support.asgi import Answer

from noonmark.api.app import build_api
from noonmark.api.openapi.document import document

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

DOCUMENT = document(build_api())

NOT_SENT = {
    "events.follow": "its answer does not end: tests of its own read it",
    "runs.complete": "the token is of a call that was made: tests of callbacks send it",
    "runs.complete_execution": "likewise",
}
OWN_HEADERS = {"ETag", "Location"}
"""Documented for an operation if and only if its answers carry them."""

Prepare = Callable[[Scene], dict[str, Any]]


def job(scene: Scene) -> dict[str, Any]:
    scene.places["count"] = {"n": scene.places.get("count", {}).get("n", 0) + 1}
    return {"job_id": scene.job(f"job {scene.places['count']['n']}"), "version": 1}


def paused(scene: Scene) -> dict[str, Any]:
    made = job(scene)
    scene.admin("POST", f"/v1/jobs/{made['job_id']}/pause", {})
    return made


def changed(scene: Scene) -> dict[str, Any]:
    made = job(scene)
    scene.admin("PATCH", f"/v1/jobs/{made['job_id']}", {"timeout_seconds": 5})
    return made


def key(scene: Scene) -> dict[str, Any]:
    return {"key_id": scene.admin("POST", "/v1/keys", {"name": "x", "grants": {HOME: "viewer"}})["key_id"]}


PREPARED: dict[str, Prepare] = {
    "jobs.resume": paused,
    "jobs.diff": changed,
    "runs.retry": lambda scene: {"run_id": scene.dead_run(job(scene)["job_id"])},
    "runs.hold": lambda scene: {"run_id": scene.open_workflow_run()},
    "runs.release": lambda scene: {"run_id": scene.open_workflow_run()},
    "runs.cancel": lambda scene: {"run_id": scene.waiting_run(job(scene)["job_id"])},
    "backfills.cancel": lambda scene: {"backfill_id": scene.backfill(job(scene)["job_id"])},
    "keys.revoke": key,
    "namespaces.delete": lambda scene: {"name": empty_namespace(scene)},
    "namespaces.resume": lambda scene: {"name": paused_namespace(scene)},
}
"""Objects in a state that an operation is made for; others get a fresh job, or what the scene has."""


def empty_namespace(scene: Scene) -> str:
    scene.admin("PUT", "/v1/namespaces/empty", {})
    return "empty"


def paused_namespace(scene: Scene) -> str:
    scene.admin("PUT", "/v1/namespaces/held", {})
    scene.admin("POST", "/v1/namespaces/held/pause", {"reason": "a move"})
    return "held"


def values_of(scene: Scene, name: str, path: str) -> dict[str, Any]:
    prepared = PREPARED.get(name.removesuffix("_execution"))
    if prepared is not None:
        return prepared(scene)
    if "{job_id}" in path:
        return job(scene)
    return scene.places_of(path)


def target_of(scene: Scene, name: str, method: str, path: str, operation: dict[str, Any]) -> str:
    values = values_of(scene, name, path)
    query: dict[str, Any] = {}
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "query" and "example" in parameter:
            query[parameter["name"]] = parameter["example"]
        if parameter["name"] == "namespace" and path.endswith("/{name}"):
            query["namespace"] = HOME
    target = re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), path)
    return f"{target}?{urlencode(query, doseq=True)}" if query else target


def at_a_time_that_can_be(scene: Scene, name: str, value: Any) -> Any:
    """An example as it stands, but for dates that no page can hold: those of the last days."""
    if name != "backfills.create":
        return value
    now = scene.world.now()
    return {
        **value,
        "from": (now - timedelta(days=14)).isoformat(),
        "until": (now - timedelta(hours=1)).isoformat(),
    }


def requests() -> Iterator[Any]:
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            name = operation["operationId"]
            if name in NOT_SENT:
                continue
            bodies = operation.get("requestBody", {}).get("content", {})
            for media_type, content in bodies.items():
                for title, example in content["examples"].items():
                    yield name, title, method.upper(), path, operation, media_type, example["value"]
            if not bodies:
                yield name, "", method.upper(), path, operation, "", None


def faults_of(answer: Answer, operation: dict[str, Any]) -> Iterator[str]:
    """Where an answer is not what the document says of the operation's successes."""
    successes = {status for status in operation["responses"] if status[0] == "2"}
    if str(answer.status) not in successes:
        yield f"{answer.status}, not {successes}: {answer.body[:500].decode()}"
        return
    response = operation["responses"][str(answer.status)]
    carried = {name for name in OWN_HEADERS if name.lower() in answer.headers}
    told = OWN_HEADERS & response["headers"].keys()
    sometimes = {name for name in told if response["headers"][name].get("required") is False}
    if not told - sometimes <= carried <= told:
        yield f"it carries {carried or 'none'} of these headers, and {told or 'none'} are documented"
    for name in response["headers"]:
        schema = DOCUMENT["components"]["headers"][name]["schema"]
        value = answer.headers.get(name.lower())
        if value is not None and not jsonschema.Draft202012Validator(schema).is_valid(value):
            yield f"the header {name} is {value}"
    contents = response.get("content", {})
    media_type = answer.headers.get("content-type")
    if contents and media_type not in contents:
        yield f"its type is {media_type}, not one of {', '.join(contents)}"
    elif contents and contents[media_type].get("schema"):
        whole = {**contents[media_type]["schema"], "components": DOCUMENT["components"]}
        for error in jsonschema.Draft202012Validator(whole).iter_errors(answer.json()):
            yield f"{error.json_path}: {error.message[:300]}"


def test_every_example_gets_the_answer_that_is_documented(scene: Scene):
    sent, wrong = 0, []
    for name, title, method, path, operation, media_type, value in requests():
        target = target_of(scene, name, method, path, operation)
        headers = {"content-type": media_type} if media_type else {}
        body = at_a_time_that_can_be(scene, name, value)
        answer = scene.call(method, target, key=scene.keys["platform"], body=body, headers=headers)
        sent += 1
        wrong += [f"{name} {title} ({method} {target}): {fault}" for fault in faults_of(answer, operation)]
    assert not wrong, "\n".join(wrong)
    assert sent + len(NOT_SENT) >= len(ROUTES)
