"""Convert the options of `noonmark schedule` to schedules."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from noonmark.cli.schedules.files import Documents, read_calendars, read_file
from noonmark.cli.schedules.input import Reading, Subject, read_count, read_every, read_instant
from noonmark.cli.schedules.problems import InputError, unexpected
from noonmark.core.instants import format_instant, shortened

MAX_RUNS: Final = 1_000_000_000
_KINDS: Final = ("cron", "rrule", "every", "at")
_INSTANTS: Final = ("at", "start", "end")
_CALENDARS: Final = ("exclude", "include", "on_holiday")
_OF_A_JOB: Final = frozenset({
    "name", "type", "handler", "schedule", "run_at", "payload", "namespace", "specversion", "data"
})  # fmt: skip
_LIST_OF_SCHEDULES: Final = (
    "the file is a list of schedules without jobs, so each was read as a separate job; for one job with"
    " several schedules write a document whose `schedule` (or `any`) is the list"
)


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """Options as the user typed them.

    Attributes:
        rule: options of the schedule, by field of the schedule document.
        file: file with job documents.
        calendars: `NAME=FILE`.
        words: unexpected arguments.
    """

    rule: dict[str, Any]
    file: str | None
    name: str | None
    zone: str | None
    calendars: list[str]
    after: str | None
    until: str | None = None
    count: str = "1"
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Request:
    """Parsed options.

    Attributes:
        subjects: name of the job and schedule, or the error, for each schedule.
        single: there is one schedule, from options and not from a file.
        after: aware UTC.
        since: distances count from a given instant, not from now.
        count: maximum number of fires.
        calendars: names of the given calendars.
        hints: notes on the whole file.
    """

    subjects: Iterator[tuple[str | None, Subject | InputError]]
    single: bool
    after: datetime
    until: datetime | None
    count: int
    since: bool
    calendars: Collection[str]
    hints: list[str]


def read_request(options: ScheduleOptions) -> Request:
    """Parse the options of `next` and `explain`.

    Raises:
        InputError: an option is invalid, or the file cannot be read. Errors of documents are among the
            subjects.
    """
    if options.words:
        raise unexpected(options.words, options.rule.get("cron"))
    reading = read_reading(options)
    until = read_instant(options.until, "until", options.zone)
    count = read_count(options.count, "count")
    since = options.after is not None
    if options.file is None:
        subject = reading.of_options(_document(options.rule, options.zone), options.name)
        subject.notes.extend(unused_calendars(reading.calendars, [subject]))
        one: list[tuple[str | None, Subject | InputError]] = [(options.name, subject)]
        return Request(iter(one), True, reading.after, until, count, since, (), [])
    extra = next(iter(options.rule), None) or ("name" if options.name else None)
    if extra is not None:
        named = f"{extra}_calendar" if extra in {"exclude", "include"} else extra
        option = named.replace("_", "-")
        raise InputError(named, f"--{option} and --file exclude each other: documents contain their schedule")
    documents = read_file(options.file)
    subjects = _of_file(documents.items, reading)
    hints = [_LIST_OF_SCHEDULES] if _is_list_of_schedules(documents) else []
    return Request(subjects, False, reading.after, until, count, since, reading.calendars, hints)


def unused_calendars(given: Collection[str], subjects: Iterable[Subject]) -> list[str]:
    """Return a note on given calendars that no schedule uses."""
    left = dict.fromkeys(given)
    for subject in subjects:
        rule = subject.schedule.calendars if subject.schedule is not None else None
        for name, _ in (*rule.days.exclude, *rule.days.include) if rule is not None else ():
            left.pop(name, None)
    if not left:
        return []
    names = ", ".join(map(shortened, left))
    return [f"No schedule uses calendar {names} of --calendar: schedules exclude or include days by name."]


def _is_list_of_schedules(documents: Documents) -> bool:
    """Return whether a file is a list of schedules, which may be meant as the union of one job."""
    return documents.listed and len(documents.items) > 1 and all(map(_is_schedule, documents.items))


def _is_schedule(item: object) -> bool:
    if isinstance(item, Mapping):
        return not item.keys() & _OF_A_JOB and any(kind in item for kind in _KINDS)
    return isinstance(item, str)


def read_reading(options: ScheduleOptions) -> Reading:
    """Parse the options that apply to all schedules of a command.

    Raises:
        InputError: an instant, a zone or a calendar is invalid.
    """
    # Whole seconds: the output counts from here and shows no fractions.
    after = read_instant(options.after, "after", options.zone) or datetime.now(UTC).replace(microsecond=0)
    reading = Reading(after, options.zone, read_calendars(options.calendars))
    reading.zone(reading.zone_name)
    return reading


def read_side(given: str, side: str, reading: Reading, name: str | None) -> Subject:
    """Parse A or B of a comparison: a cron expression, a schedule or job document as JSON, or @FILE.

    Raises:
        InputError: it is invalid; the message names the side.
    """
    try:
        found = reading.of_document(_side_document(given, name))
    except InputError as error:
        message = f"{side}: {error.message}"
        raise InputError(error.field, message, error.position, error.text, error.pointer) from None
    if found.schedule is None:
        raise InputError(side, f"{side}: is a job without a schedule")
    return found


def _side_document(given: str, name: str | None) -> object:
    document: Any = given
    if given.lstrip()[:1] in {"{", "["}:
        try:
            document = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise InputError(None, f"is not JSON: {error}") from None
    elif given.startswith("@") and not given[1:].isalpha():  # @daily and its kind are expressions
        documents = read_file(given[1:]).items
        broken = next((each for each in documents if isinstance(each, InputError)), None)
        if broken is not None:
            raise broken
        if len(documents) > 1 and any("name" in each for each in documents if isinstance(each, dict)):
            raise InputError(None, f"contains {len(documents)} jobs; give a file with one job")
        document = documents[0] if len(documents) == 1 else documents
    if isinstance(document, str | list):
        document = {"schedule": document}
    return {"name": name} | document if name is not None and isinstance(document, dict) else document


def _document(given: dict[str, Any], zone: str | None) -> dict[str, Any]:
    """Return the schedule document of the options."""
    kinds = [key for key in _KINDS if key in given]
    if len(kinds) != 1:
        subject = f"both --{kinds[0]} and --{kinds[1]} are" if kinds else "no schedule is"
        raise InputError(
            kinds[1] if kinds else None,
            f"{subject} given; give exactly one of --cron, --rrule, --every and --at, or --file",
        )
    document = {key: value for key, value in given.items() if key not in _CALENDARS}
    if zone is not None:
        document["timezone"] = zone
    for key in _INSTANTS:
        if (at := read_instant(given.get(key), key, zone, ahead=True)) is not None:
            document[key] = format_instant(at)
    if "every" in given:
        document["every"] = read_every(given["every"])
    if "rrule" in given:
        document["rrule"] = "\n".join(given["rrule"])
    if "max_runs" in given:
        document["max_runs"] = read_count(given["max_runs"], "max_runs", MAX_RUNS)
    if found := {key: given[key] for key in _CALENDARS if key in given}:
        document["calendars"] = found
    return document


def _of_file(documents: Iterable[Any], reading: Reading) -> Iterator[tuple[str | None, Subject | InputError]]:
    for document in documents:
        if isinstance(document, InputError):
            yield None, document
            continue
        inner = document.get("data", document) if isinstance(document, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        label = name if isinstance(name, str) else None
        try:
            yield label, reading.of_document(document)
        except InputError as error:
            yield label, error
