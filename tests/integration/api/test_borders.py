"""What attacks on the borders of the API found: each test failed before the border was closed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from anyio import to_thread
from tests.integration.api.scene import ELSEWHERE, HOME, JOB, ROUTES, Scene
from tests.support.asgi import calling
from tests.support.keys import ADMIN, make_token

from noonmark.api.app import build_app
from noonmark.api.http import bodies
from noonmark.api.requests.routing import needs_of
from noonmark.api.server import gate
from noonmark.auth.authenticator import Authenticator
from noonmark.auth.key_issuing import issue_key
from noonmark.core.access.roles import Role
from noonmark.schemas.problems.screening import parse_json
from noonmark.store.access.api_keys import NewKey
from noonmark.store.schedules.time_facts import change_time_facts

ONE_TIME = {"name": "a", "type": "http", "payload": {"url": "https://example.com/"}}
CHANGES = sorted(
    (method, path)
    for (method, path), route in ROUTES.items()
    if (need := needs_of(route)) is not None and need.action
)


class Log:
    """The entries of the audit log that came since they were last asked for."""

    def __init__(self, db: psycopg.Connection) -> None:
        self._db = db
        self._seen = 0
        self.new()

    def new(self) -> list[dict[str, Any]]:
        rows = self._db.execute(
            "select id, action, namespace, outcome, reason, after from audit_log where id > %s order by id",
            [self._seen],
        ).fetchall()
        self._seen = rows[-1][0] if rows else self._seen
        return [
            dict(zip(("action", "namespace", "outcome", "reason", "after"), row[1:], strict=True))
            for row in rows
        ]


@pytest.fixture
def log(scene: Scene) -> Log:
    return Log(scene.world.db)


def target(scene: Scene, path: str) -> str:
    """A path with the ids of what there is."""
    kind = path.split("/")[2]
    return path.format_map(
        {"name": "one", "run_id": uuid4(), "key_id": "a" * 12} | scene.places.get(kind, {})
    )


def test_what_is_no_namespace_is_refused_wherever_a_document_names_one(scene: Scene, log: Log):
    editor = scene.keys["editor"]
    for named in (5, None, "", ["elsewhere"], "tests\n", "x" * 9000, "UPPER"):
        document = {**ONE_TIME, "namespace": named}
        made = scene.call("POST", "/v1/jobs", key=editor, body=document)
        assert made.status == 422, named
        assert [error["pointer"] for error in made.json()["errors"]] == ["/namespace"]
        assert len(made.body) < 2000
        (entry,) = log.new()
        assert (entry["namespace"], entry["outcome"]) == (HOME, "failed")

        many = scene.call("POST", "/v1/jobs/bulk", key=editor, body={"jobs": [document]}).json()
        assert [item["status"] for item in many["items"]] == [422]
        assert len(log.new()) == 1
        seen = scene.call("POST", "/v1/preview", key=editor, body={"document": document})
        assert [error["pointer"] for error in seen.json()["errors"]] == ["/document/namespace"]


def test_no_text_of_a_query_holds_a_nul(scene: Scene):
    admin = scene.keys["platform"]
    for path, names in {
        "/v1/jobs": ("name", "search", "owner", "handler", "pool", "label", "cursor"),
        "/v1/audit": ("actor", "action", "object"),
        "/v1/runs": ("job_name", "reason"),
        "/v1/rejections": ("source",),
    }.items():
        for name in names:
            answer = scene.call("GET", f"{path}?{name}=a%00:b", key=admin)
            assert answer.status == 400, (path, name, answer.body)


WITHOUT_BODY = ("/retry", "/hold", "/release")
UNFIT = {
    "nul": b'"a\\u0000b"',
    "half a character": b'"\\ud800"',
    "long integer": b"123456789012345678901234567890",
    "nan": b"NaN",
    "deep": b"[" * 5000 + b"]" * 5000,
}


def test_every_body_is_screened_whoever_reads_it(scene: Scene, log: Log):
    for method, path in CHANGES:
        if method == "DELETE" or path.endswith(WITHOUT_BODY):
            continue
        for unfit, value in UNFIT.items():
            body = b'{"reason": %s}' % value
            answer = scene.call(method, target(scene, path), key=scene.keys["platform"], body=body)
            assert answer.status == 422, (method, path, unfit, answer.body)
            assert len(log.new()) == 1, (method, path)


def test_what_fails_before_its_body_is_read_is_on_record_as_well(scene: Scene, log: Log, settings):
    part = b" " * 65536
    long = [b"{", *[part] * (settings.api_bulk_bytes // len(part) + 1), b"}"]
    for method, path in CHANGES:
        if method == "DELETE":
            continue
        where = target(scene, path)
        (action,) = {need.action for need in [needs_of(ROUTES[method, path])] if need}
        key = scene.keys["platform"]
        for status, options in (
            (415, {"body": b"{}", "headers": {"content-type": "text/plain"}}),
            (413, {"body": b"{}", "headers": {"content-length": str(settings.api_bulk_bytes + 1)}}),
            (422, {"body": b"{"}),
            *([(413, {"chunks": long})] if path == "/v1/keys" else []),
        ):
            if status == 422 and path.endswith(WITHOUT_BODY):
                continue
            answer = scene.call(method, where, key=key, **options)
            assert answer.status == status, (method, path, answer.body)
            assert [entry["action"] for entry in log.new()] == [action], (method, path, status)
        if not path.endswith("/complete"):
            # Who may not do it is told that, and nothing about the body.
            answer = scene.call(method, where, key=scene.keys["scoped"], body=b"{")
            assert answer.status == 403, (method, path, answer.body)
            assert [entry["outcome"] for entry in log.new()] == ["denied"]


def test_each_namespace_reads_of_a_bulk_request_what_is_its_own(scene: Scene, log: Log):
    both = NewKey("both", {HOME: Role.EDITOR, ELSEWHERE: Role.EDITOR})
    key = str(issue_key(scene.world.db, ADMIN, both).token)
    jobs = [
        {**ONE_TIME, "name": f"n{n}", "namespace": place}
        for n, place in enumerate((HOME, ELSEWHERE, "third"))
    ]
    made = scene.call("POST", "/v1/jobs/bulk", key=key, body={"jobs": jobs}).json()["items"]
    assert [item["status"] for item in made] == [202, 202, 404]
    entries = {entry["namespace"]: entry for entry in log.new()}
    assert sorted(entries) == [ELSEWHERE, HOME, "third"]
    assert entries[HOME]["after"] == {"accepted": 1, "rejected": 0, "jobs": [made[0]["id"]]}
    assert entries[ELSEWHERE]["after"] == {"accepted": 1, "rejected": 0, "jobs": [made[1]["id"]]}
    assert (entries["third"]["outcome"], entries["third"]["after"]) == ("denied", None)


def test_an_answer_is_given_again_to_those_only_who_may_do_all_of_it(scene: Scene, log: Log):
    both = NewKey("both", {HOME: Role.EDITOR, ELSEWHERE: Role.EDITOR})
    wide = str(issue_key(scene.world.db, ADMIN, both).token)
    jobs = [{**ONE_TIME, "name": f"n{n}", "namespace": place} for n, place in enumerate((HOME, ELSEWHERE))]
    request = {"body": {"jobs": jobs}, "headers": {"Idempotency-Key": "k"}}
    first = scene.call("POST", f"/v1/jobs/bulk?namespace={HOME}", key=wide, **request)
    log.new()
    again = scene.call("POST", f"/v1/jobs/bulk?namespace={HOME}", key=wide, **request)
    assert again.json() == first.json()
    assert [entry["after"] for entry in log.new()] == [{"replayed": True}]
    narrow = scene.call("POST", f"/v1/jobs/bulk?namespace={HOME}", key=scene.keys["editor"], **request)
    assert narrow.status == 422, narrow.body
    assert first.json()["items"][1]["id"] not in narrow.body.decode()


def test_a_job_that_is_answered_again_is_on_record(scene: Scene, log: Log):
    request = {"body": {**ONE_TIME, "name": "k"}, "headers": {"Idempotency-Key": "k"}}
    for told in (False, True):
        made = scene.call("POST", "/v1/jobs", key=scene.keys["editor"], **request)
        assert made.status == 202
        (entry,) = log.new()
        assert ("replayed" in entry["after"]) is told


def test_nobody_fills_the_audit_log_without_a_credential(scene: Scene, log: Log):
    for number in range(70):
        where = f"/v1/runs/{uuid4() if number % 2 else '-' * 36}/complete"
        assert scene.call("POST", where, body={}).status in {400, 404, 422}
    assert 1 <= len(log.new()) <= 31


def test_a_key_with_a_rate_makes_none_without(scene: Scene):
    slow = make_token(scene.world.db, "admin", HOME, rate_per_minute=60)
    for rate, status in ((None, 403), (61, 403), (60, 201)):
        body = {"name": "x", "grants": {HOME: "viewer"}, "rate_per_minute": rate}
        assert scene.call("POST", "/v1/keys", key=slow, body=body).status == status, rate


def test_a_key_for_several_namespaces_is_in_the_log_of_each(scene: Scene, log: Log):
    body = {"name": "x", "grants": {HOME: "viewer", ELSEWHERE: "viewer"}}
    key_id = scene.admin("POST", "/v1/keys", body)["key_id"]
    assert [entry["namespace"] for entry in log.new()] == [ELSEWHERE, HOME]
    scene.admin("DELETE", f"/v1/keys/{key_id}")
    assert [entry["namespace"] for entry in log.new()] == [ELSEWHERE, HOME]
    denied = scene.call(
        "POST", "/v1/keys", key=scene.keys["stranger"], body={"name": "x", "grants": {HOME: "admin"}}
    )
    assert denied.status == 403
    assert [(entry["namespace"], entry["outcome"]) for entry in log.new()] == [(HOME, "denied")]


@pytest.fixture
def both(parts, settings) -> Iterator[Any]:
    """Calls the same thing twice at once: the second begins before the first can end."""
    authenticator = Authenticator(settings.dsn, settings)
    app = build_app(parts, authenticator)
    with calling(app) as one, calling(app) as other, psycopg.connect(settings.dsn) as holder:

        def call(*arguments: Any, **options: Any) -> list[int]:
            change_time_facts(holder)
            with ThreadPoolExecutor(2) as threads:
                asked = [threads.submit(caller, *arguments, **options) for caller in (one, other)]
                while not _two_wait(settings.dsn):
                    assert not all(each.done() for each in asked), [each.result() for each in asked]
                holder.rollback()
                return sorted(each.result().status for each in asked)

        yield call
    authenticator.close()


def _two_wait(dsn: str) -> bool:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "select count(*) = 2 from pg_locks join pg_database d on d.oid = database"
            " where locktype = 'advisory' and not granted and datname = current_database()"
        ).fetchone()
    return bool(row and row[0])


@pytest.mark.parametrize(
    ("path", "bodies"),
    [
        (f"/v1/limits/one?namespace={HOME}", ({"max_running": 4}, {"max_running": 5})),
        (f"/v1/calendars/one?namespace={HOME}", ({"dates": ["2026-12-24"]}, {"dates": ["2026-12-25"]})),
        ("/v1/namespaces/spare", ({"max_jobs": 40}, {"max_jobs": 50})),
    ],
    ids=["limit", "calendar", "namespace"],
)
def test_of_two_changes_of_what_was_seen_one_is_made(scene: Scene, both: Any, path: str, bodies: Any):
    key = scene.keys["platform"]
    made = scene.call("PUT", path, key=key, body=bodies[0])
    assert made.status == 200, made.body
    headers = {"If-Match": made.headers["etag"]}
    assert both("PUT", path, key=key, body=bodies[1], headers=headers) == [200, 412]
    seen = scene.call("PUT", path, key=key, body=bodies[0]).headers["etag"]
    # A namespace is always there, and then has its defaults.
    gone = 412 if "namespaces" in path else 404
    assert both("DELETE", path, key=key, headers={"If-Match": seen}) == [204, gone]


def test_a_job_of_another_namespace_is_no_way_in(scene: Scene):
    """What did hold: every path to an object of others, as it would be asked for by its id."""
    foreign = scene.admin("POST", "/v1/jobs", {**JOB, "namespace": ELSEWHERE, "name": "theirs"})["id"]
    admin = scene.keys["admin"]
    for method, path, body in (
        ("GET", "/versions", None),
        ("GET", "/versions/1", None),
        ("GET", "/diff?from=1&to=1", None),
        ("GET", "/why", None),
        ("GET", "/preview", None),
        ("GET", "/backfills", None),
        ("POST", "/backfills", {"from": "2026-01-01T00:00:00Z"}),
        ("POST", "/trigger", {"payload": {"url": "https://example.com/"}}),
        ("POST", "/resume", {"missed": "all"}),
    ):
        answer = scene.call(method, f"/v1/jobs/{foreign}{path}", key=admin, body=body)
        nothing = scene.call(method, f"/v1/jobs/{uuid4()}{path}", key=admin, body=body)
        assert answer.status == nothing.status == 404, (path, answer.body)
        assert set(json.loads(answer.body)) == set(json.loads(nothing.body))


def test_a_large_body_of_very_many_parts_is_refused_before_it_is_read(scene: Scene):
    body = b'{"jobs": [' + b",".join([b"[]"] * 1_000_001) + b"]}"
    answer = scene.call("POST", "/v1/jobs/bulk", key=scene.keys["editor"], body=body)
    assert answer.status == 413
    assert "into several requests" in answer.json()["detail"]


def test_a_large_body_is_read_beside_the_event_loop(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    threads = []

    def note(raw: bytes, *, max_depth: int) -> object:
        threads.append(threading.get_ident())
        return parse_json(raw, max_depth=max_depth)

    monkeypatch.setattr(bodies, "parse_json", note)
    jobs = [{**ONE_TIME, "description": "x" * 1000, "name": f"n{n}"} for n in range(1_000)]
    scene.call("POST", "/v1/jobs", key=scene.keys["editor"], body=ONE_TIME)
    answer = scene.call("POST", "/v1/jobs/bulk", key=scene.keys["editor"], body={"jobs": jobs})
    assert answer.status == 200, answer.body[:300]
    assert threads[0] != threads[1]


def test_one_credential_has_so_many_open_and_no_more(
    scene: Scene, settings, parts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gate, "_MOST_BULK", 2)
    release, arrived = threading.Event(), threading.Semaphore(0)

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        arrived.release()
        await to_thread.run_sync(release.wait)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    authenticator = Authenticator(settings.dsn, settings)
    made = gate.RequestGuard(slow, authenticator, settings)
    ask = ("POST", "/v1/jobs/bulk")
    with calling(made) as call, ThreadPoolExecutor(2) as threads:
        held = [threads.submit(call, *ask, key=scene.keys["editor"], body={}) for _ in range(2)]
        try:
            for _ in held:
                assert arrived.acquire(timeout=30)
            refused = call(*ask, key=scene.keys["editor"], body={})
            assert (refused.status, refused.headers["retry-after"]) == (429, "4")
        finally:
            release.set()
        assert [one.result().status for one in held] == [200, 200]
        assert call(*ask, key=scene.keys["editor"], body={}).status == 200
    authenticator.close()
