"""Reads the stored form of schedules, and returns their document form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noonmark.core.calendars.selection import ByDigest, load_holidays
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.schedules.fields import (
    read_duration,
    read_instant,
    read_local_time,
    read_shape,
    read_zone,
)
from noonmark.core.schedules.kinds import AnyOf, Interval, Once, Schedule, members_of, plain_number
from noonmark.core.schedules.wall_clock import Cron, RRule
from noonmark.core.states import DstGap, DstOverlap


def load_schedule(spec: Mapping[str, Any], by_digest: ByDigest | None = None) -> Schedule:
    """Parse the form that `Schedule.spec` returns.

    Args:
        spec: the stored form.
        by_digest: returns the contents of the calendars that it names.

    Raises:
        ScheduleError: the stored form is damaged, or a calendar's content is gone.
    """
    run_at, anchor = read_instant(spec, "run_at", ""), read_instant(spec, "anchor", "")
    if run_at is not None:
        return Once(run_at)
    shape = read_shape(spec)
    if "any" in spec:
        members = tuple(load_schedule(member, by_digest) for member in spec["any"])
        return AnyOf(members_of(members), **shape)
    holidays = load_holidays(spec["calendars"], by_digest) if "calendars" in spec else None
    zone = read_zone(spec.get("timezone", "UTC"))
    clock: dict[str, Any] = {
        "timezone": zone,
        "dst_gap": DstGap(spec.get("dst_gap", DstGap.AUTO)),
        "dst_overlap": DstOverlap(spec.get("dst_overlap", DstOverlap.AUTO)),
        "holidays": holidays,
    }
    if isinstance(spec.get("cron"), str):
        return Cron(
            spec["cron"],
            spec.get("dialect", "unix"),
            spec.get("seconds_field"),
            spec.get("seed", ""),
            stored=True,
            **clock,
            **shape,
        )
    if isinstance(spec.get("rrule"), str):
        return RRule(spec["rrule"], read_local_time(spec.get("dtstart"), ""), **clock, **shape)
    if "every" in spec and anchor is not None:
        every = read_duration(spec["every"], "")
        return Interval(every, anchor, holidays, zone if holidays else None, **shape)
    raise ScheduleError("", "the stored schedule has none of 'run_at', 'cron', 'rrule', 'any', 'every'")


def document_of(schedule: Schedule) -> dict[str, object]:
    """Return the document form of a schedule with all defaults; `parse_schedule` reads it back."""
    document = _document(schedule)
    document.setdefault("max_runs", schedule.max_runs)
    document.setdefault("jitter_seconds", plain_number(schedule.jitter_seconds))
    return document


def _document(schedule: Schedule) -> dict[str, object]:
    document = schedule.spec()
    document.pop("seed", None)
    if isinstance(schedule, Once):
        return {"at": document["run_at"]}
    if isinstance(schedule, AnyOf):
        members = [_document(member) for member in schedule.members]
        shared: dict[str, object] = {}
        for member in members:
            for key in ("timezone", "dst_gap", "dst_overlap", "calendars"):
                if key in member:
                    shared[key] = member.pop(key)
        return {**document, "any": members, **shared}
    if isinstance(schedule, Cron | RRule):
        document |= {"dst_gap": schedule.dst_gap.value, "dst_overlap": schedule.dst_overlap.value}
    anchor = document.pop("anchor", None)
    if isinstance(schedule, Interval) and schedule.start is None:
        document["start"] = anchor  # the anchor of a submitted interval, written out
    if schedule.calendars is not None:
        rule = schedule.calendars
        named = {"exclude": rule.days.exclude, "include": rule.days.include}
        document["calendars"] = {
            key: [name for name, _ in group] for key, group in named.items() if group
        } | {"on_holiday": rule.on_holiday.value}
    return document
