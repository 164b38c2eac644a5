"""Turns the end of an attempt into the outcome that is recorded."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Final

import orjson

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretError
from noonmark.core.failures import NO_FACTS, Failure, exception_names
from noonmark.core.next_state import REJECTED, NextState, after_failure
from noonmark.core.raised_at import raised_at
from noonmark.core.retry import Dead, policy_of_row, snooze, within_age
from noonmark.core.states import BY_HANDLER, AttemptOutcome, DeliverySemantics, RunState
from noonmark.handlers.exceptions import Cancel, Discard, Retry, RunSignal, Snooze
from noonmark.handlers.results import ResultError, encode_result
from noonmark.store.runs.finish import Outcome

UNREADABLE: Final = "the handler raised an exception whose type or text cannot be read"

_SUCCEEDED: Final = RunState.SUCCEEDED
_ATTEMPT_SUCCEEDED: Final = AttemptOutcome.SUCCEEDED
"""To look up the member of an enum costs as much as an outcome."""

NO_RETRY: Final = Failure(retryable=False)
"""A failure that another attempt cannot fix."""

_rng = Random()


def succeeded(attempt: RunningAttempt, value: object) -> Outcome:
    """The handler returned. A result that cannot be stored is a failure that a retry cannot fix."""
    if value is None:
        return _plain(attempt, _SUCCEEDED, _ATTEMPT_SUCCEEDED)
    try:
        result = encode_result(value)
    except ResultError as error:
        return failed(attempt, str(error), failure=Failure(exception=_names(error), retryable=False))
    return succeeded_with(attempt, result.decode() if result is not None else None)


def succeeded_with(attempt: RunningAttempt, result: str | None) -> Outcome:
    """The handler returned, and its result is encoded already."""
    outcome = _plain(attempt, RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
    outcome.result = result
    return outcome


def failed(
    attempt: RunningAttempt,
    error: str,
    *,
    outcome: AttemptOutcome = AttemptOutcome.FAILED,
    failure: Failure = NO_FACTS,
) -> Outcome:
    """The attempt failed: the retry rule decides the next state.

    Args:
        attempt: the attempt.
        error: what happened, for people.
        outcome: how the attempt ended.
        failure: what is known about the failure.
    """
    return _next(attempt, _after_failure(attempt, outcome, failure), outcome, error)


def is_final(attempt: RunningAttempt, failure: Failure) -> bool:
    """Return whether the run would not be tried again after this failure."""
    if attempt.stop_requested or attempt.deadline_seconds is not None or "max_age_seconds" in attempt.retry:
        return _after_failure(attempt, AttemptOutcome.FAILED, failure).state is not RunState.RETRYING
    # Kinds ask before every request; the answer is the same for all runs with this policy.
    stored = orjson.dumps(attempt.retry, option=orjson.OPT_SORT_KEYS)
    return _is_final_at_any_age(stored, attempt.run.attempt, attempt.delivery, failure)


@lru_cache(maxsize=1024)
def _is_final_at_any_age(stored: bytes, attempt: int, delivery: DeliverySemantics, failure: Failure) -> bool:
    policy = policy_of_row(orjson.loads(stored))
    following = after_failure(
        AttemptOutcome.FAILED, failure, policy=policy, attempt=attempt, delivery=delivery, rng=_rng
    )
    return following.state is not RunState.RETRYING


def raised(attempt: RunningAttempt, error: BaseException, *, unknown: bool = False) -> Outcome:
    """The handler raised a signal about its run, or any other exception, which is a failure.

    Args:
        attempt: the attempt.
        error: the exception, which can be broken in any way.
        unknown: something other than the handler raised it, so what was done is unknown.
    """
    try:
        return _raised(attempt, error, unknown=unknown)
    except Exception:  # noqa: BLE001 - the methods of a handler's own exception can raise, too
        return failed(attempt, UNREADABLE, failure=Failure(unknown=unknown))


def _raised(attempt: RunningAttempt, error: BaseException, *, unknown: bool) -> Outcome:
    if isinstance(error, RunSignal):
        return ordered(attempt, error)
    if isinstance(error, SecretError):
        failure = Failure(exception=_names(error), retryable=error.retryable)
        return failed(attempt, str(error), failure=failure)
    return failed(attempt, describe(error), failure=Failure(exception=_names(error), unknown=unknown))


def ordered(attempt: RunningAttempt, signal: RunSignal) -> Outcome:
    """The handler raised a signal that decides how its run continues."""
    if isinstance(signal, Retry):
        failure = Failure(exception=_names(signal), retry_in=signal.seconds)
        return failed(attempt, signal.reason or "the handler asked for a retry", failure=failure)
    if isinstance(signal, Snooze):
        decision = snooze(attempt.retry_policy(), signal.seconds or 0.0, age=attempt.age())
        return _next(attempt, NextState.of(decision), AttemptOutcome.SNOOZED, signal.reason)
    if isinstance(signal, Cancel):
        ended = _plain(attempt, RunState.CANCELLED, AttemptOutcome.CANCELLED)
    else:
        assert isinstance(signal, Discard)
        ended = _plain(attempt, RunState.DISCARDED, AttemptOutcome.FAILED)
    ended.reason = BY_HANDLER
    ended.error = signal.reason
    return ended


def rejected(attempt: RunningAttempt, error: str) -> Outcome:
    """This worker cannot execute the run. Another of its pool may, in a roll-out of new handlers.

    If the job is so damaged that no retry policy can be looked up in it, no worker can, and the run is dead.
    """
    if not attempt.has_policy:
        return _next(attempt, NextState(RunState.DEAD, REJECTED), AttemptOutcome.REJECTED, error)
    return failed(attempt, error, outcome=AttemptOutcome.REJECTED)


def too_late(attempt: RunningAttempt) -> Outcome | None:
    """Return the outcome of a run that was started after its deadline or maximum age; otherwise None."""
    if attempt.deadline_seconds is None and "max_age_seconds" not in attempt.retry:
        return None
    decision = within_age(attempt.retry_policy(), 0.0, attempt.age())
    if not isinstance(decision, Dead):
        return None
    what = "its total deadline" if decision.reason == "deadline" else "the maximum age that its retries allow"
    error = f"was started after {what}; nothing was executed"
    return _next(attempt, NextState.of(decision), AttemptOutcome.TIMED_OUT, error)


def awaited(attempt: RunningAttempt) -> Outcome:
    """The target answered that it will report the result later."""
    return _plain(attempt, RunState.RUNNING, AttemptOutcome.SUCCEEDED)


def timed_out(attempt: RunningAttempt, *, sent: bool = True) -> Outcome:
    """The attempt took longer than its timeout: if it was `sent`, what it did is unknown."""
    failure = Failure(exception=_TIMEOUT, unknown=sent)
    error = f"timed out after {attempt.timeout_seconds:g} s"
    return failed(attempt, error, outcome=AttemptOutcome.TIMED_OUT, failure=failure)


def cancelled(attempt: RunningAttempt) -> Outcome:
    """A cancel of the run was requested, and it has stopped."""
    return _plain(attempt, RunState.CANCELLED, AttemptOutcome.CANCELLED)


def unfinished(attempt: RunningAttempt) -> Outcome:
    """The worker stops in the middle of an attempt that must not be repeated."""
    error = "the worker ended before the handler did"
    return failed(attempt, error, outcome=AttemptOutcome.LOST, failure=Failure(unknown=True))


def _after_failure(attempt: RunningAttempt, outcome: AttemptOutcome, failure: Failure) -> NextState:
    return after_failure(
        outcome,
        failure,
        policy=attempt.retry_policy(),
        attempt=attempt.run.attempt,
        delivery=attempt.delivery,
        rng=_rng,
        age=attempt.age(),
        cancel_requested=attempt.stop_requested,
        rejections=attempt.rejections,
    )


def _next(
    attempt: RunningAttempt, next_state: NextState, attempt_outcome: AttemptOutcome, error: str | None
) -> Outcome:
    """Return the outcome of an attempt that did not succeed."""
    ended = _plain(attempt, next_state.state, attempt_outcome)
    ended.reason = next_state.reason
    ended.retry_seconds = next_state.retry_seconds
    ended.error = error
    return ended


def _plain(attempt: RunningAttempt, state: RunState, attempt_outcome: AttemptOutcome) -> Outcome:
    # By position: with names it costs twice as much, for every run.
    run, extras = attempt.run, attempt.extras
    return Outcome(run, attempt.fence, state, attempt_outcome, None, None, None, 0.0, attempt.pool, extras)


def _names(error: BaseException) -> tuple[str, ...]:
    return exception_names(type(error))


_TIMEOUT: Final = exception_names(TimeoutError)

_MOST_CHARACTERS: Final = 2000
_MOST_OF_PLACES: Final = 500


def describe(error: BaseException) -> str:
    """Describe an exception in one line of limited length, with the line of the user's code that raised it.

    If a library raised it, the line of the library follows.
    """
    name = type(error).__name__
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001 - a broken __str__ must not hide that there was an exception
        said = "its text cannot be shown"
    text = f"{name}: {said}" if said else name
    places = "; raised in ".join(f"{one.function}, line {one.line} of {one.file}" for one in raised_at(error))
    where = f" (in {places[:_MOST_OF_PLACES]})" if places else ""
    return text[: _MOST_CHARACTERS - len(where)] + where
