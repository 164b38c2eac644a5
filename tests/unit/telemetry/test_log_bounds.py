"""A flood of lines does not fill the log of a process, nor hide its other lines."""

import json
import logging
import sys

import pytest
from tests.unit.telemetry.test_logs import logging_as_before as restored_logging
from tests.unit.worker.hands import hand, services

from noonmark.attempts.context import context_of
from noonmark.telemetry import logs
from noonmark.telemetry.log_bounds import ALL_ATTEMPTS, PER_ATTEMPT, PER_EVENT, LogBounds
from noonmark.telemetry.logs import configure_logs, get_logger
from noonmark.worker.in_flight import RunsInFlight

FLOOD = 5_000

__all__ = ["restored_logging"]


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(logs, "_bounds", LogBounds(clock))
    with monkeypatch.context() as patch, open(2, "w", closefd=False) as stderr:
        # Not pytest's stream, which it replaces between its fixtures and the test.
        patch.setattr(sys, "stderr", stderr)
        configure_logs("worker")
        patch.undo()
        yield clock


@pytest.fixture
def lines(capfdbinary, clock):
    def read(event=None):
        written = [json.loads(line) for line in capfdbinary.readouterr().err.splitlines()]
        return [line for line in written if event in {None, line["event"]}]

    return read


def in_flight(*attempts):
    flying = RunsInFlight()
    flying.open(attempts)
    return flying


def by_log(ctx, number):
    ctx.log(f"row {number}")


def by_logger(ctx, number):
    ctx.logger.warning("row", number=number)


@pytest.mark.parametrize("write", [by_log, by_logger])
def test_an_attempt_that_floods_the_log_is_cut_and_the_rest_is_counted_at_its_end(lines, write):
    of = hand()
    flying, ctx = in_flight(of), context_of(of, services())

    for number in range(FLOOD):
        write(ctx, number)

    assert len(lines()) == PER_ATTEMPT.lines
    assert flying.end([of.key]) == [of]
    (report,) = lines()
    assert (report["event"], report["level"], report["lines"]) == (
        "attempt_lines_dropped",
        "warning",
        FLOOD - PER_ATTEMPT.lines,
    )
    assert {name: report[name] for name in ("run_id", "job_id", "namespace", "attempt", "fence")} == {
        "run_id": str(of.run.id),
        "job_id": str(of.run.job_id),
        "namespace": "tests",
        "attempt": 1,
        "fence": 1,
    }


def test_what_is_stored_with_the_attempt_is_not_cut_by_the_log_of_the_worker(lines):
    of = hand()
    ctx = context_of(of, services())
    for number in range(FLOOD):
        ctx.log(f"row {number}")
    assert of.extras.log.lines.text().splitlines()[-1] == f"row {FLOOD - 1}"


def test_long_lines_are_bounded_in_bytes(lines, capfdbinary):
    ctx = context_of(hand(), services())
    for _ in range(100):
        ctx.log("x" * 60_000)
    assert PER_ATTEMPT.bytes < len(capfdbinary.readouterr().err) < PER_ATTEMPT.bytes + 70_000


def test_an_attempt_that_runs_for_long_can_continue_to_log(lines, clock):
    ctx = context_of(hand(), services())
    for _ in range(3 * PER_ATTEMPT.lines):
        ctx.log("one per second")
        clock.now += 1
    assert len(lines()) == 3 * PER_ATTEMPT.lines


def test_attempts_share_an_allowance(lines):
    for _ in range(2 * ALL_ATTEMPTS.lines // PER_ATTEMPT.lines):
        ctx = context_of(hand(), services())
        for _ in range(PER_ATTEMPT.lines):
            ctx.log("row")
    assert len(lines()) == ALL_ATTEMPTS.lines


def test_an_attempt_within_its_allowance_reports_nothing(lines):
    of = hand()
    flying, ctx = in_flight(of), context_of(of, services())
    ctx.log("row")
    flying.end([of.key])
    assert [line["event"] for line in lines()] == ["handler_logged"]


def test_an_event_about_each_record_is_bounded_and_hides_no_other_event(lines, clock):
    log = get_logger(loop="observer")
    for number in range(FLOOD):
        log.warning("record_not_read", offset=number)
    log.error("lease_lapsed")
    assert [line["event"] for line in lines()][PER_EVENT.lines - 1 :] == ["record_not_read", "lease_lapsed"]

    clock.now += 10
    log.info("anything")
    dropped, other = lines()
    assert other["event"] == "anything"
    assert {name: dropped[name] for name in ("event", "of", "lines")} == {
        "event": "log_lines_dropped",
        "of": "record_not_read",
        "lines": FLOOD - PER_EVENT.lines,
    }


@pytest.mark.parametrize("style", ["json", "console"])
def test_a_library_that_floods_the_log_is_bounded_by_its_logger(capfdbinary, clock, style):
    configure_logs("worker", style=style)
    for _ in range(FLOOD):
        logging.getLogger("chatty").warning("again")
    logging.getLogger("other").warning("once")
    written = capfdbinary.readouterr().err.splitlines()
    assert len(written) == PER_EVENT.lines + 1
    assert b"once" in written[-1]


def test_tracebacks_count_with_all_their_bytes(lines, capfdbinary):
    for _ in range(500):
        get_logger().error("record_not_checked", exc_info=ValueError("x" * 10_000))
    assert len(capfdbinary.readouterr().err) < PER_EVENT.bytes + 50_000


def test_the_allowances_that_are_kept_are_bounded(monkeypatch, clock):
    monkeypatch.setattr("noonmark.telemetry.log_bounds._MOST_KEYS", 100)
    for number in range(1_000):
        assert logs._bounds.admit({"event": f"named_{number}"})
        assert logs._bounds.admit({"event": "x", "run_id": number, "fence": 1})
    assert (len(logs._bounds._events), len(logs._bounds._attempts)) == (100, 100)
