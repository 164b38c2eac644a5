"""Connections that the target has closed while they were idle: a request whose loss would be final needs a new one."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.integration.test_grpc_jobs import job, kind, run
from tests.integration.worker.test_http_jobs import Sender
from tests.support.grpc_server import GrpcServer, echo

from noonmark.core.states import RunState

PATIENCE = 60
FINAL = [
    {"delivery": "at_most_once"},
    {"retry": {"max_retries": 0}},
    {"retry": {"only_on": {"status": [503]}}},
]


class IdleClosingServer(ThreadingHTTPServer):
    """Answers 200 to each POST, and closes connections that are idle for 50 ms."""

    daemon_threads = True

    def __init__(self):
        self.requests = 0
        self.connections = 0
        self.closed = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def shutdown_request(self, request):
        super().shutdown_request(request)
        self.closed.set()

    async def __aenter__(self):
        self._thread.start()
        return self

    async def __aexit__(self, *_exc):
        self.shutdown()
        self._thread.join()
        self.server_close()

    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 0.05

    def setup(self):
        super().setup()
        self.server.connections += 1

    def do_POST(self):
        self.server.requests += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        """Print nothing."""


@pytest.fixture
def sender(world, tmp_path):
    return Sender(world, tmp_path)


def second_call(sender, server, work):
    """Send two requests; the target closes the kept connection just before the second; return its outcome."""

    async def play(http_kind):
        spec = {"url": server.url(), "method": "POST"}
        first, second = sender.hand(spec), sender.hand(spec, **work)
        assert (await http_kind.run(first)).state == "succeeded"
        # The loop is blocked meanwhile, so it has not read that the connection is closed, as on a busy worker.
        assert server.closed.wait(PATIENCE)
        return await http_kind.run(second)

    return sender.scenario(play, server)


@pytest.mark.parametrize("work", FINAL, ids=str)
def test_a_request_that_may_be_lost_only_once_is_not_sent_over_a_kept_connection(sender, work):
    server = IdleClosingServer()

    outcome = second_call(sender, server, work)

    assert (outcome.state, outcome.error) == ("succeeded", None)
    assert (server.requests, server.connections) == (2, 2)


def test_any_other_request_uses_kept_connections_and_its_loss_costs_an_attempt(sender):
    server = IdleClosingServer()

    outcome = second_call(sender, server, {})

    assert (outcome.state, server.requests) == ("retrying", 1)
    assert "closed the connection without a response" in outcome.error


def test_the_connection_of_a_final_request_is_closed_afterwards(sender):
    server = IdleClosingServer()

    async def play(http_kind):
        spec = {"url": server.url(), "method": "POST"}
        hands = [sender.hand(spec, delivery="at_most_once"), sender.hand(spec)]
        return [(await http_kind.run(hand)).state for hand in hands]

    assert sender.scenario(play, server) == ["succeeded", "succeeded"]
    assert server.connections == 2


class Firewall:
    """Passes TCP connections on to a port; once it has forgotten one, the next bytes on it are answered by RST."""

    def __init__(self, upstream):
        self.upstream, self.open, self.resets = upstream, set(), 0
        self._forgotten, self._tasks = set(), set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exc):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def forget(self):
        self._forgotten |= self.open

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        self.open.add(writer)
        back, to = await asyncio.open_connection("127.0.0.1", self.upstream)
        returning = asyncio.create_task(self._pass(back, writer, writer))
        try:
            await self._pass(reader, to, writer)
        finally:
            returning.cancel()
            writer.close()
            to.close()

    async def _pass(self, source, sink, client):
        while data := await source.read(65536):
            if client in self._forgotten:
                self.resets += 1
                client.transport.abort()
                return
            sink.write(data)


@pytest.mark.parametrize(
    ("work", "state"),
    [
        ({"delivery": "at_most_once"}, RunState.SUCCEEDED),
        ({"retry": {"max_retries": 0}}, RunState.SUCCEEDED),
        ({"retry": {"max_retries": 5}}, RunState.RETRYING),
    ],
    ids=str,
)
def test_a_call_that_may_be_lost_only_once_is_not_made_over_a_kept_channel(work, state):
    async def scenario():
        async with GrpcServer(echo) as server, Firewall(server.port) as firewall:
            grpc_kind = kind()
            try:
                assert (await grpc_kind.run(job(firewall.port))).state is RunState.SUCCEEDED
                firewall.forget()
                second = job(firewall.port, delivery=work.get("delivery", "at_least_once"))
                second.retry = work.get("retry", {})
                outcome = await grpc_kind.run(second)
            finally:
                await grpc_kind.close()
            assert outcome.state is state
            assert len(server.calls) == (2 if state is RunState.SUCCEEDED else 1)

    run(scenario)
