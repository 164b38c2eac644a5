"""POST /v1/jobs on a real server: a request that arrives as a whole is served without a task, like any other."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
import pytest
import uvicorn

from noonmark.api.app import build_app
from noonmark.api.backend.context import ApiContext
from noonmark.api.backend.group_commit import GroupCommit
from noonmark.api.server.gate import RequestGuard
from noonmark.api.server.server import server_config
from noonmark.auth.authenticator import Authenticator
from noonmark.settings import Settings
from noonmark.telemetry.metrics import API_REQUESTS

pytestmark = pytest.mark.postgres

ONCE: dict[str, Any] = {"type": "python", "handler": "a.b", "run_at": "2100-01-01T00:00:00Z"}


class Answer(NamedTuple):
    """One response."""

    status: int
    headers: dict[str, str]
    body: Any


class Connection:
    """One connection to the server."""

    def __init__(self, opened: socket.socket, token: str) -> None:
        self.socket = opened
        self._token = token
        self._got = b""

    def request(self, body: bytes, *lines: str, path: str = "/v1/jobs", token: str | None = None) -> bytes:
        """The bytes of a request."""
        head = [
            f"POST {path} HTTP/1.1", "Host: noonmark", f"Authorization: Bearer {token or self._token}",
            "Content-Type: application/json", f"Content-Length: {len(body)}", *lines,
        ]  # fmt: skip
        return "\r\n".join([*head, "", ""]).encode() + body

    def answer(self) -> Answer:
        """The next response."""
        while b"\r\n\r\n" not in self._got:
            self._more()
        head, _, rest = self._got.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        self._got = rest
        length = int(headers["content-length"])
        while len(self._got) < length:
            self._more()
        body, self._got = self._got[:length], self._got[length:]
        return Answer(int(first.split()[1]), headers, json.loads(body))

    def create(self, document: dict[str, Any], *lines: str, **options: Any) -> Answer:
        """Send a request to create a job at once, and return the response."""
        self.socket.sendall(self.request(json.dumps(document).encode(), *lines, **options))
        return self.answer()

    def _more(self) -> None:
        part = self.socket.recv(65536)
        assert part, "the server has closed the connection"
        self._got += part


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the requests that a task has served."""
    served: list[str] = []
    serve = RequestGuard.__call__

    async def note(self: RequestGuard, scope: Any, receive: Any, send: Any) -> None:
        served.append(scope["path"])
        await serve(self, scope, receive, send)

    monkeypatch.setattr(RequestGuard, "__call__", note)
    return served


@contextmanager
def listening(parts: ApiContext, settings: Settings) -> Iterator[tuple[str, int]]:
    """Serve the application on a socket."""
    authenticator = Authenticator(settings.dsn, settings)
    opened = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(server_config(build_app(parts, authenticator), settings))

    def serve() -> None:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve(sockets=[opened]))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield opened.getsockname()
    finally:
        server.should_exit = True
        thread.join()
        opened.close()
        authenticator.close()


@pytest.fixture
def connection(parts: ApiContext, settings: Settings, key: str, tasks: list[str]) -> Iterator[Connection]:
    """A connection on which a first request has filled all caches."""
    with (
        listening(parts, settings) as place,
        socket.create_connection(place, timeout=30) as opened,
    ):
        made = Connection(opened, key)
        assert made.create(ONCE).status == 202
        tasks.clear()
        yield made


def audited(database: psycopg.Connection) -> list[tuple[Any, ...]]:
    return database.execute("select outcome, request_id, object from audit_log order by id").fetchall()


def test_a_job_is_created_without_a_task_and_answered_as_with_one(
    connection: Connection, tasks: list[str], database: psycopg.Connection
) -> None:
    body = json.dumps({**ONCE, "name": "direct"}).encode()
    request = connection.request(body, "Noonmark-Request-Id: mine", "Idempotency-Key: one")
    connection.socket.sendall(request)
    direct = connection.answer()
    assert tasks == []
    other = connection.request(body, "Noonmark-Request-Id: mine", "Idempotency-Key: two")
    connection.socket.sendall(other[:-1])
    connection.socket.sendall(other[-1:])
    usual = connection.answer()

    assert (direct.status, usual.status) == (202, 202)
    assert list(direct.headers) == list(usual.headers)
    vary = {"location", "etag", "date"}
    assert {k: v for k, v in direct.headers.items() if k not in vary} == {
        k: v for k, v in usual.headers.items() if k not in vary
    }
    assert direct.body == {
        "id": direct.body["id"], "namespace": "default", "name": "direct", "version": 1, "created": True
    }  # fmt: skip
    entries = database.execute(
        "select outcome, request_id, object, after, action, actor_name, address is not null from audit_log"
        " where request_id = 'mine' order by id"
    ).fetchall()
    for entry, answer in zip(entries, (direct, usual), strict=True):
        assert entry[:3] == ("done", "mine", f"job:{answer.body['id']}")
        assert entry[3] == {"type": "python", **answer.body}
    assert entries[0][4:] == entries[1][4:]


def test_a_repeated_key_gets_the_stored_response(connection: Connection, tasks: list[str]) -> None:
    first = connection.create(ONCE, "Idempotency-Key: k")
    again = connection.create(ONCE, "Idempotency-Key: k")
    assert (again.body, again.headers["etag"]) == (first.body, first.headers["etag"])
    assert again.headers["idempotent-replayed"] == "true"
    assert tasks == []
    other = connection.create({**ONCE, "payload": {}}, "Idempotency-Key: k")
    assert (other.status, other.body["type"]) == (422, "urn:noonmark:problem:idempotency-key-reused")


def test_a_job_that_is_due_on_arrival_is_queued_at_once(
    connection: Connection, tasks: list[str], database: psycopg.Connection
) -> None:
    due = {"type": "python", "handler": "a.b"}
    ids = [connection.create(due).body["id"] for _ in range(3)]
    rows = database.execute("select job_id::text, state, origin, fence from runs order by id").fetchall()
    assert rows == [(job_id, "queued", "schedule", 1) for job_id in ids]
    sent = database.execute("select job_id::text from outbox order by seq").fetchall()
    assert sent == [(job_id,) for job_id in ids]
    assert tasks == []


@pytest.mark.parametrize(
    ("document", "lines", "options", "status"),
    [
        ({**ONCE, "max_retries": -1}, (), {}, 422),
        (["no", "object"], (), {}, 422),
        (ONCE, ("Idempotency-Key: " + "k" * 201,), {}, 400),
        (ONCE, (), {"path": "/v1/jobs?dry_run=true"}, 400),
        (ONCE, ("Content-Encoding: gzip",), {}, 415),
        (ONCE, ("Traceparent: a", "Traceparent: b"), {}, 400),
        ({**ONCE, "pool": "nowhere"}, (), {}, 422),
    ],
    ids=["invalid", "list", "key", "query", "coding", "twice", "pool"],
)
def test_what_is_wrong_is_one_problem_and_one_audit_entry(
    connection: Connection,
    database: psycopg.Connection,
    document: Any,
    lines: tuple[str, ...],
    options: dict[str, Any],
    status: int,
) -> None:
    answer = connection.create(document, "Noonmark-Request-Id: wrong", *lines, **options)
    assert (answer.status, answer.body["status"], answer.body["request_id"]) == (status, status, "wrong")
    assert answer.headers["content-type"] == "application/problem+json"
    assert audited(database)[1:] == [("failed", "wrong", None)]
    assert connection.create(ONCE).status == 202, "the connection and the limits are as before"


def test_a_caller_without_permission_is_refused_and_audited(
    connection: Connection, database: psycopg.Connection, token: Callable[..., str]
) -> None:
    viewer, stranger = token("viewer"), token("editor", "elsewhere")
    for key, document, status in (
        (viewer, ONCE, 403), (stranger, {**ONCE, "namespace": "default"}, 404), ("nmk_none", ONCE, 401)
    ):  # fmt: skip
        for _ in range(2):
            assert connection.create(document, token=key).status == status
    assert [entry[0] for entry in audited(database)[1:]] == ["denied", "denied", "failed", "failed"]


def test_each_request_takes_one_token_of_the_rate(connection: Connection, token: Callable[..., str]) -> None:
    limited = token("editor", rate_per_minute=20)
    statuses = [connection.create(ONCE, token=limited).status for _ in range(12)]
    assert statuses[:10] == [202] * 10
    assert 429 in statuses[10:]


def test_requests_in_a_row_are_answered_in_their_order(connection: Connection) -> None:
    bodies = [json.dumps({**ONCE, "name": f"job {n}"}).encode() for n in range(5)]
    last = connection.request(bodies[-1], "Connection: close")
    connection.socket.sendall(b"".join([*map(connection.request, bodies[:-1]), last]))
    answers = [connection.answer() for _ in bodies]
    assert [answer.body["name"] for answer in answers] == [f"job {n}" for n in range(5)]
    assert answers[-1].headers["connection"] == "close"
    assert connection.socket.recv(1) == b""


def test_a_request_is_counted_once(connection: Connection) -> None:
    counts = API_REQUESTS.labels("/v1/jobs", "POST", 202)
    before = counts._value.get()
    connection.create(ONCE)
    connection.create(ONCE)
    assert counts._value.get() == before + 2


def test_a_full_queue_is_a_problem_that_passes(
    connection: Connection, parts: ApiContext, database: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(parts.creations, "_max_waiting", 0)
        refused = connection.create(ONCE)
    assert (refused.status, "retry-after" in refused.headers) == (503, True)
    assert [entry[0] for entry in audited(database)] == ["done", "failed"]
    assert isinstance(parts.creations, GroupCommit)
    assert connection.create(ONCE).status == 202


def test_a_client_that_goes_away_leaves_its_job(
    connection: Connection, parts: ApiContext, settings: Settings, database: psycopg.Connection
) -> None:
    with psycopg.connect(settings.dsn) as holder:
        holder.execute("lock table jobs in exclusive mode")
        connection.socket.sendall(connection.request(json.dumps({**ONCE, "name": "left"}).encode()))
        waits = "select count(*) from pg_locks where not granted"
        while database.execute(waits).fetchone() == (0,):
            pass
        connection.socket.close()
    while database.execute("select count(*) from jobs where name = 'left'").fetchone() == (0,):
        pass
    assert [entry[0] for entry in audited(database)] == ["done", "done"]


def test_facts_that_have_changed_since_are_read_again(
    connection: Connection, database: psycopg.Connection
) -> None:
    database.execute(
        "insert into namespaces (name, paused_at) values ('default', now())"
        " on conflict (name) do update set paused_at = now()"
    )
    made = connection.create(ONCE)
    row = database.execute("select state from jobs where id = %s", [made.body["id"]]).fetchone()
    assert (made.status, row) == (202, ("paused",))


def test_a_conflict_is_answered_as_one(connection: Connection, database: psycopg.Connection) -> None:
    first = connection.create({**ONCE, "idempotency_key": "own"})
    again = connection.create({**ONCE, "idempotency_key": "own"})
    assert (first.status, again.status) == (202, 200)
    assert again.body == {**first.body, "created": False}
    assert database.execute("select count(*) from jobs where idempotency_key = 'own'").fetchone() == (1,)
