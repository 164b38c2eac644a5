"""The job document: what is taken, what is refused, with which pointer and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.planning import Misfire, MisfirePolicy
from noonmark.core.retry import Jitter, RetryPolicy
from noonmark.core.schedule import Interval, parse_schedule
from noonmark.core.words import Lane, Overlap
from noonmark.schemas.documents import JobDocument, ScheduleDocument
from noonmark.schemas.job import MAX_PAYLOAD_BYTES, JobSpec, effective, parse_job
from noonmark.schemas.refusal import MAX_ERRORS, Refused

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
FLOOR = datetime(2026, 4, 1, tzinfo=UTC)

INVOICE: dict[str, Any] = {
    "name": "send-invoice", "type": "HTTP", "schedule": "0 9 * * 1", "max_retries": 3,
    "retry_delay_seconds": 60, "timeout_seconds": 30,
    "payload": {"url": "https://internal.example.com/billing/send", "method": "POST", "body": {"user_id": 42}},
}  # fmt: skip
WELCOME: dict[str, Any] = {
    "name": "welcome-mail", "type": "python", "handler": "mails.send_welcome",
    "run_at": "2026-06-01T09:00:00Z", "payload": {"user_id": 42},
}  # fmt: skip
PYTHON: dict[str, Any] = {"type": "python", "handler": "tasks.run"}
EVERY: dict[str, Any] = {**PYTHON, "name": "beat", "schedule": {"every": 60}}
HTTP: dict[str, Any] = {"type": "http", "payload": {"url": "https://example.com/"}}


def parse(document: object, **options: Any) -> JobSpec:
    return parse_job(document, now=NOW, ledger_floor=FLOOR, **options)


T = TypeVar("T")


def outcome(call: Callable[[], T]) -> T | Refused:
    try:
        return call()
    except Refused as refused:
        return refused


def refusal(document: object, **options: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        parse(document, **options)
    return {error.pointer: f"{error.message}; {error.expected}" for error in caught.value.errors}


def http(**payload: Any) -> dict[str, Any]:
    return {"type": "http", "payload": {"url": "https://example.com/", **payload}}


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


UNAVAILABLE = "is not available in this version"
TABLE: list[tuple[dict[str, Any], str, str]] = [
    ({}, "/type", "is missing; http or python"),
    ({"type": None}, "/type", "is null; http or python"),
    ({"type": 3}, "/type", "3 is an integer; http or python"),
    ({"type": "ftp"}, "/type", '"ftp" is not allowed; http or python'),
    *[({"type": kind}, "/type", UNAVAILABLE) for kind in ("grpc", "GRPC", "script", "kafka")],
    ({"type": "python"}, "/handler", "is missing; the registered name"),
    ({"type": "python", "handler": "os..system"}, "/handler", "a dotted name of at most 200"),
    ({"type": "python", "handler": "a b"}, "/handler", "a form that is not allowed"),
    ({"type": "python", "handler": "ä.b"}, "/handler", "a form that is not allowed"),
    ({"type": "python", "handler": "a.b\n"}, "/handler", "a form that is not allowed"),
    ({"type": "python", "handler": "a" * 201}, "/handler", "more characters than 200"),
    ({**HTTP, "handler": "a.b"}, "/handler", "is for python jobs only; the field left out"),
    ({"type": "http"}, "/payload", "is missing; an object with the url to call"),
    ({"type": "http", "payload": "https://x"}, "/payload", "is a string; an object"),
    ({"type": "http", "payload": {}}, "/payload/url", "is missing; an http or https URL"),
    (http(url="ftp://example.com"), "/payload/url", "does not start with http"),
    (http(url="https://"), "/payload/url", "names no host"),
    (http(url="https:///path"), "/payload/url", "names no host"),
    (http(url="https://user:pw@example.com/"), "/payload/url", "user information; send credentials in a header"),
    (http(url="https://user@example.com/"), "/payload/url", "user information"),
    (http(url="https://@example.com/"), "/payload/url", "user information"),
    (http(url="https://exa mple.com/"), "/payload/url", "percent-encode"),
    (http(url="https://example.com/\r\nHost: x"), "/payload/url", "percent-encode"),
    (http(url="https://example.com\\@evil.example"), "/payload/url", "percent-encode"),
    (http(url="https://bücher.example"), "/payload/url", "percent-encode"),
    (http(url="https://example.com:99999/"), "/payload/url", "is not a URL"),
    (http(url="https://[::1"), "/payload/url", "is not a URL"),
    (http(url="https://example.com/" + "a" * 2048), "/payload/url", "more characters than 2048"),
    (http(url=5), "/payload/url", "the value is an integer"),
    (http(method="FETCH"), "/payload/method", "one of GET, HEAD, POST"),
    (http(method=1), "/payload/method", "one of GET"),
    (http(headers={"X": "a\r\nY: b"}), "/payload/headers/X", "a form that is not allowed"),
    (http(headers={"X": 1}), "/payload/headers/X", "is an integer"),
    (http(headers={"X Y": "a"}), "/payload/headers/X Y", 'the name "X Y" has a form'),
    (http(headers={"X:": "a"}), "/payload/headers/X:", "names are tokens"),
    (http(headers={"": "a"}), "/payload/headers/", 'the name "" has'),
    (http(headers={"a": "1", "A": "2"}), "/payload/headers", "header 'A' is given twice"),
    (http(headers={"Transfer-Encoding": "chunked"}), "/payload/headers", "is set by the worker"),
    (http(headers={"HOST": "x"}), "/payload/headers", "is set by the worker"),
    (http(headers={f"h{i}": "" for i in range(51)}), "/payload/headers", "more entries than 50"),
    (http(headers=[]), "/payload/headers", "is an array"),
    (http(expected_status=200), "/payload/expected_status", "a list of status codes"),
    (http(expected_status=[]), "/payload/expected_status", "fewer entries than 1"),
    (http(expected_status=[99]), "/payload/expected_status/0", "an integer from 100 to 599 or '200-299'"),
    (http(expected_status=[200, True]), "/payload/expected_status/1", "neither a status code"),
    (http(expected_status=["299-200"]), "/payload/expected_status/0", "neither a status code"),
    (http(expected_status=["2xx"]), "/payload/expected_status/0", "neither a status code"),
    (http(ur="x"), "/payload/ur", "unknown field; did you mean 'url'?; one of url, method"),
    ({**PYTHON, "run_at": "2026-06-01T09:00:00"}, "/run_at", "an RFC 3339 instant with its offset"),
    ({**PYTHON, "run_at": "2026-06-01"}, "/run_at", "is not an instant"),
    ({**PYTHON, "run_at": "2026-02-30T00:00:00Z"}, "/run_at", "no such instant"),
    ({**PYTHON, "run_at": 1780000000}, "/run_at", "is a number"),
    ({**PYTHON, "run_at": "tomorrow"}, "/run_at", "is not an instant"),
    ({**PYTHON, "run_at": "9999-12-31T23:59:59-23:59"}, "/run_at", "no such instant"),
    ({**PYTHON, "run_at": "2026-03-31T23:59:59Z"}, "/run_at", "before the ledger floor 2026-04-01T00:00:00Z"),
    ({**EVERY, "run_at": "2026-06-01T09:00:00Z"}, "/run_at", "is given beside schedule"),
    ({**PYTHON, "schedule": "0 9 * * 1"}, "/name", "a recurring job is known by its name"),
    ({**EVERY, "schedule": "0 9 * *"}, "/schedule", "5 are needed"),
    ({**EVERY, "schedule": "0 25 * * *"}, "/schedule", "(character 3)"),
    ({**EVERY, "schedule": 5}, "/schedule", "schedule is a number; a cron string, or an object"),
    ({**EVERY, "schedule": []}, "/schedule", "a cron string, or an object"),
    ({**EVERY, "schedule": {}}, "/schedule", "exactly one"),
    ({**EVERY, "schedule": {"cron": "0 9 * * 1", "every": 5}}, "/schedule", "exactly one"),
    ({**EVERY, "schedule": {"every": 0}}, "/schedule/every", "number of seconds from 1 on"),
    ({**EVERY, "schedule": {"every": True}}, "/schedule/every", "is a boolean"),
    ({**EVERY, "schedule": {"every": "P1M"}}, "/schedule/every", "months or years"),
    ({**EVERY, "schedule": {"every": 5, "timezone": "Europe/Berlin"}}, "/schedule/timezone", "not available"),
    ({**EVERY, "schedule": {"every": 5, "start": "2026-06-01"}}, "/schedule/start", "is not an instant"),
    ({**EVERY, "schedule": {"every": 5, "end": "2026-05-01T11:59:59Z"}}, "/schedule/end", "in the past"),
    ({**EVERY, "schedule": {"cron": "0 9 * * 1", "end": "2026-05-01T12:00:00Z"}}, "/schedule/end", "past"),
    ({**EVERY, "schedule": {"evry": 5}}, "/schedule/evry", "did you mean 'every'?; one of cron, every"),
    *[
        ({**EVERY, "schedule": {"every": 60, name: 1}}, f"/schedule/{name}", UNAVAILABLE)
        for name in ScheduleDocument.unavailable
    ],
    *[
        ({**PYTHON, name: {}}, f"/{name}", UNAVAILABLE)
        for name, values in JobDocument.unavailable.items()
        if not values
    ],
    *[
        ({**PYTHON, name: "x"}, f"/{name}", f"{UNAVAILABLE} outside schedule; the field inside schedule")
        for name in ("start", "end", "timezone", "cron", "every")
    ],
    ({**PYTHON, "max_retires": 1}, "/max_retires", "unknown field; did you mean 'max_retries'?"),
    ({**PYTHON, "a/b~c": 1}, "/a~1b~0c", "unknown field; one of name, type"),
    ({**PYTHON, "max_retries": "3"}, "/max_retries", '"3" is a string; an integer from 0 to 100'),
    ({**PYTHON, "max_retries": True}, "/max_retries", "true is a boolean; an integer from 0 to 100"),
    ({**PYTHON, "max_retries": 2.0}, "/max_retries", "2.0 is a number with a fraction; an integer"),
    ({**PYTHON, "max_retries": -1}, "/max_retries", "-1 is below 0; an integer from 0 to 100"),
    ({**PYTHON, "max_retries": 101}, "/max_retries", "101 is above 100"),
    ({**PYTHON, "max_retries": 2**63}, "/max_retries", "is above 100"),
    ({**PYTHON, "max_retries": None}, "/max_retries", "is null; an integer"),
    ({**PYTHON, "retry_delay_seconds": -0.1}, "/retry_delay_seconds", "-0.1 is below 0"),
    ({**PYTHON, "retry_delay_seconds": True}, "/retry_delay_seconds", "true is a boolean"),
    ({**PYTHON, "retry_delay_seconds": 1e300}, "/retry_delay_seconds", "seconds from 0 to 366 days"),
    ({**PYTHON, "retry": 3}, "/retry", "3 is an integer; an object with max_retries"),
    ({**PYTHON, "retry": {"max_retries": "3"}}, "/retry/max_retries", "an integer from 0 to 100"),
    ({**PYTHON, "retry": {"factor": 0.5}}, "/retry/factor", "0.5 is below 1; a number from 1 to 100"),
    ({**PYTHON, "retry": {"jitter": "some"}}, "/retry/jitter", '"some" is not allowed; full or none'),
    ({**PYTHON, "retry": {"delay": 1}}, "/retry/delay", "did you mean 'delay_seconds'?"),
    ({**PYTHON, "retry": {"delay_seconds": 9, "max_delay_seconds": 5}}, "/retry/max_delay_seconds", "5 is below"),
    ({**PYTHON, "max_retries": 3, "retry": {"max_retries": 3}}, "/retry/max_retries", "also as /max_retries"),
    ({**PYTHON, "retry_delay_seconds": 1, "retry": {"delay_seconds": 1}}, "/retry/delay_seconds", "given twice"),
    ({**PYTHON, "timeout_seconds": 0}, "/timeout_seconds", "0 is not above 0"),
    ({**PYTHON, "timeout_seconds": 86_401}, "/timeout_seconds", "above 86400; a number of seconds above 0"),
    ({**PYTHON, "timeout_seconds": "30"}, "/timeout_seconds", '"30" is a string'),
    ({**PYTHON, "priority": 0}, "/priority", "high, normal, low, or an integer from 1"),
    ({**PYTHON, "priority": 11}, "/priority", "11 is no priority"),
    ({**PYTHON, "priority": "urgent"}, "/priority", "'urgent' is no priority"),
    ({**PYTHON, "priority": True}, "/priority", "neither a lane nor an integer"),
    ({**PYTHON, "priority": 1.0}, "/priority", "neither a lane nor an integer"),
    ({**PYTHON, "priority": 10**18}, "/priority", "out of range"),
    ({**PYTHON, "pool": "a.b"}, "/pool", "1 to 48 of a-z"),
    ({**PYTHON, "pool": "a" * 49}, "/pool", "1 to 48 of a-z"),
    ({**PYTHON, "pool": "Default"}, "/pool", "1 to 48 of a-z"),
    ({**PYTHON, "namespace": ""}, "/namespace", "1 to 63 of a-z"),
    ({**PYTHON, "namespace": "_a"}, "/namespace", "not starting with _ or -"),
    ({**PYTHON, "namespace": "a\n"}, "/namespace", "1 to 63 of a-z"),
    ({**PYTHON, "name": ""}, "/name", "1 to 200 characters on one line"),
    ({**PYTHON, "name": " a"}, "/name", "without space at the ends"),
    ({**PYTHON, "name": "a\nb"}, "/name", "on one line"),
    ({**PYTHON, "name": "a" * 201}, "/name", "more characters than 200"),
    ({**PYTHON, "name": 7}, "/name", "7 is an integer"),
    ({**PYTHON, "labels": []}, "/labels", "is an array; at most 32 pairs"),
    ({**PYTHON, "labels": {"a": 1}}, "/labels/a", "1 is an integer"),
    ({**PYTHON, "labels": {"a b": "c"}}, "/labels/a b", 'the name "a b" has a form'),
    ({**PYTHON, "labels": {"a": "b" * 201}}, "/labels/a", "values of at most 200 characters"),
    ({**PYTHON, "labels": {f"k{i}": "" for i in range(33)}}, "/labels", "more entries than 32"),
    ({**EVERY, "misfire": "never"}, "/misfire", "fire_all, fire_latest or skip, or an object"),
    ({**EVERY, "misfire": 5}, "/misfire", "fire_all, fire_latest or skip"),
    ({**EVERY, "misfire": {"grace": 5}}, "/misfire/grace", "did you mean 'grace_seconds'?"),
    ({**EVERY, "misfire": {"grace_seconds": -1}}, "/misfire/grace_seconds", "-1 is below 0"),
    ({**EVERY, "misfire": {"look_back_seconds": 5}}, "/misfire/look_back_seconds", "5 is below grace_seconds, 60"),
    ({**PYTHON, "overlap": "maybe"}, "/overlap", "allow or skip"),
    ({**PYTHON, "overlap": "queue_one"}, "/overlap", f'"queue_one" {UNAVAILABLE}; allow or skip'),
    ({**PYTHON, "overlap": "cancel_running"}, "/overlap", UNAVAILABLE),
    ({**PYTHON, "delivery": "exactly_once"}, "/delivery", f"{UNAVAILABLE}; at_least_once"),
    ({**PYTHON, "delivery": "at_most_once"}, "/delivery", UNAVAILABLE),
    ({**PYTHON, "delivery": "twice"}, "/delivery", '"twice" is not allowed; at_least_once'),
    ({**PYTHON, "start_deadline_seconds": 0}, "/start_deadline_seconds", "0 is not above 0"),
    ({**PYTHON, "idempotency_key": "k" * 201}, "/idempotency_key", "more characters than 200"),
    ({**PYTHON, "idempotency_key": ""}, "/idempotency_key", "1 to 200 characters"),
    ({**PYTHON, "description": "d" * 2001}, "/description", "more characters than 2000"),
    ({**PYTHON, "owner": "a\tb"}, "/owner", "on one line"),
    ({**PYTHON, "payload": {"a": [1, {"b": "x\0y"}]}}, "/payload/a/1/b", "U+0000"),
    ({**PYTHON, "payload": {"k\0": 1}}, "/payload/k\\u0000", "the name of this field holds U+0000"),
    ({**PYTHON, "name": "\0"}, "/name", "U+0000, which cannot be stored; text without U+0000"),
    ({**PYTHON, "payload": "\ud800"}, "/payload", "half of a surrogate pair"),
    ({**PYTHON, "payload": [float("nan")]}, "/payload/0", "a finite number"),
    ({**PYTHON, "payload": float("inf")}, "/payload", "a finite number"),
    ({**PYTHON, "payload": 2**64}, "/payload", "beyond 64 bits, which other readers round; a string of digits"),
    ({**PYTHON, "payload": {1, 2}}, "/payload", "is a set, which is not JSON"),
    ({**PYTHON, "payload": {5: 1}}, "/payload/5", "is not a string"),
    ({**PYTHON, "payload": "x" * MAX_PAYLOAD_BYTES}, "/payload", f"at most {MAX_PAYLOAD_BYTES} bytes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "pointer", "words"), TABLE, ids=[f"{p}-{i}" for i, (_, p, _) in enumerate(TABLE)]
)
def test_a_bad_field_is_refused_with_its_pointer_and_what_would_be_right(document, pointer, words):
    found = refusal(document)
    assert pointer in found
    assert words in found[pointer]


@pytest.mark.parametrize("document", [None, [], "text", 5, True, 1.5])
def test_a_document_that_is_no_object_is_refused(document: object):
    assert "a job document: a JSON object" in refusal(document)[""]


def test_every_problem_is_reported_at_once():
    found = refusal(
        {
            "type": "http", "handler": "a.b", "nmae": 1, "max_retries": "3", "retry": {"max_retries": 1, "x": 2},
            "schedule": {"cron": "x", "rrule": "y"}, "run_at": "z", "misfire": {"policy": "w"},
            "payload": {"url": "u", "method": "m"}, "labels": {" ": "", "b": 1},
        }
    )  # fmt: skip
    assert found.keys() == {
        "/handler", "/nmae", "/max_retries", "/retry/max_retries", "/retry/x", "/schedule/cron", "/schedule/rrule",
        "/run_at", "/misfire/policy", "/payload/url", "/payload/method", "/labels/ ", "/labels/b", "/name",
    }  # fmt: skip


def test_a_flood_of_problems_is_counted_instead_of_listed():
    with pytest.raises(Refused) as caught:
        parse({**PYTHON, **{f"x{i}": 1 for i in range(1000)}})
    assert len(caught.value.errors) == MAX_ERRORS + 1
    assert caught.value.errors[-1].message == "900 further problems are not listed"


def test_values_of_an_http_payload_are_never_quoted():
    with pytest.raises(Refused) as caught:
        parse(
            http(url="https://u:s3cret@example.com", headers={"Authorization": "s3cret\n"}, method="s3cret")
        )
    assert "s3cret" not in str(caught.value)


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
    "schedule": {"cron": "*/5 * * * *", "start": "2026-06-01T00:00:00Z", "end": "2027-01-01T00:00:00+01:00"},
    "misfire": {"policy": "fire_all", "grace_seconds": 1, "look_back_seconds": 2},
    "priority": 9, "pool": "p", "namespace": "n", "labels": {"a": "b"}, "overlap": "allow", "owner": "o",
    "start_deadline_seconds": 9.5, "idempotency_key": "k", "description": "two\nlines",
}  # fmt: skip


@pytest.mark.parametrize("document", [INVOICE, WELCOME, PYTHON, HTTP, FULL])
def test_the_effective_document_says_all_and_reads_back_to_the_same_spec(document: dict[str, Any]):
    spec = parse(document)
    spelt = effective(spec)
    assert spelt.keys() == JobDocument.model_fields.keys() - {"max_retries", "retry_delay_seconds"}
    assert parse(orjson.loads(orjson.dumps(spelt))) == spec


def test_the_effective_document_of_an_interval_keeps_its_rhythm():
    spec = parse({**EVERY, "schedule": {"every": 3600}})
    later = parse_job(effective(spec), now=NOW + timedelta(minutes=90), ledger_floor=FLOOR)
    assert later.schedule.next(NOW) == spec.schedule.next(NOW) == NOW + timedelta(hours=1)
    assert replace(later, schedule=None) == replace(spec, schedule=None)


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
@given(st.dictionaries(st.sampled_from([*JobDocument.model_fields, "x"]) | st.text(), ANY_JSON, max_size=8))
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
