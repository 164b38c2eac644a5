"""Reading JSON that holds nothing unfit to store or hand on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.schemas.problems.refusal import FieldError, Refused, pointer, printable, shown
from noonmark.schemas.problems.screening import parse_json, screen

T = TypeVar("T")


def outcome(call: Callable[[], T]) -> T | Refused:
    try:
        return call()
    except Refused as refused:
        return refused


def refusal(raw: bytes) -> list[FieldError]:
    with pytest.raises(Refused) as caught:
        parse_json(raw)
    return list(caught.value.errors)


@pytest.mark.parametrize(
    ("raw", "where", "words"),
    [
        (b"", "", "is not JSON"),
        (b"\xff\xfe", "", "is UTF-16"),
        (b"{", "", "is not JSON"),
        (b'{"a":1}x', "", "is not JSON"),
        ('{"a":1}'.encode("utf-16"), "", "is UTF-16"),
        ('{"a":1}'.encode("utf-16-le"), "", "is UTF-16"),
        ('{"a":1}'.encode("utf-16-be"), "", "is UTF-16"),
        ('{"a":1}'.encode("utf-32"), "", "is UTF-32"),
        ("[]".encode("utf-16-le"), "", "is UTF-16"),
        (b"\0\0\0\0\x07 [1]", "", "before the JSON: use a serializer without"),
        (b"\0\0\0\0\x07\x02\x06abc", "", "no JSON after it, perhaps Avro or Protobuf"),
        (b'\xef\xbb\xbf{"a":1}', "", "begins with a byte order mark"),
        (b'\x00\x00\x00\x00\x07{"a":1}', "", "the frame of a schema registry (zero byte, schema 7)"),
        (b'{"a":1,"a":2}', "/a", "is given more than once"),
        (b'{"a":1,"a":1}', "/a", "is given more than once"),
        (b'{"a":1,"a" :2}', "/a", "is given more than once"),
        (b'{"a":1,"a":2,"b" :3}', "/a", "is given more than once"),
        (b'{"a"\n:1,"a"\t:2}', "/a", "is given more than once"),
        (b'[{"x":{"a/b":1,"a/b":2}}]', "/0/x/a~1b", "is given more than once"),
        (b'{"a":{"x":1,"\\u0078":2}}', "/a/x", "is given more than once"),
        (b'{"a":1,"a":"\\u0022:"}', "/a", "is given more than once"),
        (b'{"a":{"b":1},"a":{"b":1}}', "/a", "is given more than once"),
        (b"[" * 5000 + b"]" * 5000, "", "is nested too deeply"),
        (b'{"a":NaN}', "/a", "is NaN, which is not JSON"),
        (b'{"a":[1,-Infinity]}', "/a/1", "is -Infinity, which is not JSON"),
        (b'{"a":1e999}', "/a", "is not a finite number"),
        (b'{"a":18446744073709551616}', "/a", "beyond 64 bits"),
        (b'{"a":-9223372036854775809}', "/a", "beyond 64 bits"),
        (b'{"a":{"b":' + b"9" * 5000 + b"}}", "/a/b", "beyond 64 bits"),
        (b'{"a":"\\ud800"}', "/a", "half of a surrogate pair"),
        (b'{"a":"\\u0000"}', "/a", "U+0000"),
        (b'{"\\u0000":1}', "/\\u0000", "U+0000"),
        (b'{"a":"\x00"}', "", "is not JSON"),
        (b"[" * 33 + b"]" * 33, "/0" * 32, "nested too deeply"),
    ],
)
def test_unfit_bytes_are_refused_with_the_place(raw: bytes, where: str, words: str):
    error = refusal(raw)[0]
    assert (error.pointer, words in error.message) == (where, True)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":18446744073709551615}', {"a": 2**64 - 1}),
        (b'{"a":-9223372036854775808}', {"a": -(2**63)}),
        (b'{"a":"\\\\u0000"}', {"a": "\\u0000"}),
        (b'{"a":"12345678901234567890123"}', {"a": "12345678901234567890123"}),
        (b'{"a":0.12345678901234567890123}', {"a": 0.12345678901234568}),
        (b'{"a":"\\":\\" : ","b":[{"a" : "x:y"},{"a":1}]}', {"a": '":" : ', "b": [{"a": "x:y"}, {"a": 1}]}),
        (b"[" * 32 + b"]" * 32, None),
        (b"[" + b",".join([b"{}"] * 100) + b"]", [{}] * 100),
    ],
)
def test_fit_bytes_are_read(raw: bytes, value: object):
    assert parse_json(raw) == (orjson.loads(raw) if value is None else value)


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=60)
    | st.text(alphabet='{}[]",:0123456789eE+-.\\u\0NaInfty', max_size=60).map(str.encode)
)
def test_bytes_are_read_or_refused_and_never_break(raw: bytes):
    found = outcome(lambda: parse_json(raw))
    assert found.errors if isinstance(found, Refused) else screen(found) == []


def test_pointers_escape_as_rfc_6901_says_and_can_always_be_stored():
    assert pointer(["a/b", "m~n", 0, ""]) == "/a~1b/m~0n/0/"
    assert pointer([]) == ""
    assert pointer(["\0\ud800\n"]) == "/\\u0000\\ud800\\u000a"
    assert len(pointer(["x" * 10_000])) == 500


def test_values_are_shown_short_and_printable():
    assert shown("x" * 500) == '"' + "x" * 58 + "…"
    assert shown(10**5000) == "an integer of more than 60 digits"
    assert shown({"a": 1}) == "an object"
    assert shown("\0\ud800") == '"\\u0000\\ud800"'
    assert printable("täglich\x1b[31m\u202e") == "täglich\\u001b[31m\\u202e"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", 'x":', "\\u0061", ":", " :"]),
            st.sampled_from(["1", '"\\":"', '" : "']),
        ),
        max_size=5,
    ),
    st.sampled_from([":", " :", "\n:", ": "]),
)
def test_members_of_one_name_are_found_however_they_are_written(members: list[tuple[str, str]], colon: str):
    raw = "{" + ",".join(f"{orjson.dumps(name).decode()}{colon}{value}" for name, value in members) + "}"
    names = [name for name, _ in members]
    found = outcome(lambda: parse_json(raw.encode()))
    assert isinstance(found, Refused) is (len(set(names)) < len(names))
