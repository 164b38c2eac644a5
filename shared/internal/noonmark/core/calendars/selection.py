"""The calendars of a schedule: which days are open, and what happens to instants on the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from noonmark.core.calendars.calendar import Calendar, OnHoliday, OpenDays
from noonmark.core.calendars.local_rule import LocalRule
from noonmark.core.calendars.rule import CalendarRule
from noonmark.core.instants import shortened, type_name
from noonmark.core.schedule_error import ScheduleError

MAX_CALENDARS: Final = 10

ByDigest = Callable[[str], Calendar]
"""Returns the content of a calendar by its digest; raises `KeyError` for an unknown one."""


@dataclass(frozen=True, slots=True)
class HolidayRule:
    """Open days, and what happens to a fire on a closed one."""

    days: OpenDays
    on_holiday: OnHoliday = OnHoliday.SKIP

    def over(self, rule: LocalRule) -> CalendarRule:
        """Return the rule with these calendars applied."""
        return CalendarRule(rule, self.days, self.on_holiday)

    def spec(self) -> dict[str, object]:
        """Return the JSON form of storage: calendars by name and digest."""
        spec: dict[str, object] = {
            key: [[name, calendar.digest()] for name, calendar in group]
            for key, group in (("exclude", self.days.exclude), ("include", self.days.include))
            if group
        }
        return spec if self.on_holiday is OnHoliday.SKIP else spec | {"on_holiday": self.on_holiday.value}


def load_holidays(spec: Mapping[str, Any], by_digest: ByDigest | None) -> HolidayRule:
    """Parse the form that `HolidayRule.spec` returns.

    Raises:
        ScheduleError: the content of a calendar no longer exists.
    """

    def named(key: str) -> tuple[tuple[str, Calendar], ...]:
        found = []
        for name, digest in spec.get(key, ()):
            try:
                if by_digest is None:
                    raise KeyError(digest)  # noqa: TRY301 - one answer for both
                found.append((name, by_digest(digest)))
            except KeyError:
                raise ScheduleError(
                    "/calendars", f"the content {digest} of calendar {name} no longer exists"
                ) from None
        return tuple(found)

    days = OpenDays(named("exclude"), named("include"))
    return HolidayRule(days, OnHoliday(spec.get("on_holiday", OnHoliday.SKIP)))


def parse_holidays(value: object, by_name: Mapping[str, Calendar]) -> HolidayRule:
    """Read the field `calendars` of a schedule document.

    Args:
        value: an object with `exclude` and `include` (names) and `on_holiday`.
        by_name: the calendars of the job's namespace.

    Raises:
        ScheduleError: a name is unknown, or the object is malformed.
    """
    if not isinstance(value, Mapping):
        raise ScheduleError(
            "/calendars", f"calendars is {type_name(value)}; expected an object with exclude or include"
        )
    for key in value:
        if key not in {"exclude", "include", "on_holiday"}:
            raise ScheduleError(
                "/calendars",
                f"calendars: unknown field {shortened(str(key))}; expected exclude, include, on_holiday",
            )
    exclude, include = (_named(key, value.get(key), by_name) for key in ("exclude", "include"))
    if not exclude and not include:
        raise ScheduleError("/calendars", "calendars has no names; expected exclude or include with a name")
    wanted = value.get("on_holiday", OnHoliday.SKIP.value)
    if wanted not in list(OnHoliday):
        shown = shortened(wanted) if isinstance(wanted, str) else type_name(wanted)
        raise ScheduleError(
            "/calendars/on_holiday", f"on_holiday is {shown}; expected {', '.join(OnHoliday)}"
        )
    return HolidayRule(OpenDays(exclude, include), OnHoliday(wanted))


def _named(key: str, names: object, by_name: Mapping[str, Calendar]) -> tuple[tuple[str, Calendar], ...]:
    if names is None:
        return ()
    pointer = f"/calendars/{key}"
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or len(listed) > MAX_CALENDARS:
        raise ScheduleError(pointer, f"{key} is not a list of names; expected 1 to {MAX_CALENDARS} names")
    for name in listed:
        if not isinstance(name, str):
            raise ScheduleError(pointer, f"{key} holds {type_name(name)}; expected names of calendars")
        if name not in by_name:
            known = ", ".join(sorted(by_name)[:10]) or "this namespace has none"
            raise ScheduleError(
                pointer,
                f"calendar {shortened(name)} is not known; expected a calendar of the namespace ({known})",
            )
    return tuple((name, by_name[name]) for name in listed)
