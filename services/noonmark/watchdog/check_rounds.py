"""Runs all checks at once, each with its own time limit, so that one that hangs delays no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from typing import Final

CheckFunction = Callable[[], Mapping[str, str]]
"""Checks some parts and returns the problem of each, "" for none. It may hang, and it may raise."""

NO_ANSWER: Final = "does not answer"


@dataclass(slots=True)
class Check:
    """One check, and the parts that it covers.

    Attributes:
        name: the name of its thread.
        parts: the parts that its result must name.
        run: see `CheckFunction`.
        describe_error: turns an exception of `run` into a sentence.
    """

    name: str
    parts: tuple[str, ...]
    run: CheckFunction
    describe_error: Callable[[Exception], str]


class CheckRounds:
    """Runs checks in threads. A thread that hangs is abandoned, and its check is skipped until it returns."""

    def __init__(self, checks: tuple[Check, ...], *, within_seconds: float) -> None:
        """Take the checks, and how long a round waits for their results."""
        self._checks = checks
        self._within_seconds = within_seconds
        self._open: dict[str, Future[Mapping[str, str]]] = {}

    def run(self) -> dict[str, str]:
        """Run one round; return the problem of each part, "" if it makes progress."""
        hanging = {name for name, future in self._open.items() if not future.done()}
        started = {check.name: self._start(check) for check in self._checks if check.name not in hanging}
        wait_for(started.values(), timeout=self._within_seconds)
        self._open = {**{name: self._open[name] for name in hanging}, **started}
        found: dict[str, str] = {}
        for check in self._checks:
            found |= self._result(check, started.get(check.name))
        return found

    def _start(self, check: Check) -> Future[Mapping[str, str]]:
        future: Future[Mapping[str, str]] = Future()

        def run() -> None:
            try:
                future.set_result(check.run())
            except Exception as error:  # noqa: BLE001 - passed to the code that waits
                future.set_exception(error)

        # A daemon thread: nothing can stop a thread that hangs in a library, and the process must still exit.
        threading.Thread(target=run, name=check.name, daemon=True).start()
        return future

    def _result(self, check: Check, future: Future[Mapping[str, str]] | None) -> dict[str, str]:
        if future is None or not future.done():
            return dict.fromkeys(check.parts, f"{NO_ANSWER} within {self._within_seconds:g} s")
        error = future.exception()
        if isinstance(error, Exception):
            return dict.fromkeys(check.parts, check.describe_error(error))
        result = future.result()
        return {part: result.get(part, "was not checked") for part in check.parts}
