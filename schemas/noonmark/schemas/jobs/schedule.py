"""Reads the `schedule` of a job document, with the zone, calendars and name that apply to the job."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from noonmark.core.cron.expression import is_hashed
from noonmark.core.schedules.schedule import Schedule, ScheduleError, parse_schedule
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.core.zones.zones import ZoneData, zone_data
from noonmark.schemas.jobs.schedule_documents import known_fields
from noonmark.schemas.problems.refusal import FieldError, Refused

# The meaning of a cron string does not depend on when its job was created; any instant will do.
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=16_384)
def _cron_schedule(text: str, zone: str, _data: ZoneData) -> Schedule:
    return parse_schedule(text, created_at=_ANY_TIME, default_zone=zone)


def schedule_of(
    value: object, *, now: datetime, namespace: str, name: str | None, facts: TimeFacts
) -> Schedule:
    """Read the `schedule` of a document for a job of this namespace and name.

    Raises:
        Refused: if it is invalid; lists every problem, with pointers relative to the document.
    """
    problems: list[FieldError] = []
    schedule = _read_schedule(value, now, facts, (namespace, name or ""), problems)
    if problems or schedule is None:
        raise Refused(problems)
    return schedule


def schedule_in(
    data: dict[str, Any], now: datetime, facts: TimeFacts, problems: list[FieldError], *, name_required: bool
) -> Schedule | None:
    """Return the schedule of a whole document, or None if it has none; append errors to `problems`.

    If no name is required, the job is identified by its id, and the schedule is read again for its real name.
    """
    value = data.get("schedule")
    if value is None:
        return None
    namespace = data.get("namespace", "default")
    if not isinstance(namespace, str):  # refused separately
        namespace = "default"
    name = _seed(data.get("name"))
    if not name_required:
        # The job and its namespace are known only when the job is found; then the schedule is read again.
        facts, name = facts.anywhere(), name or "?"
    return _read_schedule(value, now, facts, (namespace, name), problems)


def _plain_cron(value: dict[str, Any], zone: str) -> Schedule | None:
    """Return the cached schedule of an object with only `cron` and `timezone`; None for others."""
    cron, own = value.get("cron"), value.get("timezone") or zone
    if not isinstance(cron, str) or not isinstance(own, str) or len(value) - ("timezone" in value) != 1:
        return None
    try:
        return None if is_hashed(cron) else _cron_schedule(cron, own, zone_data())
    except ScheduleError:
        return None  # reported later, with the pointers of an object


def _read_schedule(
    value: object, now: datetime, facts: TimeFacts, job: tuple[str, str], problems: list[FieldError]
) -> Schedule | None:
    namespace, name = job
    zone = facts.zone_of(namespace)
    try:
        # Nearly all schedules are only cron, and many jobs share one. The value of H differs per job.
        if isinstance(value, str) and not is_hashed(value):
            return _cron_schedule(value, zone, zone_data())
        if isinstance(value, dict) and (plain := _plain_cron(value, zone)) is not None:
            return plain
        known, unknown = known_fields(value)
        problems += unknown
        if known is None:
            return None
        return parse_schedule(
            known,
            created_at=now,
            default_zone=zone,
            seed=name,
            calendars=facts.calendars_of(namespace),
        )
    except ScheduleError as error:
        problems.append(_schedule_problem(error))
        return None


def _seed(name: object) -> str:
    """Return the seed of H: the name. A name that is not a string is refused separately."""
    return name if isinstance(name, str) else "" if name is None else "?"


def _schedule_problem(error: ScheduleError) -> FieldError:
    problem = FieldError.from_text("/schedule" + error.pointer, error.message)
    if error.position is None or f"character {error.position}" in problem.message:
        return problem
    return replace(problem, message=f"{problem.message} (character {error.position})")
