"""Texts that a worker reports become storable."""

import orjson
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.worker.hands import hand, started

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.store.database.columns import clean_text
from noonmark.store.runs.finish import Outcome, _details


def outcome(run, fence=1, state=RunState.SUCCEEDED, **more):
    return Outcome(run, fence, state, AttemptOutcome.SUCCEEDED, **more)


@given(st.text(alphabet=st.characters(codec=None), max_size=200))
def test_any_text_becomes_text_that_postgres_takes(text):
    stored = clean_text(text)

    assert stored is not None
    assert "\x00" not in stored
    stored.encode("utf-8")


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=200))
def test_text_that_can_be_stored_is_left_alone(text):
    assert clean_text(text) == text


def test_long_text_is_cut_before_anything_else_is_done_with_it():
    assert clean_text("x" * 10_000_000) == "x" * 4000
    assert len(clean_text("\x00" * 10_000) or "") == 4 * 4000


def test_nothing_stays_nothing():
    assert clean_text(None) is None
    assert clean_text("") == ""


def test_only_a_success_without_a_result_is_plain():
    run = started()

    assert outcome(run).plain
    assert not outcome(run, result="null").plain
    assert not outcome(run, state=RunState.DEAD).plain
    assert not outcome(run, state=RunState.CANCELLED).plain


def test_an_outcome_is_told_apart_by_run_and_fence():
    held = hand(fence=3)

    assert outcome(held.run, 3).key == held.key
    assert outcome(held.run, 2).key != held.key


def test_details_are_written_by_run_id_and_hold_a_result_as_text():
    run = started()

    written = orjson.loads(
        _details([outcome(run, 4, RunState.DEAD, reason="lost", result='{"a": 1}', error="b\x00")])
    )

    assert written == {str(run.id): [4, "dead", "lost", '{"a": 1}', "b\\x00", 0]}


def test_of_two_fences_of_one_run_the_details_hold_the_higher():
    run = started()
    both = [outcome(run, 7, result="7"), outcome(run, 6, result="6")]

    assert orjson.loads(_details(both))[str(run.id)][0] == 7
    assert _details(both) == _details(both[::-1])
