"""The error for schedules that are refused."""

from __future__ import annotations


class ScheduleError(ValueError):
    """The schedule is refused.

    Attributes:
        pointer: JSON pointer relative to the schedule: "" is the schedule itself, "/every" a field of it.
        message: what is wrong, where, and what is allowed.
        position: 1-based character of the text at `pointer` where the problem is, or None.
        field: the affected part of the expression, such as "minute" or "BYDAY", if there is one.
    """

    def __init__(
        self, pointer: str, message: str, position: int | None = None, field: str | None = None
    ) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.message = message
        self.position = position
        self.field = field
