"""The worker's connection to one supervisor process, from its start until no process below it is left."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from noonmark.telemetry.logs import get_logger
from noonmark.worker.processes import supervisor
from noonmark.worker.processes.command_socket import CommandSocket
from noonmark.worker.processes.process_tree import kill_marked
from noonmark.worker.processes.silence import Silence
from noonmark.worker.processes.spawn_messages import Ending
from noonmark.worker.processes.spawned_child import Child

_MESSAGE_BYTES: Final = 64 * 1024
_END_SECONDS: Final = 2.0
"""For a supervisor that was stopped: it kills what is left, which takes milliseconds."""

_PATIENCE_SECONDS: Final = 8.0
"""For what is left below a supervisor that has ended; what the kernel cannot end by then stays."""

_POLL_SECONDS: Final = 0.01
_SWEEP_SECONDS: Final = 0.2
_PING_SECONDS: Final = 0.5

_log = get_logger()


class SupervisorConnection:
    """Starts a supervisor, sends it commands, and knows the children that it has not reported as ended."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        stopped: Callable[[SupervisorConnection], None],
        gone: Callable[[SupervisorConnection], None],
    ) -> None:
        """Start the supervisor process.

        Args:
            loop: the event loop that uses the connection.
            stopped: called when it takes no requests any more.
            gone: called when nothing below it is left.

        Raises:
            OSError: there are no descriptors or processes left.
        """
        self._loop = loop
        self._stopped = stopped
        self._on_gone = gone
        self._token = secrets.token_hex(16)
        self._children: dict[int, Child] = {}
        self._why: str | None = None
        self._watch: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._closed = False  # whether neither the supervisor nor a reaper has the other end any more
        self.gone = asyncio.Event()
        """Set when neither the supervisor nor anything below it is left, and its children have ended."""

        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self.process = self._start(theirs)
        except BaseException:
            self._socket.close()
            raise
        self._silence = Silence(self.process.pid)
        self._commands = CommandSocket(self._socket, loop, self.stop)
        loop.add_reader(self._socket.fileno(), self._receive)

    def spawn(self, number: int, child: Child, descriptors: Sequence[int]) -> None:
        """Request a child.

        Raises:
            OSError: there are no descriptors left to keep a request that cannot be sent yet.
        """
        self._children[number] = child
        try:
            self.send({"do": "spawn", "id": number}, descriptors)
        except BaseException:
            del self._children[number]
            raise
        if self._watch is None and self._why is None:
            self._watch = self._loop.create_task(self._watch_silence())

    def send(self, request: Mapping[str, object], descriptors: Sequence[int] = ()) -> None:
        """Send a command; a supervisor that was stopped kills all its children anyway.

        Raises:
            OSError: there are no descriptors left to keep a command that cannot be sent yet.
        """
        if self._why is None:
            self._commands.send(request, descriptors)

    def kill_all(self) -> None:
        """Kill every child."""
        for child in list(self._children.values()):
            child.kill()

    def stop(self, why: str) -> None:
        """Stop the supervisor, or take its end into account; `why` is in the errors of its children."""
        if self._why is None:
            self._why = why
            self._commands.shut()
            if self._watch is not None:
                self._watch.cancel()
            self._stopped(self)
            self._ending = self._loop.create_task(self._await_end())

    def _start(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own file; nothing of a job is in its arguments
            [
                *(sys.executable, "-I", "-S", str(Path(supervisor.__file__))),
                *(str(theirs.fileno()), str(os.getpid()), self._token),
            ],
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={},
            start_new_session=True,
        )

    def _receive(self) -> None:
        """Handle all messages that have come."""
        while not self._closed:
            try:
                data = self._socket.recv(_MESSAGE_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except ConnectionResetError:
                # The supervisor has not read everything; what it has sent comes after this.
                continue
            except OSError:
                data = b""
            if data:
                self._silence.heard()
                self._handle(orjson.loads(data))
            else:
                self._closed = True
                self._loop.remove_reader(self._socket.fileno())
                self.stop("the supervisor of child processes has ended")

    def _handle(self, message: Mapping[str, Any]) -> None:
        if "pong" in message:
            return
        if message.get("begun"):
            if (child := self._children.get(message["id"])) is not None:
                child.begin()
            return
        child = self._children.pop(message["id"], None)
        if child is None:
            return
        if message.get("error"):
            child.end(Ending(None, f"could not be started: {message['error']}", started=False))
        elif message.get("lost"):
            child.end(Ending(None, f"was lost: {message['lost']}"))
        else:
            code = os.waitstatus_to_exitcode(message["status"])
            child.end(Ending(code, cpu_seconds=message["cpu_seconds"], crowded=message["crowded"]))

    async def _watch_silence(self) -> None:
        """Replace a supervisor that has ended, or does not answer, while it has children."""
        try:
            while self._children:
                if self.process.poll() is not None:
                    self.stop("the supervisor of child processes has ended")
                    return
                if self._silence.is_too_long():
                    _log.warning("supervisor_silent", pid=self.process.pid, children=len(self._children))
                    self.stop("the supervisor of child processes did not answer")
                    self.process.kill()
                    return
                if self._silence.ask():
                    self.send({"do": "ping"})
                await asyncio.sleep(_PING_SECONDS)
                self._silence.wait_more(_PING_SECONDS)
        finally:
            self._watch = None

    async def _await_end(self) -> None:
        """Wait until nothing of the supervisor is left: it kills everything below it first."""
        until = time.monotonic() + _END_SECONDS
        while self.process.poll() is None:
            if time.monotonic() >= until:
                self.process.kill()
            await asyncio.sleep(_POLL_SECONDS)
        await self._sweep()
        if not self._closed:
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        why, exit_code = self._why, self.process.returncode
        if self._children:
            _log.error("keeper_ended", children=len(self._children), why=why, exit_code=exit_code)
        for child in self._children.values():
            begun = child.begun.done()
            child.end(Ending(None, f"was lost: {why}", started=begun, untaken=not begun))
        self._children.clear()
        self.gone.set()
        self._on_gone(self)

    async def _sweep(self) -> None:
        """Wait for the reapers of a supervisor that was killed; kill what they, killed too, did not kill."""
        await self._await_close(_END_SECONDS)
        until = time.monotonic() + _PATIENCE_SECONDS
        while self.process.returncode != 0 or not self._closed:
            found = await asyncio.to_thread(kill_marked, self._token.encode())
            if (not found and self._closed) or time.monotonic() >= until:
                return
            await self._await_close(_SWEEP_SECONDS)
            await asyncio.sleep(_POLL_SECONDS)

    async def _await_close(self, seconds: float) -> None:
        # The loop may not report the end after an error of the socket, so this does not wait for its report.
        until = time.monotonic() + seconds
        while not self._closed and time.monotonic() < until:
            self._receive()
            await asyncio.sleep(_POLL_SECONDS)
