"""Planted faults that rewrite or delete what the ledger recorded: attempts, counts, times, results, errors."""

from __future__ import annotations

from datetime import timedelta

from tests.chaos.edits import edit, edit_attempt, forget
from tests.chaos.good_history import NOON, NS, STEP, after

from noonmark.verify import History
from noonmark.verify.history import Attempt, DeadLetter


def delete_all_attempts(h: History) -> None:
    forget(h, "flaky", 1)


def delete_all_attempts_of_the_dead(h: History) -> None:
    forget(h, "doomed", 1, 2)
    h.calls = [c for c in h.calls if c.run != "doomed"]


def delete_the_first_attempt(h: History) -> None:
    forget(h, "doomed", 1)
    h.calls = [c for c in h.calls if (c.run, c.fence) != ("doomed", 1)]


def delete_the_last_attempt(h: History) -> None:
    forget(h, "doomed", 2)


def delete_attempts_and_lower_the_count(h: History) -> None:
    forget(h, "flaky", 1)
    edit(h, "runs", "flaky", attempt=1)
    edit(h, "lifecycle", "flaky", attempt=1)


def delete_a_loss(h: History) -> None:
    forget(h, "tock2", 1)
    h.calls = [c for c in h.calls if (c.run, c.fence) != ("tock2", 1)]


def delete_an_uncounted_attempt(h: History) -> None:
    forget(h, "handed", 2)


def lower_the_count(h: History) -> None:
    edit(h, "runs", "flaky", attempt=1)
    edit(h, "lifecycle", "flaky", attempt=1)


def lower_the_count_of_the_run_alone(h: History) -> None:
    edit(h, "runs", "flaky", attempt=1)


def raise_the_count(h: History) -> None:
    edit(h, "runs", "ledgered", attempt=2)
    edit(h, "lifecycle", "ledgered", attempt=2)


def lower_the_losses(h: History) -> None:
    edit(h, "runs", "tock2", losses=0)


def renumber_without_a_redrive(h: History) -> None:
    edit_attempt(h, "doomed", 2, attempt=1)
    edit(h, "runs", "doomed", attempt=1)
    edit(h, "lifecycle", "doomed", attempt=1)
    edit(h, "dead_letters", "doomed", attempts=1)


def fail_the_attempt_of_a_success(h: History) -> None:
    h.attempts.append(Attempt("now", 1, 1, "failed", NOON + STEP, NOON + 10 * STEP, "no luck"))


def hand_back_the_attempt_of_the_dead(h: History) -> None:
    edit_attempt(h, "doomed", 2, outcome="cancelled")


def finish_before_start(h: History) -> None:
    edit(h, "runs", "once", finished_at=NOON - timedelta(seconds=5))
    edit(h, "lifecycle", "once", finished_at=NOON - timedelta(seconds=5))


def finish_an_attempt_before_its_start(h: History) -> None:
    edit_attempt(h, "flaky", 1, finished_at=NOON - timedelta(seconds=5))


def start_before_queueing(h: History) -> None:
    edit(h, "runs", "once", queued_at=NOON + timedelta(seconds=5))


def end_without_a_date(h: History) -> None:
    edit(h, "runs", "alone1", finished_at=None)
    edit(h, "lifecycle", "alone1", finished_at=None)


def rewrite_a_result(h: History) -> None:
    edit(h, "runs", "ledgered", result='"something else"')


def delete_a_result(h: History) -> None:
    edit(h, "runs", "ledgered", result=None)


def give_the_dead_a_result(h: History) -> None:
    edit(h, "runs", "doomed", result='"done"')


def move_a_finish(h: History) -> None:
    edit(h, "runs", "once", finished_at=after(1))


def erase_the_error_of_the_dead(h: History) -> None:
    edit(h, "runs", "doomed", error=None)
    edit(h, "lifecycle", "doomed", error=None)
    edit(h, "dead_letters", "doomed", error=None)


def erase_the_error_of_an_unknown(h: History) -> None:
    edit(h, "runs", "maybe", error=None)
    edit(h, "lifecycle", "maybe", error=None)


def erase_the_error_of_an_attempt(h: History) -> None:
    edit_attempt(h, "flaky", 1, error=None)


def rewrite_an_error(h: History) -> None:
    edit(h, "runs", "doomed", error="no harm done")
    edit(h, "dead_letters", "doomed", error="no harm done")


def rewrite_a_reason(h: History) -> None:
    edit(h, "runs", "maybe", reason="timed_out")


def rewrite_a_letter(h: History) -> None:
    edit(h, "dead_letters", "doomed", attempts=1)


def erase_the_error_of_a_letter(h: History) -> None:
    edit(h, "dead_letters", "doomed", error=None)


def raise_a_fence(h: History) -> None:
    edit(h, "runs", "alone1", fence=2)


def lower_a_fence(h: History) -> None:
    edit(h, "runs", "stopped", fence=1)


def bury_a_redriven_success(h: History) -> None:
    """The row is dead again, as an older event says it was."""
    edit(h, "runs", "risen", state="dead", reason="retries_exhausted", error="no luck", result=None)
    h.attempts.append(Attempt("risen", 3, 1, "failed", after(20), after(20.1), "no luck"))
    h.dead_letters.append(DeadLetter("risen", NS, 1, "retries_exhausted", "no luck"))
