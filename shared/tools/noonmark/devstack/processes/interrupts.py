"""Ctrl-C and SIGTERM as an exception that is raised only where it is allowed."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """This process was asked to stop."""


class Interrupts:
    """Turns the first signal into `StopRequested` inside `welcome()`, and stores it elsewhere."""

    def __init__(self) -> None:
        """Starts with nothing requested."""
        self.requested = False
        self._welcome = False

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Handles the signals inside the block; the previous handlers are restored afterwards."""
        # nohup ignores the end of the terminal; that stays so.
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        wanted = [number for number in _SIGNALS if not (ignored and number is signal.SIGHUP)]
        before = {number: signal.signal(number, self._handle) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def welcome(self) -> Iterator[None]:
        """Raises `StopRequested` inside the block, also for a signal that came before it."""
        self._welcome = True
        try:
            if self.requested:
                raise StopRequested
            yield
        finally:
            self._welcome = False

    def forget(self) -> None:
        """Waits for the next signal."""
        self.requested = False

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        if self._welcome:
            self._welcome = False
            raise StopRequested
