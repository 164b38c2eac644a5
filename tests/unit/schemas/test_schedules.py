"""The schedule of a job document: every kind and field that is taken, and what is refused with which pointer."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from itertools import pairwise
from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.schemas.job_cases import EVERY, FLOOR, NOW, PYTHON, outcome, parse, refusal

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.instants import format_instant, parse_instant
from noonmark.core.schedules.documents import SCHEDULE_FIELDS
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.schemas.export import documents
from noonmark.schemas.jobs.job import JobSpec, parse_job
from noonmark.schemas.jobs.schedule_documents import ScheduleDocument
from noonmark.schemas.problems.refusal import Refused
from noonmark.store.documents.jobs import effective

FACTS = TimeFacts(
    zones={"ny": "America/New_York"},
    calendars={
        "default": {
            "weekends": Calendar.parse({"weekdays": ["SAT", "SUN"]}),
            "month-ends": Calendar.parse({"dates": ["2026-05-31", "2026-06-30"]}),
        },
        "ny": {"us-holidays": Calendar.parse({"dates": ["2026-05-04"]})},
    },
)
DTSTART = "2026-01-05T09:00:00"  # a Monday
NINE = {"cron": "0 9 * * *"}
BERLIN = {"timezone": "Europe/Berlin"}
NEW_YORK = {"timezone": "America/New_York"}


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(orjson.loads(documents()["job.json"]))


def job(schedule: object, **fields: Any) -> dict[str, Any]:
    return {**PYTHON, "name": "beat", "schedule": schedule, **fields}


def first_fires(spec: JobSpec, count: int) -> list[str]:
    assert spec.schedule is not None
    found = spec.schedule.between(NOW, NOW + timedelta(days=40_000), count)
    return [format_instant(at) for at in found]


# Now is Friday, 1 May 2026, 12:00 UTC.
TAKEN: list[tuple[object, str]] = [
    # cron: what the expression can say
    ("@daily", "2026-05-02T00:00:00Z"),
    ("*/15 * * * *", "2026-05-01T12:15:00Z"),
    ("0 9 * * MON-FRI", "2026-05-04T09:00:00Z"),
    ("0 9 * * THU", "2026-05-07T09:00:00Z"),
    ("0 22-2 * * *", "2026-05-01T22:00:00Z"),
    ("0 0 L * *", "2026-05-31T00:00:00Z"),
    ("0 0 L-3 * *", "2026-05-28T00:00:00Z"),
    ("0 0 LW * *", "2026-05-29T00:00:00Z"),
    ("0 9 16W * *", "2026-05-15T09:00:00Z"),
    ("0 9 * * MON#2", "2026-05-11T09:00:00Z"),
    ("30 0 12 * * *", "2026-05-01T12:00:30Z"),
    ({"cron": "30 0 12 * * *", "seconds_field": "first"}, "2026-05-01T12:00:30Z"),
    ({"cron": "0 12 * * * 30", "seconds_field": "last"}, "2026-05-01T12:00:30Z"),
    ({"cron": "0 0 12 ? * 2", "dialect": "quartz"}, "2026-05-04T12:00:00Z"),
    ({"cron": "0 0 12 1 1 ? 2030", "dialect": "quartz"}, "2030-01-01T12:00:00Z"),
    ({"cron": "0 12 * * 2", "dialect": "unix"}, "2026-05-05T12:00:00Z"),
    # zones
    ({**NINE, "timezone": "UTC"}, "2026-05-02T09:00:00Z"),
    ({**NINE, **BERLIN}, "2026-05-02T07:00:00Z"),
    ({"cron": "0 9 1 11 *", **NEW_YORK}, "2026-11-01T14:00:00Z"),
    ({**NINE, "timezone": "Asia/Kolkata"}, "2026-05-02T03:30:00Z"),
    # a time that does not exist: 29 March 2027, 02:30 in Berlin; and one that comes twice: 25 October 2026
    ({"cron": "30 2 28 3 *", **BERLIN}, "2027-03-28T01:00:00Z"),
    ({"cron": "30 2 28 3 *", **BERLIN, "dst_gap": "auto"}, "2027-03-28T01:00:00Z"),
    ({"cron": "30 2 28 3 *", **BERLIN, "dst_gap": "run_after"}, "2027-03-28T01:00:00Z"),
    ({"cron": "30 2 28 3 *", **BERLIN, "dst_gap": "shift"}, "2027-03-28T01:30:00Z"),
    ({"cron": "30 2 28 3 *", **BERLIN, "dst_gap": "skip"}, "2028-03-28T00:30:00Z"),
    ({"cron": "30 2 25 10 *", **BERLIN, "dst_overlap": "auto"}, "2026-10-25T00:30:00Z"),
    ({"cron": "30 2 25 10 *", **BERLIN, "dst_overlap": "first"}, "2026-10-25T00:30:00Z"),
    ({"cron": "30 2 25 10 *", **BERLIN, "dst_overlap": "last"}, "2026-10-25T01:30:00Z"),
    ({"cron": "30 2 25 10 *", **BERLIN, "dst_overlap": "both"}, "2026-10-25T00:30:00Z"),
    # rrule
    ({"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "dtstart": DTSTART}, "2026-05-29T09:00:00Z"),
    ({"rrule": "RRULE:FREQ=WEEKLY;INTERVAL=2", "dtstart": DTSTART, **BERLIN}, "2026-05-11T07:00:00Z"),
    ({"rrule": "DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY\nEXDATE:20260504T090000"}, "2026-05-11T09:00:00Z"),
    ({"rrule": ["FREQ=YEARLY", "RDATE:20260502T100000"], "dtstart": DTSTART}, "2026-05-02T10:00:00Z"),
    ({"rrule": "RDATE:20260601T090000", "dtstart": DTSTART, **NEW_YORK}, "2026-06-01T13:00:00Z"),
    ({"rrule": "FREQ=DAILY;COUNT=400", "dtstart": "2026-01-05T09:00"}, "2026-05-02T09:00:00Z"),
    (
        {"rrule": "DTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=DAILY", **BERLIN},
        "2026-05-02T07:00:00Z",
    ),
    (
        {"rrule": "FREQ=YEARLY", "dtstart": "2021-03-28T02:30:00", **BERLIN, "dst_gap": "run_after"},
        "2027-03-28T01:00:00Z",
    ),
    # every
    ({"every": 1}, "2026-05-01T12:00:01Z"),
    ({"every": 1.5}, "2026-05-01T12:00:01.500000Z"),
    ({"every": "P1DT2H"}, "2026-05-02T14:00:00Z"),
    ({"every": "PT1H", "start": "2026-04-30T00:10:00Z"}, "2026-05-01T12:10:00Z"),
    ({"every": 3600, **BERLIN, "calendars": {"exclude": "weekends"}}, "2026-05-01T13:00:00Z"),
    # shaping
    ({**NINE, "start": "2026-06-01T00:00:00Z", "end": "2027-06-01T00:00:00+02:00"}, "2026-06-01T09:00:00Z"),
    ({**NINE, "max_runs": 10, "jitter_seconds": 600}, "2026-05-02T09:00:00Z"),
    ({**NINE, "jitter_seconds": 0.5}, "2026-05-02T09:00:00Z"),
    ({**NINE, "calendars": {"exclude": ["weekends"]}}, "2026-05-04T09:00:00Z"),
    ({**NINE, "calendars": {"include": "month-ends"}}, "2026-05-31T09:00:00Z"),
    (
        {**NINE, "calendars": {"include": ["month-ends"], "exclude": ["weekends"], "on_holiday": "skip"}},
        "2026-06-30T09:00:00Z",
    ),
    (
        {"cron": "0 9 2 * *", "calendars": {"exclude": ["weekends"], "on_holiday": "next_business_day"}},
        "2026-05-04T09:00:00Z",
    ),
    (
        {"cron": "0 13 2 * *", "calendars": {"exclude": ["weekends"], "on_holiday": "previous_business_day"}},
        "2026-05-01T13:00:00Z",
    ),
    # several
    (["0 9 * * 1"], "2026-05-04T09:00:00Z"),
    (["0 9 * * 1", {"cron": "0 10 * * 6"}], "2026-05-02T10:00:00Z"),
    ([{"at": "2026-05-01T15:00:00+02:00"}, "0 9 * * 1"], "2026-05-01T13:00:00Z"),
    ({"any": ["0 9 * * *", {"cron": "0 10 * * *", "end": "2026-06-01T00:00:00Z"}], **BERLIN}, "2026-05-02T07:00:00Z"),
    ({"any": ["0 9 * * *"], "start": "2026-06-01T00:00:00Z", "max_runs": 3}, "2026-06-01T09:00:00Z"),
    (
        {"any": [{"rrule": "FREQ=DAILY", "dtstart": DTSTART}, "0 8 * * *"], "jitter_seconds": 60, **NEW_YORK,
         "calendars": {"exclude": ["weekends"]}, "dst_gap": "skip", "dst_overlap": "last"},
        "2026-05-01T13:00:00Z",
    ),
    # null is not given
    (dict.fromkeys(SCHEDULE_FIELDS) | NINE, "2026-05-02T09:00:00Z"),
    ({"any": [{**NINE, "start": None, "rrule": None}], "cron": None, "dialect": None}, "2026-05-02T09:00:00Z"),
    (
        {**NINE, "calendars": {"exclude": ["weekends"], "include": None, "on_holiday": None}},
        "2026-05-04T09:00:00Z",
    ),
]  # fmt: skip
TAKEN_IDS = [orjson.dumps(schedule).decode() for schedule, _ in TAKEN]


@pytest.mark.parametrize(("schedule", "first"), TAKEN, ids=TAKEN_IDS)
def test_a_schedule_is_taken_by_parser_and_schema_alike(schedule: object, first: str):
    document = job(schedule)
    assert first_fires(parse(document, facts=FACTS), 1) == [first]
    validator().validate(document)


@pytest.mark.parametrize(("schedule", "first"), TAKEN, ids=TAKEN_IDS)
def test_the_effective_schedule_reads_back_to_the_same_behaviour(schedule: object, first: str):
    spec = parse(job(schedule), facts=FACTS)
    spelt = orjson.loads(orjson.dumps(effective(spec)))
    validator().validate(spelt)
    again = parse(spelt, facts=FACTS)
    assert effective(again) == effective(spec)
    assert first_fires(again, 5) == first_fires(spec, 5)
    if "every" not in orjson.dumps(schedule).decode():  # the rhythm of those is spelt out as their start
        assert again == spec


def test_the_effective_schedule_spells_every_default_out():
    told = effective(parse(job("0 9 * * 1", namespace="ny"), facts=FACTS))["schedule"]
    assert told == {
        "cron": "0 9 * * 1", "timezone": "America/New_York", "dst_gap": "auto", "dst_overlap": "auto",
        "start": None, "end": None, "max_runs": None, "jitter_seconds": 0, "calendars": None,
    }  # fmt: skip
    several = effective(
        parse(job(["0 9 * * 1", {"at": "2026-06-01T00:00:00Z"}], namespace="ny"), facts=FACTS)
    )
    assert several["schedule"] == {
        "any": [{"cron": "0 9 * * 1"}, {"at": "2026-06-01T00:00:00Z"}],
        "timezone": "America/New_York", "dst_gap": "auto", "dst_overlap": "auto",
        "start": None, "end": None, "max_runs": None, "jitter_seconds": 0, "calendars": None,
    }  # fmt: skip
    assert effective(parse(EVERY))["schedule"] == {
        "every": 60, "start": "2026-05-01T12:00:00Z", "end": None, "max_runs": None, "jitter_seconds": 0,
        "calendars": None,
    }  # fmt: skip


CRON_FIELDS = "0 to 59, ranges a-b, lists a,b, * and steps */n"
UNKNOWN_MEMBER = "unknown field; one of cron, rrule, every, at, dialect"
# What the JSON Schema refuses too.
SHAPELESS: list[tuple[object, str, str]] = [
    (5, "", "schedule is a number; a cron string, an object"),
    (True, "", "schedule is a boolean"),
    ([], "", "is not a list of 1 to 20 schedules"),
    (["0 9 * * 1"] * 21, "", "is not a list of 1 to 20 schedules"),
    ({}, "", "give exactly one of"),
    ({"timezone": "UTC"}, "", "give exactly one of"),
    ({"cron": "0 9 * * *", "rrule": "FREQ=DAILY"}, "", "has 'cron' and 'rrule'; give exactly one"),
    ([5], "/0", "is a number; a cron string or an object"),
    ([["0 9 * * 1"]], "/0", "is an array"),
    (["0 9 * * 1", {}], "/1", "give exactly one of"),
    ({"any": []}, "/any", "is not a list of 1 to 20 schedules"),
    ({"any": "0 9 * * 1"}, "/any", "is not a list of 1 to 20 schedules"),
    ({"any": [None]}, "/any/0", "is null; a cron string or an object"),
    ({"cron": "0 9 * * 1", "timezome": "UTC"}, "/timezome", "did you mean 'timezone'?; one of cron, rrule, every"),
    ({"crn": "0 9 * * 1"}, "/crn", "did you mean 'cron'?"),
    ({"cron": "0 9 * * 1", "calendar": "x"}, "/calendar", "did you mean 'calendars'?"),
    ({"at": "2026-06-01T00:00:00Z"}, "/at", "is only for one of several schedules; run_at in the job"),
    ([{"crn": "0 9 * * 1"}], "/0/crn", "did you mean 'cron'?"),
    ([{"any": ["0 9 * * 1"]}], "/0/any", UNKNOWN_MEMBER),
    ({"any": [{"cron": "0 9 * * 1", "edn": "x"}]}, "/any/0/edn", "did you mean 'end'?"),
    ([{**NINE, **BERLIN}], "/0/timezone", 'the object form {"any": [...]} with the field next to any'),
    ({"any": [NINE, {**NINE, "max_runs": 4}]}, "/any/1/max_runs", "to all schedules of a list; the field next to"),
    ({"any": ["0 9 * * 1"], "cron": "0 9 * * 1"}, "/cron", "cannot be combined with any; an item of any"),
    ({"any": ["0 9 * * 1"], "dialect": "quartz"}, "/dialect", "combined with any; the field in the item of any that has cron"),
    ({"any": ["0 9 * * 1"], "dtstart": DTSTART}, "/dtstart", "the field in the item of any that has rrule"),
    ({"every": 5, "dialect": "unix"}, "/dialect", "is for cron schedules only"),
    ({"rrule": "FREQ=DAILY", "dtstart": DTSTART, "seconds_field": "last"}, "/seconds_field", "for cron schedules only"),
    ({**NINE, "dtstart": DTSTART}, "/dtstart", "is for rrule schedules only"),
    ([NINE, {"every": 5, "dtstart": DTSTART}], "/1/dtstart", "is for rrule schedules only"),
    ({"cron": 5}, "/cron", "cron is a number; a string of 5 fields"),
    ({**NINE, "dialect": "cronie"}, "/dialect", "dialect is 'cronie'; unix, quartz"),
    ({**NINE, "seconds_field": "mid"}, "/seconds_field", "seconds_field is 'mid'; first, last"),
    ({"rrule": 5}, "/rrule", "rrule is a number; text such as"),
    ({"rrule": []}, "/rrule", "rrule text is empty"),
    ({"rrule": ["FREQ=DAILY", 5], "dtstart": DTSTART}, "/rrule", "rrule is an array; text such as"),
    ({"rrule": "FREQ=DAILY", "dtstart": "2026-01-01T00:00:00Z"}, "/dtstart", "a local time without offset"),
    ({"rrule": "FREQ=DAILY", "dtstart": 5}, "/dtstart", "dtstart is a number"),
    ({"every": 0.5}, "/every", "out of range; a duration such as 15m, 1h30m or PT15M, or a number of seconds, at least 1"),
    ({"every": "P1M"}, "/every", "months or years"),
    ([{"every": []}], "/0/every", "every is an array"),
    ({**NINE, "timezone": 5}, "/timezone", "timezone is a number"),
    ({**NINE, "dst_gap": "jump"}, "/dst_gap", "dst_gap is 'jump'; auto, run_after, skip, shift"),
    ({**NINE, "dst_overlap": 3}, "/dst_overlap", "dst_overlap is a number; auto, first, last, both"),
    ({"any": [NINE], "start": 5}, "/start", "start is a number"),
    ({**NINE, "max_runs": 0}, "/max_runs", "max_runs is 0; a whole number, at least 1"),
    ({**NINE, "max_runs": 1.5}, "/max_runs", "a whole number, at least 1"),
    ({**NINE, "max_runs": True}, "/max_runs", "a whole number, at least 1"),
    ({**NINE, "jitter_seconds": -1}, "/jitter_seconds", "jitter_seconds is -1; a number of seconds from 0"),
    ({**NINE, "jitter_seconds": "5"}, "/jitter_seconds", "jitter_seconds is a string"),
    ({**NINE, "calendars": "weekends"}, "/calendars", "calendars is a string; an object"),
    ({**NINE, "calendars": {}}, "/calendars", "has no names"),
    ({**NINE, "calendars": {"exlude": ["weekends"]}}, "/calendars/exlude", "did you mean 'exclude'?"),
    ({**NINE, "calendars": {"exclude": 5}}, "/calendars/exclude", "is not a list of names"),
    ({**NINE, "calendars": {"include": [5]}}, "/calendars/include", "include holds a number"),
    (
        {**NINE, "calendars": {"exclude": ["weekends"], "on_holiday": "next"}},
        "/calendars/on_holiday", "on_holiday is 'next'; skip, next_business_day, previous_business_day",
    ),
    ([{"at": "2026-06-01T00:00:00Z", "start": "2026-06-01T00:00:00Z"}], "/0/start", "has no meaning for a single instant"),
]  # fmt: skip
# What only the parser can tell.
MEANINGLESS: list[tuple[object, str, str]] = [
    ("0 25 * * *", "", "cron hour field: value '25' at character 3 is out of range; 0 to 23"),
    ({"cron": "0 25 * * *"}, "/cron", "cron hour field: value '25' at character 3 is out of range; 0 to 23"),
    (["0 9 * * *", "61 9 * * *"], "/1", f"value '61' at character 1 is out of range; {CRON_FIELDS}"),
    ({"any": ["61 9 * * *"]}, "/any/0", "value '61' at character 1 is out of range"),
    ([{"cron": "61 9 * * *"}], "/0/cron", "value '61' at character 1 is out of range"),
    ("0 0 30 2 *", "", "never fires: February has no day 30"),
    ({**NINE, "dialect": "quartz"}, "/cron", "dialect 'quartz' needs 6 or 7"),
    ({"cron": "0 0 12 1 1 ? 2020", "dialect": "quartz"}, "", "no instant after the job's creation"),
    ({"rrule": "FREQ=DAILY"}, "/rrule", "has no DTSTART"),
    ({"rrule": "FREQ=DAYLY", "dtstart": DTSTART}, "/rrule", "'DAYLY' at character 6 is not allowed"),
    ([NINE, {"rrule": "FREQ=DAYLY", "dtstart": DTSTART}], "/1/rrule", "'DAYLY' at character 6 is not allowed"),
    ({"rrule": "FREQ=DAILY;COUNT=2", "dtstart": "2020-01-01T00:00:00"}, "", "no instant after the job's creation"),
    ({"rrule": "DTSTART;TZID=Europe/Berlin:20260105T090000\nRRULE:FREQ=DAILY"}, "/rrule", "give that zone in 'timezone'"),
    ({**NINE, "timezone": "Europe/Berln"}, "/timezone", "did you mean 'Europe/Berlin'"),
    ({**NINE, "timezone": "+02:00"}, "/timezone", "an IANA name"),
    ({"every": 5, "timezone": "Mars/Base"}, "/timezone", "is not in zone data"),
    ({"any": [NINE], "timezone": "Mars/Base"}, "/timezone", "is not in zone data"),
    ({**NINE, "start": "2026-06-01"}, "/start", "is not an instant"),
    ([{**NINE, "end": "x"}], "/0/end", "is not an instant"),
    ({**NINE, "end": "2026-05-01T11:00:00Z"}, "/end", "in the past"),
    ({**NINE, "end": "2026-05-01T13:00:00Z"}, "/end", "no instant after the job's creation up to its end"),
    ({**NINE, "start": "2026-07-01T00:00:00Z", "end": "2026-06-01T00:00:00Z"}, "/end", "is before start"),
    ({"every": 60, "jitter_seconds": 60}, "/jitter_seconds", "less than the shortest time between two instants"),
    ({**NINE, "calendars": {"exclude": ["uk"]}}, "/calendars/exclude", "'uk' is not known; a calendar of the namespace"),
    ({**NINE, "calendars": {"exclude": ["us-holidays"]}}, "/calendars/exclude", "'us-holidays' is not known"),
    (
        {"every": 60, "calendars": {"exclude": ["weekends"], "on_holiday": "next_business_day"}},
        "/calendars/on_holiday", "can only be 'skip' for 'every'",
    ),
    ([{"at": "x"}], "/0/at", "is not an instant"),
    ([{"at": "2020-06-01T00:00:00Z"}], "", "no instant after the job's creation"),
]  # fmt: skip
REFUSED = [*SHAPELESS, *MEANINGLESS]


@pytest.mark.parametrize(
    (
        "schedule", "pointer", "words"), REFUSED, ids=[f"{p or 'schedule'}-{i}" for i, (_, p, _) in enumerate(REFUSED)]
)  # fmt: skip
def test_a_bad_schedule_is_refused_with_one_problem_at_its_pointer(
    schedule: object, pointer: str, words: str
):
    found = refusal(job(schedule), facts=FACTS)
    assert found.keys() == {f"/schedule{pointer}"}
    assert words in found[f"/schedule{pointer}"]


@pytest.mark.parametrize("schedule", [schedule for schedule, _, _ in SHAPELESS])
def test_the_schema_refuses_what_shape_alone_makes_wrong(schedule: object):
    assert not validator().is_valid(job(schedule))


def test_every_misspelt_field_of_a_schedule_is_reported_at_once():
    schedule = {"any": [{"crn": "x"}, {"cron": "0 9 * * 1", "strat": "x"}], "timezon": "UTC", "max_run": 5,
                "calendars": {"exclud": []}}  # fmt: skip
    assert refusal(job(schedule)).keys() == {
        f"/schedule/{path}" for path in ("any/0/crn", "any/1/strat", "timezon", "max_run", "calendars/exclud")
    }


def test_the_fields_are_those_that_the_core_reads():
    assert tuple(ScheduleDocument.model_fields) == SCHEDULE_FIELDS


def test_a_zone_that_is_not_given_is_that_of_the_namespace():
    for schedule in ("0 9 * * *", NINE, ["0 9 * * *"], {"any": [NINE]}, {**NINE, "timezone": None}):
        assert first_fires(parse(job(schedule, namespace="ny"), facts=FACTS), 1) == ["2026-05-01T13:00:00Z"]
        assert first_fires(parse(job(schedule), facts=FACTS), 1) == ["2026-05-02T09:00:00Z"]
        assert first_fires(parse(job(schedule, namespace="ny")), 1) == ["2026-05-02T09:00:00Z"]
    own = {**NINE, "timezone": "UTC"}
    assert first_fires(parse(job(own, namespace="ny"), facts=FACTS), 1) == ["2026-05-02T09:00:00Z"]


def test_calendars_are_those_of_the_namespace():
    document = job({**NINE, "calendars": {"exclude": ["us-holidays"]}}, namespace="ny")
    fires = first_fires(parse(document, facts=FACTS), 4)
    assert [at[:10] for at in fires] == ["2026-05-01", "2026-05-02", "2026-05-03", "2026-05-05"]
    assert "this namespace has none" in refusal(document)["/schedule/calendars/exclude"]


def test_a_hashed_time_is_picked_by_the_name_of_the_job():
    fires = {
        name: first_fires(parse(job("H H * * *", name=name)), 1)[0]
        for name in map("job-{}".format, range(20))
    }
    assert len(set(fires.values())) > 15
    for schedule in (["H H * * *"], {"cron": "H H * * *"}, {"any": [{"cron": "H H * * *"}]}):
        assert {name: first_fires(parse(job(schedule, name=name)), 1)[0] for name in fires} == fires


def test_a_hashed_time_needs_a_name():
    for schedule, where in (
        ("H 9 * * *", ""),
        ({"cron": "H 9 * * *"}, "/cron"),
        ([{"cron": "H 9 * * *"}], "/0/cron"),
    ):
        document = job(schedule)
        del document["name"]
        found = refusal(document)
        assert found.keys() == {"/name", f"/schedule{where}"}
        assert "give the job a name" in found[f"/schedule{where}"]
        by_id = parse(document, name_required=False)
        assert by_id.schedule is not None, "an update by id: hashed from the name that the job has"
    assert refusal(job("H 9 * * *", name=7)).keys() == {"/name"}


def test_a_start_in_the_past_only_sets_the_rhythm():
    spec = parse(job({"every": "PT1H", "start": "2020-01-01T00:20:00Z"}))
    assert first_fires(spec, 2) == ["2026-05-01T12:20:00Z", "2026-05-01T13:20:00Z"]


def test_both_passes_of_an_hour_that_comes_twice_can_be_had():
    spec = parse(job({"cron": "30 2 25 10 *", **BERLIN, "dst_overlap": "both"}))
    assert first_fires(spec, 2) == ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]


MEMBERS = st.sampled_from(
    ["0 9 * * *", "*/7 3 * * MON", {"cron": "15 2 * * *"}, {"every": 5400, "start": "2026-05-01T00:00:00Z"},
     {"rrule": "FREQ=WEEKLY;BYDAY=TU,SU", "dtstart": DTSTART}, {"at": "2026-10-25T00:45:00Z"}]
)  # fmt: skip
SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "timezone": st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "UTC"]),
        "dst_gap": st.sampled_from(["auto", "run_after", "skip", "shift"]),
        "dst_overlap": st.sampled_from(["auto", "first", "last", "both"]),
        "start": st.sampled_from(["2026-10-20T00:00:00Z", "2020-01-01T00:00:00Z"]),
        "end": st.just("2027-04-01T00:00:00Z"),
        "max_runs": st.integers(1, 10**9),
        "jitter_seconds": st.sampled_from([0, 0.25, 30]),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(MEMBERS, min_size=1, max_size=4, unique_by=repr), SHAPES)
def test_any_union_is_read_back_from_its_effective_document(members: list[object], shape: dict[str, Any]):
    document = job({"any": members, **shape})
    found = outcome(lambda: parse(document))
    validator().validate(document)
    if isinstance(found, Refused):
        assert {error.pointer for error in found.errors} <= {"/schedule/jitter_seconds"}
        return
    again = parse_job(effective(found), now=NOW + timedelta(hours=1), ledger_floor=FLOOR)
    assert again == found
    fires = [parse_instant(at) for at in first_fires(found, 20)]
    assert all(before < after for before, after in pairwise(fires))
