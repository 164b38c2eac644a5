"""A proxy before Postgres that cuts a connection around a COMMIT: before the server sees it, or its reply."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit, urlunsplit

_COMMIT = b"commit\x00"


class CommitProxy:
    """Passes bytes on until it is told to cut.

    Attributes:
        cut: None passes all on; "before" drops the next COMMIT and the connection with it; "after" lets it
            reach the server, waits for the reply, and drops that with the connection.
        closed: while set, nobody is let in.
    """

    def __init__(self, url: str) -> None:
        self._target = _address(url)
        self._server = socket.create_server(("127.0.0.1", 0))
        host = f"127.0.0.1:{self._server.getsockname()[1]}"
        parts = urlsplit(url)
        user = parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(
            parts._replace(
                netloc=f"{user}@{host}" if user else host, query="sslmode=disable&gssencmode=disable"
            )
        )
        self._ends: list[socket.socket] = []
        self.cut: str | None = None
        self.cuts = 0
        self.closed = threading.Event()
        self.refused = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if self.closed.is_set():
                self.refused.set()
                client.close()
                continue
            family, address = self._target
            server = socket.socket(family)
            server.connect(address)
            self._ends += [client, server]
            link = _Link(self, client, server)
            threading.Thread(target=link.forth, daemon=True).start()
            threading.Thread(target=link.back, daemon=True).start()


class _Link:
    """One connection and its other half."""

    def __init__(self, proxy: CommitProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._swallow = False

    def forth(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(65536):
                if _COMMIT in data and (how := self._proxy.cut) is not None:
                    self._proxy.cut = None
                    self._proxy.cuts += 1
                    if how == "before":
                        break
                    self._swallow = True
                self._server.sendall(data)
        if not self._swallow:
            self._end()

    def back(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(65536):
                if self._swallow:
                    break  # the server has answered, so the transaction is committed
                self._client.sendall(data)
        self._end()

    def _end(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _address(url: str) -> tuple[socket.AddressFamily, object]:
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    folder = query.get("host", [""])[0]
    port = parts.port or int(query.get("port", ["5432"])[0])
    if folder.startswith("/"):
        return socket.AF_UNIX, f"{folder}/.s.PGSQL.{port}"
    return socket.AF_INET, (parts.hostname or "127.0.0.1", port)
