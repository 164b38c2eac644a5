"""The worker's side of the supervisor: starts child processes and stops them with all their descendants."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.bounded_tail import Tail
from noonmark.telemetry.logs import get_logger
from noonmark.worker.processes import supervisor
from noonmark.worker.processes.command_socket import CommandSocket

_READ_BYTES: Final = 64 * 1024
_LAST_READS: Final = 64
"""Reads of a pipe after its writers were killed: enough for the kernel's buffer."""

_MESSAGE_BYTES: Final = 64 * 1024
_END_SECONDS: Final = 2.0
"""For a supervisor whose socket is closed: it kills what is left, which takes milliseconds."""

_CHECK_SECONDS: Final = 0.01

_log = get_logger()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended; reported when no process of it is left.

    Attributes:
        code: exit code; the negative number of the signal that killed it; None if unknown.
        error: why the code is unknown, as the end of a sentence.
        started: whether it was started.
        cpu_seconds: CPU time of it and of the processes that it waited for.
        crowded: whether it was killed because it had too many processes.
    """

    code: int | None
    error: str = ""
    started: bool = True
    cpu_seconds: float = 0.0
    crowded: bool = False

    def text(self) -> str:
        """Describe it, as the end of a sentence."""
        if self.code is None:
            return self.error
        if self.code < 0:
            return f"was killed by {_signal_name(-self.code)}"
        return f"ended with exit code {self.code}"


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """A request to start a child.

    Attributes:
        path: absolute path of the executable.
        argv: its arguments; the first is its name.
        env: its whole environment.
        cwd: its working folder.
        limits: `cpu_seconds`, `memory_bytes`, `open_files`, `file_bytes` per process; `processes` in total.
        confined: whether it is prevented from gaining privileges (no_new_privs).
    """

    path: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    limits: Mapping[str, int] = field(default_factory=dict)
    confined: bool = False

    def encode(self) -> bytes:
        """Return it as JSON for the supervisor."""
        # Not orjson: variables and paths can be bytes that are not text.
        return json.dumps(
            {
                "path": self.path,
                "argv": list(self.argv),
                "env": dict(self.env),
                "cwd": self.cwd,
                "limits": dict(self.limits),
                "confined": self.confined,
            }
        ).encode()


class Child:
    """A child that the supervisor starts."""

    def __init__(
        self,
        number: int,
        owner: ChildLauncher,
        loop: asyncio.AbstractEventLoop,
        attempt: RunningAttempt | None,
    ) -> None:
        self._number = number
        self._owner = owner
        self.ended: asyncio.Future[Ending] = loop.create_future()
        """Done when no process of it is left."""

        self._attempt = attempt
        self._stdout = Tail()
        self._pipes: dict[int, str] = {}
        self._loop = loop

    def read(self, descriptor: int, name: str) -> None:
        """Read what a pipe delivers; the child never waits for a reader."""
        os.set_blocking(descriptor, False)
        self._pipes[descriptor] = name
        self._loop.add_reader(descriptor, self._readable, descriptor)

    def begin_output(self, attempt: RunningAttempt) -> None:
        """Add what is printed from now on to an attempt's log; what was printed before is in no attempt's."""
        self._read_all()
        self._attempt, self._stdout = attempt, Tail()

    def end_output(self) -> str:
        """Add what was printed up to now to the attempt's log; return the last line of its stdout.

        The line is as it was printed: it can contain secrets.
        """
        self._read_all()
        self._attempt = None
        return self._stdout.text().rstrip().rsplit("\n", 1)[-1]

    async def stop(self, grace_seconds: float) -> Ending:
        """Stop it: SIGTERM to its process group, SIGKILL after the grace; return when no process is left.

        It waits even if the caller is cancelled meanwhile, because a cancel is confirmed by this end.
        """
        return await run_to_completion(self._stop(grace_seconds))

    def kill(self) -> None:
        """Kill it, without waiting."""
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send a signal to its process group, if it still runs."""
        if not self.ended.done():
            self._owner.send({"do": "signal", "id": self._number, "number": int(number)})

    def end(self, ending: Ending) -> None:
        """Set how it ended; only the launcher calls this."""
        if not self.ended.done():
            self.ended.set_result(ending)

    def close(self) -> None:
        """Close the pipes; called once its output is not needed any more."""
        for descriptor in list(self._pipes):
            self._shut(descriptor)

    async def _stop(self, grace_seconds: float) -> Ending:
        self.signal(signal.SIGTERM)
        hurrying = asyncio.ensure_future(self._owner.hurry.wait())
        waits: list[asyncio.Future[Any]] = [self.ended, hurrying]
        await asyncio.wait(waits, timeout=grace_seconds, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        self.kill()
        return await self.ended

    def _read_all(self) -> None:
        for descriptor in list(self._pipes):
            for _ in range(_LAST_READS):
                if not self._readable(descriptor):
                    break

    def _readable(self, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._take(self._pipes[descriptor], data)
        else:
            self._shut(descriptor)
        return bool(data)

    def _take(self, name: str, data: bytes) -> None:
        if self._attempt is None:
            _log.info("child_printed", message=data.decode("utf-8", "replace"), stream=name)
            return
        log = self._attempt.ensure_extras().logged()
        if name == "stdout":
            self._stdout.add(data)
            log.stdout.add(data)
        else:
            log.stderr.add(data)

    def _shut(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        del self._pipes[descriptor]
        os.close(descriptor)


class ChildLauncher:
    """Starts children through one supervisor process, which is started with the first child.

    All methods must be called on the event loop that called it first.
    """

    def __init__(self) -> None:
        self.hurry = asyncio.Event()
        """Set when children get no grace any more."""

        self._process: subprocess.Popen[bytes] | None = None
        self._commands: CommandSocket | None = None
        self._children: dict[int, Child] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._number = 0

    def spawn(
        self,
        request: SpawnRequest,
        stdin: int,
        extra: Sequence[int] = (),
        *,
        attempt: RunningAttempt | None = None,
    ) -> Child:
        """Start a child and read its output.

        Args:
            request: the child to start.
            stdin: its standard input; the caller closes it.
            extra: its descriptors 3 and up; the caller closes them.
            attempt: the attempt that gets its output from the beginning; None: see `Child.begin_output`.

        Returns:
            The child. If it could not be started, its `ended` says why.
        """
        loop = asyncio.get_running_loop()
        self._number += 1
        number = self._number
        child = self._children[number] = Child(number, self, loop, attempt)
        try:
            with ExitStack() as descriptors:
                passed_on = _open_descriptors(child, request, descriptors)
                self._begin(loop)
                self.send({"do": "spawn", "id": number}, [passed_on[0], stdin, *passed_on[1:], *extra])
        except BaseException as error:
            self._children.pop(number, None)
            child.close()
            if not isinstance(error, OSError):
                raise
            why = f"could not be started: {error.strerror or error}"
            child.end(Ending(None, why, started=False))
        return child

    def send(self, request: Mapping[str, object], descriptors: Sequence[int] = ()) -> None:
        """Send a command; without a supervisor no child runs, so there is nothing to send.

        Raises:
            OSError: there are no descriptors left to keep a command that cannot be sent yet.
        """
        if self._commands is not None:
            self._commands.send(request, descriptors)

    def kill_all(self) -> None:
        """Kill every child, and give no child a grace from now on."""
        self.hurry.set()
        for child in list(self._children.values()):
            child.kill()

    async def close(self) -> None:
        """Stop the supervisor, and all children with it."""
        self._lost("the worker is ending")
        await asyncio.gather(*self._ending)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the supervisor process if there is none."""
        if self._commands is not None:
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - our own file; nothing of a job is in its arguments
                    [
                        *(sys.executable, "-I", "-S", str(Path(supervisor.__file__))),
                        *(str(theirs.fileno()), str(os.getpid())),
                    ],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env={},
                    start_new_session=True,
                )
        except BaseException:
            ours.close()
            raise
        self._commands = CommandSocket(ours, loop, self._lost)
        loop.add_reader(ours.fileno(), self._answered, ours)

    def _answered(self, ours: socket.socket) -> None:
        try:
            data = ours.recv(_MESSAGE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost("the supervisor of child processes has ended")
            return
        reply = orjson.loads(data)
        child = self._children.pop(reply["id"], None)
        if child is None:
            return
        if reply.get("error"):
            child.end(Ending(None, f"could not be started: {reply['error']}", started=False))
        else:
            code = os.waitstatus_to_exitcode(reply["status"])
            child.end(Ending(code, cpu_seconds=reply["cpu_seconds"], crowded=reply["crowded"]))

    def _lost(self, why: str) -> None:
        """Drop a supervisor that has ended, and its children with it; the next request starts another.

        The loop does not wait for its end: other children, and calls to other systems, are served meanwhile.
        """
        commands, self._commands = self._commands, None
        process, self._process = self._process, None
        if commands is None or process is None:
            return
        commands.close()
        children, self._children = self._children, {}
        ending = asyncio.get_running_loop().create_task(_await_end(process, children, why))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


async def _await_end(process: subprocess.Popen[bytes], children: Mapping[int, Child], why: str) -> None:
    """Wait until a supervisor has ended: it kills everything below it first. Then its children have ended."""
    until = time.monotonic() + _END_SECONDS
    while process.poll() is None:
        if time.monotonic() >= until:
            process.kill()
        await asyncio.sleep(_CHECK_SECONDS)
    for child in children.values():
        child.end(Ending(None, f"was lost: {why}"))
    if children:
        _log.error("keeper_ended", children=len(children), why=why, exit_code=process.returncode)


async def run_to_completion(awaitable: Awaitable[T]) -> T:
    """Wait to the end although this task is cancelled; raise the cancellation afterwards."""
    future = asyncio.ensure_future(awaitable)
    cancelled = False
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError:
            cancelled = True
        except BaseException:  # noqa: BLE001 - raised by the result below
            break
    if cancelled:
        raise asyncio.CancelledError
    return future.result()


def _open_descriptors(child: Child, request: SpawnRequest, opened: ExitStack) -> list[int]:
    """Return the request as a file, and the child's output and error; `opened` closes them.

    Raises:
        OSError: there are no descriptors or no memory left.
    """
    # A file without a name: a request can be larger than a message.
    file = os.memfd_create("request")
    opened.callback(os.close, file)
    with os.fdopen(os.dup(file), "wb") as writer:
        writer.write(request.encode())
    os.lseek(file, 0, os.SEEK_SET)
    passed_on = [file]
    for name in ("stdout", "stderr"):
        ours, theirs = os.pipe()
        opened.callback(os.close, theirs)
        child.read(ours, name)
        passed_on.append(theirs)
    return passed_on


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
