"""Orders about namespaces and calendars carried out to their end, of the same parts as the API does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import psycopg

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.states import ResumeChoice
from noonmark.store.namespaces.batches import TO_PAUSE, TO_PLAN, TO_RESUME, batches
from noonmark.store.namespaces.namespaces import mark_cap, plan_some
from noonmark.store.namespaces.pauses import mark_paused, mark_resumed, pause_some, resume_some
from noonmark.store.schedules import calendars

Progress = Callable[[int, int], None]
"""Told after each batch how many jobs and runs are done so far."""


class PauseResult(NamedTuple):
    """Whether the namespace's state changed, how many jobs and runs followed, and how many jobs were late."""

    changed: bool
    jobs: int
    runs: int
    jobs_with_held_instants: int = 0


def pause_namespace(
    connection: psycopg.Connection, name: str, reason: str | None = None, *, progress: Progress | None = None
) -> PauseResult:
    """Pause a namespace: the mark, then every batch of its jobs."""
    changed = mark_paused(connection, name, reason)
    jobs = runs = 0
    for ids in batches(connection, TO_PAUSE, name):
        held, waiting = pause_some(connection, name, ids)
        jobs, runs = jobs + held, runs + waiting
        if progress is not None:
            progress(jobs, runs)
    return PauseResult(changed, jobs, runs)


def resume_namespace(
    connection: psycopg.Connection,
    name: str,
    missed: ResumeChoice = ResumeChoice.SKIP,
    *,
    progress: Progress | None = None,
) -> PauseResult:
    """Resume a namespace: the mark, then every batch of its jobs."""
    changed = mark_resumed(connection, name)
    jobs = runs = late = 0
    for ids in batches(connection, TO_RESUME, name):
        freed, queued, had_instants = resume_some(connection, name, ids, missed)
        jobs, runs, late = jobs + freed, runs + queued, late + had_instants
        if progress is not None:
            progress(jobs, runs)
    return PauseResult(changed, jobs, runs, late)


def set_max_in_flight(connection: psycopg.Connection, name: str, most: int | None) -> bool:
    """Cap a namespace's runs under way; False if that was its cap already."""
    changed = mark_cap(connection, name, most)
    if most is not None:
        for ids in batches(connection, TO_PLAN, name):
            plan_some(connection, ids)
    return changed


def set_calendar(
    connection: psycopg.Connection, namespace: str, name: str, calendar: Calendar
) -> calendars.CalendarChange:
    """Give a calendar its contents, whatever it holds."""
    return calendars.edit_calendar(connection, namespace, name, lambda _: calendar)
