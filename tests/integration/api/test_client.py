"""The Python client against the real application: each of its calls is one that the API has."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from anyio.from_thread import start_blocking_portal
from tests.support.doc_blocks import blocks_of, run_python

from noonmark.api.app import build_api, build_app
from noonmark.api.backend.context import ApiContext
from noonmark.auth.authenticator import Authenticator
from noonmark.cli.connections.in_process import InProcessTransport
from noonmark.client import ApiError, AsyncClient, Client
from noonmark.client.binding import Group, listing, operation
from noonmark.client.clients import Client as Clients
from noonmark.settings import Settings
from noonmark.store.cluster.pools import register_pool

pytestmark = pytest.mark.postgres

PAGE = Path(__file__).parents[3] / "docs" / "sdk.md"
REPORT = {"name": "report", "type": "python", "handler": "reports.build", "schedule": "0 9 * * 1"}


@pytest.fixture
def app(parts: ApiContext, settings: Settings, database: psycopg.Connection) -> Iterator[Any]:
    register_pool(database, "default")
    authenticator = Authenticator(settings.dsn, settings)
    yield build_app(parts, authenticator)
    authenticator.close()


@pytest.fixture
def client(app: Any, token: Callable[..., str]) -> Iterator[Client]:
    with (
        start_blocking_portal() as portal,
        Client(
            "http://127.0.0.1", token("editor", "billing"), transport=InProcessTransport(app, portal)
        ) as made,
    ):
        yield made


def test_a_job_from_its_making_to_its_end(client: Client) -> None:
    made = client.jobs.create(REPORT)
    job = client.jobs.get(made["id"])
    assert (job["namespace"], job["state"], job["document"]["name"]) == ("billing", "active", "report")
    etag = client.request("GET", f"/v1/jobs/{made['id']}").etag

    patched = client.jobs.patch(made["id"], {"owner": "crew"}, if_match=etag)
    assert patched["document"]["owner"] == "crew"
    with pytest.raises(ApiError) as caught:
        client.jobs.replace(made["id"], REPORT, if_match=etag)
    assert (caught.value.status, caught.value.slug) == (412, "precondition-failed")
    assert caught.value.request_id

    assert client.jobs.pause(made["id"], "holiday")["state"] == "paused"
    assert client.jobs.resume(made["id"], "skip")["state"] == "active"
    assert client.jobs.trigger(made["id"])["run_id"]
    assert [one["version"] for one in client.jobs.versions(made["id"])] == [2, 1]
    assert client.jobs.diff(made["id"], 1, 2)["changes"][0]["pointer"] == "/owner"
    assert len(client.jobs.preview(made["id"], count=3)["fires"]) == 3
    assert len(client.jobs.preview(REPORT, count=2)["fires"]) == 2
    assert client.jobs.why(made["id"])["answers"]
    assert client.jobs.delete(made["id"])["state"] == "cancelled"


def test_a_call_that_is_repeated_makes_nothing_new(client: Client, database: psycopg.Connection) -> None:
    once = {"type": "python", "handler": "x"}
    first = client.jobs.create(once, idempotency_key="order-7")
    assert client.jobs.create(once, idempotency_key="order-7")["id"] == first["id"]
    assert client.jobs.create(once)["id"] != first["id"]
    job = client.jobs.create(REPORT)["id"]
    runs = {client.jobs.trigger(job, idempotency_key="now")["run_id"] for _ in range(2)}
    assert len(runs) == 1
    assert database.execute("select count(*) from jobs").fetchone() == (3,)


def test_lists_are_walked_through_page_by_page(client: Client) -> None:
    answer = client.jobs.bulk_create(
        [{"type": "python", "handler": "x", "labels": {"n": str(n % 2)}} for n in range(7)] + [{"type": "no"}]
    )
    assert (answer["accepted"], answer["rejected"]) == (7, 1)
    assert len({job["id"] for job in client.jobs.list(limit=3)}) == 7
    assert len(list(client.jobs.list(labels={"n": "1"}, limit=2))) == 3
    assert client.jobs.list(limit=3).page().next_cursor


def test_a_bad_document_is_told_with_its_place(client: Client) -> None:
    with pytest.raises(ApiError) as caught:
        client.jobs.create({"type": "python", "max_retires": 3})
    assert caught.value.status == 422
    assert [one["pointer"] for one in caught.value.errors] == ["/max_retires", "/handler"]
    assert "max_retries" in str(caught.value)


def test_a_key_without_the_right_is_refused(app: Any, token: Callable[..., str]) -> None:
    async def ask() -> None:
        transport = httpx.ASGITransport(app)
        async with AsyncClient("http://127.0.0.1", token("viewer", "billing"), transport=transport) as viewer:
            assert [one async for one in viewer.jobs.list()] == []
            with pytest.raises(ApiError) as caught:
                await viewer.jobs.create(REPORT)
            assert (caught.value.status, caught.value.slug) == (403, "forbidden")

    asyncio.run(ask())


def test_the_page_about_the_client_runs(
    app: Any, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clients are those of the page, but for the way to the server."""
    monkeypatch.setenv("NOONMARK_API_URL", "http://127.0.0.1")
    monkeypatch.setenv("NOONMARK_API_KEY", token("editor", "default"))
    text = PAGE.read_text(encoding="utf-8")
    end = text.count("\n", 0, text.index("## Testing"))
    with start_blocking_portal() as portal:
        ways = {Client: InProcessTransport(app, portal), AsyncClient: httpx.ASGITransport(app)}
        for kind, way in ways.items():
            begin = kind.__init__
            monkeypatch.setattr(
                kind,
                "__init__",
                lambda self, *args, begin=begin, way=way, **more: begin(self, *args, transport=way, **more),
            )
        run_python([block for block in blocks_of(PAGE, "python") if block.line < end])["noonmark"].close()


def calls() -> list[tuple[str, str, str, frozenset[str]]]:
    """Each method of the client, with the method, path and query parameters of the call that it makes."""
    client = Clients("http://127.0.0.1", namespace="tests")
    found = []
    for name, group in vars(client).items():
        if not isinstance(group, Group):
            continue
        for attribute in dir(type(group)):
            member = inspect.getattr_static(type(group), attribute)
            if isinstance(member, operation | listing) and attribute != "wait":
                call = member.build(group, *_arguments(member.build))
                found.append((f"{name}.{attribute}", call.method, call.path, frozenset(call.params or ())))
    client.close()
    return found


SAMPLE = str(uuid4())


def _arguments(build: Callable[..., Any]) -> list[Any]:
    """Something for each argument that has no default."""
    needed = [
        one
        for one in list(inspect.signature(build).parameters.values())[1:]
        if one.default is inspect.Parameter.empty and one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    values: dict[str, Any] = {
        "job": {},
        "jobs": [],
        "body": {},
        "changes": {},
        "chosen": {},
        "missed": "skip",
    }
    numbers = {"number": 1, "since": 1, "until": 2}
    return [values.get(one.name, numbers.get(one.name, _instant(one.name))) for one in needed]


def _instant(name: str) -> Any:
    from datetime import UTC, datetime  # noqa: PLC0415

    return datetime(2030, 1, 1, tzinfo=UTC) if name in {"start", "end"} else SAMPLE


def test_every_call_of_the_client_is_one_of_the_api() -> None:
    routes = [
        (
            method.upper(),
            re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)),
            {one["name"] for one in said.get("parameters", ()) if one["in"] == "query"},
        )
        for path, methods in build_api().openapi()["paths"].items()
        for method, said in methods.items()
    ]
    missing = [
        call
        for call in calls()
        if not any(
            method == call[1] and pattern.fullmatch(call[2]) and call[3] <= names
            for method, pattern, names in routes
        )
    ]
    assert missing == []


def test_settings_runs_and_keys_are_reached(client: Client, app: Any, token: Callable[..., str]) -> None:
    run = client.jobs.trigger(client.jobs.create(REPORT)["id"])["run_id"]
    assert client.runs.get(run)["state"] == "queued"
    assert [one["id"] for one in client.runs.list(state=["queued", "running"])] == [run]
    assert client.runs.logs(run)["attempts"] == []
    assert client.runs.cancel(run, "not needed")["state"] == "cancelled"
    assert client.runs.wait(run)["state"] == "cancelled"
    assert client.runs.why(run)["answers"]
    assert list(client.dead_letters.list()) == []
    assert client.dead_letters.groups() == []
    assert client.dead_letters.redrive({}, dry_run=True)["matched"] == 0
    assert client.keys.me()["grants"] == {"billing": "editor"}
    assert client.calendars.put("off", {"dates": ["2030-01-08"]})
    assert [one["name"] for one in client.calendars.list()] == ["off"]
    client.calendars.delete("off")
    assert client.calendars.list() == []
    assert client.workers.list() == []
    with (
        start_blocking_portal() as portal,
        Client("http://127.0.0.1", token(), transport=InProcessTransport(app, portal)) as admin,
    ):
        assert admin.namespaces.pause("billing", "stocktaking")["name"] == "billing"
        assert admin.namespaces.get("billing")["paused_at"]
        assert admin.namespaces.resume("billing", "skip")
        made = admin.keys.create({"name": "ci", "grants": {"billing": "viewer"}})
        assert made["key_id"] in {one["key_id"] for one in admin.keys.list(namespace="billing")}
        admin.keys.revoke(made["key_id"])
        assert {one["action"] for one in admin.audit.list(limit=2)} >= {
            "key.create",
            "key.revoke",
            "namespace.pause",
        }
        assert [one["name"] for one in admin.pools.list()] == ["default"]
        assert list(admin.rejections.list()) == []
