"""Which start batches are extended because a run of them began late, or still waits."""

from __future__ import annotations

import pytest
from tests.unit.worker.hands import hand

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.worker.engine.late_starts import LateStarts


def held(batch: int, *, began: float | None, timeout: float = 60.0) -> RunningAttempt:
    """A run that was started at 1000 s and began `began` seconds later; None: it waits."""
    attempt = hand(batch_id=batch, timeout_seconds=timeout)
    attempt.taken_at, attempt.began_at = 1000.0, 0.0 if began is None else 1000.0 + began
    return attempt


def test_runs_that_began_at_once_extend_nothing() -> None:
    assert LateStarts().due([held(1, began=0.5), held(1, began=5.0)], 1040.0) == {}


def test_a_run_that_began_late_extends_its_batch_to_the_end_of_its_timeout_once() -> None:
    late = LateStarts()
    attempts = [held(1, began=50.0), held(1, began=70.0, timeout=30.0), held(2, began=1.0)]
    assert late.due(attempts, 1080.0) == {1: 110.0}
    late.extended({1: 110.0})
    assert late.due(attempts, 1090.0) == {}


def test_a_batch_whose_run_waits_is_extended_ahead_as_long_as_it_waits() -> None:
    late = LateStarts()
    attempts = [held(1, began=None)]
    assert late.due(attempts, 1004.0) == {}
    assert late.due(attempts, 1010.0) == {1: 90.0}
    late.extended({1: 90.0})
    assert late.due(attempts, 1029.0) == {}
    assert late.due(attempts, 1031.0) == {1: 111.0}


def test_what_was_not_written_is_due_again_and_batches_that_are_over_are_forgotten() -> None:
    late = LateStarts()
    attempts = [held(1, began=50.0)]
    assert late.due(attempts, 1060.0) == late.due(attempts, 1061.0) == {1: 110.0}
    late.extended({1: 110.0})
    late.due([], 1070.0)
    assert late.due(attempts, 1071.0) == {1: 110.0}


@pytest.mark.parametrize(("deadline", "left"), [(None, 60.0), (100.0, 20.0), (70.0, 0.0)])
def test_the_total_deadline_shortens_a_timeout_that_starts_late(deadline, left) -> None:
    attempt = hand(timeout_seconds=60.0)
    attempt.deadline_seconds = deadline
    attempt.taken_at -= 80.0
    attempt.start_clock()
    assert attempt.timeout_seconds == pytest.approx(left, abs=1.0)
