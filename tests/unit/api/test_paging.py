"""Cursors: opaque, and of no use when changed, elsewhere, or with other filters."""

from __future__ import annotations

import base64
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.api.http.cursors import Cursors
from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.types import BAD_CURSOR

CURSORS = Cursors(b"k" * 32)
FILTERS = {"namespace": "acme", "state": "active", "search": None}
PLACE = ["2026-06-01T09:00:00Z", "0197a2b4-1111-7000-8000-000000000001"]
MADE = CURSORS.make("jobs", FILTERS, PLACE)


def refused(listing: str, filters: dict[str, object], cursor: str, cursors: Cursors = CURSORS) -> str:
    with pytest.raises(ProblemError) as told:
        cursors.read(listing, filters, cursor)
    assert told.value.kind is BAD_CURSOR
    return told.value.detail


def test_a_cursor_gives_its_place_back_and_none_gives_none():
    assert CURSORS.read("jobs", FILTERS, MADE) == PLACE
    assert CURSORS.read("jobs", FILTERS, None) is None


def test_every_instance_with_the_same_key_reads_it():
    assert Cursors(b"k" * 32).read("jobs", dict(FILTERS), MADE) == PLACE
    assert "cannot be read" in refused("jobs", FILTERS, MADE, Cursors(b"j" * 32))


def test_a_filter_that_is_not_given_is_as_one_that_is_null():
    assert CURSORS.read("jobs", {"state": "active", "namespace": "acme"}, MADE) == PLACE


@pytest.mark.parametrize(
    ("listing", "filters"),
    [
        ("runs", FILTERS),
        ("jobs", {**FILTERS, "namespace": "other"}),
        ("jobs", {"namespace": "acme"}),
        ("jobs", {**FILTERS, "search": "x"}),
    ],
)
def test_it_is_refused_by_another_listing_and_with_other_filters(listing, filters):
    assert "another listing, or to other filters" in refused(listing, filters, MADE)


def test_no_character_of_it_can_be_changed():
    # The last character's low bits are padding, which decoders drop: another letter may mean the same bytes.
    for at, letter in itertools.product(range(len(MADE)), "Ab9-"):
        changed = MADE[:at] + letter + MADE[at + 1 :]
        if decoded(changed) != decoded(MADE):
            assert "cannot be read" in refused("jobs", FILTERS, changed)


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@given(st.text(max_size=200))
def test_whatever_is_sent_as_a_cursor_is_refused_as_one(text):
    refused("jobs", FILTERS, text)


def test_it_fits_into_a_query_as_it_is():
    assert MADE.replace("-", "").replace("_", "").isalnum()
    assert len(MADE) < 200
