"""Every route, called with every kind of credential: what happens is what the table written by hand says.

The routes are found in the application, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pytest
from tests.integration.api.expected_access import ANY, OPEN, TOKEN, allowed, rows
from tests.integration.api.scene import HOME, ROUTES, Scene, target_of
from tests.support.asgi import Answer
from tests.support.emptying import turn_clock

from noonmark.api.requests.routing import needs_of
from noonmark.api.server import gate

pytestmark = pytest.mark.postgres

EXPECTED = rows()
NOBODY = ("nothing", "garbage", "no key", "expired", "revoked")
SOMEBODY = ("viewer", "operator", "editor", "admin", "platform")
STREAMS = {("GET", "/v1/events")}
"""Their answers do not end; who may read them is told before they begin."""


@pytest.fixture(autouse=True)
def _patient_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of requests without credentials come from one address here."""
    monkeypatch.setattr(gate, "_FAILURES_PER_MINUTE", 10**9)


FREE_OF_NAMESPACES = {("POST", "/v1/preview")}
"""They have a body, and no namespace in it."""


def send(scene: Scene, method: str, path: str, who: str, **instead: Any) -> Answer:
    """A request that changes nothing even where it is allowed: it is not whole, or of another version."""
    body: Any = None
    headers = {}
    if method in {"POST", "PUT", "PATCH"}:
        body = {"namespace": HOME} if path == "/v1/jobs" else {}
        if path == "/v1/jobs/bulk":
            body = {"jobs": [{"namespace": HOME}]}
        elif path.endswith("/jobs/{job_id}/resume"):
            body = {"missed": "skip"}
        elif path == "/v1/keys":
            body = {"name": "made", "grants": {HOME: "viewer"}}
        elif path.endswith("/jobs/{job_id}/backfills"):
            body = {"from": (scene.world.now() - timedelta(days=2)).isoformat(), "dry_run": True}
        elif path.startswith("/v1/dead-letters/") or path in {"/v1/runs/cancel", "/v1/executions/cancel"}:
            body = {"dry_run": True, "filter": {"namespace": HOME}}
    if method != "GET":
        headers["If-Match"] = '"another"'
    target = target_of(scene, method, path, **instead)
    return scene.call(method, target, key=scene.keys.get(who), body=body, headers=headers)


def expected(method: str, path: str, who: str) -> str:
    """What the table says: allowed, or 401, 403, 404."""
    need = EXPECTED[method, path]
    if need == OPEN:
        return "allowed"
    if who in NOBODY:
        return "401"
    if who == "stranger":
        return stranger(method, path, need)
    if who.startswith("scoped"):
        scope = "jobs:read" if who == "scoped" else "runs:read"
        return "allowed" if need in {ANY, scope} else "403"
    return "allowed" if allowed(need, who) else "403"


def stranger(method: str, path: str, need: str) -> str:
    """For an admin of another namespace."""
    if need == ANY:
        return "allowed"
    if need == "platform" or (method, path) == ("POST", "/v1/keys"):
        # Keys name the namespaces that they reach into: there is nothing to be kept from whoever does.
        return "403"
    if (method, path) in FREE_OF_NAMESPACES:
        return "allowed"
    named = any(parameter.alias == "namespace" for parameter in ROUTES[method, path].dependant.query_params)
    in_body = method in {"POST", "PUT", "PATCH"}
    return "404" if "{" in path or named or in_body else "allowed"


def seen(answer: Answer) -> str:
    if answer.status in {401, 403, 404}:
        return str(answer.status)
    if answer.status == 200 and answer.body.startswith(b'{"items":[{"index":0'):
        # Of many jobs in one request, each has an answer of its own.
        return str((answer.json()["items"][0].get("problem") or {}).get("status", "allowed")).replace(
            "422", "allowed"
        )
    return "allowed" if answer.status < 500 else f"failed: {answer.status} {answer.body.decode()[:300]}"


def test_the_table_has_exactly_the_routes_there_are():
    assert set(ROUTES) - set(EXPECTED) == set(), "routes without a row in expected_access.py"
    assert set(EXPECTED) - set(ROUTES) == set(), "rows without a route"


def test_every_route_says_what_the_table_says():
    said = {}
    for (method, path), route in ROUTES.items():
        need = needs_of(route)
        said[method, path] = OPEN if need is None else str(need.permission) if need.permission else ANY
    differing = {
        key: (said[key], need)
        for key, need in EXPECTED.items()
        if key in said and need != TOKEN and said[key] != need
    }
    assert not differing


@pytest.mark.kafka
def test_every_route_answers_every_credential_as_the_table_says(scene: Scene, capsys):
    wrong, counted = [], dict.fromkeys(("allowed", "401", "403", "404"), 0)
    routes = [key for key in ROUTES if key in EXPECTED and EXPECTED[key] != TOKEN]
    whos = (*NOBODY, *SOMEBODY, "stranger", "scoped", "scoped platform")
    for (method, path), who in itertools.product(routes, whos):
        wanted = expected(method, path, who)
        if (method, path) in STREAMS and wanted == "allowed":
            continue
        answer = send(scene, method, path, who)
        got = seen(answer)
        if got == wanted:
            counted[wanted] += 1
        else:
            wrong.append(
                f"{method} {path} with {who}: {wanted} expected, {got}: {answer.body.decode()[:200]}"
            )
        assert answer.headers["noonmark-request-id"]
    with capsys.disabled():
        told = ", ".join(f"{count} {what}" for what, count in counted.items())
        print(
            f"\naccess matrix: {len(routes)} routes x {len(whos)} credentials, as the table says: {told}; else: {len(wrong)}"
        )
    assert not wrong, "\n".join(wrong)


def test_foreign_objects_answer_as_objects_that_do_not_exist(scene: Scene):
    compared = 0
    for method, path in ROUTES:
        if (method, path) not in EXPECTED or "{" not in path or stranger_is_not_asked(method, path):
            continue
        real = target_of(scene, method, path)
        parameter = re.findall(r"\{(\w+)\}", path)[0]
        unreal_value = {"name": "never-made", "key_id": "z" * 12, "rejection_id": 10**9}.get(
            parameter, uuid4()
        )
        real_value = scene.places_of(path)[parameter]
        foreign = send(scene, method, path, "stranger")
        missing = send(scene, method, path, "stranger", **{parameter: unreal_value})
        # 422: what is not whole is refused before anything is looked for, of everybody's.
        assert foreign.status == missing.status, (method, real, foreign.body, missing.body)
        assert foreign.status in {404, 422}, (method, real, foreign.body)
        assert same(foreign, str(real_value)) == same(missing, str(unreal_value)), (method, path)
        compared += 1
    assert compared >= 1


def stranger_is_not_asked(method: str, path: str) -> bool:
    return stranger(method, path, EXPECTED[method, path]) != "404" or EXPECTED[method, path] == TOKEN


def same(answer: Answer, value: str) -> tuple[int, Mapping[str, str], bytes]:
    """An answer without what names the request and the object."""
    headers = {
        name: text
        for name, text in answer.headers.items()
        if name not in {"noonmark-request-id", "content-length"}
    }
    request_id = answer.headers["noonmark-request-id"]
    return answer.status, headers, answer.body.replace(request_id.encode(), b"").replace(value.encode(), b"")


BESIDE = (
    lambda path: f"{path}/health",
    lambda path: f"{path}/healthz",
    lambda path: f"{path};x",
    lambda path: f"{path};/healthz",
    lambda path: f"{path}/%2e%2e/healthz",
    lambda path: f"/healthz/..{path}",
    lambda path: f"/healthz/%2e%2e{path}",
    lambda path: f"/healthz;{path}",
    lambda path: f"/{path}",
    lambda path: f"{path}/",
    lambda path: f"{path}//",
    lambda path: path.upper(),
    lambda path: path.replace("/", "%2f"),
    lambda path: path.replace("/", "%2F", 2).replace("%2F", "/", 1),
    lambda path: f"{path}%00",
    lambda path: f"{path}%20",
    lambda path: f"{path}.json",
    lambda path: f"{path}?path=/healthz",
    lambda path: f"/openapi.json{path}",
    lambda path: f"/.{path}",
    lambda path: f"/%2e{path}",
    lambda path: f"\\{path}",
)


def test_no_way_of_writing_a_path_gets_past_the_gate(scene: Scene):
    asked = 0
    paths = sorted({path for _, path in ROUTES})
    for path, write in itertools.product(paths, BESIDE):
        real = re.sub(r"\{\w+\}", str(uuid4()), path)
        written = write(real)
        decoded = unquote(written.partition("?")[0])
        if decoded in gate.OPEN_PATHS:
            # The same path in other letters.
            continue
        for method in ("GET", "POST"):
            answer = scene.call(method, written)
            opened = EXPECTED.get((method, path)) == TOKEN and gate.COMPLETION.fullmatch(decoded)
            assert answer.status == 401 or opened, (method, written, answer.status, answer.body)
            asked += 1
    assert asked > 100


def test_open_paths_are_open_for_reading_alone(scene: Scene):
    for path in ("/healthz", "/openapi.json", "/asyncapi.json"):
        assert scene.call("GET", path).status == scene.call("HEAD", path).status == 200
        assert scene.call("OPTIONS", path).status == 204
        for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE", "get", "head"):
            assert scene.call(method, path).status == 401, (method, path)
    assert set(gate.OPEN_PATHS) == {"/healthz", "/openapi.json", "/asyncapi.json"}
    assert scene.call("GET", "/schemas/job").status == 401
    assert scene.call("GET", "/metrics").status == 401


def test_a_key_that_is_revoked_or_has_expired_ends_within_seconds(scene: Scene):
    key = scene.keys["viewer"]
    assert scene.call("GET", "/schemas/job", key=key).status == 200
    turn_clock(scene.world.db, timedelta(0))
    assert scene.call("GET", "/schemas/job", key=scene.keys["revoked"]).status == 401
    assert scene.call("GET", "/schemas/job", key=scene.keys["expired"]).status == 401
