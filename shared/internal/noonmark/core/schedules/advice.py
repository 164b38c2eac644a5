"""Advice about texts that are schedules elsewhere: what it says to write is a schedule that is accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noonmark.core.cron.foreign import EXAMPLES, Foreign, recognized
from noonmark.core.instants import parse_duration, shortened
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.kinds import MAX_EVERY

Read = Callable[[dict[str, object]], object]
"""Reads a schedule document; raises `ScheduleError` if it is not accepted."""

_TOO_SHORT: Final = "a period is at least 1 second"


def advised(text: str, read: Read) -> Foreign | None:
    """Return what a text is and which schedule to write instead; None: not recognized.

    If `read` refuses its translation, `what` says why, and the schedule is an example.
    """
    found = recognized(text)
    if found is None or (problem := _problem(found.document, read)) is None:
        return found
    kind = next(kind for kind in EXAMPLES if kind in found.document)
    return Foreign(
        f"{found.what}, but {problem}", {"every": "1s"} if problem == _TOO_SHORT else EXAMPLES[kind]
    )


def with_accepted_advice(message: str, expression: str, read: Read) -> str:
    """Return the message about an expression, with advice that is accepted instead of a mere translation."""
    found = recognized(expression)
    if found is None or not message.endswith(str(found)):
        return message
    return message.removesuffix(str(found)) + str(advised(expression, read))


def _problem(document: dict[str, object], read: Read) -> str | None:
    """Return why a translation is not a schedule here; None: it is one."""
    try:
        read(document)
    except ScheduleError as error:
        if "every" in document:
            return (
                _TOO_SHORT
                if _seconds(document["every"]) < 1
                else f"a period is at most {MAX_EVERY.days} days"
            )
        named = "cron" in document and error.pointer == "/cron"
        return f"{shortened(str(document['cron']))}: {error.message}" if named else error.message
    return None


def _seconds(every: object) -> float:
    return every if isinstance(every, int | float) else parse_duration(str(every)).total_seconds()
