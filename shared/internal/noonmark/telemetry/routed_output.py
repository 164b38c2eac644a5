"""Standard output and error of a process in which several handlers run at once.

`sys.stdout` and `sys.stderr` become streams that pass what a handler prints to its attempt. A context
variable names the attempt, so tasks and `asyncio.to_thread` inherit it, and threads that a handler starts
itself do not. Everything else goes to the stream that was there before.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Final, Literal, TextIO

StreamName = Literal["stdout", "stderr"]

Sink = Callable[[Any, StreamName, bytes], bool]
"""Takes an attempt and what its handler printed; returns False if the attempt is over."""

_attempt: Final[ContextVar[Any]] = ContextVar("noonmark_attempt", default=None)

print_for: Final[Callable[[Any], object]] = _attempt.set
"""Pass what this thread or task prints from now on to an attempt, until it is over or there is another."""

printing_for: Final[Callable[[], Any]] = _attempt.get
"""Return the attempt whose handler the caller is a part of; None outside of handlers."""


_routed: Final[dict[StreamName, RoutedStream]] = {}
"""The routed streams of the process; empty if there are none."""

_current: Final[list[TextIO | RoutedStream | None]] = [None, None]
"""Both of them in order, for the comparison after every handler."""


def route_output(sink: Sink) -> None:
    """Replace `sys.stdout` and `sys.stderr`; called once, before handlers are imported."""
    _routed["stdout"] = RoutedStream(sys.stdout, "stdout", sink)
    _routed["stderr"] = RoutedStream(sys.stderr, "stderr", sink)
    _current[:] = _routed["stdout"], _routed["stderr"]
    restore_routes()
    # What a process prints that a handler forks cannot reach its attempt.
    os.register_at_fork(after_in_child=lambda: _attempt.set(None))


def restore_routes() -> None:
    """Put the routed streams back that a handler has replaced; called whenever a handler has ended.

    Two handlers that redirect at once leave the stream of one of them behind, and everything that is printed
    later would be lost in it.
    """
    try:
        if sys.stdout is _current[0] and sys.stderr is _current[1]:
            return
    except AttributeError:
        pass  # a handler can also delete them
    for name, stream in _routed.items():
        setattr(sys, name, stream)


def process_stderr() -> TextIO | None:
    """Return the standard error of the process itself, for its own log; None if it has none."""
    stream: TextIO | None = sys.stderr
    return stream.real if isinstance(stream, RoutedStream) else stream


class RoutedStream(io.TextIOBase):
    """A text stream that passes what handlers print to their attempts."""

    def __init__(self, real: TextIO, name: StreamName, sink: Sink) -> None:
        """Wrap a stream of the process.

        Args:
            real: the stream for everything that no handler prints.
            name: its name in the output of attempts.
            sink: takes what handlers print.
        """
        self._sink: Final = sink
        self.real: Final = real
        self._name: Final = name
        self._binary: Final = _RoutedBuffer(self)

    @property
    def buffer(self) -> io.BufferedIOBase:
        """The binary stream."""
        return self._binary

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the wrapped stream."""
        return self.real.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """The error handler of the wrapped stream."""
        return self.real.errors

    def write(self, text: str, /) -> int:
        """Write text to the attempt of the caller, or else to the wrapped stream."""
        if _attempt.get() is None:
            return self.real.write(text)
        if not self.passed_on(text.encode("utf-8", "backslashreplace")):
            self.real.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:  # type: ignore[override]
        """Write texts."""
        for line in lines:
            self.write(line)

    def passed_on(self, data: bytes) -> bool:
        """Return whether the data was passed to the attempt of the caller."""
        attempt = _attempt.get()
        if attempt is None:
            return False
        # Whatever is printed meanwhile is not output of the handler.
        token = _attempt.set(None)
        try:
            return self._sink(attempt, self._name, data)
        finally:
            _attempt.reset(token)

    def flush(self) -> None:
        """Flush the wrapped stream."""
        self.real.flush()

    def close(self) -> None:
        """Do nothing: other handlers use the stream."""

    def isatty(self) -> bool:
        """Return whether the wrapped stream is a terminal."""
        return self.real.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the wrapped stream."""
        return self.real.fileno()

    def writable(self) -> bool:
        """Return True."""
        return True

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the wrapped stream."""
        return getattr(self.real, name)


class _RoutedBuffer(io.BufferedIOBase):
    """The binary stream below a routed one."""

    def __init__(self, stream: RoutedStream) -> None:
        self._stream = stream

    def write(self, data: Any, /) -> int:
        given = bytes(data)
        if not self._stream.passed_on(given):
            self._stream.real.buffer.write(given)
        return len(given)

    def flush(self) -> None:
        self._stream.real.flush()

    def close(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()
