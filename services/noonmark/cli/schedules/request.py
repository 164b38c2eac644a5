"""From the options of `noonmark schedule` to schedules."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from noonmark.cli.schedules.files import Documents, read_calendars, read_file
from noonmark.cli.schedules.input import Reading, Subject, read_count, read_every, read_instant
from noonmark.cli.schedules.problems import InputError, unexpected
from noonmark.core.instants import shortened

MAX_RUNS: Final = 1_000_000_000
_KINDS: Final = ("cron", "rrule", "every", "at")
_CALENDARS: Final = ("exclude", "include", "on_holiday")
_OF_A_JOB: Final = frozenset({
    "name", "type", "handler", "schedule", "run_at", "payload", "namespace", "specversion", "data"
})  # fmt: skip
_LIST_OF_SCHEDULES: Final = (
    "the file is a list of schedules without jobs, and each was read as a job of its own; for one job with"
    " several schedules write a document whose `schedule` (or `any`) is the list"
)


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """Options as they were given.

    Attributes:
        rule: those that make up a schedule, by the field of its document.
        file: of job documents.
        calendars: `NAME=FILE`.
        words: that stand where only options may.
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
    """Options, read.

    Attributes:
        subjects: of each schedule its job's name, and the schedule or what is wrong with it.
        single: the schedule is one of options, not of a file.
        after: aware UTC.
        since: what distances count from is an instant that was given, not now.
        count: of fires that are shown.
        calendars: those that were given.
        hints: sentences on the file as a whole.
    """

    subjects: Iterator[tuple[str | None, Subject | InputError]]
    single: bool
    after: datetime
    until: datetime | None
    count: int
    since: bool
    calendars: Collection[str]
    hints: list[str]


def read_request(asked: ScheduleOptions) -> Request:
    """Read the options of `next` and `explain`.

    Raises:
        InputError: one is wrong, or the file cannot be read. What is wrong with a document of it is among its
            subjects.
    """
    if asked.words:
        raise unexpected(asked.words, asked.rule.get("cron"))
    reading = read_reading(asked)
    until = read_instant(asked.until, "until")
    count = read_count(asked.count, "count")
    since = asked.after is not None
    if asked.file is None:
        subject = reading.of_options(_document(asked.rule, asked.zone), asked.name)
        subject.notes.extend(unused_calendars(reading.calendars, [subject]))
        one: list[tuple[str | None, Subject | InputError]] = [(asked.name, subject)]
        return Request(iter(one), True, reading.after, until, count, since, (), [])
    extra = next(iter(asked.rule), None) or ("name" if asked.name else None)
    if extra is not None:
        named = f"{extra}_calendar" if extra in {"exclude", "include"} else extra
        option = named.replace("_", "-")
        raise InputError(named, f"--{option} and --file do not go together: documents say it themselves")
    documents = read_file(asked.file)
    subjects = _of_file(documents.items, reading)
    hints = [_LIST_OF_SCHEDULES] if _is_list_of_schedules(documents) else []
    return Request(subjects, False, reading.after, until, count, since, reading.calendars, hints)


def unused_calendars(given: Collection[str], subjects: Iterable[Subject]) -> list[str]:
    """Return a sentence on the calendars that were given and that no schedule uses."""
    left = dict.fromkeys(given)
    for subject in subjects:
        rule = subject.schedule.calendars if subject.schedule is not None else None
        for name, _ in (*rule.days.exclude, *rule.days.include) if rule is not None else ():
            left.pop(name, None)
    if not left:
        return []
    told = ", ".join(map(shortened, left))
    return [f"Nothing uses calendar {told} of --calendar: schedules exclude or include its days by name."]


def _is_list_of_schedules(documents: Documents) -> bool:
    """Whether a file is a list as a document's `schedule` may be one: a union, not several jobs."""
    return documents.listed and len(documents.items) > 1 and all(map(_is_schedule, documents.items))


def _is_schedule(item: object) -> bool:
    if isinstance(item, Mapping):
        return not item.keys() & _OF_A_JOB and any(kind in item for kind in _KINDS)
    return isinstance(item, str)


def read_reading(asked: ScheduleOptions) -> Reading:
    """Read what all schedules of a command are read with.

    Raises:
        InputError: an instant, a zone or a calendar is wrong.
    """
    # To the second: what is shown counts from it, and nobody asked for fractions.
    after = read_instant(asked.after, "after") or datetime.now(UTC).replace(microsecond=0)
    reading = Reading(after, asked.zone, read_calendars(asked.calendars))
    reading.zone(reading.zone_name)
    return reading


def read_side(given: str, side: str, reading: Reading, name: str | None) -> Subject:
    """Read A or B of a comparison: a cron expression, a schedule or job document as JSON, or @FILE.

    Raises:
        InputError: it is none of these; the message says which side.
    """
    try:
        found = reading.of_document(_side_document(given, name))
    except InputError as error:
        message = f"{side}: {error.message}"
        raise InputError(error.field, message, error.position, error.text, error.pointer) from None
    if found.schedule is None:
        raise InputError(side, f"{side}: is a job without a schedule; there is nothing to compare")
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
            raise InputError(None, f"holds {len(documents)} jobs: give a file with one of them")
        document = documents[0] if len(documents) == 1 else documents
    if isinstance(document, str | list):
        document = {"schedule": document}
    return {"name": name} | document if name is not None and isinstance(document, dict) else document


def _document(given: dict[str, Any], zone: str | None) -> dict[str, Any]:
    """Return the schedule document that options make up."""
    kinds = [key for key in _KINDS if key in given]
    if len(kinds) != 1:
        told = f"both --{kinds[0]} and --{kinds[1]} are" if kinds else "no schedule is"
        raise InputError(
            kinds[1] if kinds else None,
            f"{told} given; give exactly one of --cron, --rrule, --every and --at, or --file",
        )
    document = {key: value for key, value in given.items() if key not in _CALENDARS}
    if zone is not None:
        document["timezone"] = zone
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
