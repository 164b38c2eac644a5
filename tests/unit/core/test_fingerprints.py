"""Fingerprints of failures: equal up to what differs from run to run, different for different causes."""

import time
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.fingerprints import MAX_CHARACTERS, fingerprint, normal_form

letters = st.text("ghijklmnopqrstuvwxyz", min_size=1, max_size=12)
numbers = st.integers(min_value=0, max_value=10**20)
ids = st.one_of(
    st.uuids().map(str),
    st.binary(min_size=4, max_size=32).map(bytes.hex),
    numbers.map(str),
    numbers.map(hex),
    st.ip_addresses(v=4).map(str),
    st.datetimes().map(lambda at: at.isoformat()),
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ValueError: order 17 has no lines", "ValueError: order 90210 has no lines"),
        ("KeyError: 'user_42' (in load, line 7 of a.py)", "KeyError: 'user_7' (in load, line 90 of a.py)"),
        ("no row 0190b6a0-1c2d-7000-8000-0000000000ff", "no row ffffffff-ffff-ffff-ffff-ffffffffffff"),
        ("<Thing object at 0x7f3a2b1c>", "<Thing object at 0xdeadbeef0012>"),
        ("10.0.0.1:8080 refused", "192.168.17.4:9 refused"),
        ("no mailbox jane.doe@example.com", "no mailbox x@y.org"),
        ("at 2026-06-01T09:00:00Z", "at 2027-11-30T23:59:59.123Z"),
        ("took 1.5 s", "took   20 s\n"),
        ("commit deadbeef is gone", "commit 0badcafe01 is gone"),
        ("order ord_8f3kx92 failed", "order ord_1 failed"),
        ("off by -3", "off by 12"),
    ],
)
def test_what_differs_from_run_to_run_does_not_count(one, other):
    assert fingerprint("python", one) == fingerprint("python", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ValueError: no lines", "TypeError: no lines"),
        ("KeyError: 'user'", "KeyError: 'amount'"),
        ("a.example answered 503; expected 2xx", "a.example answered 404; expected 2xx"),
        ("a.example refused", "b.example refused"),
        ("", "boom"),
    ],
)
def test_other_causes_have_other_fingerprints(one, other):
    assert fingerprint("http", one) != fingerprint("http", other)


def test_one_status_class_is_one_cause():
    assert fingerprint("http", "a answered 502") == fingerprint("http", "a answered 503")


def test_kind_counts_and_the_reason_where_there_is_no_error():
    assert fingerprint("http", "boom") != fingerprint("grpc", "boom")
    assert fingerprint("http", None, "lost") != fingerprint("http", None, "rejected")
    assert fingerprint("http", "boom", "lost") == fingerprint("http", "boom", "rejected")


def test_it_is_stable_over_versions():
    """Stored ones are compared with new ones: a change of the rules must be meant."""
    assert fingerprint("python", "ValueError: order 17 has no lines") == "a1cabcf7cd68afa0"


@settings(max_examples=60, deadline=None)
@given(st.lists(letters, min_size=1, max_size=6), st.data())
def test_equal_up_to_numbers_and_ids(words, data):
    def said():
        return " ".join(f"{word} {data.draw(ids)}" for word in words)

    assert fingerprint("python", said()) == fingerprint("python", said())


@settings(max_examples=60, deadline=None)
@given(st.lists(letters, min_size=1, max_size=6), st.lists(letters, min_size=1, max_size=6))
def test_different_words_are_different_causes(one, other):
    assert (fingerprint("python", " ".join(one)) == fingerprint("python", " ".join(other))) == (one == other)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_a_fingerprint_of_16_digits_and_a_normal_form_that_stays(text):
    assert int(fingerprint(None, text), 16) >= 0
    assert len(fingerprint(None, text)) == 16
    assert normal_form(normal_form(text)) == normal_form(text)


def test_an_id_is_none_the_less_one_in_quotes():
    one, other = UUID(int=1), UUID(int=2**127)

    assert normal_form(f"no row '{one}'") == normal_form(f"no row '{other}'") == "no row '#'"


@pytest.mark.parametrize(
    "piece", ["a", "0", "a@", ".", "-", "#-", " ", "0-", "a.", "HTTP ", "f" * 7 + "-", "\x00"]
)
def test_the_time_is_bounded_whatever_the_text(piece):
    """Doubling the text about doubles the work: the count of steps is compared, not seconds on the wall."""
    text = (piece * MAX_CHARACTERS)[:MAX_CHARACTERS]
    began = time.thread_time()
    for _ in range(5):
        fingerprint("python", text)

    # A quadratic pattern takes a hundred times as long.
    assert time.thread_time() - began < 2
