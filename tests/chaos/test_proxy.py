"""The proxy does to a connection what each toxic says."""

import asyncio
import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.support.proxy import Network, Proxy, Toxic


def echo(server: socket.socket) -> None:
    def serve(client: socket.socket) -> None:
        with suppress(OSError), client:
            while data := client.recv(65536):
                client.sendall(data)

    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=[client], daemon=True).start()


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        threading.Thread(target=echo, args=[made], daemon=True).start()
        yield made
        made.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(server: socket.socket) -> Iterator[Proxy]:
    network = Network()
    yield network.proxy(server.getsockname()[1])
    network.close()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as made:
        yield made


def ask(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    got = b""
    while len(got) < len(data) and (more := client.recv(65536)):
        got += more
    return got


def connect_and_listen(proxy: Proxy) -> bytes:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as made:
        return made.recv(10)


def test_without_a_toxic_bytes_pass(client: socket.socket) -> None:
    assert ask(client, b"x" * 300_000) == b"x" * 300_000


def test_slices_arrive_whole(proxy: Proxy, client: socket.socket) -> None:
    proxy.set(Toxic(slice_bytes=7, latency=0.01))
    begun = time.monotonic()
    assert ask(client, b"abcdefghij" * 20) == b"abcdefghij" * 20
    assert time.monotonic() - begun >= 0.02


def test_silence_tells_nobody_and_delivers_when_it_heals(proxy: Proxy, client: socket.socket) -> None:
    proxy.set(Toxic(silent=True))
    client.settimeout(0.2)
    client.sendall(b"late")
    with pytest.raises(TimeoutError):
        client.recv(10)
    proxy.heal()
    client.settimeout(5)
    assert client.recv(10) == b"late"


def test_a_reset_is_seen_and_the_next_connection_is_let_in(proxy: Proxy, client: socket.socket) -> None:
    assert ask(client, b"a") == b"a"
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        client.recv(10)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as again:
        assert ask(again, b"b") == b"b"


def test_down_refuses_and_cuts(proxy: Proxy, client: socket.socket) -> None:
    assert ask(client, b"a") == b"a"
    proxy.set(Toxic(down=True))
    with pytest.raises(ConnectionResetError):
        client.recv(10)
    with pytest.raises(ConnectionResetError):
        connect_and_listen(proxy)


def test_a_limit_cuts_in_the_middle(proxy: Proxy, client: socket.socket) -> None:
    proxy.set(Toxic(limit_bytes=1000))
    with pytest.raises(ConnectionResetError):
        ask(client, b"x" * 5000)


@pytest.mark.parametrize("reply", [True, False])
def test_a_trap_loses_the_request_or_its_answer(proxy: Proxy, client: socket.socket, reply: bool) -> None:
    trap = proxy.trap(b"commit", reply=reply, passes=1)
    assert ask(client, b"commit 1") == b"commit 1"
    client.sendall(b"commit 2")
    with pytest.raises(ConnectionResetError):
        client.recv(10)
    assert trap.caught.wait(5)


@pytest.mark.parametrize("passes", range(6))
def test_connections_accepted_at_the_end_are_closed_with_the_rest(server: socket.socket, passes: int) -> None:
    network = Network()
    proxy = network.proxy(server.getsockname()[1])
    clients = []

    async def connect_and_end() -> None:
        clients.extend(socket.create_connection(("127.0.0.1", proxy.port), timeout=5) for _ in range(20))
        for _ in range(passes):
            await asyncio.sleep(0)
        await network.end()

    network.run(connect_and_end())
    network.close()
    for client in clients:
        client.close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
