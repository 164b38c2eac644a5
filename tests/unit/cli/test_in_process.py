"""The API in this process, asked as over HTTP."""

import httpx
import pytest
from anyio.from_thread import start_blocking_portal

from noonmark.cli.connections.in_process import InProcessTransport


@pytest.fixture
def client():
    opened = []

    def make(app):
        portal_context = start_blocking_portal()
        portal = portal_context.__enter__()
        found = httpx.Client(base_url="http://x.localhost", transport=InProcessTransport(app, portal))
        opened.append((found, portal_context))
        return found

    yield make
    for found, portal_context in opened:
        found.close()
        portal_context.__exit__(None, None, None)


async def echo(scope, receive, send):
    message = await receive()
    headers = dict(scope["headers"])
    told = b"|".join(
        (scope["method"].encode(), scope["raw_path"], scope["query_string"], headers[b"x-a"], message["body"])
    )
    await send({"type": "http.response.start", "status": 201, "headers": [(b"etag", b'"1"')]})
    await send({"type": "http.response.body", "body": told[:5], "more_body": True})
    await send({"type": "http.response.body", "body": told[5:]})


def test_a_request_and_its_answer_are_handed_over_whole(client):
    answer = client(echo).post("/v1/jobs/a%2Fb", params={"q": "x y"}, content=b"body", headers={"X-A": "1"})
    assert (answer.status_code, answer.headers["etag"]) == (201, '"1"')
    assert answer.content == b"POST|/v1/jobs/a%2Fb|q=x+y|1|body"


async def endless(scope, receive, send):
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
    assert (await receive())["type"] == "http.disconnect"
    scope["ended"].append(True)


def test_a_stream_comes_as_it_is_sent_and_its_end_is_told(client):
    ended = []

    async def app(scope, receive, send):
        scope["ended"] = ended
        await endless(scope, receive, send)

    with client(app).stream("GET", "/v1/events") as answer:
        assert next(answer.iter_bytes()) == b"data: 1\n\n"
        assert ended == []
    assert ended == [True]


def test_a_long_answer_that_is_not_read_holds_nobody(client):
    async def app(_scope, receive, send):
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            await send({"type": "http.response.body", "body": b"x" * 10, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    with client(app).stream("GET", "/") as answer:
        assert answer.status_code == 200
    assert len(client(app).get("/").content) == 2000


async def broken(_scope, _receive, _send):
    raise ValueError("a fault of the application")


def test_a_fault_of_the_application_is_raised_where_it_was_asked(client):
    with pytest.raises(ValueError, match="a fault of the application"):
        client(broken).get("/")
