"""Delays between tries, and who ends them."""

import threading

import pytest
from psycopg import errors

from noonmark.service.backoff import Backoff, StoppedError, retry_transient
from noonmark.service.database_errors import DbFault


def quick():
    return Backoff(0.001, 0.001, random_share=lambda: 0.0)


def test_delays_double_up_to_the_cap_and_start_over_after_a_reset():
    backoff = Backoff(0.1, 1.0, random_share=lambda: 1.0)
    assert [backoff.next_seconds() for _ in range(6)] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    backoff.reset()
    assert backoff.next_seconds() == pytest.approx(0.1)


def test_jitter_spreads_over_the_whole_delay():
    backoff = Backoff(1.0, 1.0)
    drawn = [backoff.next_seconds() for _ in range(500)]
    assert min(drawn) < 0.1
    assert max(drawn) > 0.9
    assert max(drawn) <= 1.0


def test_ten_thousand_failures_still_give_the_cap():
    backoff = Backoff(0.1, 5.0, random_share=lambda: 1.0)
    assert [backoff.next_seconds() for _ in range(10_000)][-1] == 5.0


def test_a_backoff_without_sense_is_refused():
    with pytest.raises(ValueError, match=r"0 < first \(2 s\) <= cap \(1 s\)"):
        Backoff(2, 1)


def test_a_transient_fault_is_tried_again_until_it_passes():
    outcomes = [errors.DeadlockDetected(), errors.ReadOnlySqlTransaction(), "done"]
    told = []

    def operation():
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    result = retry_transient(
        operation, threading.Event(), backoff=quick(), on_fault=lambda _error, fault: told.append(fault)
    )
    assert result == "done"
    assert told == [DbFault.TRANSIENT, DbFault.READ_ONLY]


def test_a_permanent_fault_comes_through_at_once():
    calls = []

    def operation():
        calls.append(1)
        raise errors.UndefinedTable

    with pytest.raises(errors.UndefinedTable):
        retry_transient(operation, threading.Event(), backoff=quick())
    assert calls == [1]


def test_the_stop_event_ends_the_waiting():
    stop = threading.Event()
    stop.set()

    def operation():
        raise errors.AdminShutdown

    with pytest.raises(StoppedError) as stopped:
        retry_transient(operation, stop, backoff=Backoff(60, 60))
    assert isinstance(stopped.value.__cause__, errors.AdminShutdown)
