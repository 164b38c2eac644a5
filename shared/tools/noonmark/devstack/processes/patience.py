"""How long to wait for something that starts: as long as it makes progress, up to a limit.

A fixed time is wrong on a busy machine, where everything takes twenty times as long and still ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil

from noonmark.devstack.processes.errors import DevStackError

STALLED_SECONDS: Final = 60.0
LIMIT_SECONDS: Final = 900.0
_CPU_SECONDS: Final = 1.0
"""CPU time that counts as progress. A service that only waits needs about half of it in a minute."""
_SAY_SECONDS: Final = 10.0

Say = Callable[[str], None]
Progress = Callable[[], bool]
"""Returns whether there was progress since it last returned True."""


def quiet(_: str) -> None:
    """Says nothing."""


class Patience:
    """What all waits of one start have in common: the limit, and who receives a line about each long wait."""

    def __init__(
        self,
        limit_seconds: float = LIMIT_SECONDS,
        *,
        stalled_seconds: float = STALLED_SECONDS,
        say: Say = quiet,
    ) -> None:
        """Starts the clock.

        Args:
            limit_seconds: Gives up after this, counted from here or from `renew`.
            stalled_seconds: Gives up if there is no progress for this long.
            say: Receives a line every ten seconds of a wait.
        """
        self.limit_seconds, self.stalled_seconds, self.say = limit_seconds, stalled_seconds, say
        self.give_up_at = time.monotonic() + limit_seconds

    def renew(self) -> None:
        """Starts the clock again, for a later start."""
        self.give_up_at = time.monotonic() + self.limit_seconds

    def wait_for(self, name: str, *progress: Progress) -> Wait:
        """Begins to wait for a part; any kind of progress counts."""
        return Wait(self, name, progress)


class Wait:
    """One wait. Its owner polls, and calls `check` each time."""

    def __init__(self, patience: Patience, name: str, progress: tuple[Progress, ...]) -> None:
        """Takes what it is for, and its progress."""
        self._patience, self._name, self._progress = patience, name, progress
        self._began = self._moved_at = self._said_at = time.monotonic()

    def check(self, missing: str) -> None:
        """Returns if it is worth waiting longer.

        Args:
            missing: What it waits for, to be shown.

        Raises:
            DevStackError: No progress for too long, or the limit is reached.
        """
        now, patience = time.monotonic(), self._patience
        if any([moved() for moved in self._progress]):  # noqa: C419 - each must be measured
            self._moved_at = now
        if now > patience.give_up_at:
            raise DevStackError(
                f"{self._name} was not ready after {patience.limit_seconds:.0f} s, the limit of the start:"
                f" {missing}.",
                remedy="Give it more time with --timeout, such as --timeout 30m.",
            )
        if now - self._moved_at > patience.stalled_seconds:
            raise DevStackError(
                f"{self._name} was not ready, and made no progress for {patience.stalled_seconds:.0f} s:"
                f" {missing}."
            )
        if now - self._said_at >= _SAY_SECONDS:
            self._said_at = now
            patience.say(f"{self._name}: waiting for {now - self._began:.0f} s: {missing}")

    def until(self, condition: Callable[[], bool], missing: str, *, interval_seconds: float = 0.05) -> None:
        """Waits until the condition holds.

        Raises:
            DevStackError: As `check`.
        """
        while not condition():
            self.check(missing)
            time.sleep(interval_seconds)


class CpuTime:
    """Progress of a process and of all below it: they use CPU time."""

    def __init__(self, pid: int) -> None:
        """Takes the process."""
        self._pid, self._mark = pid, 0.0

    def __call__(self) -> bool:
        """Whether it has used another second of CPU."""
        used = self._used()
        if used >= self._mark + _CPU_SECONDS or used < self._mark:
            moved, self._mark = used > self._mark, used
            return moved
        return False

    def _used(self) -> float:
        try:
            process = psutil.Process(self._pid)
            times: list[Any] = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        except psutil.Error:  # one of them has just ended
            return self._mark
        return sum(
            float(each.user + each.system + each.children_user + each.children_system) for each in times
        )


class Growth:
    """Progress of a server: it writes to its log."""

    def __init__(self, log_file: Path) -> None:
        """Takes its log."""
        self._log_file = log_file
        self._size = self._measured()

    def __call__(self) -> bool:
        """Whether the log has grown."""
        before, self._size = self._size, self._measured()
        return self._size > before

    def _measured(self) -> int:
        return self._log_file.stat().st_size if self._log_file.exists() else 0
