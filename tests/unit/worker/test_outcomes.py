"""From how an attempt went to what the ledger shall say."""

import dataclasses
import json
import math
import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from tests.unit.worker.hands import NOW, hand

from noonmark.attempts import outcomes
from noonmark.core.failures import Failure
from noonmark.core.next_state import REJECTION_BUDGET
from noonmark.core.states import AttemptOutcome, DeliverySemantics, RunState
from noonmark.handlers import Cancel, Discard, Retry, Snooze
from noonmark.handlers.exceptions import from_wire, to_wire


@dataclasses.dataclass
class Receipt:
    number: int
    at: datetime


def test_a_handler_that_returns_nothing_leaves_a_plain_success():
    outcome = outcomes.succeeded(hand(), None)

    assert outcome.plain
    assert (outcome.state, outcome.attempt_outcome) == (RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
    assert (outcome.result, outcome.error, outcome.reason) == (None, None, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"sent": 3}, '{"sent":3}'),
        (0, "0"),
        (False, "false"),
        ("", '""'),
        ([], "[]"),
        (math.nan, "null"),
        (Receipt(1, datetime(2026, 6, 1, tzinfo=UTC)), '{"number":1,"at":"2026-06-01T00:00:00+00:00"}'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    ],
    ids=["dict", "zero", "false", "empty text", "empty list", "nan", "dataclass", "uuid"],
)
def test_what_a_handler_returns_is_kept_as_json(value, text):
    outcome = outcomes.succeeded(hand(), value)

    assert outcome.result == text
    assert not outcome.plain


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "not JSON"),
        ({1, 2}, "not JSON"),
        ((n for n in range(3)), "not JSON"),
        (b"bytes", "not JSON"),
        ({1: "a"}, "not JSON"),
        ("\ud83d", "not JSON"),
        ("x" * 70_000, "70002 bytes"),
        ("a\x00b", "U+0000"),
    ],
    ids=["object", "set", "generator", "bytes", "number as key", "lone surrogate", "too long", "nul"],
)
def test_a_result_that_cannot_be_kept_is_a_failure_that_no_retry_mends(value, said):
    outcome = outcomes.succeeded(hand(retry={"max_retries": 5}), value)

    assert (outcome.state, outcome.attempt_outcome) == (RunState.DEAD, AttemptOutcome.FAILED)
    assert outcome.reason == "not_retryable"
    assert outcome.result is None
    assert outcome.error is not None
    assert said in outcome.error


def test_a_failure_within_the_budget_is_retried_after_the_delay_of_the_policy():
    policy = {"max_retries": 3, "delay_seconds": 10.0, "factor": 2.0, "jitter": "none"}

    delays = [outcomes.failed(hand(retry=policy, attempt=attempt), "boom") for attempt in (1, 2, 3)]

    assert [outcome.state for outcome in delays] == [RunState.RETRYING] * 3
    assert [outcome.retry_seconds for outcome in delays] == [10.0, 20.0, 40.0]
    assert {outcome.error for outcome in delays} == {"boom"}


def test_a_failure_that_uses_up_the_budget_is_dead():
    outcome = outcomes.failed(hand(retry={"max_retries": 3}, attempt=4), "boom")

    assert (outcome.state, outcome.reason, outcome.error) == (RunState.DEAD, "retries_exhausted", "boom")
    assert outcome.retry_seconds == 0


def test_no_retries_means_one_attempt():
    assert outcomes.failed(hand(retry={"max_retries": 0}), "boom").state is RunState.DEAD


def test_a_timeout_is_a_failure_of_its_own_kind():
    outcome = outcomes.timed_out(hand(timeout_seconds=2.5))

    assert (outcome.state, outcome.attempt_outcome) == (RunState.RETRYING, AttemptOutcome.TIMED_OUT)
    assert outcome.error == "timed out after 2.5 s"


def test_work_that_this_worker_cannot_do_is_tried_again_for_another_may():
    outcome = outcomes.rejected(hand(retry={"max_retries": 0}), "no such handler")

    assert (outcome.state, outcome.attempt_outcome) == (RunState.RETRYING, AttemptOutcome.REJECTED)
    assert outcome.error == "no such handler"


def test_work_that_nobody_could_do_is_dead_as_rejected():
    held = hand(retry={"max_retries": 20})
    held.rejections = REJECTION_BUDGET - 1
    outcome = outcomes.rejected(held, "no such handler")

    assert (outcome.state, outcome.attempt_outcome) == (RunState.DEAD, AttemptOutcome.REJECTED)
    assert (outcome.reason, outcome.error) == ("rejected", "no such handler")


def test_a_run_that_was_stopped_is_cancelled():
    outcome = outcomes.cancelled(hand())

    assert (outcome.state, outcome.attempt_outcome) == (RunState.CANCELLED, AttemptOutcome.CANCELLED)
    assert not outcome.plain


def test_every_outcome_names_the_fence_and_pool_of_its_hand():
    held = hand(fence=7)

    for outcome in (
        outcomes.succeeded(held, None),
        outcomes.failed(held, "boom"),
        outcomes.rejected(held, "no"),
        outcomes.cancelled(held),
    ):
        assert (outcome.key, outcome.pool) == (held.key, "default")


def caught(function):
    try:
        function()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is described
        return error
    raise AssertionError("nothing was raised")


def test_an_exception_is_described_by_type_message_and_place():
    def fail():
        raise ValueError("no such user")

    assert outcomes.describe(caught(fail)).startswith("ValueError: no such user (in fail, line ")
    assert outcomes.describe(caught(fail)).endswith(" of test_outcomes.py)")


def test_an_exception_without_a_message_is_described_by_its_type():
    assert outcomes.describe(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_an_exception_of_a_library_is_described_with_both_places():
    def fail():
        json.loads("{")

    told = outcomes.describe(caught(fail))

    assert re.search(
        r" \(in fail, line \d+ of test_outcomes\.py; raised in \w+, line \d+ of decoder\.py\)$", told
    )


def test_a_long_message_leaves_room_for_the_place():
    def fail():
        raise ValueError("x" * 1_000_000)

    told = outcomes.describe(caught(fail))

    assert len(told) == 2000
    assert told.endswith(" of test_outcomes.py)")


def test_a_description_is_bounded():
    assert len(outcomes.describe(ValueError("x" * 1_000_000))) == 2000


def of(delivery, **more):
    held = hand(**more)
    held.delivery = DeliverySemantics(delivery)
    return held


UNKNOWN = Failure(unknown=True)


@pytest.mark.parametrize(
    ("end", "reason", "attempt"),
    [
        (outcomes.timed_out, "timed_out", AttemptOutcome.TIMED_OUT),
        (outcomes.unfinished, "lost", AttemptOutcome.LOST),
        (lambda h: outcomes.failed(h, "cut off", failure=UNKNOWN), "no_answer", AttemptOutcome.FAILED),
    ],
)
def test_an_unknown_outcome_ends_a_run_that_is_done_at_most_once(end, reason, attempt):
    ended = end(of("at_most_once", retry={"max_retries": 5}))

    assert (ended.state, ended.reason, ended.attempt_outcome) == (RunState.UNKNOWN, reason, attempt)
    assert ended.error
    for delivery in ("at_least_once", "exactly_once"):
        assert end(of(delivery, retry={"max_retries": 5})).state is RunState.RETRYING


def test_a_known_failure_of_a_run_that_is_done_at_most_once_follows_its_policy():
    assert outcomes.failed(of("at_most_once", retry={"max_retries": 5}), "no").state is RunState.RETRYING
    assert outcomes.failed(of("at_most_once", retry={"max_retries": 0}), "no").state is RunState.DEAD


@pytest.mark.parametrize("by_wire", [False, True])
def test_a_handler_says_itself_how_its_run_goes_on(by_wire):
    def end(signal):
        held = hand(retry={"max_retries": 1, "jitter": "none"})
        ended = (
            outcomes.ordered(held, from_wire(to_wire(signal))) if by_wire else outcomes.raised(held, signal)
        )
        return ended.state, ended.attempt_outcome, ended.reason, ended.error, ended.retry_seconds

    failed, snoozed = AttemptOutcome.FAILED, AttemptOutcome.SNOOZED
    assert end(Retry(in_=5, reason="busy")) == (RunState.RETRYING, failed, None, "busy", 5)
    assert end(Retry(in_=timedelta(days=1)))[4] == 3600
    assert end(Snooze(in_=timedelta(hours=2))) == (RunState.RETRYING, snoozed, None, None, 7200)
    assert end(Cancel("moot")) == (RunState.CANCELLED, AttemptOutcome.CANCELLED, "by_handler", "moot", 0)
    assert end(Discard("junk")) == (RunState.DISCARDED, failed, "by_handler", "junk", 0)


def test_a_retry_that_the_handler_asks_for_needs_budget_and_a_snooze_does_not():
    spent = hand(retry={"max_retries": 1}, attempt=2)
    assert outcomes.raised(spent, Retry(in_=1)).state is RunState.DEAD
    assert outcomes.raised(spent, Snooze(in_=1)).state is RunState.RETRYING


def test_rules_meet_what_a_handler_raised_and_not_a_refusal_of_the_worker():
    only = {"max_retries": 1, "only_on": {"exceptions": ["ConnectionError"]}}
    assert outcomes.raised(hand(retry=only), ConnectionResetError()).state is RunState.RETRYING
    assert outcomes.raised(hand(retry=only), KeyError()).reason == "not_retryable"
    assert outcomes.timed_out(hand(retry=only)).state is RunState.DEAD
    assert outcomes.rejected(hand(retry=only), "no such handler").state is RunState.RETRYING


@pytest.mark.parametrize(
    ("deadline", "retry", "origin", "reason"),
    [
        (None, {}, "schedule", None),
        (100, {}, "schedule", "deadline"),
        (4000, {}, "schedule", None),
        (None, {"max_age_seconds": 100}, "schedule", "max_age"),
        (100, {"max_age_seconds": 100}, "backfill", None),
    ],
)
def test_a_run_that_is_started_too_late_ends_without_being_executed(deadline, retry, origin, reason):
    held = hand(retry={"max_retries": 9, **retry}, started_at=NOW + timedelta(hours=1), origin=origin)
    held.deadline_seconds = deadline

    late = outcomes.too_late(held)

    assert (late and late.reason) == reason
    if late:
        assert (late.state, late.attempt_outcome) == (RunState.DEAD, AttemptOutcome.TIMED_OUT)
        assert "nothing was executed" in late.error


@pytest.mark.parametrize("nonsense", [-1, math.nan, math.inf, 400 * 86_400, "5", True, None])
def test_a_delay_that_makes_no_sense_is_an_error_of_the_handler(nonsense):
    with pytest.raises(ValueError, match="in_ is"):
        Retry(in_=nonsense)
    with pytest.raises(ValueError, match="in_ is"):
        Snooze(in_=nonsense)


def test_what_a_child_raised_arrives_by_its_names():
    assert from_wire(to_wire(ConnectionResetError("x"))).exception[:2] == (
        "builtins.ConnectionResetError",
        "ConnectionResetError",
    )
    with pytest.raises(ValueError, match="is not a signal"):
        from_wire({"signal": "explode"})
