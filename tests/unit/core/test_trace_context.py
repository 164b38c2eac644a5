"""W3C Trace Context read and written, and the ids of a run's spans."""

from uuid import UUID

import pytest

from noonmark.core.ids import uuid7_batch
from noonmark.core.monitoring.trace_context import (
    Hop,
    SpanKind,
    SubmitTrace,
    TraceContext,
    is_chosen,
    parse_traceparent,
    root_span_id,
    span_id_of,
    trace_id_of,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
RUN = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


@pytest.mark.parametrize(
    ("flags", "sampled"),
    [("00", False), ("01", True), ("02", False), ("03", True), ("ff", True), ("fe", False)],
)
def test_the_last_bit_of_the_flags_says_whether_a_trace_is_kept(flags, sampled):
    assert parse_traceparent(f"00-{TRACE}-{SPAN}-{flags}") == TraceContext(TRACE, SPAN, sampled)


def test_what_is_written_is_version_00():
    assert TraceContext(TRACE, SPAN).traceparent == f"00-{TRACE}-{SPAN}-01"
    assert TraceContext(TRACE, SPAN, sampled=False).traceparent == f"00-{TRACE}-{SPAN}-00"


@pytest.mark.parametrize("more", ["", "-", "-what-the-future-will-be", "-\n"])
def test_of_a_version_to_come_the_known_part_is_read(more):
    assert parse_traceparent(f"cc-{TRACE}-{SPAN}-01{more}") == TraceContext(TRACE, SPAN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01-",
        f"00-{TRACE}-{SPAN}-01 ",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"ff-{TRACE}-{SPAN}-01",
        f"0-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN.upper()}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}0-{SPAN}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"00_{TRACE}_{SPAN}_01",
        f"cc-{TRACE}-{SPAN}-01.more",
        f"cc-{TRACE}-{SPAN}-01-{'x' * 600}",
        "\u0660" * 55,
    ],
)
def test_what_is_no_traceparent_is_ignored(text):
    assert parse_traceparent(text) is None


def test_ids_are_made_of_run_hop_and_fence_alone():
    # blake2b of the run's bytes, a space, the hop, a space and the fence: eight bytes of it.
    assert span_id_of(RUN, Hop.RELAY, 2) == "51991953f174aa96"
    assert root_span_id(RUN) == span_id_of(RUN, Hop.CLAIM, 1)
    assert trace_id_of(RUN) == "01890a5dac96774bbcceb302099a8057"
    ids = {span_id_of(RUN, hop, fence) for hop in Hop for fence in range(1, 50)}
    assert len(ids) == len(Hop) * 49


def test_a_share_of_runs_is_chosen_and_a_larger_share_holds_it():
    runs = uuid7_batch(4000)
    few = {run for run in runs if is_chosen(run, 0.1)}
    assert 250 < len(few) < 600
    assert few <= {run for run in runs if is_chosen(run, 0.2)}
    assert not any(is_chosen(run, 0.0) for run in runs)
    assert all(is_chosen(run, 1.0) for run in runs)


def test_a_submission_begins_a_span_in_the_trace_of_its_client():
    trace = SubmitTrace.begin(f"00-{TRACE}-{SPAN}-01", 12.5, SpanKind.SERVER, {"a": 1})
    assert trace is not None
    assert (trace.context.trace_id, *trace[1:]) == (TRACE, SPAN, 12.5, "SERVER", {"a": 1})
    assert trace.context.span_id != SPAN
    assert parse_traceparent(trace.context.traceparent) == trace.context


@pytest.mark.parametrize("given", [None, "", "nonsense", f"00-{TRACE}-{SPAN}-00"])
def test_a_client_that_keeps_no_trace_begins_none(given):
    assert SubmitTrace.begin(given, 0.0, SpanKind.SERVER, {}) is None
