"""Runs handlers in a process of their own, one after the other: `python -m noonmark.worker.processes.child`.

Descriptor 3 is a socket to the worker: orders come in, answers and whatever the handler tells its context
go out. What the handler prints goes to the pipes that are its standard output and error. The first order
names the modules to import; each further one is a run. The process ends with the worker's end of the socket.
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

_SOCKET: Final = 3
_PR_SET_CHILD_SUBREAPER: Final = 36
_NAME_CHARS: Final = 1000
"""Of the name of a secret: the worker refuses far shorter ones."""

_SIGNALS: Final = [getattr(signal, f"SIG{name}") for name in ("TERM", "INT", "HUP", "ALRM", "CHLD", "PIPE")]
_OVER: Final = "the attempt is over: a thread that its handler left behind cannot do this any more"
_ERRORS: Final[dict[str, type[Exception]]] = {"fenced": Fenced, "emit": EmitRefusedError}


class Worker:
    """The worker, as seen from here. Messages may be sent from any thread of the handler."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._asked: dict[int, Future[Any]] = {}
        self._number = 0
        self.run = 0
        """Number of the run that messages are about."""

        self.orders: Future[dict[str, Any]] = Future()

    def tell(self, message: Mapping[str, Any], run: int | None = None) -> None:
        """Send a message.

        Args:
            message: what to say.
            run: that it is about.

        Raises:
            RuntimeError: the run is over: what its threads still say is not about the next one.
        """
        data = encode(message)
        with self._lock:
            if run not in {None, self.run}:
                raise RuntimeError(_OVER)
            self._channel.sendall(data)

    def ask(self, message: Mapping[str, Any], answer: Future[Any], run: int) -> None:
        """Send a message that is answered in the future; raises as `tell` does."""
        with self._lock:
            self._number += 1
            number = self._number
            if run == self.run:
                self._asked[number] = answer
        self.tell({**message, "id": number}, run)

    def ask_and_wait(self, message: Mapping[str, Any], run: int) -> Any:
        """Send a message and wait for what is answered; raises as `tell` does."""
        answer: Future[Any] = Future()
        self.ask(message, answer, run)
        return answer.result()

    def next_order(self) -> dict[str, Any]:
        """Wait for the next order; only one is on its way at a time."""
        order = self.orders.result()
        self.orders = Future()
        return order

    def forget(self) -> None:
        """End a run: nothing more is said about it, and nobody waits for an answer any more."""
        with self._lock:
            self.run += 1
            asked, self._asked = self._asked, {}
        for answer in asked.values():
            if not answer.done():
                answer.set_exception(RuntimeError(_OVER))

    def listen(self) -> None:
        """Take what comes, in a thread of its own; the end of the worker is the end of this process."""
        while True:
            try:
                message = receive_blocking(self._channel)
            except (EOFError, OSError):
                os._exit(0)
            if message["type"] != "answer":
                self.orders.set_result(message)
                continue
            answer = self._asked.pop(message["id"], None)
            if answer is None:
                continue
            if answer.done():
                continue  # two waited for one checkpoint
            if "error" in message:
                answer.set_exception(_error(message))
            else:
                answer.set_result(message["value"])


class ChildEffects:
    """The effects of one attempt, done by the worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._run = worker.run

    def log(self, line: str) -> None:
        """Keep a line with the attempt."""
        # The worker keeps half of it: what is cut off here takes no part of a secret along that is kept.
        self._tell({"type": "log", "line": _plain(line[-2 * TAIL_BYTES :])})

    def progress(self, fraction: float | None, message: str) -> None:
        """Show how far the attempt is."""
        self._tell({"type": "progress", "fraction": fraction, "message": _plain(message)})

    def checkpoint(self, data: bytes) -> Saved:
        """Keep JSON for the next attempt."""
        self._tell({"type": "checkpoint", "data": data.decode()})
        return Saved(self._ask_whether_saved)

    def _ask_whether_saved(self) -> Future[Any]:
        written: Future[Any] = Future()
        self._worker.ask({"type": "saved"}, written, self._run)
        return written

    def last_checkpoint(self) -> bytes | None:
        """Return the JSON that an earlier attempt kept."""
        kept = self._ask({"type": "last_checkpoint"})
        return kept.encode() if kept is not None else None

    def secret(self, name: str) -> str:
        """Return a secret of the run's namespace."""
        value: str = self._ask({"type": "secret", "name": _plain(name[:_NAME_CHARS])})
        return value

    def emit(self, event: Event) -> str:
        """Have the worker keep an event; it says at once if it may not be sent."""
        event_id: str = self._ask({"type": "emit", **event_to_wire(event)})
        return event_id

    def _tell(self, message: Mapping[str, Any]) -> None:
        self._worker.tell(message, self._run)

    def _ask(self, message: Mapping[str, Any]) -> Any:
        return self._worker.ask_and_wait(message, self._run)


class Surroundings:
    """What runs of a process share beside its memory, put back after each: the next is another job's."""

    _SIGNALS: Final = (
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGALRM,
        signal.SIGCHLD,
        signal.SIGPIPE,
    )

    def __init__(self) -> None:
        self._folder = Path.cwd()
        self._environment = dict(os.environ)
        self._handlers = {number: signal.getsignal(number) for number in self._SIGNALS}
        self._streams = (sys.stdin, sys.stdout, sys.stderr)

    def restore(self) -> bool:
        """Put everything back; False where that cannot be."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, before in self._handlers.items():
            if signal.getsignal(number) is not before:
                signal.signal(number, before)
        if os.environ != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        try:
            os.chdir(self._folder)
        except OSError:
            return False
        streams = (sys.stdin, sys.stdout, sys.stderr)
        return streams == self._streams and not any(stream.closed for stream in streams)


def main() -> int:
    """Import the handlers, then run what is ordered."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Handlers may clean up: SIGTERM is an exit that passes through their `finally`.
    signal.signal(signal.SIGTERM, _on_term)
    channel = socket.socket(fileno=_SOCKET)
    channel.set_inheritable(False)
    worker = Worker(channel)
    threading.Thread(target=worker.listen, name="orders", daemon=True).start()
    load = worker.next_order()
    try:
        registry = load_handlers(load["modules"], Path(load["path"]) if load["path"] else None)
    except BaseException as error:  # noqa: BLE001 - the worker must hear of it
        worker.tell({"type": "broken", "error": describe(error)})
        return 1
    worker.tell({"type": "ready"})
    surroundings = Surroundings()
    while True:
        order = worker.next_order()
        answer = _run(registry, order, ChildEffects(worker))
        worker.forget()
        if not surroundings.restore():
            answer["spent"] = True
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        worker.tell({"type": "done", "left": _left_behind(), **answer})
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


def _run(registry: Registry, order: Mapping[str, Any], effects: ChildEffects) -> dict[str, Any]:
    """Run a handler; say what it returned or raised. A fork of it that comes back here ends here."""
    me = os.getpid()
    try:
        handler = registry.get(order["handler"])
        if handler is None:
            return {"error": f"no handler is registered as {order['handler']!r}", "retryable": False}
        value = handler.function(_context(order["context"], effects))
        if inspect.isawaitable(value):
            value = asyncio.run(_await(value))
        result = encode_result(value)
    except ResultError as error:
        answer: dict[str, Any] = {"error": str(error), "retryable": False, **to_wire(error)}
    except SecretError as error:
        answer = {"error": str(error), "retryable": error.retryable, **to_wire(error)}
    except BaseException as error:  # noqa: BLE001 - whatever it was, the worker must hear of it
        answer = _raised(error)
        # An exit, or SIGTERM that came too late to matter: whoever is ended does not go on.
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
    except Exception:  # noqa: BLE001 - whatever its attributes do, the worker must hear of it
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
    """Tell whether processes of the handler are left; they come to this one when their parents end."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
