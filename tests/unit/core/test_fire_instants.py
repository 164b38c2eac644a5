"""The right instants of 125 known cases, through the interface that everything else uses.

tests/cases/README.md says where the cases come from.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.time_oracle import counts

from noonmark.core.schedules.schedule import Schedule, ScheduleError, load_schedule, parse_schedule

Case = dict[str, Any]
CASES: list[Case] = json.loads((Path(__file__).parents[2] / "cases" / "fire_instants.json").read_text())
FAR = datetime(2200, 1, 1, tzinfo=UTC)
STYLES: dict[str, Case] = {
    "unix5": {},
    "quartz7": {"dialect": "quartz"},
    "sec-first": {"seconds_field": "first"},
    "sec-last": {"seconds_field": "last"},
}
# What other systems do, where a choice of ours does the same.
READINGS: dict[str, Case] = {
    "scan": {"dst_gap": "skip", "dst_overlap": "both"},
    "shift": {"dst_gap": "shift"},
    "skip": {"dst_gap": "skip"},
    "vixie": {"dst_gap": "run_after"},
    "first": {"dst_overlap": "first"},
    "sec-first": STYLES["sec-first"],
    "sec-last": STYLES["sec-last"],
}
# `*/15` of seven weekdays: a step that says nothing is refused (as cronie does), whatever croniter makes of it.
REFUSED_READINGS = {("F052", "sec-first")}
VARIANTS = [
    (case, reading)
    for case in CASES
    for reading in case.get("alternatives", {})
    if reading in READINGS and (case["id"], reading) not in REFUSED_READINGS
]
# What auto means, said aloud.
CONVENTIONS: dict[str, Case] = {
    "vixie-fixed": {"dst_gap": "run_after", "dst_overlap": "first"},
    "vixie-wild": {"dst_gap": "skip", "dst_overlap": "both"},
    "rfc5545-gap-shift": {"dst_gap": "shift", "dst_overlap": "first"},
}
# The rule is right, it has only come to its end.
EXHAUSTED = {"F197"}
FIRING = [case for case in CASES if case["expected_utc"] or case["id"] in EXHAUSTED]
NEVER = [case for case in CASES if not case["expected_utc"] and case["id"] not in EXHAUSTED]


def named(value: Case | str) -> str:
    return value if isinstance(value, str) else str(value["id"])


def instants(texts: list[str]) -> list[datetime]:
    return [datetime.fromisoformat(text) for text in texts]


def document_of(case: Case, **choices: str) -> Case:
    if case["kind"] == "rrule":
        return {"rrule": case["expr"], "dtstart": case["dtstart"], "timezone": case["tz"], **choices}
    return {"cron": case["expr"], "timezone": case["tz"], **STYLES[case["style"]], **choices}


def after_of(case: Case) -> datetime:
    return datetime.fromisoformat(case["after"])


def schedule_of(document: Case, case: Case) -> Schedule:
    created_at = after_of(case)
    if case["id"] in EXHAUSTED:
        created_at = datetime.fromisoformat(case["dtstart"]).replace(tzinfo=UTC) - timedelta(days=1)
    return parse_schedule(document, created_at=created_at)


def fires(schedule: Schedule, case: Case, count: int) -> list[datetime]:
    return schedule.between(after_of(case), FAR, count)


@pytest.mark.parametrize("case", FIRING, ids=named)
def test_a_known_case_fires_at_the_right_instants(case: Case) -> None:
    schedule = schedule_of(document_of(case), case)
    expected = instants(case["expected_utc"])
    assert fires(schedule, case, len(expected) + 1)[: len(expected)] == expected
    counts.add("fire_instants", cases=1, instants=len(expected))


@pytest.mark.parametrize("case", FIRING, ids=named)
def test_one_fire_after_another_gives_the_same_instants(case: Case) -> None:
    schedule = schedule_of(document_of(case), case)
    at: datetime | None = after_of(case)
    for expected in instants(case["expected_utc"]):
        assert at is not None
        at = schedule.next(at)
        assert at == expected
        assert schedule.previous(expected) == expected
    following = schedule.next(at) if at else None
    assert (following is None) == case["complete"]


@pytest.mark.parametrize("case", FIRING, ids=named)
def test_the_stored_form_of_a_known_case_fires_alike(case: Case) -> None:
    schedule = schedule_of(document_of(case), case)
    loaded = load_schedule(json.loads(json.dumps(schedule.spec())))
    assert loaded == schedule
    expected = instants(case["expected_utc"])
    assert fires(loaded, case, len(expected)) == expected


@pytest.mark.parametrize("case", NEVER, ids=named)
def test_a_schedule_that_never_fires_is_refused(case: Case) -> None:
    with pytest.raises(ScheduleError):
        schedule_of(document_of(case), case)
    counts.add("fire_instants", cases=1, refused=1)


@pytest.mark.parametrize(("case", "reading"), VARIANTS, ids=named)
def test_what_another_system_would_do_can_be_chosen(case: Case, reading: str) -> None:
    document = document_of(case, **READINGS[reading])
    expected = instants(case["alternatives"][reading])
    assert fires(schedule_of(document, case), case, len(expected)) == expected
    counts.add("fire_instants", other_readings=1)


def test_a_reading_with_a_step_longer_than_its_field_is_refused() -> None:
    [case] = [case for case in CASES if case["id"] == "F052"]
    with pytest.raises(ScheduleError, match=r"day-of-week.*step '15'"):
        schedule_of(document_of(case, **READINGS["sec-first"]), case)


@pytest.mark.parametrize("case", [case for case in FIRING if case["convention"] in CONVENTIONS], ids=named)
def test_the_choice_left_to_us_is_the_one_written_down(case: Case) -> None:
    document = document_of(case, **CONVENTIONS[case["convention"]])
    expected = instants(case["expected_utc"])
    assert fires(schedule_of(document, case), case, len(expected)) == expected


def test_there_are_as_many_cases_as_there_were() -> None:
    assert len(CASES) == 125
    assert len({case["id"] for case in CASES}) == 125
