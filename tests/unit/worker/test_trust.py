"""What a worker makes of messages: the allowance for those it keeps, and what the ledger does not bear out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.worker.hands import hand, record, started

from noonmark.attempts.context import context_of
from noonmark.attempts.running_attempt import Delivery, contradicted
from noonmark.core.states import Lane
from noonmark.kafka.messages import QueuedRun
from noonmark.store.runs.starts import StartRequest
from noonmark.store.runs.worker_lease import Identity
from noonmark.worker.engine import stop_requests
from noonmark.worker.engine.stop_requests import StopRequests
from noonmark.worker.in_flight import RunsInFlight
from noonmark.worker.lanes.rejected_messages import Allowance


def test_an_allowance_gives_its_burst_and_fills_again_by_time():
    allowance = Allowance(3, 0.5)

    assert [allowance.take(10.0) for _ in range(5)] == [True, True, True, False, False]
    assert [allowance.take(11.0), allowance.take(12.0), allowance.take(12.0)] == [False, True, False]
    assert [allowance.take(1000.0) for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    "changed", [{}, {"job_version": 2}, {"namespace": "other"}, {"job_id": started().id}]
)
def test_a_message_agrees_with_a_run_only_if_all_it_says_is_so(changed):
    run = started()
    said = {
        "run_id": run.id,
        "job_id": run.job_id,
        "namespace": run.namespace,
        "scheduled_for": run.scheduled_for,
        "fence": 1,
        "job_version": run.job_version,
    }
    message = QueuedRun(**{**said, **changed})
    delivery = Delivery(StartRequest(run.id, run.scheduled_for, 1), record(), Lane.NORMAL, message)

    assert contradicted({run.id.int: delivery}, [run]) == ([run] if changed else [])


def test_a_handler_sees_that_its_run_was_cancelled():
    held = hand()
    context = context_of(held)

    assert not context.cancelled
    held.stop_requested = True
    assert context.cancelled


def in_flight(*hands):
    runs = RunsInFlight()
    runs.add(hands)
    return runs


class Ledger:
    """Answers which runs are to be stopped, and remembers which it was asked about."""

    def __init__(self) -> None:
        self.cancelling: set[Any] = set()
        self.asked: list[list[Any]] = []

    def __call__(self, connection: object, identity: object, runs: list[tuple[Any, Any]]) -> list[Any]:
        del connection, identity
        self.asked.append([run_id for run_id, _, _ in runs])
        return [run_id for run_id, _, _ in runs if run_id in self.cancelling]


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    made = Ledger()
    monkeypatch.setattr(stop_requests, "read_stop_requests", made)
    clock = iter(range(1000))
    monkeypatch.setattr(stop_requests, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    return made


def test_only_runs_that_are_in_hand_for_a_while_are_asked_about_and_each_is_stopped_once(ledger):
    watch, nobody, db = StopRequests(), Identity(1, 1), SimpleNamespace()
    long, short = hand(), hand()
    ledger.cancelling = {long.run.id}

    assert watch.poll(db, nobody, in_flight(long, short)) == []
    assert ledger.asked == []
    assert watch.poll(db, nobody, in_flight(long)) == [long.key]
    assert ledger.asked == [[long.run.id]]
    long.stop_requested = True
    assert watch.poll(db, nobody, in_flight(long)) == []
    assert len(ledger.asked) == 1


def test_a_look_comes_at_its_time_only(ledger, monkeypatch):
    watch, db, one = StopRequests(), SimpleNamespace(), hand()
    monkeypatch.setattr(stop_requests, "time", SimpleNamespace(monotonic=lambda: 5.0))

    for _ in range(4):
        watch.poll(db, Identity(1, 1), in_flight(one))

    assert ledger.asked == []
