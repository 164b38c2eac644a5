"""Schedules: when a job is due. The one place to import them from.

`kinds` has what all kinds share, single instants, intervals and unions; `wall_clock` has cron and RRULE in
time zones; `documents` reads what users write, `stored_form` what the store keeps.
"""

from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.documents import (
    Context,
    parse_schedule,
    read_document,
)
from noonmark.core.schedules.kinds import (
    MAX_EVERY,
    TICK,
    AnyOf,
    Interval,
    Once,
    Recurring,
    Schedule,
    next_memo,
)
from noonmark.core.schedules.stored_form import document_of, load_schedule
from noonmark.core.schedules.wall_clock import Cron, RRule, WallClock

__all__ = [
    "MAX_EVERY",
    "TICK",
    "AnyOf",
    "Context",
    "Cron",
    "Interval",
    "Once",
    "RRule",
    "Recurring",
    "Schedule",
    "ScheduleError",
    "WallClock",
    "document_of",
    "load_schedule",
    "next_memo",
    "parse_schedule",
    "read_document",
]
