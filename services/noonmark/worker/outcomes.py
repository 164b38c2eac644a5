"""From how an attempt went to what the ledger shall say."""

from __future__ import annotations

from random import Random

from noonmark.core.retry import Dead, decide
from noonmark.core.words import AttemptOutcome, RunState
from noonmark.handlers.results import ResultError, encode_result
from noonmark.store.work import Outcome
from noonmark.worker.hand import Hand

_rng = Random()


def succeeded(hand: Hand, value: object) -> Outcome:
    """The handler returned. A result that cannot be stored is a failure that no retry mends."""
    if value is None:
        return Outcome(hand.run, hand.fence, RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED, pool=hand.pool)
    try:
        result = encode_result(value)
    except ResultError as error:
        return failed(hand, str(error), retryable=False)
    text = result.decode() if result is not None else None
    return Outcome(
        hand.run, hand.fence, RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED, result=text, pool=hand.pool
    )


def failed(
    hand: Hand, error: str, *, outcome: AttemptOutcome = AttemptOutcome.FAILED, retryable: bool = True
) -> Outcome:
    """The attempt failed: a retry that waits in Postgres, or a dead letter."""
    decision = decide(hand.retry_policy(), hand.run.attempt, rng=_rng, retryable=retryable)
    if isinstance(decision, Dead):
        return Outcome(
            hand.run,
            hand.fence,
            RunState.DEAD,
            outcome,
            reason=decision.reason.value,
            error=error,
            pool=hand.pool,
        )
    return Outcome(
        hand.run,
        hand.fence,
        RunState.RETRYING,
        outcome,
        error=error,
        retry_seconds=decision.seconds,
        pool=hand.pool,
    )


def rejected(hand: Hand, error: str) -> Outcome:
    """This worker cannot do such work. Another of its pool may, in a roll-out that brings new handlers."""
    outcome = failed(hand, error, outcome=AttemptOutcome.REJECTED)
    if outcome.state is RunState.DEAD:
        outcome.reason = "rejected"
    return outcome


def timed_out(hand: Hand) -> Outcome:
    """The attempt took longer than its job allows."""
    return failed(hand, f"timed out after {hand.timeout_seconds:g} s", outcome=AttemptOutcome.TIMED_OUT)


def cancelled(hand: Hand) -> Outcome:
    """Somebody asked for the run to stop, and it has stopped."""
    return Outcome(hand.run, hand.fence, RunState.CANCELLED, AttemptOutcome.CANCELLED, pool=hand.pool)


def describe(error: BaseException) -> str:
    """Say what an exception was, in one bounded line and the place it came from."""
    name = type(error).__name__
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001 - a broken __str__ must not hide that there was an exception
        said = "its text cannot be shown"
    text = f"{name}: {said}" if said else name
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        code = trace.tb_frame.f_code
        text += f" (in {code.co_name}, line {trace.tb_lineno} of {code.co_filename.rsplit('/', 1)[-1]})"
    return text[:2000]
