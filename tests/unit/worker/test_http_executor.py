"""The HTTP executor against real servers on loopback addresses."""

import asyncio
import gzip
import resource
import socket
import time
import uuid
import zlib
from datetime import UTC, datetime

import orjson
import pytest
import uvloop
from tests.unit.unsendable import UNSENDABLE

from noonmark.handlers import Context
from noonmark.worker.http.address_guard import AddressRefusedError, Guard, NetworkListError
from noonmark.worker.http.client import GuardedResolver, HttpExecutor, _url
from noonmark.worker.http.response import EXCERPT_BYTES

RUN, JOB = uuid.UUID(int=1), uuid.UUID(int=2)
HERE = ["127.0.0.1/32"]
NOT_LISTED = ", and not in NOONMARK_HTTP_ALLOW_NETWORKS of this worker"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def ctx():
    return Context(
        run_id=RUN,
        job_id=JOB,
        namespace="default",
        attempt=2,
        scheduled_for=datetime(2026, 6, 1, 9, tzinfo=UTC),
        fence=7,
    )


class Target:
    """A server that keeps what it was sent and answers with fixed bytes.

    After the answers are used up, the last one is repeated; None closes the connection.
    """

    def __init__(self, *answers, host="127.0.0.1", port=0, close_after=False, forever=b""):
        self.answers, self.host, self.port = list(answers or [OK]), host, port
        self.close_after, self.forever = close_after, forever
        self.requests, self.connections, self.sent = [], 0, 0
        self.asked = asyncio.Event()
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, self.host, self.port, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exc):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head, reader, writer)
                if self.close_after:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _answer(self, head, reader, writer):
        line, *fields = head.decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append((line, headers, body))
        self.asked.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise ConnectionError
        writer.write(answer)
        await writer.drain()
        while self.forever:
            writer.write(self.forever)
            await writer.drain()
            self.sent += len(self.forever)
            # `drain` waits only once a buffer is full; until then no other task would run.
            await asyncio.sleep(0)

    def url(self, path="/", host=None):
        return f"http://{host or self.host}:{self.port}{path}"


def names(**table):
    """A resolver that knows these names only; a list of lists gives one answer per lookup."""

    async def lookup(host):
        answers = table[host.replace(".", "_")]
        if answers and isinstance(answers[0], list):
            return answers.pop(0)
        return answers

    return lookup


def run(scenario):
    return uvloop.run(asyncio.wait_for(scenario, 10))


def answer(status, body=b"", *headers):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def call(ctx, target, spec=None, *, timeout_seconds=5, **options):
    """One request to a target that is up while it is called."""

    async def scenario():
        async with target, HttpExecutor(**({"allow_networks": HERE} | options)) as executor:
            return await executor.execute({"url": target.url(), **(spec or {})}, ctx, timeout_seconds)

    return run(scenario())


def test_an_expected_status_is_a_success_with_an_excerpt_of_the_answer(ctx):
    result = call(ctx, Target(answer(205, b"created")))
    assert (result.ok, result.status, result.error, result.body_excerpt) == (True, 205, None, "created")


def test_the_request_carries_the_body_and_the_ids_of_the_attempt(ctx):
    target = Target()
    assert call(ctx, target, {"method": "put", "body": {"user_id": 42}, "headers": {"X-A": "b"}}).ok
    ((line, headers, body),) = target.requests
    assert line == "PUT / HTTP/1.1"
    assert orjson.loads(body) == {"user_id": 42}
    assert headers["host"] == f"127.0.0.1:{target.port}"
    agent = headers.pop("user-agent")
    assert agent.startswith("noonmark/")
    assert agent.endswith(f"(run {RUN})")
    expected = {
        "content-type": "application/json",
        "x-a": "b",
        "webhook-id": str(RUN),
        "idempotency-key": f"{JOB}/2026-06-01T09:00:00.000000Z/schedule/",
        "noonmark-run-id": str(RUN),
        "noonmark-attempt": "2",
        "noonmark-fence": "7",
        "noonmark-scheduled-for": "2026-06-01T09:00:00Z",
        "accept-encoding": "identity",
    }
    assert expected.items() <= headers.items()


def test_the_path_and_query_arrive_as_they_were_written(ctx):
    target = Target()

    async def scenario():
        async with target, HttpExecutor(HERE) as executor:
            return await executor.execute({"url": target.url("/a%2Fb/../c?x=%20&sig=a+b%2B")}, ctx, 5)

    assert run(scenario()).ok
    assert target.requests[0][0] == "POST /a%2Fb/../c?x=%20&sig=a+b%2B HTTP/1.1"


def test_an_unexpected_status_is_a_failure_that_says_what_was_expected(ctx):
    result = call(ctx, Target(answer(503, b"busy")))
    assert (result.ok, result.status, result.body_excerpt) == (False, 503, "busy")
    assert result.error == "127.0.0.1 answered 503; expected 200 to 299"
    assert not result.refused
    assert call(ctx, Target(answer(503)), {"expected_status": [503]}).ok


def test_a_redirect_is_not_followed(ctx):
    target = Target(answer(302, b"", "Location: /elsewhere"))
    result = call(ctx, target)
    assert result.error.startswith("127.0.0.1 answered 302, a redirect, and redirects are not followed")
    assert len(target.requests) == 1
    assert call(ctx, Target(answer(302, b"", "Location: http://10.0.0.1/")), {"expected_status": 302}).ok


def test_connections_are_kept_and_cookies_are_not(ctx):
    target = Target(answer(200, b"", "Set-Cookie: a=b; Path=/"))

    async def scenario():
        async with target, HttpExecutor(HERE, lookup=names(app_test=["127.0.0.1"])) as executor:
            for _ in range(3):
                assert (await executor.execute({"url": target.url(host="app.test")}, ctx, 5)).ok

    run(scenario())
    assert target.connections == 1
    assert all("cookie" not in headers for _, headers, _ in target.requests)
    assert target.requests[0][1]["host"] == f"app.test:{target.port}"


def test_a_request_that_may_not_be_sent_any_more_leaves_its_connection_for_the_next(ctx):
    target, connected = Target(), []

    class OverError(Exception):
        pass

    def refuse():
        connected.append(target.connections)
        raise OverError

    async def scenario():
        async with target, HttpExecutor(HERE) as executor:
            assert (await executor.execute({"url": target.url()}, ctx, 5)).ok
            with pytest.raises(OverError):
                await executor.execute({"url": target.url()}, ctx, 5, before_send=refuse)
            with pytest.raises(OverError):
                await executor.execute({"url": target.url()}, ctx, 5, before_send=refuse, fresh=True)
            assert (await executor.execute({"url": target.url()}, ctx, 5)).ok

    run(scenario())
    # Asked only when there was nothing left to wait for: a new connection was there, too, and was not used.
    assert connected == [1, 2]
    assert len(target.requests) == 2
    assert target.connections == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_a_request_lost_on_a_kept_connection_is_not_sent_again(ctx, method):
    target = Target(OK, None)

    async def scenario():
        async with target, HttpExecutor(HERE) as executor:
            first = await executor.execute({"url": target.url(), "method": method}, ctx, 5)
            return first, await executor.execute({"url": target.url(), "method": method}, ctx, 5)

    first, second = run(scenario())
    assert first.ok
    assert second.error == f"127.0.0.1:{target.port} closed the connection without a response"
    assert len(target.requests) == 2


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", "POST", "PUT", "PATCH"])
def test_a_request_without_a_body_says_so_where_a_server_expects_one(ctx, method):
    target = Target(answer(200))
    assert call(ctx, target, {"method": method}).ok
    ((line, headers, _),) = target.requests
    assert line == f"{method} / HTTP/1.1"
    assert headers["accept"] == "*/*"
    assert headers.get("content-length") == (None if method in {"GET", "HEAD", "OPTIONS"} else "0")
    assert "connection" not in headers


def test_headers_of_the_job_replace_those_that_clients_send(ctx):
    target = Target()
    given = {"accept": "text/csv", "ACCEPT-ENCODING": "gzip", "content-type": "text/x"}
    assert call(ctx, target, {"headers": given, "body": "a"}).ok
    ((_, headers, body),) = target.requests
    assert (headers["accept"], headers["accept-encoding"], headers["content-type"]) == (
        "text/csv",
        "gzip",
        "text/x",
    )
    assert (headers["content-length"], body) == ("1", b"a")


def test_a_fresh_connection_is_closed_after_its_request(ctx):
    target = Target()

    async def scenario():
        async with target, HttpExecutor(HERE) as executor:
            for _ in range(2):
                assert (await executor.execute({"url": target.url()}, ctx, 5, fresh=True)).ok

    run(scenario())
    assert target.connections == 2
    assert all(headers["connection"] == "close" for _, headers, _ in target.requests)


def test_responses_that_only_inform_precede_the_answer(ctx):
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    result = call(ctx, Target(early + early + answer(200, b"ready")))
    assert (result.status, result.body_excerpt) == (200, "ready")


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_a_response_that_has_no_body_is_complete_without_one(ctx, method, status):
    target = Target(f"HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n".encode())

    async def scenario():
        async with target, HttpExecutor(HERE) as executor:
            spec = {"url": target.url(), "method": method, "expected_status": [200, 204, 304]}
            return [await executor.execute(spec, ctx, 5) for _ in range(2)]

    assert [(result.ok, result.status, result.body_excerpt) for result in run(scenario())] == [
        (True, status, "")
    ] * 2
    assert target.connections == 1


def test_a_connection_is_not_kept_if_its_target_answered_before_it_read_the_request(ctx):
    size, received, both = 20_000_000, [], asyncio.Event()

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        received.append(len(await reader.read()))
        if len(received) == 2:
            both.set()
        writer.close()

    async def scenario():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with HttpExecutor(HERE) as executor:
            spec = {"url": url, "body": "x" * size}
            results = [await executor.execute(spec, ctx, 5) for _ in range(2)]
            await both.wait()
        server.close()
        return results

    assert all(result.ok for result in run(scenario()))
    # The rest of each was sent, and then its connection closed.
    assert received == [size, size]


def test_an_answer_in_chunks_is_read_to_its_end_and_keeps_the_connection(ctx):
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    target = Target(chunks)

    async def scenario():
        async with target, HttpExecutor(HERE) as executor:
            return [await executor.execute({"url": target.url()}, ctx, 5) for _ in range(2)]

    assert [result.body_excerpt for result in run(scenario())] == ["abcde"] * 2
    assert target.connections == 1


def test_proxies_of_the_environment_are_not_used(ctx, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert call(ctx, Target()).ok


def test_loopback_is_refused_by_default_and_nothing_is_sent(ctx):
    target = Target()
    result = call(ctx, target, allow_networks=())
    assert result.refused
    assert result.error == f"not sent: 127.0.0.1 is not public (loopback, 127.0.0.0/8){NOT_LISTED}"
    assert target.connections == 0


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.2"], ["93.184.216.34", "127.0.0.2"], ["127.0.0.2", "93.184.216.34"], ["::ffff:127.0.0.2"], ["::1"],
     ["64:ff9b::7f00:2"], ["93.184.216.34", "fe80::1%eth0"], ["127.0.0.1", "127.0.0.2"], ["169.254.169.254"]],
    ids=", ".join,
)  # fmt: skip
def test_one_forbidden_address_of_a_name_is_enough_to_refuse_it(ctx, addresses):
    target = Target(host="127.0.0.2")

    async def scenario():
        async with target, HttpExecutor(HERE, lookup=names(evil_test=addresses)) as executor:
            return await executor.execute({"url": target.url(host="evil.test")}, ctx, 5)

    result = run(scenario())
    assert result.refused
    assert result.error.startswith("not sent: evil.test may not be called: ")
    assert target.connections == 0


@pytest.mark.parametrize("addresses", [["127.0.0.2"], ["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"]])
def test_the_resolver_hands_out_no_address_of_a_name_that_has_a_forbidden_one(addresses):
    resolver = GuardedResolver(Guard(HERE), names(evil_test=addresses))
    with pytest.raises(AddressRefusedError, match=r"127\.0\.0\.2 is not public"):
        asyncio.run(resolver.resolve("evil.test", 80))


def test_a_name_that_is_rebound_to_a_forbidden_address_is_refused(ctx):
    public = Target(answer(200, b"", "Connection: close"), close_after=True)
    private = Target(host="127.0.0.2")

    async def scenario():
        lookup = names(rebound_test=[["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"]])
        async with public, HttpExecutor(HERE, lookup=lookup, dns_cache_seconds=0) as executor:
            private.port = public.port
            async with private:
                return [
                    await executor.execute({"url": public.url(host="rebound.test")}, ctx, 5) for _ in range(3)
                ]

    first, second, third = run(scenario())
    assert (first.ok, second.ok, third.ok) == (True, False, True)
    assert "127.0.0.2 is not public" in second.error
    assert (len(public.requests), private.connections) == (2, 0)


def test_vetted_addresses_are_reused_for_a_while(ctx):
    target, asked = Target(answer(200, b"", "Connection: close"), close_after=True), []

    async def lookup(host):
        asked.append(host)
        return ["127.0.0.1"]

    async def scenario():
        async with target, HttpExecutor(HERE, lookup=lookup) as executor:
            for _ in range(3):
                assert (await executor.execute({"url": target.url(host="app.test")}, ctx, 5)).ok

    run(scenario())
    assert (target.connections, asked) == (3, ["app.test"])


def test_the_socket_itself_is_vetted_before_it_connects(ctx):
    target = Target(host="127.0.0.2")

    async def scenario():
        async with target, HttpExecutor(HERE) as executor:
            # As if a resolver had let it through.
            lax = GuardedResolver(Guard(["127.0.0.0/8"]), names(evil_test=["127.0.0.2"]))
            executor._connector(fresh=False)._resolver = lax
            return await executor.execute({"url": target.url(host="evil.test")}, ctx, 5)

    result = run(scenario())
    assert result.refused
    assert target.connections == 0


def test_only_web_ports_are_called_outside_the_allowed_networks(ctx):
    async def scenario():
        async with HttpExecutor(lookup=names(db_test=["93.184.216.34"])) as executor:
            by_name = await executor.execute({"url": "http://db.test:5432/"}, ctx, 5)
            by_address = await executor.execute({"url": "http://93.184.216.34:6379/"}, ctx, 5)
            return by_name, by_address

    for result in run(scenario()):
        assert result.refused
        assert "may not be called on 93.184.216.34" in result.error


def test_the_time_limit_covers_name_resolution(ctx):
    async def never(host):
        await asyncio.Event().wait()

    async def scenario():
        async with HttpExecutor(lookup=never) as executor:
            return await executor.execute({"url": "http://slow.test/"}, ctx, 0.05)

    result = run(scenario())
    assert result.timed_out
    assert result.error == "slow.test sent no complete response within 0.05 s"


@pytest.mark.parametrize(
    ("reply", "forever"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", b""),
        (b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n"),
    ],
    ids=["no answer", "half a body", "endless headers"],
)
def test_the_time_limit_covers_the_whole_answer(ctx, reply, forever):
    result = call(ctx, Target(reply, forever=forever), timeout_seconds=0.1)
    assert not result.ok
    assert result.timed_out or "not valid HTTP" in result.error


def test_reading_stops_at_the_cap_and_the_connection_is_closed(ctx):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"
    target = Target(head, forever=b"a" * 65536)
    result = call(ctx, target)
    assert result.ok
    assert result.body_excerpt == "a" * EXCERPT_BYTES
    # What the kernel's buffers take on top of the cap is not ours to bound.
    assert target.sent < 50_000_000


def test_a_compressed_bomb_costs_neither_memory_nor_time(ctx):
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(100)) + packer.flush()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    result = call(ctx, Target(answer(200, bomb, "Content-Encoding: gzip")))
    assert result.ok
    assert len(result.body_excerpt) == EXCERPT_BYTES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000
    assert time.process_time() - began < 0.5


def test_a_compressed_answer_is_shown_decoded(ctx):
    body = gzip.compress(b"hello")
    assert call(ctx, Target(answer(200, body, "Content-Encoding: gzip"))).body_excerpt == "hello"


def test_an_answer_that_cannot_be_stored_as_text_is_made_storable(ctx):
    assert call(ctx, Target(answer(200, b"a\0b\xff"))).body_excerpt == "a\ufffdb\ufffd"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (None, "closed the connection without a response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal", "broke off"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000 + b"\r\n\r\n", "is not valid HTTP"),
    ],
    ids=["nothing", "half a body", "another protocol", "huge header"],
)
def test_broken_answers_are_failures_in_words(ctx, reply, words):
    result = call(ctx, Target(reply, close_after=True))
    assert not result.ok
    assert words in result.error
    assert not result.refused


def test_a_closed_port_and_an_unknown_name_are_failures_in_words(ctx):
    async def scenario():
        async with Target() as target:
            url = target.url()
        async with HttpExecutor(HERE, lookup=names(none_test=[])) as executor:
            return (
                await executor.execute({"url": url}, ctx, 5),
                await executor.execute({"url": "http://none.test/"}, ctx, 5),
            )

    closed, unknown = run(scenario())
    assert closed.error.startswith("no connection to 127.0.0.1:")
    assert unknown.error == "none.test cannot be resolved: none.test has no address"
    assert not closed.refused
    assert not unknown.refused


def test_the_system_resolver_is_guarded_too(ctx):
    async def scenario():
        async with HttpExecutor() as executor:
            return await executor.execute({"url": "http://localhost/"}, ctx, 5)

    result = run(scenario())
    assert result.refused
    assert result.error.startswith("not sent: localhost may not be called: ")


@pytest.mark.parametrize(
    "spec",
    [None, [], {}, {"url": None}, {"url": ["x"]}, {"url": "ftp://x"}, {"url": "http://e.com", "method": "TRACE"},
     {"url": "http://e.com", "headers": {"a": "b\r\nc: d"}}],
    ids=repr,
)  # fmt: skip
def test_a_wrong_spec_is_refused_in_words(ctx, spec):
    async def scenario():
        async with HttpExecutor() as executor:
            return await executor.execute(spec, ctx, 5)

    result = run(scenario())
    assert result.refused
    assert result.error.startswith("not sent: ")


@pytest.mark.parametrize("fields", [fields for fields, _, _ in UNSENDABLE])
def test_what_the_intake_refuses_is_not_sent_either_nor_tried_again(ctx, fields):
    async def scenario():
        async with HttpExecutor(["0.0.0.0/0", "::/0"], lookup=names()) as executor:
            return await executor.execute({"url": "http://127.0.0.1:9/", **fields}, ctx, 5)

    result = run(scenario())
    assert result.refused
    assert result.error.startswith("not sent: ")


def test_a_url_that_the_client_cannot_build_is_refused_not_tried_again(ctx, monkeypatch):
    def none(**_parts):
        raise ValueError("no such URL")

    monkeypatch.setattr("noonmark.worker.http.client.URL.build", none)
    monkeypatch.setattr("noonmark.worker.http.client._url", _url.__wrapped__)
    result = call(ctx, Target())
    assert result.refused
    assert result.error == "not sent: the url cannot be called: no such URL"


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@needs_ipv6
@pytest.mark.parametrize("host", ["[::1]", "[0:0:0:0:0:0:0:1]", "[::0.0.0.1]"])
def test_an_ipv6_address_is_called_where_its_network_is_allowed(ctx, host):
    target = Target(host="::1")

    async def scenario():
        async with target, HttpExecutor(["::1/128"]) as executor:
            return await executor.execute({"url": target.url("/a?b=c", host=host)}, ctx, 5)

    result = run(scenario())
    assert (result.ok, result.error) == (True, None)
    ((line, headers, _),) = target.requests
    assert line == "POST /a?b=c HTTP/1.1"
    assert headers["host"] == f"[::1]:{target.port}"


@needs_ipv6
def test_an_ipv6_address_is_refused_by_default_and_nothing_is_sent(ctx):
    target = Target(host="::1")

    async def scenario():
        async with target, HttpExecutor(HERE) as executor:
            return await executor.execute({"url": target.url(host="[::1]")}, ctx, 5)

    result = run(scenario())
    assert result.refused
    assert result.error == f"not sent: ::1 is not public (loopback, ::1/128){NOT_LISTED}"
    assert target.connections == 0


@needs_ipv6
def test_a_closed_port_of_an_ipv6_address_is_named_with_brackets(ctx):
    async def scenario():
        async with Target(host="::1") as target:
            url = target.url(host="[::1]")
        async with HttpExecutor(["::1/128"]) as executor:
            return await executor.execute({"url": url}, ctx, 5)

    result = run(scenario())
    assert not result.refused
    assert result.error.startswith("no connection to [::1]:")


@needs_ipv6
@pytest.mark.parametrize("host", ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]"])
def test_a_mapped_address_is_as_good_as_the_address_inside_it(ctx, host):
    target = Target()

    async def scenario(allowed):
        async with target, HttpExecutor(allowed) as executor:
            return await executor.execute({"url": target.url(host=host)}, ctx, 5)

    refused = run(scenario(["::1/128", "::ffff:0:0/96"]))
    assert refused.refused
    assert refused.error.endswith(f"127.0.0.1 is not public (loopback, 127.0.0.0/8){NOT_LISTED}")
    assert target.connections == 0
    target.port = 0
    assert run(scenario(HERE)).ok


def test_a_cancelled_attempt_is_cancelled_not_answered(ctx):
    async def scenario():
        async with Target(b"") as target, HttpExecutor(HERE) as executor:
            task = asyncio.create_task(executor.execute({"url": target.url()}, ctx, 60))
            await target.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(scenario())


def test_many_requests_run_at_once(ctx):
    async def scenario():
        async with Target() as target, HttpExecutor(HERE) as executor:
            results = await asyncio.gather(
                *(executor.execute({"url": target.url()}, ctx, 5) for _ in range(200))
            )
            return results, target

    results, target = run(scenario())
    assert all(result.ok for result in results)
    assert len(target.requests) == 200


def test_a_network_that_cannot_be_read_is_refused_at_the_start():
    with pytest.raises(NetworkListError):
        HttpExecutor(["everything"])
