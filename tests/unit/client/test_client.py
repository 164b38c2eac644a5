"""The client of the REST API against a transport that answers as a test says: retries, pages, streams, errors."""

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from noonmark.client import ApiError, AsyncClient, Client, ClientError, NoAnswerError, WaitTimeoutError
from noonmark.client.steps import Retries, retry_after
from noonmark.client.streams import EventParser, ServerEvent

KEY = "nmk_abcdefghijkl_SECRETsecretSECRETsecretSECRETsecretSECRETsecret"
PROBLEM = {
    "type": "urn:noonmark:problem:invalid",
    "title": "The document is not valid",
    "status": 422,
    "detail": "2 problems",
    "errors": [{"pointer": "/schedule", "message": "is not a cron expression", "expected": "five fields"}],
    "request_id": "r-1",
}


class Server:
    """Answers one after the other, and keeps what it was asked."""

    def __init__(
        self, *answers: httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]
    ) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer


def answer(
    data: object = None, status: int = 200, **headers: str
) -> Callable[[httpx.Request], httpx.Response]:
    """Responses can be read once only, so each is made anew."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: httpx.Response(status, json=data if data is not None else {}, headers=named)


def client_of(server: Server, *, most: int = 4, **options: object) -> Client:
    client = Client("https://noonmark.test", KEY, transport=httpx.MockTransport(server), **options)
    client._driver.retries = Retries(most=most, base_seconds=0, cap_seconds=0)
    return client


# --- What is sent ---------------------------------------------------------------------------------


def test_a_job_is_created_with_a_key_of_its_own_in_the_namespace_of_the_client():
    server = Server(answer({"id": "1"}, 202))
    with client_of(server, namespace="billing") as client:
        assert client.jobs.create({"type": "http"})["id"] == "1"
        client.jobs.create({"type": "http", "namespace": "other"}, idempotency_key="mine")
    first, second = server.asked
    assert (first.method, first.url) == ("POST", "https://noonmark.test/v1/jobs")
    assert json.loads(first.content) == {"namespace": "billing", "type": "http"}
    assert json.loads(second.content) == {"namespace": "other", "type": "http"}
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert len(first.headers["idempotency-key"]) == 36
    assert second.headers["idempotency-key"] == "mine"
    assert first.headers["user-agent"].startswith("noonmark-python/")


def test_filters_become_a_query_and_what_is_not_given_is_left_out():
    server = Server(answer({"items": [], "next_cursor": None}))
    with client_of(server) as client:
        list(client.jobs.list(state=["active", "paused"], labels={"team": "a b"}, recurring=True, limit=7))
    assert str(server.asked[0].url.query, "ascii") == (
        "state=active&state=paused&label=team%3Da+b&recurring=true&limit=7"
    )


def test_names_cannot_lead_to_another_path():
    server = Server(answer({}))
    with client_of(server) as client:
        client.calendars.get("a/../b?c")
        client.calendars.get("..")
        with pytest.raises(ValueError, match="empty"):
            client.jobs.get("")
    assert [request.url.raw_path for request in server.asked] == [
        b"/v1/calendars/a%2F..%2Fb%3Fc",
        b"/v1/calendars/%2E%2E",
    ]


def test_a_change_names_the_version_that_was_seen():
    server = Server(answer({}, ETag='"2"'))
    with client_of(server) as client:
        client.jobs.patch("1", {"owner": None}, if_match='"1"')
        assert client.request("PUT", "/v1/jobs/1", json={}).etag == '"2"'
    patch = server.asked[0]
    assert (patch.headers["if-match"], patch.headers["content-type"]) == (
        '"1"',
        "application/merge-patch+json",
    )
    assert json.loads(patch.content) == {"owner": None}
    assert "if-match" not in server.asked[1].headers


# --- Repetition -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), answer({}, 503)]
)
def test_what_changes_nothing_twice_is_repeated(trouble):
    server = Server(trouble, trouble, answer({"id": "1"}))
    with client_of(server) as client:
        assert client.jobs.get("1") == {"id": "1"}
    assert len(server.asked) == 3


def test_a_create_is_repeated_under_the_same_key():
    server = Server(httpx.ReadError("cut"), answer({"id": "1"}, 202))
    with client_of(server) as client:
        client.jobs.create({"type": "http"})
    first, second = (request.headers["idempotency-key"] for request in server.asked)
    assert first == second


@pytest.mark.parametrize(
    "order",
    [
        lambda client: client.runs.cancel("1"),
        lambda client: client.runs.cancel_many({}),
        lambda client: client.runs.retry("1"),
        lambda client: client.runs.hold("1"),
        lambda client: client.runs.release("1"),
        lambda client: client.dead_letters.redrive({}),
        lambda client: client.dead_letters.discard({}),
        lambda client: client.namespaces.pause("a"),
        lambda client: client.namespaces.resume("a", "skip"),
        lambda client: client.backfills.cancel("1"),
    ],
)
def test_an_order_is_repeated_under_the_same_key(order):
    server = Server(httpx.ReadError("cut"), answer({}))
    with client_of(server) as client:
        order(client)
    first, second = (request.headers["idempotency-key"] for request in server.asked)
    assert first == second


@pytest.mark.parametrize("trouble", [httpx.ReadError("cut"), answer({}, 503)])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_might_be_done_twice_is_not_repeated(trouble, method):
    server = Server(trouble)
    with client_of(server) as client, pytest.raises(ClientError):
        client.request(method, "/v1/keys", json={})
    assert len(server.asked) == 1


def test_repetition_ends():
    server = Server(httpx.ConnectError("refused"))
    with (
        client_of(server, most=3) as client,
        pytest.raises(NoAnswerError, match="cannot be reached: refused"),
    ):
        client.jobs.get("1")
    assert len(server.asked) == 4


def test_a_wait_that_would_last_longer_than_the_call_may_is_not_begun():
    server = Server(answer(PROBLEM | {"status": 429}, 429, Retry_After="3600"))
    with client_of(server, timeout=5) as client, pytest.raises(ApiError) as caught:
        client.jobs.get("1")
    assert caught.value.status == 429
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 422, 500])
def test_other_refusals_are_final(status):
    server = Server(answer({}, status))
    with client_of(server) as client, pytest.raises(ApiError):
        client.jobs.get("1")
    assert len(server.asked) == 1


def test_delays_double_with_full_jitter_and_add_to_what_the_server_asks_for():
    bounds = []
    retries = Retries(
        base_seconds=0.2, cap_seconds=1, uniform=lambda low, high: bounds.append((low, high)) or high
    )
    assert [retries.delay(failed, 0) for failed in (1, 2, 3, 4, 50)] == [0.2, 0.4, 0.8, 1, 1]
    assert retries.delay(1, 7) == 7.2
    assert {low for low, _ in bounds} == {0.0}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("Tue, 01 Jan 2030 00:00:30 GMT", 30.0),
        ("Tue, 01 Jan 2020 00:00:30 GMT", 0.0),
        ("soon", 0.0),
        ("-3", 0.0),
        ("", 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(text, seconds):
    assert retry_after({"Retry-After": text}, datetime(2030, 1, 1, tzinfo=UTC)) == seconds


# --- Errors ---------------------------------------------------------------------------------------


def test_a_problem_document_becomes_an_error_that_says_what_it_says():
    server = Server(answer(PROBLEM, 422, Noonmark_Request_Id="r-2"))
    with client_of(server) as client, pytest.raises(ApiError) as caught:
        client.jobs.get("1")
    error = caught.value
    assert (error.status, error.type, error.slug) == (422, "urn:noonmark:problem:invalid", "invalid")
    assert (error.title, error.detail, error.request_id) == ("The document is not valid", "2 problems", "r-2")
    assert error.errors[0]["expected"] == "five fields"
    assert str(error) == (
        "422 The document is not valid: 2 problems: /schedule: is not a cron expression (request r-2)"
    )


def test_a_single_problem_is_told_once():
    error = ApiError(
        422,
        title="Not valid",
        detail="/cron: is not a cron expression",
        errors=[{"pointer": "/cron", "message": "is not a cron expression"}],
    )
    assert str(error) == "422 Not valid: /cron: is not a cron expression"


def test_an_error_of_a_proxy_is_told_all_the_same():
    server = Server(lambda _: httpx.Response(502, text="<html>bad gateway</html>"))
    with client_of(server, most=0) as client, pytest.raises(ApiError) as caught:
        client.jobs.get("1")
    assert (caught.value.type, caught.value.slug, str(caught.value)) == ("about:blank", "", "502 Bad Gateway")


def test_an_address_that_is_not_the_apis_is_told():
    page = Server(lambda _: httpx.Response(200, html="<html></html>"))
    with client_of(page) as client, pytest.raises(ClientError, match="instead of JSON"):
        client.jobs.get("1")
    elsewhere = Server(lambda _: httpx.Response(302, headers={"location": "https://login.test/"}))
    with (
        client_of(elsewhere) as client,
        pytest.raises(ClientError, match=r"redirects to 'https://login.test/'"),
    ):
        client.jobs.get("1")


def test_an_error_can_be_built_by_position_as_it_is_documented():
    error = ApiError(404, "t", "title", "detail", [{"pointer": "/a", "message": "m"}], "r")
    assert (error.status, error.type, error.title, error.detail) == (404, "t", "title", "detail")
    assert error.request_id == "r"


# --- The key --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["http://noonmark.example.com", "http://10.0.0.8:8080", "http://localhost.evil.test"]
)
def test_a_key_is_not_sent_unencrypted_to_another_machine(url):
    with pytest.raises(ValueError, match="unencrypted") as caught:
        Client(url, KEY)
    assert "SECRET" not in str(caught.value)
    Client(url, KEY, allow_http=True).close()
    Client(url).close()


@pytest.mark.parametrize(
    "url", ["http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080", "https://x.test"]
)
def test_it_is_sent_to_this_machine_and_encrypted(url):
    Client(url, KEY).close()


@pytest.mark.parametrize(
    "url", ["", "noonmark.test", "ftp://noonmark.test", "https://user:word@noonmark.test"]
)
def test_other_addresses_are_refused(url):
    with pytest.raises(ValueError, match="address"):
        Client(url)


def test_the_key_and_the_address_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("NOONMARK_API_URL", "https://noonmark.test/base/")
    monkeypatch.setenv("NOONMARK_API_KEY", KEY)
    server = Server(answer({}))
    with Client(transport=httpx.MockTransport(server)) as client:
        client.jobs.get("1")
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert str(server.asked[0].url) == "https://noonmark.test/base/v1/jobs/1"


def test_the_key_of_the_environment_is_not_given_to_what_stands_in_for_a_server(monkeypatch):
    monkeypatch.setenv("NOONMARK_API_KEY", KEY)
    server = Server(answer({}))
    with Client("http://in-process", transport=httpx.MockTransport(server)) as client:
        client.jobs.get("1")
    assert "authorization" not in server.asked[0].headers


def test_the_key_is_shown_nowhere(caplog):
    caplog.set_level(logging.DEBUG)
    server = Server(httpx.ConnectError("refused"), answer(PROBLEM, 422))
    with client_of(server) as client:
        with pytest.raises(ApiError) as caught:
            client.jobs.get("1")
        shown = f"{client!r} {client._driver!r} {caught.value!r} {caplog.text}"
    assert "SECRET" not in shown
    with pytest.raises(ValueError, match="has a character") as refused:
        Client("https://noonmark.test", f"{KEY}\n")
    assert "SECRET" not in str(refused.value)


# --- Pages ----------------------------------------------------------------------------------------


def pages(request: httpx.Request) -> httpx.Response:
    place = int(request.url.params.get("cursor", "0"))
    cursor = str(place + 2) if place < 4 else None
    return httpx.Response(200, json={"items": [{"id": place}, {"id": place + 1}], "next_cursor": cursor})


def test_a_listing_is_walked_through_page_by_page_and_no_further_than_it_is_read():
    server = Server(pages)
    with client_of(server) as client:
        jobs = client.jobs.list(name="x")
        assert [job["id"] for job in jobs] == [0, 1, 2, 3, 4, 5]
        assert [request.url.params.get("cursor") for request in server.asked] == [None, "2", "4"]
        assert {request.url.params["name"] for request in server.asked} == {"x"}
        server.asked.clear()
        assert next(iter(jobs))["id"] == 0
        page = jobs.page("2")
        assert ([one["id"] for one in page.items], page.next_cursor) == ([2, 3], "4")
    assert len(server.asked) == 2


# --- Waiting --------------------------------------------------------------------------------------


def states(*names: str) -> Server:
    return Server(*(answer({"id": "r", "state": name}) for name in names))


def test_a_wait_ends_with_the_run_and_looks_ever_more_seldom(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("noonmark.client.drivers.time.sleep", slept.append)
    with client_of(states("queued", "running", "retrying", "dead")) as client:
        assert client.runs.wait("r")["state"] == "dead"
    assert slept == pytest.approx([0.1, 0.15, 0.225])


def test_a_wait_gives_up_in_time():
    with (
        client_of(states("running")) as client,
        pytest.raises(WaitTimeoutError, match="still running after 0 s"),
    ):
        client.runs.wait("r", 0)


# --- Streams --------------------------------------------------------------------------------------


def test_events_are_read_whatever_the_pieces_they_come_in():
    stream = (
        ': hello\r\n\r\nid: 7\r\nevent: run\r\ndata: {"a":\r\ndata: 1}\r\n\r\n'
        "data: plain\nid\n\nretry: 1500\n\ndata:  two\rdata: three\r\rid: 8\n\nevent: x\n\ndata: cut"
    )
    wanted = [
        ServerEvent("run", {"a": 1}, "7"),
        ServerEvent("message", "plain", ""),
        ServerEvent("message", " two\nthree", ""),
    ]
    for size in (1, 2, 3, 7, len(stream)):
        parser = EventParser()
        found = [event for at in range(0, len(stream), size) for event in parser.feed(stream[at : at + size])]
        assert found == wanted, size
        assert (parser.last_id, parser.retry_seconds) == ("8", 1.5)


def event_stream(*events: str, cut: bool = False) -> Callable[[httpx.Request], httpx.Response]:
    class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self):
            yield from (event.encode() for event in events)
            if cut:
                raise httpx.ReadError("cut")

        async def __aiter__(self):
            for piece in self:
                yield piece

    return lambda _: httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream())


STREAMS = (
    event_stream("id: 1\ndata: 1\n\n", "id: 2\nda", cut=True),
    answer({}, 503),
    event_stream("id: 2\ndata: 2\n\n"),
    lambda _: httpx.Response(204),
)


def test_a_stream_is_taken_up_again_after_the_last_event():
    server = Server(*STREAMS)
    with client_of(server) as client:
        found = [event.data for event in client.runs.events(job_id="j")]
    assert found == [1, 2]
    assert [request.headers.get("last-event-id") for request in server.asked] == [None, "1", "1", "2"]
    assert {request.headers["accept"] for request in server.asked} == {"text/event-stream"}
    assert server.asked[0].url.params["job"] == "j"


END = 'id: 1:0:5:0:end\nevent: end\ndata: {"reason": "finished", "state": "dead"}\n\n'
OUTPUT = [
    event_stream('id: 1:0:5:0\nevent: output\ndata: {"text": "one"}\n\n', "event: out", cut=True),
    event_stream('event: end\ndata: {"reason": "shutdown"}\n\n'),
    event_stream(END, "id: 9\nevent: output\ndata: {}\n\n"),
]


def test_the_output_of_a_run_is_followed_over_breaks_until_the_run_has_finished():
    server = Server(*OUTPUT)
    with client_of(server) as client:
        found = [(event.event, event.data) for event in client.runs.follow_logs("r", attempt=2)]
    assert found == [
        ("output", {"text": "one"}),
        ("end", {"reason": "shutdown"}),
        ("end", {"reason": "finished", "state": "dead"}),
    ]
    assert [request.headers.get("last-event-id") for request in server.asked] == [None, "1:0:5:0", "1:0:5:0"]
    assert {str(request.url.query, "ascii") for request in server.asked} == {"attempt=2&follow=true"}


def test_the_output_of_a_run_is_followed_on_an_event_loop():
    async def follow() -> list[str]:
        transport = httpx.MockTransport(Server(*OUTPUT))
        async with AsyncClient("https://noonmark.test", KEY, transport=transport) as client:
            client._driver.retries = Retries(base_seconds=0)
            return [event.event async for event in client.runs.follow_logs("r")]

    assert asyncio.run(follow()) == ["output", "end", "end"]


def test_a_stream_that_is_refused_is_an_error():
    with client_of(Server(answer(PROBLEM, 403))) as client, pytest.raises(ApiError, match="403"):
        next(client.runs.events())
    with client_of(Server(httpx.ConnectError("refused")), most=2) as client, pytest.raises(NoAnswerError):
        next(client.runs.events())


# --- The same, awaited ----------------------------------------------------------------------------


def test_the_async_client_has_the_same_methods():
    async def work() -> None:
        server = Server(httpx.ReadError("cut"), answer({"id": "1"}, 202))
        async with AsyncClient("https://noonmark.test", KEY, transport=httpx.MockTransport(server)) as client:
            client._driver.retries = Retries(base_seconds=0)
            assert await client.jobs.create({"type": "http"}) == {"id": "1"}
            assert len(server.asked) == 2
            server.answers = [pages]
            assert [job["id"] async for job in client.jobs.list()] == [0, 1, 2, 3, 4, 5]
            assert (await client.jobs.list().page("4")).next_cursor is None
            server.answers = [answer({"state": "succeeded"})]
            assert (await client.runs.wait("r"))["state"] == "succeeded"
            assert (await client.request("get", "/v1/me")).status == 200
            server.answers = list(STREAMS)
            assert [event.data async for event in client.runs.events()] == [1, 2]

    asyncio.run(work())


@pytest.mark.parametrize(
    "name", ["jobs", "runs", "dead_letters", "namespaces", "calendars", "limits", "keys", "audit"]
)
def test_both_clients_have_the_same_groups_of_one_definition(name):
    # With a transport of ours, neither client reads the certificates of the system.
    nowhere = httpx.MockTransport(Server(answer()))
    blocking = Client("https://noonmark.test", transport=nowhere)
    awaited = AsyncClient("https://noonmark.test", transport=nowhere)
    assert type(getattr(blocking, name)) is type(getattr(awaited, name))
    assert all(
        getattr(getattr(blocking, name), method).__doc__
        for method in vars(type(getattr(blocking, name)))
        if not method.startswith("_") and method.islower()
    )
    blocking.close()
    asyncio.run(awaited.close())


# --- Cost -----------------------------------------------------------------------------------------


def test_importing_the_package_loads_neither_http_nor_kafka_nor_models():
    script = (
        "import sys, noonmark.client, noonmark.testing, noonmark.testing.pytest_plugin\n"
        "print([name for name in ('httpx', 'pydantic', 'confluent_kafka', 'psycopg', 'noonmark.worker')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError):
        __import__("noonmark.client").client.Nothing  # noqa: B018
