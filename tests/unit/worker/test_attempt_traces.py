"""What an attempt that is traced tells its target, and what one that is not tells it."""

from uuid import UUID

import pytest
from tests.unit.worker.hands import hand

from noonmark.attempts.context import context_of
from noonmark.attempts.running_attempt import AttemptTrace
from noonmark.core.monitoring.trace_context import TraceContext
from noonmark.core.states import Lane
from noonmark.kafka.messages import QueuedRun, Signer, encode_run
from noonmark.worker.http.signing import trace_headers
from noonmark.worker.kinds.script import _about

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RUN = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


def message(traceparent):
    run = hand().run
    queued = QueuedRun(RUN, run.job_id, "n", run.scheduled_for, 2, 1)
    return encode_run(Signer({"k": b"x" * 32}, "k"), queued, pool="p", lane=Lane.LOW, traceparent=traceparent)


@pytest.fixture
def traced():
    made = hand()
    made.trace = AttemptTrace(TraceContext(TRACE, SPAN), "1" * 16)
    return made


def test_an_attempt_stands_below_the_message_that_it_came_by():
    trace = AttemptTrace.of(message(f"00-{TRACE}-{SPAN}-01"), RUN, 2)
    assert trace is not None
    assert (trace.context.trace_id, trace.parent) == (TRACE, SPAN)
    # blake2b of the run's bytes and " execute 2".
    assert trace.context.span_id == "8a4f3182670cec58"


@pytest.mark.parametrize("given", [None, f"00-{TRACE}-{SPAN}-00"])
def test_an_attempt_without_a_trace_that_is_kept_has_none(given):
    assert AttemptTrace.of(message(given), RUN, 2) is None


def test_a_script_and_a_handler_are_told_of_the_trace(traced):
    told = f"00-{TRACE}-{SPAN}-01"
    assert context_of(traced).traceparent == told
    assert context_of(traced).facts()["traceparent"] == told
    assert _about(traced)["TRACEPARENT"] == told
    assert "TRACEPARENT" not in _about(hand())
    assert context_of(hand()).traceparent is None


@pytest.mark.parametrize(
    ("given", "told"),
    [(None, True), ({}, True), ({"X": "1"}, True), ({"TraceParent": "its own"}, False), ("nonsense", True)],
)
def test_a_target_is_told_unless_the_job_tells_it_itself(traced, given, told):
    assert bool(trace_headers(traced, given)) is told
    assert trace_headers(hand(), given) == {}
