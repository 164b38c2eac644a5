"""Runs Python handlers in a pool of child processes that can be killed."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from noonmark.attempts.outcomes import failed, ordered, rejected, succeeded, too_late
from noonmark.attempts.running_attempt import NotBegunError, RunningAttempt
from noonmark.core.failures import Failure
from noonmark.handlers import Context
from noonmark.handlers.exceptions import RunSignal, from_wire
from noonmark.store.runs.finish import Outcome
from noonmark.worker.processes.child_messages import ChildMessageHandler
from noonmark.worker.processes.frames import FrameError, encode, receive
from noonmark.worker.processes.spawn_messages import Ending, SpawnRequest
from noonmark.worker.processes.spawned_child import Child, run_to_completion
from noonmark.worker.processes.spawning import START_TRIES, ChildLauncher
from noonmark.worker.processes.suspects import LOSSES_BEFORE_ISOLATION

_RUNS_PER_CHILD: Final = 1000
"""A child is replaced after this number of runs, because handlers can leak memory."""

_START_SECONDS: Final = 120.0
"""Time limit for the import of the handler modules."""

_CHECK_SECONDS: Final = 1.0

T = TypeVar("T")


class _WarmChild:
    """A child that runs one handler after the other."""

    def __init__(self, child: Child, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.child = child
        self._reader = reader
        self._writer = writer
        self.runs = 0
        self.has_begun = False
        """Whether the child has read the last request to run a handler: the handler can have begun."""

    async def exchange(
        self, message: Mapping[str, Any], on_message: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any] | None:
        """Send a request; return the reply, or None if the child, which is killed then, gave none.

        Args:
            message: the request.
            on_message: receives the messages that come before the reply.
        """
        try:
            self._writer.write(encode(message))
            while True:
                reply = await receive(self._reader)
                if reply["type"] in {"ready", "broken", "done"}:
                    return reply
                if reply["type"] == "begun":
                    self.has_begun = True
                else:
                    on_message(reply)
        except (OSError, EOFError, FrameError, KeyError):
            # A child that closes its channel or sends an unknown message cannot be used any more.
            self.child.kill()
            return None

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message without waiting."""
        self._writer.write(encode(message))

    def close(self) -> None:
        """Close the channel and the pipes."""
        self._writer.close()
        self.child.close()


class Processes:
    """The pool. Everything but `waiting` belongs to the event loop."""

    def __init__(
        self,
        launcher: ChildLauncher,
        modules: Sequence[str],
        path: Path | None,
        *,
        limit: int,
        suspects: int,
        grace_seconds: float,
    ) -> None:
        """Create the pool; children are started when there are runs.

        Args:
            launcher: starts and stops children.
            modules: the modules that a child imports: the same as the worker.
            path: folder to search first.
            limit: number of children that run handlers at once; further runs wait in order.
            suspects: number of children that run suspects at once, in addition to `limit`, so that no other
                run waits for a suspect.
            grace_seconds: time between SIGTERM and SIGKILL.
        """
        self._launcher = launcher
        self._load = {"type": "load", "modules": list(modules), "path": str(path) if path else None}
        # A handler on a thread can change the folder of the worker, or remove it.
        self._folder = str(Path.cwd())
        self._turns = {False: asyncio.Semaphore(limit), True: asyncio.Semaphore(suspects)}
        # Dozens of suspects can arrive at once. If all their children started together, they would take the
        # CPU from the worker.
        self._starts = asyncio.Semaphore(os.cpu_count() or 1)
        self.grace_seconds = grace_seconds
        self._idle: defaultdict[str | None, list[_WarmChild]] = defaultdict(list)
        """Children without a run: those of suspects by the name of the handler, all others under None."""

        self.waiting: dict[Any, RunningAttempt] = {}
        """Runs that wait for a child, by key; any thread can read it."""

    async def run(self, attempt: RunningAttempt, context: Context, *, suspect: bool) -> Outcome:
        """Run a handler in a child. Its timeout starts when the handler begins.

        Args:
            attempt: the run.
            context: of the attempt; its effects carry out what the handler requests.
            suspect: in a child that has run nothing, or only other suspects of the same handler.

        Raises:
            NotBegunError: the handler did not begin, because the lease of the worker may be over.
        """
        try:
            return await self._run_in_turn(attempt, context, suspect=suspect)
        finally:
            self._close_unwanted()

    def kill_all(self) -> None:
        """Kill all children, and give no child a grace from now on."""
        self._launcher.kill_all()

    async def close(self) -> None:
        """Stop the idle children and the supervisor; called once no run is left."""
        for warm in [warm for idle in self._idle.values() for warm in idle]:
            warm.close()
        self._idle.clear()
        await self._launcher.close()

    async def _run_in_turn(self, attempt: RunningAttempt, context: Context, *, suspect: bool) -> Outcome:
        submitted_at = time.monotonic()
        attempt.hold_clock()
        turns = self._turns[suspect]
        await self._wait_for(turns, attempt)
        try:
            for _ in range(START_TRIES):
                outcome = await self._run_once(attempt, context, submitted_at, suspect=suspect)
                if outcome is not None:
                    return outcome
            return rejected(attempt, "each process that was to run the handler ended before it began")
        finally:
            turns.release()

    async def _run_once(
        self, attempt: RunningAttempt, context: Context, submitted_at: float, *, suspect: bool
    ) -> Outcome | None:
        """Run a handler in a child; None if the child ended before the handler began."""
        warm = await self._take(attempt, suspect=suspect)
        if isinstance(warm, str):
            # No handler has begun, so this is not its failure: the rules of the policy do not apply.
            return rejected(attempt, warm)
        if (late := too_late(attempt)) is not None:
            self._idle[attempt.run.handler if suspect else None].append(warm)
            return late
        try:
            attempt.ensure_may_begin()
        except NotBegunError:
            self._idle[attempt.run.handler if suspect else None].append(warm)
            raise
        attempt.start_clock()
        waited = timedelta(seconds=time.monotonic() - submitted_at)
        try:
            return await self._run(warm, attempt, context, waited, suspect=suspect)
        except BaseException:
            await run_to_completion(self._discard(warm))
            raise

    async def _wait_for(self, turns: asyncio.Semaphore, attempt: RunningAttempt) -> None:
        """Acquire a semaphore; meanwhile the run can be handed back, for it has not begun."""
        self.waiting[attempt.key] = attempt
        try:
            await turns.acquire()
        finally:
            del self.waiting[attempt.key]

    async def _take(self, attempt: RunningAttempt, *, suspect: bool) -> _WarmChild | str:
        """Return a child that is ready, or the reason why none could be started."""
        if not suspect:
            return self._take_idle(None) or await self._start_ready()
        if (warm := self._take_idle(attempt.run.handler)) is not None:
            return warm
        await self._wait_for(self._starts, attempt)
        try:
            return self._take_idle(attempt.run.handler) or await self._start_ready()
        finally:
            self._starts.release()

    def _take_idle(self, name: str | None) -> _WarmChild | None:
        """Return an idle child of this name, if one is alive."""
        idle = self._idle[name]
        while idle:
            warm = idle.pop()
            if not warm.child.ended.done():
                return warm
            warm.close()
        return None

    def _is_wanted(self, handler: str | None) -> bool:
        """Return whether a suspect of this handler waits for a child."""
        return any(
            attempt.run.losses >= LOSSES_BEFORE_ISOLATION and attempt.run.handler == handler
            for attempt in self.waiting.values()
        )

    def _close_unwanted(self) -> None:
        """Close the idle children for which no suspect waits: they would only use memory."""
        for name in [name for name in self._idle if name is not None and not self._is_wanted(name)]:
            for warm in self._idle.pop(name):
                warm.close()

    async def _start_ready(self) -> _WarmChild | str:
        """Return a child that has loaded its modules, or the reason why there is none."""
        started: _WarmChild | Ending | str = ""
        for _ in range(START_TRIES):
            started = await self._try_start()
            if not isinstance(started, Ending):
                return started
            if self._launcher.hurry.is_set():
                break
        return f"the handler's process {started.text()}" if isinstance(started, Ending) else started

    async def _try_start(self) -> _WarmChild | Ending | str:
        """Start a child once; return its ending if no supervisor took the request."""
        try:
            warm = await self._start()
        except OSError as error:
            return f"the handler's process could not be started: {error.strerror or error}"
        try:
            reply = await _within(_START_SECONDS, warm.exchange(self._load, _nothing))
        except BaseException as error:
            warm.child.kill()
            await run_to_completion(warm.child.ended)
            warm.close()
            if isinstance(error, TimeoutError):
                return f"the handler's process was not ready after {_START_SECONDS:g} s"
            raise
        if reply is None or reply["type"] != "ready":
            warm.child.kill()
            ending = await run_to_completion(warm.child.ended)
            warm.close()
            if ending.untaken:
                return ending
            why = ending.text() if reply is None else f"could not load its modules: {reply['error']}"
            return f"the handler's process {why}"
        return warm

    async def _start(self) -> _WarmChild:
        """Start a child.

        Raises:
            OSError: the worker lacks something that it needs for that, such as descriptors.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs, Path(os.devnull).open("rb") as stdin:  # noqa: ASYNC230 - nothing is read
                child = self._launcher.spawn(
                    SpawnRequest(
                        sys.executable,
                        [sys.executable, "-u", "-m", "noonmark.worker.processes.child"],
                        dict(os.environ),
                        self._folder,
                    ),
                    stdin.fileno(),
                    [theirs.fileno()],
                )
        except BaseException:
            ours.close()
            raise
        try:
            reader, writer = await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            child.kill()
            await run_to_completion(child.ended)
            child.close()
            raise
        return _WarmChild(child, reader, writer)

    async def _run(
        self, warm: _WarmChild, attempt: RunningAttempt, context: Context, waited: timedelta, *, suspect: bool
    ) -> Outcome | None:
        warm.runs += 1
        warm.has_begun = False
        warm.child.begin_output(attempt)
        reply = await warm.exchange(
            {"type": "run", "handler": attempt.run.handler, "context": _written(context, attempt, waited)},
            ChildMessageHandler(context.effects, warm.send).handle,
        )
        if reply is None and not warm.has_begun:
            # An idle child can be killed, and the worker hears of it later. The run has lost nothing by it.
            attempt.hold_clock()
            await warm.child.ended
            warm.close()
            return None
        answer = reply if reply is not None else await warm.child.ended
        spent = (
            isinstance(answer, Ending)
            or (suspect and not self._is_wanted(attempt.run.handler))
            or bool(answer.get("left") or answer.get("spent"))
            or warm.runs >= _RUNS_PER_CHILD
        )
        if spent:
            # Processes that the handler left running end with its attempt.
            warm.child.kill()
            # The handler has ended: a timeout or cancel while its processes are killed comes too late.
            with suppress(asyncio.CancelledError):
                await run_to_completion(warm.child.ended)
        warm.child.end_output()
        outcome = _outcome(attempt, answer)
        if spent:
            warm.close()
        else:
            self._idle[attempt.run.handler if suspect else None].append(warm)
        return outcome

    async def _discard(self, warm: _WarmChild) -> None:
        """Stop a child in the middle of a run."""
        await warm.child.stop(self.grace_seconds)
        warm.child.end_output()
        warm.close()


async def _within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Await work for a time that counts only while this process runs, not while the machine is stopped.

    Raises:
        TimeoutError: it is not done; it was cancelled.
    """
    task = asyncio.ensure_future(work)
    left = seconds
    try:
        while left > 0 and not task.done():
            checked_at = time.monotonic()
            await asyncio.wait({task}, timeout=min(left, _CHECK_SECONDS))
            left -= min(time.monotonic() - checked_at, 2 * _CHECK_SECONDS)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()


def _nothing(_said: Mapping[str, Any]) -> None:
    """Ignore messages while modules are imported: there is no run yet."""


def _written(context: Context, attempt: RunningAttempt, waited: timedelta) -> dict[str, Any]:
    """Encode a context for a child; its deadline counts from the end of the wait for the child."""
    facts = context.facts()
    facts["deadline"] = attempt.run.started_at + waited + timedelta(seconds=attempt.timeout_seconds)
    return facts


def _outcome(attempt: RunningAttempt, reply: dict[str, Any] | Ending) -> Outcome:
    if isinstance(reply, Ending):
        error = f"the handler's process {reply.text()} without an answer"
        return failed(attempt, error, failure=Failure(unknown=True))
    if "error" not in reply:
        return succeeded(attempt, orjson.loads(reply["result"]) if reply["result"] is not None else None)
    on_message = from_wire(reply)
    if isinstance(on_message, RunSignal):
        return ordered(attempt, on_message)
    return failed(attempt, str(reply["error"]), failure=replace(on_message, retryable=reply.get("retryable")))
