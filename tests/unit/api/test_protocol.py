"""What a connection may do before any application sees a request, on a real server."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn

from noonmark.api.server import protocol
from noonmark.api.server.protocol import LONGEST_HEAD, BoundedProtocol

done = threading.Event()


async def echo(scope, receive, send):
    """Answers with the length of the body; `/much` has an endless answer."""
    taken = 0
    while True:
        message = await receive()
        taken += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message["more_body"]:
            break
    if scope["path"] == "/much":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(500):
            await send({"type": "http.response.body", "body": b" " * 65536, "more_body": True})
        done.set()
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]})
    await send({"type": "http.response.body", "body": b"%8d" % taken})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        echo, http=BoundedProtocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=30
    )
    server = uvicorn.Server(config)
    loop_factory = config.get_loop_factory()

    def serve() -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(server.serve(sockets=[listening]))

    thread = threading.Thread(target=serve)
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture
def connection(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as opened:
        yield opened


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return got


def one(connection: socket.socket) -> bytes:
    """One answer of the application."""
    got = b""
    while len(got.partition(b"\r\n\r\n")[2]) < 8:
        got += connection.recv(65536)
    return got


def problem(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    told = json.loads(body)
    assert int(head.split()[1]) == told["status"]
    return told["status"], told["type"].rpartition(":")[2]


def test_requests_go_through_one_after_the_other(connection):
    for _ in range(3):
        connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello")
        assert one(connection).endswith(b"5")


@pytest.mark.parametrize("offered", [b"h2c", b"websocket"])
@pytest.mark.parametrize(
    "body",
    [
        b"content-length: 37\r\n\r\nPOST /much HTTP/1.1\r\nhost: smuggled\r\n",
        b"transfer-encoding: chunked\r\n\r\n14\r\n01234567890123456789\r\n11\r\n01234567890123456\r\n0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("pause", [0, 90, 150, 170])
def test_an_offer_of_another_protocol_takes_no_body_away(connection, offered, body, pause):
    """As Java's client makes it with every request, in one piece or not; others follow on the connection."""
    asked = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAA\r\n"
    asked += b"Upgrade: %b\r\n%b" % (offered, body)
    if pause:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(asked[:pause])
        with socket.create_connection(connection.getpeername(), timeout=10) as other:
            # Once somebody else has had an answer, the first piece has been read.
            other.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            one(other)
    connection.sendall(asked[pause:] + b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    lengths = [part.partition(b"\r\n\r\n")[2] for part in rest(connection).split(b"HTTP/1.1 ")[1:]]
    assert [int(length) for length in lengths] == [37, 0]


def test_many_offers_at_once_are_each_answered(connection):
    asked = b"POST / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 5\r\n\r\nhello"
    for _ in range(3):
        connection.sendall(asked * 100)
        got = b""
        while got.count(b"       5") < 100:
            got += connection.recv(65536)


def test_a_head_that_never_ends_is_refused_once_it_is_too_long(connection):
    connection.sendall(b"GET / HTTP/1.1\r\nx: " + b"a" * (LONGEST_HEAD + 1))
    assert problem(rest(connection)) == (431, "head-too-large")


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n" + b"".join(b"h%d: %s\r\n" % (n, b"a" * 990) for n in range(70)),
        b"GET /" + b"a" * LONGEST_HEAD + b" HTTP/1.1\r\n",
        b"GET / HTTP/1.1\r\ncookie: " + b"a" * LONGEST_HEAD + b"\r\n",
    ],
    ids=["many", "path", "one"],
)
def test_a_whole_head_that_is_too_long_is_refused_too(connection, head):
    connection.sendall(head + b"\r\n")
    assert problem(rest(connection)) == (431, "head-too-large")


def test_a_long_head_below_the_bound_is_taken(connection):
    connection.sendall(b"GET / HTTP/1.1\r\nx: " + b"a" * (LONGEST_HEAD - 200) + b"\r\n\r\n")
    assert one(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "said", [b"\x16\x03\x01\x02\x00\x01", b"HELO there\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_no_request_is_told_so_without_words_of_the_library(connection, said):
    connection.sendall(said)
    assert problem(rest(connection)) == (400, "malformed")


@pytest.mark.parametrize(
    "head",
    [
        b"content-length: 5\r\ntransfer-encoding: chunked\r\n",
        b"content-length: 5\r\ncontent-length: 6\r\n",
        b"content-length: -1\r\n",
        b"transfer-encoding: chunked, identity\r\n",
        b"a: b\r\n c: d\r\n\x00: e\r\n",
    ],
)
def test_requests_that_two_servers_would_read_differently_are_refused(connection, head):
    connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\n" + head + b"\r\n")
    assert problem(rest(connection)) == (400, "malformed")


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(protocol, "SLOWEST_BODY", 10**6)


def test_who_connects_and_says_nothing_is_let_go(hurried, port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as silent:
        assert rest(silent) == b""


def test_a_head_that_does_not_come_to_its_end_is_given_up(hurried, port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nx: a")
        assert problem(rest(slow)) == (408, "request-timeout")


def test_a_body_that_stops_on_its_way_is_given_up(hurried, port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nhalf")
        assert rest(slow) == b""


def test_an_idle_connection_after_an_answer_is_left_to_the_keep_alive(hurried, port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as kept:
        kept.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        one(kept)
        kept.settimeout(0.1)
        with pytest.raises(TimeoutError):
            kept.recv(1)


def test_who_does_not_read_an_answer_is_let_go(monkeypatch, port):
    monkeypatch.setattr(protocol, "STALLED_SECONDS", 0.05)
    done.clear()
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", port))
        deaf.sendall(b"GET /much HTTP/1.1\r\nhost: x\r\n\r\n")
        assert done.wait(10), "whoever writes the answer still waits for its reader"
