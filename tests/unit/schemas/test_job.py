"""The job document: what is taken, and what becomes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.unit.schemas.job_cases import (
    EVERY,
    FLOOR,
    HTTP,
    INVOICE,
    NOW,
    PYTHON,
    WELCOME,
    http,
    outcome,
    parse,
    refusal,
)

from noonmark.core.failures import FailureRules
from noonmark.core.planning.plan import Misfire, MisfirePolicy
from noonmark.core.retry import Jitter, RetryPolicy
from noonmark.core.schedules.schedule import Interval, parse_schedule
from noonmark.core.states import Lane, Overlap
from noonmark.schemas.jobs.documents import JobDocument
from noonmark.schemas.jobs.job import JobSpec, parse_job
from noonmark.schemas.problems.refusal import Refused
from noonmark.store.documents.jobs import effective


def test_the_short_http_form_works_as_it_stands():
    spec = parse(INVOICE)
    assert (spec.kind, spec.name, spec.handler, spec.run_at) == ("http", "send-invoice", None, None)
    assert spec.schedule == parse_schedule("0 9 * * 1", created_at=NOW)
    assert orjson.loads(spec.payload_json) == {
        "url": "https://internal.example.com/billing/send",
        "method": "POST",
        "headers": {},
        "body": {"user_id": 42},
        "expected_status": ["200-299"],
    }
    assert (spec.timeout_seconds, spec.retry, spec.overlap) == (30.0, RetryPolicy(), Overlap.SKIP)


def test_the_short_python_form_works_as_it_stands():
    assert parse(WELCOME) == JobSpec(
        name="welcome-mail",
        kind="python",
        handler="mails.send_welcome",
        payload_json=b'{"user_id":42}',
        schedule=None,
        run_at=datetime(2026, 6, 1, 9, tzinfo=UTC),
        timeout_seconds=3600.0,
        retry=RetryPolicy(),
        lane=Lane.NORMAL,
        pool="default",
        namespace="default",
        labels={},
        misfire=Misfire(),
        overlap=Overlap.ALLOW,
        start_deadline_seconds=None,
        idempotency_key=None,
        description=None,
        owner=None,
    )


def test_neither_schedule_nor_run_at_means_now():
    spec = parse(PYTHON)
    assert (spec.schedule, spec.run_at, spec.name, spec.payload_json) == (None, None, None, b"{}")


def test_defaults_depend_on_the_kind():
    assert parse(HTTP).timeout_seconds == 30
    assert parse(PYTHON).timeout_seconds == 3600
    assert parse(EVERY).overlap is Overlap.SKIP
    assert orjson.loads(parse(HTTP).payload_json)["method"] == "GET"
    assert orjson.loads(parse(http(body="x")).payload_json)["method"] == "POST"
    assert orjson.loads(parse(http(body=0)).payload_json)["method"] == "POST"


@pytest.mark.parametrize(
    ("given", "lane"),
    [("high", 0), ("LOW", 2), (1, 0), (3, 0), (4, 1), (7, 1), (8, 2), (10, 2), ("normal", 1)],
)
def test_priority_is_a_lane_or_a_number(given: object, lane: int):
    assert parse({**PYTHON, "priority": given}).lane == lane


def test_retry_is_given_short_or_in_full_or_mixed_but_each_value_once():
    assert parse({**PYTHON, "max_retries": 0}).retry == RetryPolicy(max_retries=0)
    mixed = parse({**PYTHON, "max_retries": 7, "retry": {"delay_seconds": 1, "factor": 1, "jitter": "none"}})
    assert mixed.retry == RetryPolicy(7, 1.0, 1.0, 3600.0, Jitter.NONE)
    assert parse({**PYTHON, "retry": {"max_retries": 1}, "retry_delay_seconds": 5}).retry == RetryPolicy(
        1, 5.0
    )


def test_a_delay_above_the_default_cap_raises_the_cap():
    assert parse({**PYTHON, "retry_delay_seconds": 7200}).retry.max_delay_seconds == 7200


def test_listed_delays_say_how_often_a_run_is_tried_unless_that_is_given():
    listed = parse({**PYTHON, "retry": {"delays": [60, 300, 7200]}}).retry
    assert (listed.delays, listed.max_retries, listed.max_delay_seconds) == ((60, 300, 7200), 3, 7200)
    assert parse({**PYTHON, "retry": {"delays": [60], "max_retries": 9}}).retry.max_retries == 9
    assert parse({**PYTHON, "max_retries": 2, "retry": {"delays": [60]}}).retry.max_retries == 2


def test_rules_about_failures_are_read_as_ranges_and_names():
    retry = parse(
        {
            **HTTP,
            "retry": {
                "only_on": {"status": [429, "500-599"]},
                "never_on": {"exceptions": ["a.B"], "exit_codes": ["64-78"], "grpc": ["ABORTED"]},
                "max_age_seconds": 60,
            },
        }
    ).retry
    assert retry.max_age_seconds == 60
    assert retry.only_on == FailureRules(status=((429, 429), (500, 599)))
    assert retry.never_on == FailureRules(
        grpc=frozenset({"ABORTED"}), exceptions=frozenset({"a.B"}), exit_codes=((64, 78),)
    )


@pytest.mark.parametrize(
    ("given", "retries"),
    [
        ({}, 0),
        ({"retry": {}}, 0),
        ({"retry_delay_seconds": 5}, 0),
        ({"retry": {"delay_seconds": 5}}, 0),
        ({"max_retries": 3}, 3),
        ({"retry": {"max_retries": 2}}, 2),
        ({"retry": {"delays": [1, 2]}}, 2),
    ],
)
def test_what_is_done_at_most_once_is_tried_again_only_where_that_is_asked_for(given, retries):
    spec = parse({**PYTHON, "delivery": "at_most_once", **given})
    assert spec.retry.max_retries == retries
    assert effective(spec)["retry"]["max_retries"] == retries


def test_misfire_is_a_policy_or_an_object():
    assert parse({**EVERY, "misfire": "fire_all"}).misfire == Misfire(MisfirePolicy.FIRE_ALL)
    full = parse(
        {**EVERY, "misfire": {"policy": "skip", "grace_seconds": 5, "look_back_seconds": 50}}
    ).misfire
    assert full == Misfire(MisfirePolicy.SKIP, 5.0, 50.0)


def test_null_is_not_given_where_a_field_has_no_default_value():
    absent = dict.fromkeys(
        ("name", "schedule", "run_at", "retry", "timeout_seconds", "overlap", "start_deadline_seconds",
         "idempotency_key", "description", "owner")
    )  # fmt: skip
    assert parse({**PYTHON, **absent}) == parse(PYTHON)
    assert parse({**HTTP, "handler": None}) == parse(HTTP)
    assert parse({**EVERY, "schedule": {"every": 60, "cron": None, "end": None}}) == parse(EVERY)


def test_a_python_payload_is_any_json_and_kept_as_it_is():
    for payload in (None, [], "text", 0, False, {"a": [None, 1.5, 2**63, -(2**63), "ü"]}):
        assert orjson.loads(parse({**PYTHON, "payload": payload}).payload_json) == payload


def test_a_run_at_in_the_past_is_late_and_not_wrong():
    assert parse({**PYTHON, "run_at": "2026-04-30T23:00:00-02:00"}).run_at == datetime(
        2026, 5, 1, 1, tzinfo=UTC
    )
    assert parse({**PYTHON, "run_at": "2026-04-01T00:00:00Z"}).run_at == FLOOR


def test_nesting_is_taken_up_to_32_levels():
    def nested(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    assert parse({**PYTHON, "payload": nested(31)})
    (where, words), = refusal({**PYTHON, "payload": nested(32)}).items()  # fmt: skip
    assert where == "/payload" + "/0" * 31
    assert "nested too deeply" in words


def test_a_name_is_not_needed_where_the_job_is_named_otherwise():
    document = {**PYTHON, "schedule": {"every": "PT15M"}}
    assert parse(document, name_required=False).name is None


def test_an_interval_without_start_is_anchored_at_the_submission():
    assert parse(EVERY).schedule == Interval(timedelta(seconds=60), NOW)


FULL: dict[str, Any] = {
    **EVERY,
    "retry": {"max_retries": 5, "delay_seconds": 0.5, "factor": 3, "max_delay_seconds": 60, "jitter": "none"},
    "schedule": {
        "cron": "*/5 * * * *", "timezone": "Europe/Berlin", "dst_gap": "shift", "dst_overlap": "last",
        "start": "2026-06-01T00:00:00Z", "end": "2027-01-01T00:00:00+01:00", "max_runs": 9, "jitter_seconds": 1.5,
    },
    "misfire": {"policy": "fire_all", "grace_seconds": 1, "look_back_seconds": 2},
    "priority": 9, "pool": "p", "namespace": "n", "labels": {"a": "b"}, "overlap": "allow", "owner": "o",
    "start_deadline_seconds": 9.5, "idempotency_key": "k", "description": "two\nlines",
}  # fmt: skip


LISTED: dict[str, Any] = {
    **PYTHON, "delivery": "at_most_once", "deadline_seconds": 7200,
    "retry": {"delays": [0.5, 60], "max_age_seconds": 3600, "jitter": "none",
              "only_on": {"exceptions": ["a.B", "OSError"]}, "never_on": {"exit_codes": [3, "64-78"]}},
}  # fmt: skip


@pytest.mark.parametrize("document", [INVOICE, WELCOME, PYTHON, HTTP, FULL, LISTED])
def test_the_effective_document_says_all_and_reads_back_to_the_same_spec(document: dict[str, Any]):
    spec = parse(document)
    spelt = effective(spec)
    of_workflows = {"tasks", "finally_", "defaults", "result"}
    assert spelt.keys() == JobDocument.model_fields.keys() - of_workflows - {
        "max_retries",
        "retry_delay_seconds",
    }
    assert parse(orjson.loads(orjson.dumps(spelt))) == spec


def test_the_effective_document_of_an_interval_keeps_its_rhythm():
    spec = parse({**EVERY, "schedule": {"every": 3600}})
    later = parse_job(effective(spec), now=NOW + timedelta(minutes=90), ledger_floor=FLOOR)
    assert later.schedule.next(NOW) == spec.schedule.next(NOW) == NOW + timedelta(hours=1)
    assert structs.replace(later, schedule=None) == structs.replace(spec, schedule=None)


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["http", "python", "a.b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*JobDocument.model_fields, "finally", "x"]) | st.text(), ANY_JSON, max_size=8
    )
)
def test_any_object_is_parsed_or_refused(document: dict[str, object]):
    found = outcome(lambda: parse({**PYTHON, **document}))
    if isinstance(found, Refused):
        assert orjson.dumps(found.errors)
        assert "\0" not in str(found)
    else:
        assert parse(orjson.loads(orjson.dumps(effective(found)))) is not None


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="0123456789*/,-? LWMONJANé", max_size=30) | ANY_JSON)
def test_any_schedule_is_parsed_or_refused(schedule: object):
    found = outcome(lambda: parse({**EVERY, "schedule": schedule}))
    if isinstance(found, Refused):
        assert all(error.pointer.startswith("/schedule") for error in found.errors)
