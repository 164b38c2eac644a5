"""Signals that arrive while a program loads: it ends with one line and the exit code that a shell expects.

Imports only the standard library, and little of it: it is the first module that the program loads.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM end the process at once inside the block, which loads modules and owns nothing.

    Otherwise SIGINT prints the traceback of an import, and SIGTERM does nothing if this is process 1 of a
    container. A signal that the caller of the program ignores stays ignored.
    """
    wanted = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _end) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_on_sigterm() -> None:
    """Let SIGTERM end a command as Ctrl-C does: temporary files are removed, connections closed."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """End without cleaning up: imports can turn an exception into another one, or print it."""
    _say(number)
    os._exit(128 + number)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    _say(number)
    raise SystemExit(128 + number)


def _say(number: int) -> None:
    # Not through `sys.stderr`: a handler must not use a buffer that the interrupted code may be using.
    try:
        os.write(2, f"noonmark: stopped by {signal.Signals(number).name}\n".encode())
    except OSError:  # standard error is closed
        return
