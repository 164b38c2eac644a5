"""From the options of `noonmark schedule` to schedules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from noonmark.cli.schedule_input import (
    InputError,
    Reading,
    Subject,
    read_calendars,
    read_count,
    read_every,
    read_file,
    read_instant,
)

MAX_RUNS: Final = 1_000_000_000
_KINDS: Final = ("cron", "rrule", "every", "at")
_CALENDARS: Final = ("exclude", "include", "on_holiday")


@dataclass(frozen=True, slots=True)
class Asked:
    """Options as they were given.

    Attributes:
        rule: those that make up a schedule, by the field of its document.
        file: of job documents.
        calendars: `NAME=FILE`.
    """

    rule: dict[str, Any]
    file: str | None
    name: str | None
    zone: str | None
    calendars: list[str]
    after: str | None
    until: str | None
    count: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """Options, read.

    Attributes:
        subjects: of each schedule its job's name, and the schedule or what is wrong with it.
        single: the schedule is one of options, not of a file.
        count: None where none was given.
    """

    subjects: Iterator[tuple[str | None, Subject | InputError]]
    single: bool
    after: datetime
    until: datetime | None
    count: int | None


def read_request(asked: Asked) -> Request:
    """Read the options of `next` and `explain`.

    Raises:
        InputError: one is wrong, or the file cannot be read. What is wrong with a document of it is among its
            subjects.
    """
    reading = read_reading(asked)
    until = read_instant(asked.until, "until")
    count = read_count(asked.count, "count") if asked.count is not None else None
    if asked.file is None:
        subject = reading.of_options(_document(asked.rule, asked.zone), asked.name)
        return Request(iter([(asked.name, subject)]), True, reading.after, until, count)
    extra = next(iter(asked.rule), None) or ("name" if asked.name else None)
    if extra is not None:
        option = f"{extra}-calendar" if extra in {"exclude", "include"} else extra.replace("_", "-")
        raise InputError(extra, f"--{option} and --file do not go together: documents say it themselves")
    return Request(_of_file(read_file(asked.file), reading), False, reading.after, until, count)


def read_reading(asked: Asked) -> Reading:
    """Read what all schedules of a command are read with.

    Raises:
        InputError: an instant, a zone or a calendar is wrong.
    """
    after = read_instant(asked.after, "after") or datetime.now(UTC)
    reading = Reading(after, "UTC" if asked.zone is None else asked.zone, read_calendars(asked.calendars))
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
        documents = read_file(given[1:])
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


def _of_file(documents: list[Any], reading: Reading) -> Iterator[tuple[str | None, Subject | InputError]]:
    for document in documents:
        inner = document.get("data", document) if isinstance(document, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        label = name if isinstance(name, str) else None
        try:
            yield label, reading.of_document(document)
        except InputError as error:
            yield label, error
