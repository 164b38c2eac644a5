"""From an event to what it asks for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.core.states import Lane, ResumeChoice
from noonmark.schemas.events import submissions as sub
from noonmark.schemas.events.envelope import Event, parse_event, render_binary, render_structured
from noonmark.schemas.jobs.job import parse_job
from noonmark.schemas.problems.refusal import Refused

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
FLOOR = datetime(2026, 4, 1, tzinfo=UTC)
JOB_ID = "01981f2a-7c00-7000-8000-0123456789ab"
PYTHON: dict[str, Any] = {"type": "python", "handler": "a.b"}


T = TypeVar("T")


def outcome(call: Callable[[], T]) -> T | Refused:
    try:
        return call()
    except Refused as refused:
        return refused


def submit(kind: str, data: object) -> sub.Submission:
    value = render_structured(id="1", source="/s", type=kind, data=data)
    structured = sub.parse_submission(parse_event(value, None), now=NOW, ledger_floor=FLOOR)
    binary = parse_event(*render_binary(id="1", source="/s", type=kind, data=data))
    assert sub.parse_submission(binary, now=NOW, ledger_floor=FLOOR) == structured
    return structured


def refusal(kind: str, data: object) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        submit(kind, data)
    return {error.pointer: f"{error.message}; {error.expected}" for error in caught.value.errors}


def test_a_create_carries_the_checked_document():
    data = {**PYTHON, "payload": [1]}
    assert submit(sub.CREATE, data) == sub.CreateJob(parse_job(data, now=NOW, ledger_floor=FLOOR))


def test_an_update_names_its_job_by_name_or_by_id():
    named = submit(sub.UPDATE, {**PYTHON, "namespace": "n", "name": "x", "schedule": "0 9 * * 1"})
    assert isinstance(named, sub.UpdateJob)
    assert named.ref == sub.JobRef(None, "n", "x")
    by_id = submit(sub.UPDATE, {**PYTHON, "job_id": JOB_ID, "schedule": "0 9 * * 1"})
    assert isinstance(by_id, sub.UpdateJob)
    assert by_id.ref == sub.JobRef(UUID(JOB_ID), "default", None)
    assert by_id.spec.name is None


def test_orders_carry_the_job_and_the_reason():
    by_name, by_id = {"namespace": "n", "name": "x"}, {"job_id": JOB_ID}
    ref, id_ref = sub.JobRef(None, "n", "x"), sub.JobRef(UUID(JOB_ID), "default", None)
    assert submit(sub.CANCEL, {**by_name, "reason": "why"}) == sub.CancelJob(ref, "why")
    assert submit(sub.PAUSE, by_id) == sub.PauseJob(id_ref, None)
    assert submit(sub.RESUME, by_id) == sub.ResumeJob(id_ref, ResumeChoice.SKIP)
    assert submit(sub.TRIGGER, {"name": "x"}) == sub.TriggerJob(sub.JobRef(None, "default", "x"))


@pytest.mark.parametrize("choice", ["skip", "latest", "all"])
def test_a_resume_says_what_becomes_of_what_was_missed(choice: str):
    wanted = sub.ResumeJob(sub.JobRef(None, "n", "x"), ResumeChoice(choice))
    assert submit(sub.RESUME, {"namespace": "n", "name": "x", "missed": choice}) == wanted


@pytest.mark.parametrize("kind", [sub.CREATE, sub.UPDATE])
def test_zones_and_calendars_of_namespaces_reach_the_schedule(kind: str):
    facts = TimeFacts(
        zones={"ny": "America/New_York"},
        calendars={"ny": {"weekends": Calendar.parse({"weekdays": ["SAT", "SUN"]})}},
    )
    data = {**PYTHON, "name": "x", "schedule": {"cron": "0 9 2 * *", "calendars": {"exclude": "weekends"}}}
    event = parse_event(
        render_structured(id="1", source="/s", type=kind, data={**data, "namespace": "ny"}), None
    )
    found = sub.parse_submission(event, now=NOW, ledger_floor=FLOOR, facts=facts)
    assert isinstance(found, sub.CreateJob | sub.UpdateJob)
    assert found.spec.schedule is not None
    assert found.spec.schedule.next(NOW) == datetime(2026, 6, 2, 13, tzinfo=UTC)
    assert refusal(kind, {**data, "namespace": "ny"}).keys() == {"/data/schedule/calendars/exclude"}


@pytest.mark.parametrize(
    ("kind", "data", "pointer", "words"),
    [
        (sub.CREATE, {**PYTHON, "max_retries": "3"}, "/data/max_retries", '"3" is a string; an integer from 0 to 100'),
        (sub.CREATE, {**PYTHON, "nmae": "x"}, "/data/nmae", "unknown field; did you mean 'name'?; one of name, type"),
        (sub.CREATE, {**PYTHON, "depends_on": []}, "/data/depends_on", "is not available in this version; no such field"),
        (sub.CREATE, {**PYTHON, "run_at": "2026-06-01T09:00:00"}, "/data/run_at", "an RFC 3339 instant with its offset"),
        (sub.CREATE, {**PYTHON, "job_id": JOB_ID}, "/data/job_id", "unknown field"),
        (sub.UPDATE, PYTHON, "/data", "identifies no job; job_id, or name with its namespace"),
        (sub.UPDATE, {**PYTHON, "job_id": "x", "max_retries": -1}, "/data/job_id", "a UUID in the form"),
        (sub.UPDATE, {**PYTHON, "job_id": "x", "max_retries": -1}, "/data/max_retries", "-1 is below 0"),
        (sub.UPDATE, {**PYTHON, "job_id": 5}, "/data/job_id", "5 is an integer"),
        (sub.UPDATE, {"job_id": JOB_ID}, "/data/type", "is missing"),
        (sub.CANCEL, {}, "/data", "identifies no job"),
        (sub.CANCEL, {"namespace": "n"}, "/data", "identifies no job"),
        (sub.CANCEL, {"job_id": JOB_ID, "name": "x"}, "/data/name", "cannot be combined with job_id"),
        (sub.CANCEL, {"name": "x", "reason": ""}, "/data/reason", "text of 1 to 500 characters"),
        (sub.CREATE, {**PYTHON, "zone": "UTC"}, "/data/zone", "unknown field; did you mean 'schedule.timezone'?"),
        (sub.UPDATE, {**PYTHON, "tz": "UTC"}, "/data/tz", "unknown field; did you mean 'schedule.timezone'?"),
        (sub.CANCEL, {"name": "x", "id": "y"}, "/data/id", "unknown field; did you mean 'job_id'?"),
        (sub.CANCEL, {"name": "x", "reasn": "y"}, "/data/reasn", "did you mean 'reason'?"),
        (sub.PAUSE, {"name": 5}, "/data/name", "5 is an integer"),
        (sub.RESUME, {"name": "x", "reason": "y"}, "/data/reason", "unknown field"),
        (sub.RESUME, {"name": "x", "missed": "none"}, "/data/missed", '"none" is not allowed; skip, latest or all'),
        (sub.RESUME, {"name": "x", "missed": None}, "/data/missed", "is null; skip, latest or all"),
        (sub.RESUME, {"name": "x", "mised": "all"}, "/data/mised", "did you mean 'missed'?"),
        (sub.PAUSE, {"name": "x", "missed": "all"}, "/data/missed", "unknown field"),
        (sub.CREATE, {**PYTHON, "name": "x", "schedule": ["0 9 * * *", {"crn": 1}]}, "/data/schedule/1/crn", "did you mean 'cron'?"),
        (sub.UPDATE, {**PYTHON, "name": "x", "schedule": {"cron": "0 25 * * *"}}, "/data/schedule/cron", "hour field: value '25'"),
        (sub.TRIGGER, {"name": "x", "payloads": {}}, "/data/payloads", "did you mean 'payload'?"),
        (sub.TRIGGER, {"name": "x", "priority": 11}, "/data/priority", "an integer from 1 (most urgent) to 10"),
        (sub.CANCEL, {"name": "x", "running": "kill"}, "/data/running", "stop or finish"),
        (sub.PAUSE, {"name": "x", "running": "finish"}, "/data/running", "unknown field"),
        (sub.TRIGGER, {"job_id": JOB_ID + "0"}, "/data/job_id", "a UUID"),
        (sub.TRIGGER, {"name": "x", "namespace": "N"}, "/data/namespace", "1 to 63 of a-z"),
        (
            "noonmark.job.create.v2", PYTHON, "/type", "major version 2 of noonmark.job.create is not supported; noonmark.job.create.v1"),
        (
            "noonmark.job.crate.v1", PYTHON, "/type", "did you mean 'noonmark.job.create.v1'?; one of noonmark.job.create.v1, "),
        ("noonmark.runs.settled.v1", PYTHON, "/type", "is not a submission"),
        ("x", PYTHON, "/type", "noonmark.job.trigger.v1"),
    ],
)  # fmt: skip
def test_a_bad_submission_is_refused_with_its_pointer_into_the_event(kind, data, pointer, words):
    assert words in refusal(kind, data)[pointer]


def test_an_update_without_any_name_has_one_problem():
    assert refusal(sub.UPDATE, {**PYTHON, "schedule": "0 9 * * 1"}).keys() == {"/data"}


def test_data_that_was_not_screened_is_screened_here():
    event = Event("1", "/s", sub.CREATE, None, None, None, {**PYTHON, "payload": "\0"})
    with pytest.raises(Refused, match=r"/data/payload: .*U\+0000"):
        sub.parse_submission(event, now=NOW, ledger_floor=FLOOR)
    with pytest.raises(Refused, match="/data: is an array"):
        sub.parse_submission(Event("1", "/s", sub.CREATE, None, None, None, []), now=NOW, ledger_floor=FLOOR)


FIELDS = ["job_id", "name", "namespace", "reason", "missed", "type", "handler", "schedule", "x"]
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from([JOB_ID, "python", "a.b", {}, []])
)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sub.TYPES), st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_any_data_is_a_submission_or_refused(kind: str, data: dict[str, object]):
    event = Event("1", "/s", kind, None, None, None, data)
    found = outcome(lambda: sub.parse_submission(event, now=NOW, ledger_floor=FLOOR))
    if isinstance(found, Refused):
        assert all(error.pointer.startswith("/data") for error in found.errors)
        assert orjson.dumps(found.errors)
    else:
        assert isinstance(found, sub.Submission)


def test_a_trigger_and_a_cancel_say_what_is_other_than_usual():
    ref = sub.JobRef(None, "default", "x")
    assert submit(sub.TRIGGER, {"name": "x"}) == sub.TriggerJob(ref)
    given = {"name": "x", "payload": None, "priority": "High"}
    assert submit(sub.TRIGGER, given) == sub.TriggerJob(ref, b"null", Lane.HIGH)
    assert submit(sub.CANCEL, {"name": "x"}) == sub.CancelJob(ref, None, stops_running=True)
    assert submit(sub.CANCEL, {"name": "x", "running": "finish"}) == sub.CancelJob(
        ref, None, stops_running=False
    )
