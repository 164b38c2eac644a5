"""What `noonmark schedule` is given: options, schedules and files of job documents, read into schedules."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from noonmark.core.calendars import Calendar, CalendarError
from noonmark.core.instants import shortened, type_name
from noonmark.core.schedule import Schedule
from noonmark.core.schedule_documents import Context, parse_schedule, read_document
from noonmark.core.schedule_error import ScheduleError
from noonmark.core.zones import UTC_ZONE, Zone, ZoneError, load_zone

MAX_COUNT: Final = 100_000
MAX_FILE_BYTES: Final = 64 * 1024 * 1024

_ON_ARRIVAL: Final = "The job has no schedule: it is due as soon as it is made."
_ICS_YEARS: Final = 10
_KINDS: Final = ("cron", "rrule", "every", "at", "any")
_OPTION_OF: Final = {"timezone": "zone"}


class InputError(Exception):
    """What was given is wrong.

    Attributes:
        field: the option, or the part of the expression; None where it is no single one.
        position: 1-based character of `text` where the trouble is, or None.
        message: a sentence.
        text: the expression that `position` counts in, where there is one.
        pointer: JSON pointer into the job document, for documents.
    """

    def __init__(
        self,
        field: str | None,
        message: str,
        position: int | None = None,
        text: str | None = None,
        pointer: str | None = None,
    ) -> None:
        """Take what is told of it."""
        super().__init__(message)
        self.field = field
        self.position = position
        self.message = message
        self.text = text
        self.pointer = pointer

    def document(self) -> dict[str, object]:
        """Return the JSON form, the value of `error`."""
        found: dict[str, object] = {"field": self.field, "position": self.position, "message": self.message}
        return found if self.pointer is None else found | {"pointer": self.pointer}


@dataclass(frozen=True, slots=True)
class Subject:
    """One schedule that is looked at.

    Attributes:
        name: of its job; None without one.
        schedule: None for a job that is due on arrival.
        zone: whose clock is shown.
        notes: sentences on what could not be taken into account.
    """

    name: str | None
    schedule: Schedule | None
    zone: Zone
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reading:
    """What schedules are read with.

    Attributes:
        after: aware UTC; an interval without `start` counts from it.
        zone_name: of schedules that name none.
        calendars: by name.
    """

    after: datetime
    zone_name: str = "UTC"
    calendars: Mapping[str, Calendar] = field(default_factory=dict)

    def of_options(self, given: Mapping[str, Any], name: str | None) -> Subject:
        """Read the schedule that options make up.

        Args:
            given: the fields of a schedule document, those that were given.
            name: what `H` is hashed from.

        Raises:
            InputError: an option is wrong; `field` is its name.
        """
        try:
            return self._subject(dict(given), name)
        except ScheduleError as error:
            text = given.get("cron") or given.get("rrule")
            raise _told(error, _text_at(error, text)) from None

    def of_document(self, document: object) -> Subject:
        """Read the schedule of a job document, of an event that holds one, or a schedule itself.

        Raises:
            InputError: the document or its schedule is wrong.
        """
        if isinstance(document, Mapping) and "specversion" in document:
            document = document.get("data")
        if isinstance(document, str | list):
            document = {"schedule": document}
        if not isinstance(document, Mapping):
            raise InputError(None, f"is {type_name(document)}; allowed: a job document or a schedule")
        name = document.get("name") if isinstance(document.get("name"), str) else None
        below = "" if any(kind in document for kind in _KINDS) else "/schedule"
        value = document if not below else document.get("schedule")
        if value is None:
            if document.get("run_at") is None:
                return Subject(name, None, UTC_ZONE, [_ON_ARRIVAL])
            value, below = {"at": document["run_at"]}, ""
        elif not below:
            value = {key: item for key, item in document.items() if key != "name"}
        try:
            return self._subject(value, name)
        except ScheduleError as error:
            text = value if isinstance(value, str) else _at_pointer(value, error.pointer)
            raise _told(error, _text_at(error, text), pointer=below + error.pointer) from None

    def _subject(self, value: object, name: str | None) -> Subject:
        value, notes = self._with_known_calendars(value)
        schedule = read_document(value, self._context(name))
        if schedule.jitter_seconds:
            self._check_jitter(value, name)
        wanted = value.get("timezone") if isinstance(value, Mapping) else None
        zone = schedule.zone or self.zone(wanted if isinstance(wanted, str) else self.zone_name)
        return Subject(name, schedule, zone, notes)

    def zone(self, name: str) -> Zone:
        """Return a zone.

        Raises:
            InputError: there is none of that name.
        """
        try:
            return UTC_ZONE if name == "UTC" else load_zone(name)
        except ZoneError as error:
            raise InputError("zone", error.message) from None

    def _context(self, name: str | None) -> Context:
        return Context(self.after, self.zone_name, name or "", self.calendars)

    def _check_jitter(self, value: object, name: str | None) -> None:
        """Refuse what a submission would be refused for; that nothing is left to fire is no fault here."""
        try:
            parse_schedule(
                value,
                created_at=self.after,
                default_zone=self.zone_name,
                seed=name or "",
                calendars=self.calendars,
            )
        except ScheduleError as error:
            if error.pointer == "/jitter_seconds":
                raise

    def _with_known_calendars(self, value: object) -> tuple[object, list[str]]:
        """Leave out calendars whose content is not at hand, and say so: they are kept in the database."""
        rule = value.get("calendars") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(rule, Mapping):
            return value, []
        named = [name for key in ("exclude", "include") for name in _listed(rule.get(key))]
        unknown = [name for name in named if isinstance(name, str) and name not in self.calendars]
        if not unknown:
            return value, []
        told = ", ".join(shortened(name) for name in dict.fromkeys(unknown))
        note = (
            f"Without a database the content of calendar {told} is not known, and no calendar is looked at:"
            " give it with --calendar NAME=FILE."
        )
        return {key: item for key, item in value.items() if key != "calendars"}, [note]


def _listed(names: object) -> Sequence[object]:
    return names if isinstance(names, list) else [names] if isinstance(names, str) else []


def _told(error: ScheduleError, text: str | None, *, pointer: str | None = None) -> InputError:
    """Return an error of a schedule in the words of the command line: with the name of its option."""
    last = error.pointer.rpartition("/")[2]
    named = error.field or (last if not last.isdigit() else "") or None
    if error.field == "DTSTART":
        named = "dtstart"
    elif pointer is None and named is not None:
        named = _OPTION_OF.get(named, named)
    return InputError(named, error.message, error.position, text, pointer)


def _text_at(error: ScheduleError, text: object) -> str | None:
    return text if error.position is not None and isinstance(text, str) else None


def _at_pointer(value: object, pointer: str) -> object:
    """Return what a JSON pointer leads to; None where it leads nowhere."""
    for token in pointer.split("/")[1:]:
        if isinstance(value, list) and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        elif isinstance(value, Mapping):
            value = value.get(token)
    return value


def read_instant(given: str | None, option: str) -> datetime | None:
    """Read an instant of any year: schedules are looked at in the past too.

    Raises:
        InputError: it is none.
    """
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given.strip().upper().replace(" ", "T", 1))
        if at.tzinfo is not None:
            return at.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InputError(
        option,
        f"{option} is {shortened(given)}, which is no instant; allowed: RFC 3339 with an offset, such as"
        " 2026-06-01T09:00:00Z",
    )


def read_count(given: str, option: str, most: int = MAX_COUNT) -> int:
    """Read a whole number from 1 on.

    Raises:
        InputError: it is none, or too large.
    """
    number = int(given) if re.fullmatch(r"[0-9]{1,9}", given.strip()) else 0
    if not 1 <= number <= most:
        raise InputError(option, f"{option} is {shortened(given)}; allowed: a whole number from 1 to {most}")
    return number


def read_every(given: str) -> str | int | float:
    """Return a number of seconds as a number, and anything else as it stands."""
    if re.fullmatch(r"[0-9]{1,12}", given):
        return int(given)
    return float(given) if re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,6}", given) else given


def read_calendars(given: Sequence[str]) -> dict[str, Calendar]:
    """Read `NAME=FILE` options: the calendars' bodies as JSON, YAML or iCalendar.

    Raises:
        InputError: one cannot be read.
    """
    found: dict[str, Calendar] = {}
    for item in given:
        name, equals, file = item.partition("=")
        if not (name and equals and file):
            raise InputError("calendar", f"calendar is {shortened(item)}; allowed: NAME=FILE")
        text = _text_of(file, "calendar")
        try:
            if text.lstrip("\ufeff \r\n").upper().startswith("BEGIN:VCALENDAR"):
                found[name] = _from_ics(text, file)
            else:
                (body,) = _documents(text, file)
                found[name] = Calendar.parse(body)
        except CalendarError as error:
            raise InputError("calendar", f"{file}: {error.message}") from None
        except ValueError:
            raise InputError("calendar", f"{file} holds no single calendar: one object is needed") from None
    return found


def _from_ics(text: str, file: str) -> Calendar:
    from noonmark.cli.ics import IcsError, read_ics  # noqa: PLC0415 - for the rare form only

    try:
        return read_ics(text.encode(), today=datetime.now(UTC).date(), years=_ICS_YEARS).calendar
    except IcsError as error:
        raise InputError("calendar", f"{file} {error}") from None


def read_file(file: str) -> list[Any]:
    """Read the documents of a file: YAML, a JSON document, a list of them, or one per line.

    Raises:
        InputError: it cannot be read, is none of these, or is empty.
    """
    documents = _documents(_text_of(file, "file"), file)
    if len(documents) == 1 and isinstance(documents[0], list):
        documents = documents[0]
    if not documents:
        raise InputError("file", f"{_place(file)} holds no document")
    return documents


def _place(file: str) -> str:
    return "standard input" if file == "-" else file


def _text_of(file: str, option: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read(MAX_FILE_BYTES)
        with Path(file).open(encoding="utf-8") as source:
            return source.read(MAX_FILE_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(option, f"{_place(file)} cannot be read: {error}") from None


def _documents(text: str, file: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except RecursionError:
        raise InputError("file", f"{_place(file)} is nested too deeply to be read") from None
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.lstrip().startswith("{") for line in lines):
        return list(_json_lines(text, file))
    return _yaml(text, file)


def _json_lines(text: str, file: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError("file", f"{_place(file)}: line {number} is not JSON: {error}") from None


def _yaml(text: str, file: str) -> list[Any]:
    import yaml  # noqa: PLC0415 - takes a while, for this form only

    try:
        return [document for document in yaml.load_all(text, _loader()) if document is not None]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        told = " ".join(str(error).split()) or "nested too deeply"
        hint = "; an expression that starts with * stands in quotes" if "alias" in told else ""
        raise InputError("file", f"{_place(file)} is neither JSON nor YAML: {told}{hint}") from None


def _loader() -> Any:
    """Return a loader that reads plain words as JSON would.

    YAML 1.1 makes dates of instants, true of `on`, and 9000 of 2:30:00; schedules are full of such words.
    """
    import yaml  # noqa: PLC0415

    class Loader(yaml.SafeLoader):
        """Null, true, false and numbers; all else is text."""

        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    for tag, pattern, first in (
        ("null", r"(?:null|~|)", ["n", "~", ""]),
        ("bool", r"(?:true|false)", ["t", "f"]),
        ("int", r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
        ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-0123456789")),
        ("merge", r"<<", ["<"]),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), first)
    return Loader
