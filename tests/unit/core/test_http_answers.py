"""What an answer must say, and when its target wants to be asked again."""

import pytest

from noonmark.core.kinds.http_request import BadRequestError
from noonmark.core.kinds.http_response import parse_conditions, parse_pointer, retry_after_seconds
from noonmark.core.kinds.tls import check_tls

ANSWER = {
    "status": "ok",
    "count": 1,
    "flag": True,
    "none": None,
    "list": [{"a": 1}, "x"],
    "a/b": 1,
    "m~n": 2,
    "": 3,
    "obj": {"k": [1, 2.0]},
}


def holds(condition, answer=ANSWER):
    return all(one.failure(answer) is None for one in parse_conditions(condition))


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ({"pointer": "/status", "equals": "ok"}, True),
        ({"pointer": "/status", "equals": "OK"}, False),
        ({"pointer": "/count", "equals": 1.0}, True),
        ({"pointer": "/count", "equals": True}, False),
        ({"pointer": "/flag", "equals": 1}, False),
        ({"pointer": "/flag", "equals": True}, True),
        ({"pointer": "/none", "equals": None}, True),
        ({"pointer": "/missing", "equals": None}, False),
        ({"pointer": "/none", "exists": True}, True),
        ({"pointer": "/missing", "exists": True}, False),
        ({"pointer": "/missing", "exists": False}, True),
        ({"pointer": "/status", "exists": False}, False),
        ({"pointer": "/status", "in": ["done", "ok"]}, True),
        ({"pointer": "/status", "in": ["done"]}, False),
        ({"pointer": "/list/0/a", "equals": 1}, True),
        ({"pointer": "/list/1", "equals": "x"}, True),
        ({"pointer": "/list/2", "exists": False}, True),
        ({"pointer": "/list/01", "exists": False}, True),
        ({"pointer": "/list/-", "exists": False}, True),
        ({"pointer": "/status/0", "exists": False}, True),
        ({"pointer": "/a~1b", "equals": 1}, True),
        ({"pointer": "/m~0n", "equals": 2}, True),
        ({"pointer": "/", "equals": 3}, True),
        ({"pointer": "/obj", "equals": {"k": [1.0, 2]}}, True),
        ({"pointer": "/obj", "equals": {"k": [True, 2]}}, False),
        ({"exists": True}, True),
        ([{"pointer": "/status", "equals": "ok"}, {"pointer": "/count", "in": [1, 2]}], True),
        ([{"pointer": "/status", "equals": "ok"}, {"pointer": "/count", "in": [2]}], False),
        (None, True),
    ],
    ids=str,
)
def test_conditions_compare_as_json_does(condition, fits):
    assert holds(condition) is fits


def test_a_missed_condition_is_told_without_the_value_of_the_answer():
    (one,) = parse_conditions({"pointer": "/token", "equals": "x"})

    assert one.failure({"token": "s3cret"}) == "/token is not what is expected"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "0 conditions"),
        ([{"exists": True}] * 21, "21 conditions"),
        ("x", "an object with a pointer"),
        ({"pointer": "/a"}, "exactly one of"),
        ({"pointer": "/a", "equals": 1, "exists": True}, "exactly one of"),
        ({"pointer": "a", "equals": 1}, "begins with a slash"),
        ({"pointer": "/a~2", "equals": 1}, "~ as ~0"),
        ({"pointer": "/a" * 33, "equals": 1}, "32 parts"),
        ({"pointer": "/a", "in": []}, "at least one value"),
        ({"pointer": "/a", "exists": 1}, "true or false"),
        ({"pointer": "/a", "matches": "x"}, "unknown field matches"),
    ],
)
def test_conditions_that_say_nothing_are_refused(value, words):
    with pytest.raises(BadRequestError, match=words):
        parse_conditions(value)


def test_an_empty_pointer_is_the_whole_answer():
    assert parse_pointer("") == ()
    assert holds({"pointer": "", "equals": [1]}, [1])


DATE = "Mon, 01 Jun 2026 09:00:00 GMT"
NOON = 1780304400.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 7200 ", 7200),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("", None),
        (None, None),
        ("soon", None),
        ("9" * 400, None),
        ("inf", None),
        ("nan", None),
        ("٣", None),
        ("Mon, 01 Jun 2026 09:02:00 GMT", 120),
        ("Mon, 01 Jun 2026 08:00:00 GMT", None),
        ("Mon, 01 Jun 2026 11:02:00 +0200", 120),
        ("Monday, 01-Jun-26 09:02:00 GMT", 120),
        ("Mon, 99 Jun 2026 09:02:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_nonsense_is_ignored(value, seconds):
    assert retry_after_seconds(value, now=NOON) == seconds


def test_a_date_counts_from_the_clock_that_wrote_it():
    assert retry_after_seconds("Mon, 01 Jun 2026 09:02:00 GMT", now=NOON - 3600, date=DATE) == 120
    assert retry_after_seconds("Mon, 01 Jun 2026 09:02:00 GMT", now=NOON, date="x") == 120


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("x", "must be an object"),
        ({"verify": False}, "unknown field verify"),
        ({"ca": "hello"}, "tls.ca is neither"),
        ({"ca": 5}, "tls.ca is not a text"),
        ({"client_key": "secret://k"}, "give both"),
        ({"server_name": "a b"}, "not a host name"),
        ({"server_name": "a" * 254}, "not a host name"),
        ({"min_version": "1.1"}, "neither 1.2 nor 1.3"),
    ],
)
def test_tls_settings_that_are_none_are_refused_and_checking_cannot_be_switched_off(spec, words):
    with pytest.raises(BadRequestError, match=words):
        check_tls(spec)


def test_tls_settings_may_be_references():
    spec = {
        "ca": "secret://ca",
        "client_certificate": "secret://c",
        "client_key": "secret://k",
        "server_name": "a.b",
    }

    assert check_tls(spec) == spec
