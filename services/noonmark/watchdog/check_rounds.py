"""Asks all parts at once, each within its own time: one that hangs keeps no other from being judged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from typing import Final

Ask = Callable[[], Mapping[str, str]]
"""Asks about some parts and returns what is wrong with each; "": nothing. May hang, and may raise."""

NO_ANSWER: Final = "does not answer"


@dataclass(slots=True)
class Question:
    """One way to ask, and the parts that it tells of.

    Attributes:
        name: for its thread.
        parts: which its answer must name.
        ask: see `Ask`.
        says: makes a sentence of what it raised.
    """

    name: str
    parts: tuple[str, ...]
    ask: Ask
    says: Callable[[Exception], str]


class CheckRounds:
    """Puts questions in threads that are left alone when they hang; such a one is not put again meanwhile."""

    def __init__(self, questions: tuple[Question, ...], *, within_seconds: float) -> None:
        """Take the questions, and how long a round waits for answers."""
        self._questions = questions
        self._within_seconds = within_seconds
        self._open: dict[str, Future[Mapping[str, str]]] = {}

    def ask(self) -> dict[str, str]:
        """Return what is wrong with each part; "" where it makes progress."""
        hanging = {name for name, future in self._open.items() if not future.done()}
        asked = {
            question.name: self._put(question) for question in self._questions if question.name not in hanging
        }
        wait_for(asked.values(), timeout=self._within_seconds)
        self._open = {**{name: self._open[name] for name in hanging}, **asked}
        found: dict[str, str] = {}
        for question in self._questions:
            found |= self._answer(question, asked.get(question.name))
        return found

    def _put(self, question: Question) -> Future[Mapping[str, str]]:
        future: Future[Mapping[str, str]] = Future()

        def run() -> None:
            try:
                future.set_result(question.ask())
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                future.set_exception(error)

        # A daemon: nothing can end a thread that hangs in a library, and the process must end all the same.
        threading.Thread(target=run, name=question.name, daemon=True).start()
        return future

    def _answer(self, question: Question, future: Future[Mapping[str, str]] | None) -> dict[str, str]:
        if future is None or not future.done():
            return dict.fromkeys(question.parts, f"{NO_ANSWER} within {self._within_seconds:g} s")
        error = future.exception()
        if isinstance(error, Exception):
            return dict.fromkeys(question.parts, question.says(error))
        answer = future.result()
        return {part: answer.get(part, "was not told of") for part in question.parts}
