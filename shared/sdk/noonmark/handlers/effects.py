"""What a handler can do besides returning and raising, and who does it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from noonmark.core.kinds.emitted_event import Event


class Fenced(RuntimeError):  # noqa: N818 - the word of the ledger for it; handlers catch it by this name
    """The run is not this attempt's any more: it was taken over, cancelled or ended. Stop working."""


class Saved:
    """A checkpoint on its way to the database.

    It is written within about a second, and with the attempt's outcome at the latest; nobody needs to wait.
    Where the next step must not begin before the checkpoint is safe: `ctx.checkpoint(x).wait()`, or
    `await ctx.checkpoint(x)` in an async handler.
    """

    def __init__(self, ask: Callable[[], Future[None]]) -> None:
        """Stand for a write.

        Args:
            ask: called when somebody begins to wait, so that the write begins at once. What it returns is
                done when the checkpoint, or a newer one, is committed, and fails with `Fenced`.
        """
        self._ask = ask
        self._future: Future[None] | None = None

    def wait(self, timeout_seconds: float | None = None) -> None:
        """Block until it is committed.

        Raises:
            Fenced: the run is not this attempt's any more, so nothing was written.
            TimeoutError: not yet committed.
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
    """What stands behind the methods of one attempt's context."""

    def log(self, line: str) -> None:
        """Keep a line with the attempt."""

    def progress(self, fraction: float | None, message: str) -> None:
        """Show how far the attempt is."""

    def checkpoint(self, data: bytes) -> Saved:
        """Keep JSON for the next attempt."""

    def last_checkpoint(self) -> bytes | None:
        """Return the JSON that an earlier attempt kept."""

    def secret(self, name: str) -> str:
        """Return a secret of the run's namespace."""

    def emit(self, event: Event) -> str:
        """Keep an event that is sent if the attempt succeeds; return its id."""


@dataclass(slots=True)
class Detached:
    """Effects of a context outside a worker, kept in memory: what tests of handlers look at.

    Attributes:
        lines: what was logged.
        fraction: the last progress told.
        message: the text told with it.
        kept: the last checkpoint, as JSON.
        before: the checkpoint that the handler finds, as JSON.
        secrets: those it can ask for, by name.
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
        """Keep a line."""
        self.lines.append(line)

    def progress(self, fraction: float | None, message: str) -> None:
        """Keep the last progress."""
        self.fraction, self.message = fraction, message

    def checkpoint(self, data: bytes) -> Saved:
        """Keep the last checkpoint; it is safe at once."""
        self.kept = data
        done: Future[None] = Future()
        done.set_result(None)
        return Saved(lambda: done)

    def last_checkpoint(self) -> bytes | None:
        """Return the newest checkpoint."""
        return self.kept if self.kept is not None else self.before

    def secret(self, name: str) -> str:
        """Return a secret that the test has given."""
        return self.secrets[name]

    def emit(self, event: Event) -> str:
        """Keep an event."""
        self.emitted.append(event)
        return f"test/{len(self.emitted) - 1}"
