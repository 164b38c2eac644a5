"""What a handler can do through its context, and who carries it out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from noonmark.core.kinds.emitted_event import Event


class Fenced(RuntimeError):  # noqa: N818 - the term of the ledger; handlers catch it by this name
    """This attempt does not own the run any more: it was requeued, cancelled or ended. Stop working."""


class Saved:
    """A checkpoint on its way to the database.

    It is written within about a second, and at the latest with the outcome of the attempt; usually you do not
    need to wait. If the next step must not begin before the checkpoint is safe, call
    `ctx.checkpoint(x).wait()`, or `await ctx.checkpoint(x)` in an async handler.
    """

    def __init__(self, ask: Callable[[], Future[None]]) -> None:
        """Represent a write.

        Args:
            ask: called at the first wait, so that the write begins at once. The returned future is done when
                the checkpoint, or a newer one, is committed; it fails with `Fenced`.
        """
        self._ask = ask
        self._future: Future[None] | None = None

    def wait(self, timeout_seconds: float | None = None) -> None:
        """Block until it is committed.

        Raises:
            Fenced: this attempt does not own the run any more, so nothing was written.
            TimeoutError: it is not committed yet.
        """
        self._asked().result(timeout_seconds)

    def __await__(self) -> Generator[object, None, None]:
        """Wait on the event loop; see `wait`."""
        return asyncio.wrap_future(self._asked()).__await__()

    def _asked(self) -> Future[None]:
        if self._future is None:
            self._future = self._ask()
        return self._future


class Effects(Protocol):
    """The implementation of the context methods of one attempt."""

    def log(self, line: str) -> None:
        """Store a line with the attempt."""

    def progress(self, fraction: float | None, message: str) -> None:
        """Report how far the attempt is."""

    def checkpoint(self, data: bytes) -> Saved:
        """Store JSON for the next attempt."""

    def last_checkpoint(self) -> bytes | None:
        """Return the JSON that an earlier attempt stored."""

    def secret(self, name: str) -> str:
        """Return a secret of the run's namespace."""

    def emit(self, event: Event) -> str:
        """Add an event that is sent if the attempt succeeds; return its id."""


@dataclass(slots=True)
class Detached:
    """Effects of a context outside a worker, in memory, for tests of handlers.

    Attributes:
        lines: logged lines.
        fraction: the last reported progress.
        message: the message of the last progress.
        kept: the last checkpoint, as JSON.
        before: the checkpoint of an earlier attempt, as JSON.
        secrets: secrets that the handler can request, by name.
        emitted: events, in order.
    """

    lines: list[str] = field(default_factory=list)
    fraction: float | None = None
    message: str = ""
    kept: bytes | None = None
    before: bytes | None = None
    secrets: dict[str, str] = field(default_factory=dict)
    emitted: list[Event] = field(default_factory=list)

    def log(self, line: str) -> None:
        """Add a line."""
        self.lines.append(line)

    def progress(self, fraction: float | None, message: str) -> None:
        """Store the last progress."""
        self.fraction, self.message = fraction, message

    def checkpoint(self, data: bytes) -> Saved:
        """Store the last checkpoint; it is safe at once."""
        self.kept = data
        done: Future[None] = Future()
        done.set_result(None)
        return Saved(lambda: done)

    def last_checkpoint(self) -> bytes | None:
        """Return the newest checkpoint."""
        return self.kept if self.kept is not None else self.before

    def secret(self, name: str) -> str:
        """Return a secret of the test."""
        return self.secrets[name]

    def emit(self, event: Event) -> str:
        """Add an event."""
        self.emitted.append(event)
        return f"test/{len(self.emitted) - 1}"
