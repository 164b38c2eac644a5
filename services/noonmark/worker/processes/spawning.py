"""The worker's side of the supervisor: starts child processes and stops them with all their descendants."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeVar

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.bounded_tail import Tail
from noonmark.telemetry.logs import get_logger
from noonmark.worker.processes.spawn_messages import Ending, SpawnRequest
from noonmark.worker.processes.supervisor_connection import SupervisorConnection

_READ_BYTES: Final = 64 * 1024
_LAST_READS: Final = 64
"""Reads of a pipe after its writers were killed: enough for the kernel's buffer."""

START_TRIES: Final = 3
"""How often a child is requested whose request no supervisor took."""

_log = get_logger()
T = TypeVar("T")


class Child:
    """A child that the supervisor starts."""

    def __init__(
        self,
        number: int,
        hurry: asyncio.Event,
        loop: asyncio.AbstractEventLoop,
        attempt: RunningAttempt | None,
    ) -> None:
        self._number = number
        self._hurry = hurry
        self.begun: asyncio.Future[bool] = loop.create_future()
        """Whether the supervisor has taken the request; nothing is started before."""

        self.ended: asyncio.Future[Ending] = loop.create_future()
        """Done when no process of it is left."""

        self.supervisor: SupervisorConnection | None = None

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
        if self.supervisor is not None and not self.ended.done():
            self.supervisor.send({"do": "signal", "id": self._number, "number": int(number)})

    def begin(self) -> None:
        """Set that the supervisor has taken the request; only the supervisor's connection calls this."""
        if not self.begun.done():
            self.begun.set_result(True)

    def end(self, ending: Ending) -> None:
        """Set how it ended; only the launcher and the supervisor's connection call this."""
        if not self.begun.done():
            self.begun.set_result(False)
        if not self.ended.done():
            self.ended.set_result(ending)

    def close(self) -> None:
        """Close the pipes; called once its output is not needed any more."""
        for descriptor in list(self._pipes):
            self._shut(descriptor)

    async def _stop(self, grace_seconds: float) -> Ending:
        self.signal(signal.SIGTERM)
        hurrying = asyncio.ensure_future(self._hurry.wait())
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

        self._supervisor: SupervisorConnection | None = None
        self._ending: set[SupervisorConnection] = set()
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
        child = Child(number, self.hurry, loop, attempt)
        try:
            with ExitStack() as descriptors:
                passed_on = _open_descriptors(child, request, descriptors)
                child.supervisor = self._connect(loop)
                child.supervisor.spawn(number, child, [passed_on[0], stdin, *passed_on[1:], *extra])
        except BaseException as error:
            child.close()
            if not isinstance(error, OSError):
                raise
            why = f"could not be started: {error.strerror or error}"
            child.end(Ending(None, why, started=False))
        return child

    def kill_all(self) -> None:
        """Kill every child, and give no child a grace from now on."""
        self.hurry.set()
        if self._supervisor is not None:
            self._supervisor.kill_all()

    async def close(self) -> None:
        """Stop the supervisor, and all children with it."""
        if self._supervisor is not None:
            self._supervisor.stop("the worker is ending")
        await asyncio.gather(*(supervisor.gone.wait() for supervisor in self._ending))

    def _connect(self, loop: asyncio.AbstractEventLoop) -> SupervisorConnection:
        """Return the connection to the supervisor, which is started if there is none."""
        if self._supervisor is None:
            self._supervisor = SupervisorConnection(loop, self._stopped, self._gone)
        return self._supervisor

    def _stopped(self, supervisor: SupervisorConnection) -> None:
        """Use another supervisor from the next child on.

        The loop does not wait for its end: other children, and calls to other systems, are served meanwhile.
        """
        if self._supervisor is supervisor:
            self._supervisor = None
        self._ending.add(supervisor)

    def _gone(self, supervisor: SupervisorConnection) -> None:
        self._ending.discard(supervisor)


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
