"""The document of a stored job is that job again."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.schemas.job_cases import HTTP, INVOICE, NOW, PYTHON, WELCOME, parse
from tests.unit.schemas.test_job import FULL, LISTED

from noonmark.core.schedules.schedule import Schedule, load_schedule
from noonmark.schemas.jobs.job import JobSpec
from noonmark.store.documents.columns import labels_text, policy_text, schedule_text, work_text
from noonmark.store.documents.jobs import document_of, document_of_spec
from noonmark.store.views.job_history import differences


def stored(spec: JobSpec) -> dict[str, Any]:
    """What the row of a job holds of it."""

    def read(text: str | None) -> Any:
        return None if text is None else orjson.loads(text)

    return {
        "namespace": spec.namespace,
        "name": spec.name,
        "kind": spec.kind,
        "handler": spec.handler,
        "lane": int(spec.lane),
        "pool": spec.pool,
        "schedule": read(schedule_text(spec)),
        "policy": read(policy_text(spec)),
        "work": read(work_text(spec)),
        "labels": read(labels_text(spec)),
        "description": spec.description,
        "owner": spec.owner,
        "idempotency_key": spec.idempotency_key,
    }


def schedule_in(row: dict[str, Any]) -> Schedule | None:
    return load_schedule(row["schedule"]) if row["schedule"] else None


SCHEDULES = st.sampled_from(
    [
        "0 9 * * 1",
        {"every": 90},
        {"every": "PT15M", "start": "2026-01-01T00:00:00Z"},
        {"cron": "30 2 * * *", "timezone": "America/New_York", "dst_gap": "skip", "jitter_seconds": 5},
        {"cron": "H 4 * * *"},
        {"cron": "0 0 12 ? * MON", "dialect": "quartz", "max_runs": 3},
        {"rrule": "FREQ=MONTHLY;BYDAY=-1FR", "dtstart": "2026-01-05T09:00:00", "timezone": "Europe/Berlin"},
        ["0 9 * * MON-FRI", {"cron": "0 12 * * SAT"}],
        {"any": [{"every": 60}, {"at": "2027-01-01T00:00:00Z"}], "end": "2030-01-01T00:00:00Z"},
        {"any": [{"every": 60}, {"every": 90}], "start": "2026-06-01T00:00:00Z"},
    ]
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "schedule": SCHEDULES,
        "labels": st.dictionaries(st.sampled_from("abc"), st.text("xyz ", max_size=3)),
        "priority": st.integers(1, 10),
        "overlap": st.sampled_from(["allow", "skip", "queue_one", "cancel_running"]),
        "misfire": st.sampled_from(["skip", "fire_all", {"grace_seconds": 5, "look_back_seconds": 60}]),
        "delivery": st.sampled_from(["at_least_once", "at_most_once", "exactly_once"]),
        "timeout_seconds": st.sampled_from([0.5, 30, 86_400]),
        "deadline_seconds": st.sampled_from([60, 90.5]),
        "start_deadline_seconds": st.sampled_from([1, 2.5]),
        "max_retries": st.integers(0, 3),
        "retry": st.sampled_from(
            [
                {"delays": [1, 2.5], "jitter": "none"},
                {"factor": 1.5, "max_age_seconds": 60},
                {"only_on": {"status": [500, "502-504"]}, "never_on": {"exceptions": ["ValueError"]}},
            ]
        ),
        "limits": st.sampled_from([["a"], [{"name": "a", "key": "1"}, "b"]]),
        "pause_after_failures": st.integers(1, 9),
        "late_after_seconds": st.integers(1, 86_400),
        "payload": st.sampled_from([None, {}, [1, 2.0], "text", {"a": {"b": None}}]),
        "description": st.sampled_from(["text"]),
        "owner": st.sampled_from(["me"]),
        "idempotency_key": st.sampled_from(["k"]),
    },
)


@settings(max_examples=150, deadline=None)
@given(FIELDS)
def test_a_document_is_the_same_job_again(fields: dict[str, Any]) -> None:
    check({**PYTHON, "name": "nightly", **fields})


@pytest.mark.parametrize("document", [INVOICE, WELCOME, PYTHON, HTTP, FULL, LISTED])
def test_documents_of_every_kind_are_the_same_jobs_again(document: dict[str, Any]) -> None:
    check(document)


def check(document: dict[str, Any]) -> None:
    spec = parse(document)
    row = stored(spec)
    written = document_of(row, schedule_in(row))
    assert stored(parse(written)) == row
    assert document_of({**row, "lane": spec.lane.label}, schedule_in(row)) == written
    assert document_of_spec(spec) == written


def test_the_rhythm_of_an_interval_is_not_written_as_its_start() -> None:
    row = stored(parse({**PYTHON, "name": "beat", "schedule": {"every": 60}}))
    assert row["schedule"] == {"every": 60, "anchor": NOW.isoformat().replace("+00:00", "Z")}
    assert document_of(row, schedule_in(row))["schedule"]["start"] is None


def test_a_schedule_that_cannot_be_read_is_shown_as_it_is_stored() -> None:
    row = {**stored(parse(INVOICE)), "schedule": {"cron": "?", "timezone": "Mars"}}
    assert document_of(row, None)["schedule"] == {"cron": "?", "timezone": "Mars"}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2, "b": None}, [("/a", 1, 2)]),
        ({"a": {"b": [1], "c": 2}}, {"a": {"b": [1, 2], "c": 2}}, [("/a/b", [1], [1, 2])]),
        ({"a/b": 1, "~": {}}, {"~": {"x": 1}}, [("/a~1b", 1, None), ("/~0/x", None, 1)]),
        ({"a": {"b": 1}}, {"a": "text"}, [("/a", {"b": 1}, "text")]),
        ({"a": 1}, {"a": True}, [("/a", 1, True)]),
    ],
)
def test_differences_are_told_field_by_field(before: Any, after: Any, found: list[Any]) -> None:
    assert differences(before, after) == found
