"""The oracle is judged first: alone, it gives every right answer of the cron cases, and what other systems do."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.time_oracle import counts
from tests.support.time_oracle.clock import wall_clock
from tests.support.time_oracle.cron import OracleCron, read_cron
from tests.support.time_oracle.walk import fires, fires_after, look, stretch

CASES: list[dict[str, Any]] = [
    case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "fire_instants.json").read_text())
    if case["kind"] == "cron"
]
RULES = {
    "scan": ("skip", "both"),
    "shift": ("shift", "auto"),
    "skip": ("skip", "auto"),
    "first": ("auto", "first"),
}
VARIANTS = [(case, reading) for case in CASES for reading in case.get("alternatives", {}) if reading in RULES]


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def utc_seconds(text: str) -> int:
    return int(seconds(text + "+00:00"))


def instants(texts: list[str]) -> list[int]:
    return [int(seconds(text)) for text in texts]


def cron_of(case: dict[str, Any], style: str | None = None) -> OracleCron:
    style = style or case["style"]
    places = {"sec-first": "first", "sec-last": "last"}
    return read_cron(case["expr"], quartz=style == "quartz7", seconds_field=places.get(style))


def walk(
    case: dict[str, Any], cron: OracleCron, count: int, gap: str = "auto", overlap: str = "auto"
) -> list[int]:
    return fires_after(cron, case["tz"], seconds(case["after"]), count, gap, overlap)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_oracle_alone_gives_the_right_instants(case: dict[str, Any]) -> None:
    expected = instants(case["expected_utc"])
    # One more than there are, where there are no more.
    count = len(expected) + bool(case["complete"])
    assert walk(case, cron_of(case), count) == expected
    counts.add("oracle by itself", cron_cases=1, instants=len(expected))


@pytest.mark.parametrize(
    ("case", "reading"), VARIANTS, ids=lambda value: value if isinstance(value, str) else value["id"]
)
def test_the_oracle_gives_what_systems_with_other_rules_do(case: dict[str, Any], reading: str) -> None:
    expected = instants(case["alternatives"][reading])
    assert walk(case, cron_of(case), len(expected), *RULES[reading]) == expected
    counts.add("oracle by itself", other_rules=1)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["style"].startswith("sec-")], ids=lambda c: c["id"]
)
def test_the_oracle_reads_six_fields_both_ways(case: dict[str, Any]) -> None:
    for style, texts in case.get("alternatives", {}).items():
        assert walk(case, cron_of(case, style), len(texts)) == instants(texts)


def test_a_walk_by_seconds_sees_changes_that_fall_within_a_minute() -> None:
    # Monrovia, 7 January 1972: the clock goes from 00:00:00 to 00:44:30.
    start = utc_seconds("1972-01-07T00:00")
    view = stretch("Africa/Monrovia", start, start + 7200, 1)
    [jump] = view.jumps
    assert (jump.at - start, len(jump.missed)) == (44 * 60 + 30, 44 * 60 + 30)
    sighting = look(read_cron("15 20 0,1 * * *", seconds_field="first"), view)
    assert fires(sighting, "shift", "first") == [jump.at + 20 * 60 + 15, start + 80 * 60 + 15]
    assert fires(sighting, "run_after", "first") == [jump.at, start + 80 * 60 + 15]
    # Dublin, 1 October 1916: 34 minutes and 39 seconds come twice.
    start = utc_seconds("1916-10-01T00:00")
    view = stretch("Europe/Dublin", start, start + 4 * 3600, 1)
    sighting = look(read_cron("0 40 2 * * *", seconds_field="first"), view)
    [one, two] = fires(sighting, "auto", "both")
    assert two - one == 34 * 60 + 39


def test_a_day_that_comes_twice_is_an_overlap_of_a_day() -> None:
    # Kwajalein, 1 October 1969: from +11 to -12.
    [change] = wall_clock("Pacific/Kwajalein").changes(
        utc_seconds("1969-09-01T00:00"), utc_seconds("1969-11-01T00:00")
    )
    cron = read_cron("30 6 30 9 *")
    view = stretch("Pacific/Kwajalein", change - 3 * 86_400, change + 3 * 86_400)
    sighting = look(cron, view)
    assert len(fires(sighting, "auto", "first")) == 1
    assert len(fires(sighting, "auto", "last")) == 1
    [one, two] = fires(sighting, "auto", "auto")
    assert two - one == 23 * 3600


def test_a_day_that_is_left_out_is_a_gap_of_a_day() -> None:
    # Apia has no 30 December 2011.
    [change] = wall_clock("Pacific/Apia").changes(
        utc_seconds("2011-12-01T00:00"), utc_seconds("2012-01-31T00:00")
    )
    cron = read_cron("30 9,17 30 12 *")
    sighting = look(cron, stretch("Pacific/Apia", change - 3 * 86_400, change + 3 * 86_400))
    assert fires(sighting, "auto", "auto") == []
    assert fires(sighting, "skip", "auto") == []
    assert fires(sighting, "run_after", "auto") == [change]
    assert fires(sighting, "shift", "auto") == [change + 9 * 3600 + 1800, change + 17 * 3600 + 1800]
