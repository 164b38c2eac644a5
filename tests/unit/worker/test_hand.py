"""A run in hand is what Postgres said of it, with defaults for what a job left out."""

import pytest
from msgspec.structs import asdict
from tests.unit.worker.hands import hand, record, started

from noonmark.attempts.running_attempt import Delivery, RunningAttempt
from noonmark.core.retry import RetryPolicy
from noonmark.core.states import DeliverySemantics, Lane
from noonmark.store.runs.starts import StartRequest


def of(work: str | None, fence: int = 3) -> RunningAttempt:
    run = started(work=work)
    delivery = Delivery(StartRequest(run.id, run.scheduled_for, fence), record(17), Lane.LOW)
    return RunningAttempt.of(run, delivery, "gpu")


def test_a_hand_holds_the_work_of_the_run_and_the_record_it_came_in():
    taken = of('{"payload": {"a": [1]}, "timeout_seconds": 7.5, "retry": {"max_retries": 1}}')

    assert taken.payload == {"a": [1]}
    assert taken.timeout_seconds == 7.5
    assert (taken.fence, taken.lane, taken.pool, taken.record.offset) == (3, Lane.LOW, "gpu", 17)
    assert taken.retry_policy() == RetryPolicy(max_retries=1)


@pytest.mark.parametrize("work", [None, "{}", '{"payload": null, "timeout_seconds": null, "retry": null}'])
def test_what_the_job_left_out_has_a_default(work):
    taken = of(work)

    assert taken.payload is None
    assert taken.timeout_seconds == 3600.0
    assert taken.retry_policy() == RetryPolicy()
    assert taken.delivery is DeliverySemantics.AT_LEAST_ONCE
    assert taken.deadline_seconds is None


def test_a_hand_knows_what_its_job_promises_and_no_attempt_outlasts_the_total_deadline():
    taken = of('{"timeout_seconds": 60, "delivery": "at_most_once", "deadline_seconds": 20}')

    assert taken.delivery is DeliverySemantics.AT_MOST_ONCE
    assert taken.deadline_seconds == 20
    assert 0 < taken.timeout_seconds <= 20


def test_the_same_run_under_another_fence_is_another_hand():
    run = started()

    assert hand(**asdict(run)).key != hand(**asdict(run), fence=2).key


def test_two_hands_are_equal_only_if_they_are_one():
    run = started()

    assert hand(**asdict(run)) != hand(**asdict(run))


def test_the_retry_policy_of_equal_texts_is_read_once():
    retry = {"max_retries": 2, "delay_seconds": 5.0, "jitter": "none"}

    assert hand(retry=retry).retry_policy() is hand(retry=dict(reversed(retry.items()))).retry_policy()
