"""Advice about texts that are schedules elsewhere: what it says to write is a schedule that is accepted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from noonmark.core.cron.foreign import EXAMPLES, Foreign, recognized
from noonmark.core.instants import parse_duration, shortened
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.kinds import MAX_EVERY

_TOO_SHORT: Final = "a period is at least 1 second"
_ANY_INSTANT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def advised(text: str) -> Foreign | None:
    """Return what a text is and which schedule to write instead; None: not recognized.

    If its translation is not accepted, `what` says why, and the schedule is an example.
    """
    found = recognized(text)
    if found is None or (problem := _problem(found.document)) is None:
        return found
    kind = next(kind for kind in EXAMPLES if kind in found.document)
    return Foreign(
        f"{found.what}, but {problem}", {"every": "1s"} if problem == _TOO_SHORT else EXAMPLES[kind]
    )


def with_accepted_advice(message: str, expression: str) -> str:
    """Return the message about an expression, with advice that is accepted instead of a mere translation."""
    found = recognized(expression)
    if found is None or not message.endswith(str(found)):
        return message
    return message.removesuffix(str(found)) + str(advised(expression))


def _problem(document: dict[str, object]) -> str | None:
    """Return why a translation is not a schedule here; None: it is one."""
    from noonmark.core.schedules.documents import Context, read_document  # noqa: PLC0415 - it needs this module

    try:
        read_document(document, Context(_ANY_INSTANT))
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
