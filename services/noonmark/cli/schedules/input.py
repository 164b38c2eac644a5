"""Parse the input of `noonmark schedule`: options, schedules and job documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from noonmark.cli.connections.periods import read_time
from noonmark.cli.schedules.problems import InputError, of_document, of_options
from noonmark.cli.terminal.problems import CliError
from noonmark.core.calendars.calendar import Calendar
from noonmark.core.calendars.selection import parse_holidays
from noonmark.core.instants import shortened, type_name
from noonmark.core.schedules.documents import Context, parse_schedule, read_document
from noonmark.core.schedules.fields import read_instant as read_document_instant
from noonmark.core.schedules.schedule import AnyOf, Once, Schedule, ScheduleError, WallClock
from noonmark.core.zones.zones import UTC_ZONE, Zone, ZoneError, load_zone

MAX_COUNT: Final = 100_000

_ON_ARRIVAL: Final = "The job has no schedule: it is due as soon as it is created."
_KINDS: Final = ("cron", "rrule", "every", "at", "any")
_CALENDAR_GROUPS: Final = ("exclude", "include")


@dataclass(frozen=True, slots=True)
class Subject:
    """One schedule of the input.

    Attributes:
        name: name of its job, if any.
        schedule: the schedule; None for a job that is due at once.
        zone: time zone of the output.
        notes: notes on what could not be considered.
        names_zone: the zone was given, by the schedule or by --zone.
        unknown: calendars whose contents were not given.
    """

    name: str | None
    schedule: Schedule | None
    zone: Zone
    notes: list[str] = field(default_factory=list)
    names_zone: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def reads_clock(self) -> bool:
        """Whether its fires depend on the zone."""
        if self.schedule is None:
            return False
        rules = self.schedule.members if isinstance(self.schedule, AnyOf) else (self.schedule,)
        return self.schedule.calendars is not None or any(isinstance(rule, WallClock) for rule in rules)


@dataclass(frozen=True, slots=True)
class Reading:
    """Context for parsing schedules.

    Attributes:
        after: aware UTC; intervals without `start` count from it.
        zone_name: zone of schedules that name none; None means UTC.
        calendars: calendars by name.
    """

    after: datetime
    zone_name: str | None = None
    calendars: Mapping[str, Calendar] = field(default_factory=dict)

    def of_options(self, given: Mapping[str, Any], name: str | None) -> Subject:
        """Parse the schedule of the options.

        Args:
            given: the given fields of a schedule document.
            name: input of the hash for `H`.

        Raises:
            InputError: an option is invalid; `field` is its name.
        """
        self._check_calendar_options(given.get("calendars"))
        try:
            return self._subject(dict(given), name)
        except ScheduleError as error:
            raise of_options(error, given.get("cron") or given.get("rrule")) from None

    def of_document(self, document: object) -> Subject:
        """Parse the schedule of a job document or event, or a schedule itself.

        Raises:
            InputError: the document or its schedule is invalid.
        """
        if isinstance(document, Mapping) and "specversion" in document:
            document = document.get("data")
        if isinstance(document, str | list):
            document = {"schedule": document}
        if not isinstance(document, Mapping):
            raise InputError(None, f"is {type_name(document)}; expected a job document or a schedule")
        name = document.get("name") if isinstance(document.get("name"), str) else None
        below = "" if any(kind in document for kind in _KINDS) else "/schedule"
        value = document if not below else document.get("schedule")
        if value is None:
            return self._unscheduled(document, name)
        if not below:
            value = {key: item for key, item in document.items() if key != "name"}
        try:
            found = self._subject(value, name)
        except ScheduleError as error:
            text = value if isinstance(value, str) else _at_pointer(value, error.pointer)
            raise of_document(error, text, below + error.pointer) from None
        if isinstance(document.get("namespace"), str) and found.reads_clock and not found.names_zone:
            found.notes.append(
                f"No timezone: UTC is used; namespace {shortened(document['namespace'])} may have a default"
                " zone; set it with --zone."
            )
        return found

    def _unscheduled(self, document: Mapping[str, Any], name: str | None) -> Subject:
        """Parse a job that is due once: at its `run_at`, or at once."""
        zone = self.zone(self.zone_name)
        try:
            run_at = read_document_instant(document, "run_at", "")
        except ScheduleError as error:
            raise of_document(error, None, error.pointer) from None
        named = self.zone_name is not None
        if run_at is None:
            return Subject(name, None, zone, [_ON_ARRIVAL], names_zone=named)
        return Subject(name, Once(run_at), zone, names_zone=named)

    def _subject(self, value: object, name: str | None) -> Subject:
        value, unknown = self._with_known_calendars(value)
        schedule = read_document(value, self._context(name))
        if schedule.jitter_seconds:
            self._check_jitter(value, name)
        wanted = value.get("timezone") if isinstance(value, Mapping) else None
        own = wanted if isinstance(wanted, str) else None
        zone = schedule.zone or self.zone(own or self.zone_name)
        notes = [_unknown_note(unknown)] if unknown else []
        return Subject(name, schedule, zone, notes, (own or self.zone_name) is not None, tuple(unknown))

    def zone(self, name: str | None) -> Zone:
        """Return a time zone; UTC for None.

        Raises:
            InputError: it does not exist.
        """
        try:
            return UTC_ZONE if name in {None, "UTC"} else load_zone(str(name))
        except ZoneError as error:
            raise InputError("zone", error.message) from None

    def _context(self, name: str | None) -> Context:
        return Context(self.after, self.zone_name or "UTC", name or "", self.calendars)

    def _check_jitter(self, value: object, name: str | None) -> None:
        """Reject what a submission would be rejected for, but accept a schedule without further fires."""
        try:
            parse_schedule(
                value,
                created_at=self.after,
                default_zone=self.zone_name or "UTC",
                seed=name or "",
                calendars=self.calendars,
            )
        except ScheduleError as error:
            if error.pointer == "/jitter_seconds":
                raise

    def _check_calendar_options(self, rule: Mapping[str, Any] | None) -> None:
        """Reject a calendar without --calendar: options have no other source for it."""
        if rule is None:
            return
        if not any(rule.get(group) for group in _CALENDAR_GROUPS):
            raise InputError(
                "on_holiday", "--on-holiday needs a calendar: --exclude-calendar or --include-calendar"
            )
        for group in _CALENDAR_GROUPS:
            for name in rule.get(group, ()):
                if name not in self.calendars:
                    raise InputError(
                        f"{group}_calendar",
                        f"calendar {shortened(name)} of --{group}-calendar is unknown; give its"
                        f" days with --calendar {name}=FILE",
                    )

    def _with_known_calendars(self, value: object) -> tuple[object, list[str]]:
        """Remove calendars whose contents were not given; return their names, too."""
        rule = value.get("calendars") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(rule, Mapping):
            return value, []
        unknown = [name for name in named_calendars(value) if name not in self.calendars]
        if not unknown:
            return value, []
        # Other errors of the field are still reported.
        parse_holidays(rule, {**dict.fromkeys(unknown, Calendar()), **self.calendars})
        known = {
            group: [name for name in _listed(rule.get(group)) if name in self.calendars]
            for group in _CALENDAR_GROUPS
        }
        kept = {**rule, **known} if any(known.values()) else None
        return {**value, "calendars": kept}, unknown


def named_calendars(schedule: object) -> list[str]:
    """Return the names of the calendars in a schedule document."""
    rule = schedule.get("calendars") if isinstance(schedule, Mapping) else None
    groups = [_listed(rule.get(group)) for group in _CALENDAR_GROUPS] if isinstance(rule, Mapping) else []
    return list(dict.fromkeys(name for group in groups for name in group if isinstance(name, str)))


def _unknown_note(names: Sequence[str]) -> str:
    many = len(names) > 1
    listed = ", ".join(map(shortened, names))
    return (
        f"Calendar{'s' if many else ''} {listed} {'are' if many else 'is'} ignored, because this command"
        " reads no database; add --calendar NAME=FILE."
    )


def _listed(names: object) -> Sequence[object]:
    return names if isinstance(names, list) else [names] if isinstance(names, str) else []


def _at_pointer(value: object, pointer: str) -> object:
    """Return the value at a JSON pointer, or None."""
    for token in pointer.split("/")[1:]:
        if isinstance(value, list) and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        elif isinstance(value, Mapping):
            value = value.get(token)
    return value


def read_instant(given: str | None, option: str, zone: str | None, *, ahead: bool = False) -> datetime | None:
    """Parse an instant, in the forms of all commands; a schedule can be previewed in any year.

    With `ahead`, a span such as `15m` is from now on, not ago.

    Raises:
        InputError: it is not an instant, or the zone has no such time.
    """
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given.strip().upper().replace(" ", "T", 1))
        if at.tzinfo is not None:
            return at.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    try:
        return read_time(given, zone, option=f"--{option}", ahead=ahead)
    except CliError as error:
        raise InputError("zone" if str(error).startswith("--zone") else option, str(error)) from None


def read_count(given: str, option: str, most: int = MAX_COUNT) -> int:
    """Parse a whole number of at least 1.

    Raises:
        InputError: it is not a number, or too large.
    """
    number = int(given) if re.fullmatch(r"[0-9]{1,9}", given.strip()) else 0
    if not 1 <= number <= most:
        shown = option.replace("_", "-")
        raise InputError(option, f"--{shown} is {shortened(given)}; expected a whole number from 1 to {most}")
    return number


def read_every(given: str) -> str | int | float:
    """Return a number of seconds as a number, and any other text unchanged."""
    if re.fullmatch(r"[0-9]{1,12}", given):
        return int(given)
    return float(given) if re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,6}", given) else given
