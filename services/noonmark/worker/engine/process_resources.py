"""What all runs of a worker share: the limits of its process, and its file descriptors.

A handler on a thread or an event loop can lower a limit, or use up the descriptors. Its own run may well
succeed; those beside and after it fail, and a worker on which everything fails at once is the first to be
free for more of them.
"""

from __future__ import annotations

import errno
import os
import resource
from typing import Final

from noonmark.telemetry.logs import get_logger
from noonmark.worker.processes.process_limits import LIMIT_NAMES, changed_limits, read_limits

_CHECK_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 15.0
"""Descriptors that are used up for so long do not come back by themselves."""

_USED_UP: Final = "no file or connection can be opened: handlers have used up the file descriptors"

_log = get_logger()


class UnusableProcessError(RuntimeError):
    """Handlers have left the process in a state in which no run can be executed; a new one can."""

    def __init__(self) -> None:
        super().__init__(_USED_UP)


class ProcessResources:
    """Watches them. Used by the engine's thread; create it before any handler runs."""

    def __init__(self) -> None:
        self._limits = read_limits()
        self._check_at = 0.0
        self._missing_since: float | None = None
        self._problem = ""
        self.are_lost = False
        """Whether the process should end, because it will not become usable again."""

    def problem(self, now: float) -> str:
        """Return why no run may be started now; "" if nothing is wrong. Limits are put back first.

        Args:
            now: monotonic time in seconds; a call costs nothing until a second has passed.
        """
        if now < self._check_at:
            return self._problem
        self._check_at = now + _CHECK_SECONDS
        self._restore_limits()
        self._problem = _why_no_file_opens()
        if not self._problem:
            self._missing_since = None
        elif self._missing_since is None:
            self._missing_since = now
            _log.error("descriptors_used_up", reason=self._problem)
        self.are_lost = self._missing_since is not None and now - self._missing_since >= _MOST_SECONDS
        return self._problem

    def _restore_limits(self) -> None:
        for number in changed_limits(self._limits):
            try:
                resource.setrlimit(number, self._limits[number])
            except (ValueError, OSError):  # the hard limit was lowered, too: this is how it is from now on
                self._limits[number] = resource.getrlimit(number)
                _log.error("limit_not_restored", limit=LIMIT_NAMES[number], by="a handler")
            else:
                _log.warning("limit_restored", limit=LIMIT_NAMES[number], by="a handler")


def _why_no_file_opens() -> str:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE}:
            return _USED_UP
    return ""
