"""The worker's end of the supervisor's socket: sending a command never stops the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import orjson


class CommandSocket:
    """Sends commands in order. Those that a stopped or starved supervisor has no room for are kept."""

    def __init__(
        self, ours: socket.socket, loop: asyncio.AbstractEventLoop, lost: Callable[[str], None]
    ) -> None:
        """Use the socket, which the caller reads and closes.

        Args:
            ours: the worker's end.
            loop: the event loop that uses it.
            lost: called with the reason if the supervisor cannot be reached any more.
        """
        ours.setblocking(False)
        self._socket = ours
        self._loop = loop
        self._lost = lost
        self._unsent: deque[_UnsentCommand] = deque()

    def send(self, request: Mapping[str, object], descriptors: Sequence[int]) -> None:
        """Send a command, at once or when the supervisor has read earlier ones.

        Raises:
            OSError: there are no descriptors left to keep the command.
        """
        data = orjson.dumps(request)
        if not self._unsent:
            try:
                socket.send_fds(self._socket, [data], descriptors)
            except BlockingIOError:
                pass
            except OSError as error:
                self._lost(str(error))
                return
            else:
                return
        self._unsent.append(_UnsentCommand(data, descriptors))
        self._loop.add_writer(self._socket.fileno(), self._send_unsent)

    def shut(self) -> None:
        """Stop the supervisor: send nothing from now on, and drop what was not sent. Replies still come."""
        self._loop.remove_writer(self._socket.fileno())
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        while self._unsent:
            self._unsent.popleft().close()

    def _send_unsent(self) -> None:
        try:
            while self._unsent:
                self._unsent[0].send(self._socket)
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(str(error))
            return
        self._loop.remove_writer(self._socket.fileno())


class _UnsentCommand:
    """A command with copies of its descriptors, because the caller closes its own."""

    def __init__(self, data: bytes, descriptors: Sequence[int]) -> None:
        self._data = data
        self._descriptors: list[int] = []
        try:
            for descriptor in descriptors:
                self._descriptors.append(os.dup(descriptor))
        except OSError:
            self.close()
            raise

    def send(self, to: socket.socket) -> None:
        socket.send_fds(to, [self._data], self._descriptors)
        self.close()

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())
