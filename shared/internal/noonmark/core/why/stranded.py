"""Rows that contradict each other, so that nothing will ever continue a job or a run.

noonmark writes these rows together. Only a change from outside, such as by hand in SQL or a restore of single
tables, can separate them. `noonmark why` and `noonmark db check` use the same rules and sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from noonmark.core.schedules.schedule import Once, Schedule
from noonmark.core.why.answers import at as shown

SLACK: Final = timedelta(hours=1)
"""A timer that is later than expected by less than this is not reported: clocks can be set back."""

UNREADABLE: Final = "its timer has an instant that cannot come: {instants}"
"""Of a timer at `infinity`, `-infinity`, or after the year 9999."""

NO_TIMER: Final = "it is {state}, but it has no timer, so nothing starts it"

RUN_FAULTS: Final[Mapping[str, str]] = {
    "no_timer": "it is {state}, but it has no timer, so nothing continues it",
    "no_wait": "it is waiting, but it is in no queue, so nothing continues it",
    "no_callback": "it waits for the report of its target, but no callback of it exists to accept one",
    "no_deadline": "it waits for the report of its target, but it has no deadline",
    "no_task": "it is {state}, but none of its tasks is under way, and nothing decides what comes next",
    "never": "it is {state}, but its timer is set to an instant that never comes",
}
"""What is wrong with a run, by the codes that `explain_runs` and `find_stranded_runs` return."""


def timer_fault(
    instant: datetime, fires_at: datetime | None, schedule: Schedule | None, now: datetime, *, settled: bool
) -> str | None:
    """Say what is wrong with the timer of an active job, as a clause; None if nothing is.

    Args:
        instant: the nominal instant of the timer.
        fires_at: when it fires; None: it never does.
        schedule: of the job; None if it cannot be read, or was calculated with other zone data.
        now: by the database's clock.
        settled: whether the instant has its verdict already, so that a later one is to be found.
    """
    if fires_at is None:
        return None if settled else "its timer never fires, although the job is not paused"
    jitter = timedelta(seconds=schedule.jitter_seconds if schedule is not None else 0)
    if schedule is not None and fires_at > max(instant, now) + jitter + SLACK:
        return f"its timer fires at {shown(fires_at)}, although its instant is {shown(instant)}"
    if schedule is None or instant <= now + SLACK:
        return None
    expected = schedule.run_at if isinstance(schedule, Once) else schedule.next(now)
    if expected is None:
        return f"its timer is at {shown(instant)}, although its schedule has no further instant"
    if instant > expected + SLACK:
        return f"its timer is at {shown(instant)}, although its schedule has an instant at {shown(expected)}"
    return None
