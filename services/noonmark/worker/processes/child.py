"""Runs handlers in a child process, one after the other: `python -m noonmark.worker.processes.child`.

Descriptor 3 is a socket to the worker: requests come in; results, and the calls of the handler to its
context, go out. What the handler prints goes to pipes, its standard output and error. The first request names
the modules to import. Each further one is a run, and answered by "begun" before its handler begins: if this
process ends without it, nothing of the run was executed. It exits when the worker closes the socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import inspect
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final
from uuid import UUID

from noonmark.attempts.outcomes import UNREADABLE, describe
from noonmark.attempts.secrets import SecretError
from noonmark.core.bounded_tail import TAIL_BYTES
from noonmark.core.kinds.emitted_event import EmitRefusedError, Event, event_to_wire
from noonmark.handlers import Context, Registry, ResultError, encode_result, load_handlers
from noonmark.handlers.effects import Fenced, Saved
from noonmark.handlers.exceptions import to_wire
from noonmark.worker.processes.frames import encode, receive_blocking
from noonmark.worker.processes.process_state import ProcessState

_SOCKET: Final = 3
_PR_SET_CHILD_SUBREAPER: Final = 36
_NAME_CHARS: Final = 1000
"""Characters of a secret's name that are sent; the worker refuses far shorter names."""

_OVER: Final = "the attempt is over: a thread that its handler left running cannot do this any more"
_ERRORS: Final[dict[str, type[Exception]]] = {"fenced": Fenced, "emit": EmitRefusedError}


class Worker:
    """The connection to the worker. Any thread of the handler can send messages."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._awaited: dict[int, Future[Any]] = {}
        self._number = 0
        self.run = 0
        """Number of the current run: messages about an earlier one are refused."""

        self.requests: Future[dict[str, Any]] = Future()

    def send(self, message: Mapping[str, Any], run: int | None = None) -> None:
        """Send a message.

        Args:
            message: what to send.
            run: number of the run that it is about; None for messages about no run.

        Raises:
            RuntimeError: the run has ended: its threads must not send messages about the next one.
        """
        data = encode(message)
        with self._lock:
            if run not in {None, self.run}:
                raise RuntimeError(_OVER)
            self._channel.sendall(data)

    def request(self, message: Mapping[str, Any], answer: Future[Any], run: int) -> None:
        """Send a message whose reply completes `answer`; raises as `send` does."""
        with self._lock:
            self._number += 1
            number = self._number
            if run == self.run:
                self._awaited[number] = answer
        self.send({**message, "id": number}, run)

    def request_and_wait(self, message: Mapping[str, Any], run: int) -> Any:
        """Send a message and wait for the reply; raises as `send` does."""
        answer: Future[Any] = Future()
        self.request(message, answer, run)
        return answer.result()

    def next_request(self) -> dict[str, Any]:
        """Wait for the next request; the worker sends one at a time."""
        run_request = self.requests.result()
        self.requests = Future()
        return run_request

    def forget(self) -> None:
        """End a run: refuse further messages about it, and fail all replies that are still awaited."""
        with self._lock:
            self.run += 1
            awaited, self._awaited = self._awaited, {}
        for answer in awaited.values():
            if not answer.done():
                answer.set_exception(RuntimeError(_OVER))

    def listen(self) -> None:
        """Receive messages, in a separate thread; exit when the worker closes the socket."""
        while True:
            try:
                message = receive_blocking(self._channel)
            except (EOFError, OSError):
                os._exit(0)
            if message["type"] != "answer":
                self.requests.set_result(message)
                continue
            answer = self._awaited.pop(message["id"], None)
            if answer is None:
                continue
            if answer.done():
                continue  # two replies were awaited for one checkpoint
            if "error" in message:
                answer.set_exception(_error(message))
            else:
                answer.set_result(message["value"])


class ChildEffects:
    """The effects of one attempt, carried out by the worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._run = worker.run

    def log(self, line: str) -> None:
        """Keep a line with the attempt."""
        # The worker keeps half of it, so a secret that is cut in two here does not end up in the kept part.
        self._send({"type": "log", "line": _plain(line[-2 * TAIL_BYTES :])})

    def progress(self, fraction: float | None, message: str) -> None:
        """Show how far the attempt is."""
        self._send({"type": "progress", "fraction": fraction, "message": _plain(message)})

    def checkpoint(self, data: bytes) -> Saved:
        """Keep JSON for the next attempt."""
        self._send({"type": "checkpoint", "data": data.decode()})
        return Saved(self._request_saved)

    def _request_saved(self) -> Future[Any]:
        written: Future[Any] = Future()
        self._worker.request({"type": "saved"}, written, self._run)
        return written

    def last_checkpoint(self) -> bytes | None:
        """Return the JSON that an earlier attempt kept."""
        kept = self._request({"type": "last_checkpoint"})
        return kept.encode() if kept is not None else None

    def secret(self, name: str) -> str:
        """Return a secret of the run's namespace."""
        value: str = self._request({"type": "secret", "name": _plain(name[:_NAME_CHARS])})
        return value

    def emit(self, event: Event) -> str:
        """Have the worker add an event to the outcome; raises at once if it may not be sent."""
        event_id: str = self._request({"type": "emit", **event_to_wire(event)})
        return event_id

    def _send(self, message: Mapping[str, Any]) -> None:
        self._worker.send(message, self._run)

    def _request(self, message: Mapping[str, Any]) -> Any:
        return self._worker.request_and_wait(message, self._run)


def main() -> int:
    """Import the handlers, then run what the worker requests."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Handlers may clean up: SIGTERM is an exit that passes through their `finally`.
    signal.signal(signal.SIGTERM, _on_term)
    channel = socket.socket(fileno=_SOCKET)
    channel.set_inheritable(False)
    worker = Worker(channel)
    threading.Thread(target=worker.listen, name="requests", daemon=True).start()
    load = worker.next_request()
    try:
        registry = load_handlers(load["modules"], Path(load["path"]) if load["path"] else None)
    except BaseException as error:  # noqa: BLE001 - the worker must be informed
        worker.send({"type": "broken", "error": describe(error)})
        return 1
    worker.send({"type": "ready"})
    state = ProcessState()
    while True:
        run_request = worker.next_request()
        worker.send({"type": "begun"})
        answer = _run(registry, run_request, ChildEffects(worker))
        left_threads = state.has_more_threads()  # before they can notice that the run is over
        worker.forget()
        if not state.restore() or left_threads:
            answer["spent"] = True
        for stream in state.streams[1:]:
            with contextlib.suppress(Exception):
                stream.flush()
        worker.send({"type": "done", "left": _left_behind(), **answer})
        if "spent" in answer:
            return 0


def _plain(text: str) -> str:
    """Return text that JSON can hold: lone surrogates become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _error(message: Mapping[str, Any]) -> Exception:
    if message["kind"] == "secret":
        return SecretError(message["error"], retryable=message["retryable"])
    if message["kind"] == "refused":
        return EmitRefusedError(message["error"])
    return _ERRORS.get(message["kind"], RuntimeError)(message["error"])


def _on_term(_number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + signal.SIGTERM)


def _run(registry: Registry, run_request: Mapping[str, Any], effects: ChildEffects) -> dict[str, Any]:
    """Run a handler; return its result or its error. A fork of the handler that returns here exits."""
    me = os.getpid()
    try:
        handler = registry.get(run_request["handler"])
        if handler is None:
            return {"error": f"no handler is registered as {run_request['handler']!r}", "retryable": False}
        value = handler.function(_context(run_request["context"], effects))
        if inspect.isawaitable(value):
            value = asyncio.run(_await(value))
        result = encode_result(value)
    except ResultError as error:
        answer: dict[str, Any] = {"error": str(error), "retryable": False, **to_wire(error)}
    except SecretError as error:
        answer = {"error": str(error), "retryable": error.retryable, **to_wire(error)}
    except BaseException as error:  # noqa: BLE001 - whatever it was, the worker must be informed
        answer = _raised(error)
        # An exit, or a SIGTERM that came too late: this process must run nothing else.
        if not isinstance(error, Exception):
            answer["spent"] = True
    else:
        answer = {"result": result.decode() if result is not None else None}
    if os.getpid() != me:
        os._exit(0)
    return answer


def _raised(error: BaseException) -> dict[str, Any]:
    try:
        return {"error": describe(error), **to_wire(error)}
    except Exception:  # noqa: BLE001 - whatever its attributes do, the worker must be informed
        return {"error": UNREADABLE}


def _context(fields: dict[str, Any], effects: ChildEffects) -> Context:
    for name in ("run_id", "job_id"):
        fields[name] = UUID(fields[name])
    for name in ("scheduled_for", "deadline"):
        fields[name] = datetime.fromisoformat(fields[name])
    return Context(**fields, _effects=effects)


async def _await(value: Any) -> Any:
    return await value


def _left_behind() -> bool:
    """Return whether processes of the handler are left; they become ours when their parents exit."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
