"""A child process as the worker sees it: its output, its signals and its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.bounded_tail import Tail
from noonmark.telemetry.logs import get_logger
from noonmark.worker.processes.spawn_messages import Ending

_READ_BYTES: Final = 64 * 1024
_LAST_READS: Final = 64
"""Reads of a pipe after its writers were killed: enough for the kernel's buffer."""

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

        self.send: Callable[[Mapping[str, object]], None] | None = None
        """Sends a command to its supervisor."""

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
        if self.send is not None and not self.ended.done():
            self.send({"do": "signal", "id": self._number, "number": int(number)})

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
