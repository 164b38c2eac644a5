"""Instants are those of the schedule: S13. The oracle is `noonmark.core.schedules`, or the plan of a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noonmark.core.instants import format_instant
from noonmark.core.schedules.schedule import TICK, Schedule
from noonmark.verify.case import Case, Violation, offence
from noonmark.verify.history import Run

_COUNTED: Final = 100_000
"""The most instants of a range that are compared with the schedule."""


def instants_equal_the_oracle(case: Case) -> Iterator[Violation]:
    """S13: each scheduled run has an instant of its job's version, which its target receives unchanged."""
    for run in case.by_schedule():
        given = case.expected.instants.get(case.name(run.job), ())
        schedule = case.schedules.get((run.job, run.version))
        if run.last_scheduled_for is not None:
            yield from _range_equals_the_oracle(run, None if given else schedule, case)
            continue
        if given:
            known = run.scheduled_for in given
        elif schedule is not None:
            known = schedule.next(run.scheduled_for - TICK) == run.scheduled_for
        else:
            # Due on arrival: one run, at a time of the database's choice.
            known = run is case.runs_of[run.job][0] or given == ()
        if not known:
            yield offence("S13", "extra", f"{case.title(run)} has no planned instant", run)
    for call in case.history.calls:
        called = case.runs.get(call.run)
        if called is None:
            continue
        if call.scheduled_for != called.scheduled_for or not call.key.startswith(f"{called.job}/"):
            what = f"{case.title(called)} was called with {call.scheduled_for} and key {call.key}"
            yield offence("S13", "mistaken", what, called, call)


def _range_equals_the_oracle(run: Run, schedule: Schedule | None, case: Case) -> Iterator[Violation]:
    """A summary of skipped instants counts those that the schedule has in its range."""
    last = run.last_scheduled_for
    if schedule is None or last is None or run.instants > _COUNTED:
        return
    planned = schedule.between(run.scheduled_for - TICK, last, run.instants + 1)
    if len(planned) != run.instants or planned[0] != run.scheduled_for or planned[-1] != last:
        what = f"{case.title(run)} stands for {run.instants} instants up to {format_instant(last)},"
        yield offence("S13", "extra", f"{what} which are not those of its schedule", run)
