"""Results are JSON of bounded size, or a clear failure."""

import uuid
from datetime import UTC, datetime

import pytest

from noonmark.handlers import MAX_RESULT_BYTES, ResultError, encode_result


def test_nothing_returned_is_nothing_kept():
    assert encode_result(None) is None


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ({"sent": 3}, b'{"sent":3}'),
        ([], b"[]"),
        (False, b"false"),
        ("é", '"é"'.encode()),
        (uuid.UUID(int=0), b'"00000000-0000-0000-0000-000000000000"'),
        (datetime(2026, 6, 1, tzinfo=UTC), b'"2026-06-01T00:00:00+00:00"'),
    ],
)
def test_json_values_are_encoded(value, encoded):
    assert encode_result(value) == encoded


@pytest.mark.parametrize("value", [object(), {1: "a"}, {"a": {1, 2}}, b"raw", 2**70, "\ud800"])
def test_what_is_not_json_is_refused_with_its_type(value):
    with pytest.raises(ResultError, match=f"result of type {type(value).__name__} is not JSON"):
        encode_result(value)


def test_the_limit_is_on_the_encoded_bytes():
    assert len(encode_result("a" * (MAX_RESULT_BYTES - 2))) == MAX_RESULT_BYTES
    with pytest.raises(ResultError, match=r"result is 65537 bytes of JSON; the limit is 65536"):
        encode_result("a" * (MAX_RESULT_BYTES - 1))


@pytest.mark.parametrize("value", ["\0", {"a\0b": 1}, "\\\0", ["\\\\\0"]])
def test_u0000_is_refused(value):
    with pytest.raises(ResultError, match=r"U\+0000"):
        encode_result(value)


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", "u0000"])
def test_a_text_about_u0000_is_kept(value):
    assert encode_result(value) is not None
