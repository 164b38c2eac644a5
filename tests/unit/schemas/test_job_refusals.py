"""What is refused of a job document, with which pointer and words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.schemas.job_cases import (
    EVERY,
    HTTP,
    PYTHON,
    http,
    parse,
    refusal,
)
from tests.unit.unsendable import UNSENDABLE

from noonmark.outbox.errors import JobRefusedError
from noonmark.schemas.jobs.documents import JobDocument
from noonmark.schemas.jobs.job import MAX_PAYLOAD_BYTES
from noonmark.schemas.jobs.schedule_documents import ScheduleDocument
from noonmark.schemas.problems.refusal import MAX_ERRORS, FieldError, Refused

UNAVAILABLE = "is not available in this version"
TABLE: list[tuple[dict[str, Any], str, str]] = [
    ({}, "/type", "is missing; http, grpc, script, python, kafka or workflow"),
    ({"type": None}, "/type", "is null; http, grpc, script, python, kafka or workflow"),
    ({"type": 3}, "/type", "3 is an integer; http, grpc, script, python, kafka or workflow"),
    ({"type": "ftp"}, "/type", '"ftp" is not allowed; http, grpc, script, python, kafka or workflow'),
    *[({"type": kind}, "/payload", "is missing") for kind in ("grpc", "GRPC", "script", "kafka")],
    *[
        ({"type": kind, "payload": {}, "handler": "a.b"}, "/handler", "is for python jobs only; no handler")
        for kind in ("grpc", "script", "kafka")
    ],
    ({"type": "python"}, "/handler", "is missing; the registered name"),
    ({"type": "python", "handler": "os..system"}, "/handler", "a dotted name of at most 200"),
    ({"type": "python", "handler": "a b"}, "/handler", "a form that is not allowed"),
    ({"type": "python", "handler": "ä.b"}, "/handler", "a form that is not allowed"),
    ({"type": "python", "handler": "a.b\n"}, "/handler", "a form that is not allowed"),
    ({"type": "python", "handler": "a" * 201}, "/handler", "more characters than 200"),
    ({**HTTP, "handler": "a.b"}, "/handler", "is for python jobs only; no handler"),
    ({"type": "http"}, "/payload", "is missing; an object with the url to call"),
    ({"type": "http", "payload": "https://x"}, "/payload", "is a string; an object"),
    ({"type": "http", "payload": {}}, "/payload/url", "is missing; an http or https URL"),
    (http(url="ftp://example.com"), "/payload/url", "does not start with http"),
    (http(url="https://"), "/payload/url", "has no host"),
    (http(url="https:///path"), "/payload/url", "has no host"),
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
    (
        {**PYTHON, "name": "pay\u202eroll"},
        "/name",
        "contains the invisible character U+202E (RIGHT-TO-LEFT OVERRIDE) as character 4; characters that can be",
    ),
    ({**PYTHON, "owner": "\ufeffme"}, "/owner", "U+FEFF (ZERO WIDTH NO-BREAK SPACE) as character 1"),
    ({**PYTHON, "labels": {"team": "a\u3164"}}, "/labels/team", "U+3164 (HANGUL FILLER) as character 2"),
    ({**PYTHON, "name": "a\x85b"}, "/name", "contains the invisible character U+0085 as character 2"),
    (http(method="FETCH"), "/payload/method", "one of GET, HEAD, POST"),
    (http(method=1), "/payload/method", "one of GET"),
    (http(headers={"X": "a\r\nY: b"}), "/payload/headers/X", "a form that is not allowed"),
    (http(headers={"X": 1}), "/payload/headers/X", "is an integer"),
    (http(headers={"X Y": "a"}), "/payload/headers/X Y", 'the name "X Y" has a form'),
    (http(headers={"X:": "a"}), "/payload/headers/X:", "names are tokens"),
    (http(headers={"": "a"}), "/payload/headers/", 'the name "" has'),
    (http(headers={"a": "1", "A": "2"}), "/payload/headers", "header 'A' is given twice"),
    (http(headers={"Transfer-Encoding": "chunked"}), "/payload/headers", "is set by noonmark"),
    (http(headers={"HOST": "x"}), "/payload/headers", "is set by noonmark"),
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
    ({**PYTHON, "run_at": "2026-02-30T00:00:00Z"}, "/run_at", "not a valid instant"),
    ({**PYTHON, "run_at": "2026-06-01T00:00:00+99:00"}, "/run_at", "its offset is a day or more"),
    ({**PYTHON, "run_at": 1780000000}, "/run_at", "is a number"),
    ({**PYTHON, "run_at": "tomorrow"}, "/run_at", "is not an instant"),
    ({**PYTHON, "run_at": "9999-12-31T23:59:59-23:59"}, "/run_at", "not a valid instant"),
    ({**PYTHON, "run_at": "2026-03-31T23:59:59Z"}, "/run_at", "before the ledger floor 2026-04-01T00:00:00Z"),
    ({**EVERY, "run_at": "2026-06-01T09:00:00Z"}, "/run_at", "cannot be combined with schedule"),
    ({**PYTHON, "schedule": "0 9 * * 1"}, "/name", "a recurring job needs a name"),
    ({**EVERY, "schedule": "0 9 * *"}, "/schedule", "5 are needed"),
    ({**EVERY, "schedule": "0 25 * * *"}, "/schedule", "value '25' at character 3 is out of range; "),
    ({**EVERY, "schedule": 5}, "/schedule", "schedule is a number; a cron string, an object with one of"),
    ({**EVERY, "schedule": []}, "/schedule", "is not a list of 1 to 20 schedules; objects with one of"),
    ({**EVERY, "schedule": {}}, "/schedule", "exactly one"),
    ({**EVERY, "schedule": {"cron": "0 9 * * 1", "every": 5}}, "/schedule", "exactly one"),
    ({**EVERY, "schedule": {"every": 0}}, "/schedule/every", "number of seconds, at least 1"),
    ({**EVERY, "schedule": {"every": True}}, "/schedule/every", "is a boolean"),
    ({**EVERY, "schedule": {"every": "P1M"}}, "/schedule/every", "months or years"),
    ({**EVERY, "schedule": {"every": 5, "start": "2026-06-01"}}, "/schedule/start", "is not an instant"),
    ({**EVERY, "schedule": {"every": 5, "end": "2026-05-01T11:59:59Z"}}, "/schedule/end", "in the past"),
    ({**EVERY, "schedule": {"cron": "0 9 * * 1", "end": "2026-05-01T12:00:00Z"}}, "/schedule/end", "past"),
    ({**EVERY, "schedule": {"evry": 5}}, "/schedule/evry", "did you mean 'every'?; one of cron, rrule, every, any"),
    *[
        ({**PYTHON, name: {}}, f"/{name}", UNAVAILABLE)
        for name, values in JobDocument.unavailable.items()
        if not values
    ],
    *[
        ({**PYTHON, name: "x"}, f"/{name}", f"'schedule.{name}'?; the field inside schedule")
        for name in ScheduleDocument.model_fields
    ],
    ({**PYTHON, "max_retires": 1}, "/max_retires", "unknown field; did you mean 'max_retries'?"),
    ({**PYTHON, "a/b~c": 1}, "/a~1b~0c", "unknown field; one of name, type, handler, payload, schedule, run_at, …"),
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
    ({**PYTHON, "retry": 3}, "/retry", "3 is an integer; an object such as"),
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
    ({**PYTHON, "priority": 11}, "/priority", "11 is not a priority"),
    ({**PYTHON, "priority": "urgent"}, "/priority", "'urgent' is not a priority"),
    ({**PYTHON, "priority": True}, "/priority", "neither a lane nor an integer"),
    ({**PYTHON, "priority": 1.0}, "/priority", "neither a lane nor an integer"),
    ({**PYTHON, "priority": 10**18}, "/priority", "out of range"),
    ({**PYTHON, "pool": "a.b"}, "/pool", "1 to 48 of a-z"),
    ({**PYTHON, "pool": "a" * 49}, "/pool", "1 to 48 of a-z"),
    ({**PYTHON, "pool": "Default"}, "/pool", "1 to 48 of a-z"),
    ({**PYTHON, "namespace": ""}, "/namespace", "1 to 63 of a-z"),
    ({**PYTHON, "namespace": "_a"}, "/namespace", "the first a letter or digit"),
    ({**PYTHON, "namespace": "a\n"}, "/namespace", "1 to 63 of a-z"),
    ({**PYTHON, "name": ""}, "/name", "1 to 200 characters on one line"),
    ({**PYTHON, "name": " a"}, "/name", "without spaces at the ends"),
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
    ({**PYTHON, "overlap": "maybe"}, "/overlap", "allow, skip, queue_one or cancel_running"),
    ({**PYTHON, "limits": "stripe"}, "/limits", "a list of at most 8 names of limits"),
    ({**PYTHON, "limits": ["Stripe"]}, "/limits/0", "has a form that is not allowed"),
    ({**PYTHON, "limits": [{"name": "a", "keyy": "b"}]}, "/limits/0/keyy", "one of name, key"),
    ({**HTTP, "payload": {"url": "http://x.example/", "success": {"pointr": "/a"}}}, "/payload/success/pointr", "one of pointer"),
    ({**HTTP, "payload": {"url": "http://x.example/", "success": [{"pointr": "/a"}]}}, "/payload/success/0/pointr", "one of pointer"),
    ({**HTTP, "payload": {"url": "http://x.example/${secret://a}"}}, "/payload/url", "the secret in headers or body"),
    ({**HTTP, "payload": {"url": "http://x.example/?key=secret://a"}}, "/payload/url", "contains a reference to a secret"),
    ({**PYTHON, "limits": ["a"] * 9}, "/limits", "more entries than 8"),
    ({**PYTHON, "limits": ["a", "b", "a"]}, "/limits/2", "is listed twice; each limit once"),
    ({**PYTHON, "limits": ["a", {"name": "a"}]}, "/limits/1", "is listed twice; each limit once"),
    (
        {**PYTHON, "limits": [{"name": "a", "key": "1"}, {"name": "a", "key": "1"}]},
        "/limits/1",
        "is listed twice with the same key; each limit once, or with different keys",
    ),
    ({**PYTHON, "deadline_seconds": 0}, "/deadline_seconds", "0 is not above 0"),
    ({**PYTHON, "late_after_seconds": 0}, "/late_after_seconds", "0 is below 1"),
    ({**PYTHON, "pause_after_failures": 0}, "/pause_after_failures", "0 is below 1"),
    ({**PYTHON, "retry": {"delays": []}}, "/retry/delays", "fewer entries than 1"),
    ({**PYTHON, "retry": {"delays": [60, -1]}}, "/retry/delays/1", "-1 is below 0"),
    ({**PYTHON, "retry": {"delays": [1], "factor": 2}}, "/retry/factor", "cannot be combined with /retry/delays"),
    ({**PYTHON, "retry": {"delays": [1], "delay_seconds": 2}}, "/retry/delay_seconds", "combined with /retry/delays"),
    ({**PYTHON, "retry_delay_seconds": 2, "retry": {"delays": [1]}}, "/retry_delay_seconds", "one of the two"),
    ({**PYTHON, "retry": {"delays": [1, 9], "max_delay_seconds": 5}}, "/retry/max_delay_seconds", "delay, 9"),
    ({**PYTHON, "retry": {"only_on": {}}}, "/retry/only_on", "names no failure"),
    ({**PYTHON, "retry": {"never_on": {"status": []}}}, "/retry/never_on", "names no failure"),
    ({**HTTP, "delivery": "exactly_once"}, "/delivery", "or at_most_once for http jobs"),
    ({**PYTHON, "retry": {"max_age_seconds": 0}}, "/retry/max_age_seconds", "0 is not above 0"),
    ({**PYTHON, "retry": {"only_on": {"status": [99]}}}, "/retry/only_on/status/0", "neither a status code"),
    ({**PYTHON, "retry": {"never_on": {"exit_codes": [0]}}}, "/retry/never_on/exit_codes/0", "an exit code"),
    ({**PYTHON, "retry": {"never_on": {"exceptions": ["a b"]}}}, "/retry/never_on/exceptions/0", "not allowed"),
    ({**PYTHON, "retry": {"never_on": {"grpc": ["OK"]}}}, "/retry/never_on/grpc/0", '"OK" is not allowed'),
    ({**PYTHON, "delivery": "twice"}, "/delivery", '"twice" is not allowed; at_least_once'),
    ({**PYTHON, "start_deadline_seconds": 0}, "/start_deadline_seconds", "0 is not above 0"),
    ({**PYTHON, "idempotency_key": "k" * 201}, "/idempotency_key", "more characters than 200"),
    ({**PYTHON, "idempotency_key": ""}, "/idempotency_key", "1 to 200 characters"),
    ({**PYTHON, "description": "d" * 2001}, "/description", "more characters than 2000"),
    ({**PYTHON, "owner": "a\tb"}, "/owner", "on one line"),
    ({**PYTHON, "payload": {"a": [1, {"b": "x\0y"}]}}, "/payload/a/1/b", "U+0000"),
    ({**PYTHON, "payload": {"k\0": 1}}, "/payload/k\\u0000", "the name of this field contains U+0000"),
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
            "schedule": {"cron": "x", "dst_gab": "y"}, "run_at": "z", "misfire": {"policy": "w"},
            "payload": {"url": "u", "method": "m"}, "labels": {" ": "", "b": 1},
        }
    )  # fmt: skip
    assert found.keys() == {
        "/handler", "/nmae", "/max_retries", "/retry/max_retries", "/retry/x", "/schedule/cron", "/schedule/dst_gab",
        "/run_at", "/misfire/policy", "/payload/url", "/payload/method", "/labels/ ", "/labels/b", "/name",
    }  # fmt: skip


def test_a_flood_of_problems_is_counted_instead_of_listed():
    with pytest.raises(Refused) as caught:
        parse({**PYTHON, **{f"x{i}": 1 for i in range(1000)}})
    assert len(caught.value.errors) == MAX_ERRORS + 1
    assert caught.value.errors[-1].message == "900 further problems are not listed"


@pytest.mark.parametrize(("fields", "field", "words"), UNSENDABLE)
def test_a_request_that_the_worker_would_refuse_is_refused_at_submission(fields, field, words):
    found = refusal(http(**fields))
    assert found.keys() == {f"/payload/{field}"}
    assert words in found[f"/payload/{field}"]


def test_values_of_an_http_payload_are_never_quoted():
    with pytest.raises(Refused) as caught:
        parse(
            http(url="https://u:s3cret@example.com", headers={"Authorization": "s3cret\n"}, method="s3cret")
        )
    assert "s3cret" not in str(caught.value)


def test_an_unknown_zone_is_refused_with_what_is_expected():
    document = {**PYTHON, "name": "a", "schedule": {"cron": "0 9 * * *", "timezone": "Mars/X"}}
    with pytest.raises(Refused) as refused:
        parse(document)
    (error,) = refused.value.errors
    assert (error.pointer, error.expected[:12]) == ("/schedule/timezone", "an IANA name")
    assert "; expected an IANA name" in str(refused.value)


def test_several_problems_are_joined_as_parts_of_a_sentence():
    errors = [FieldError("/run_at", "is in the past", "a later instant"), FieldError("/name", "is missing")]
    assert str(JobRefusedError(errors)) == (
        "/run_at: is in the past; expected a later instant; /name: is missing"
    )
