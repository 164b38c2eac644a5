"""One trace from a client's span to the outcome of its run, over the real services."""

import json
import re
import secrets

import httpx
import pytest
from tests.acceptance.test_kinds import everything
from tests.support.cluster import Cluster
from tests.support.collector import Collector, Span, collector
from tests.support.publish import Load, soon

from noonmark.core.states import Lane
from noonmark.telemetry.span_attributes import of_message

CLIENT_SPAN = "00f067aa0ba902b7"
CHAIN = ("submit", "claim", "relay", "execute", "outcome")


def traced(load: Load, event: int) -> str:
    """Let an event of a load belong to a new trace; return that."""
    trace_id = secrets.token_hex(16)
    load.events[event]["traceparent"] = f"00-{trace_id}-{CLIENT_SPAN}-01"
    return trace_id


def whole(noonmark: Cluster, spans: Collector, trace_id: str, hops: tuple[str, ...] = CHAIN) -> list[Span]:
    """The spans of a trace in the order of the hops, once all have come."""
    noonmark.wait(lambda: spans.of(trace_id).keys() >= set(hops), f"the spans of {trace_id}", 30)
    found = spans.of(trace_id)
    assert len([span for span in spans.spans if span.trace_id == trace_id]) == len(hops)
    return [found[hop] for hop in hops]


def parents(spans: list[Span]) -> list[str]:
    return [span.parent for span in spans]


def exemplars_name_traces_where_openmetrics_is_asked_for(noonmark: Cluster, *traces: str) -> None:
    openmetrics = "application/openmetrics-text; version=1.0.0"
    for service, name in (
        ("trigger", "noonmark_claim_seconds"),
        ("dispatcher", "noonmark_relay_seconds"),
        ("worker", "noonmark_start_delay_seconds"),
        ("worker", "noonmark_attempt_duration_seconds"),
    ):
        node = noonmark.node(service)
        shown = node._get("/metrics", accept=openmetrics)[1]
        found = re.findall(rf'^{name}_bucket.* # {{trace_id="(\w+)"}}', shown, re.MULTILINE)
        assert found, name
        assert set(found) <= set(traces)
        assert "trace_id" not in node._get("/metrics")[1]


@pytest.mark.slow
def test_a_trace_goes_from_the_client_through_four_services_to_the_target(noonmark: Cluster) -> None:
    load = Load()
    with collector() as spans:
        noonmark.settings |= {"NOONMARK_OTLP_ENDPOINT": spans.url, "NOONMARK_TRACE_SHARE": "0"}
        noonmark.start("intake", "trigger", "dispatcher", "worker")
        call = {"type": "http", "payload": {"url": f"{spans.url}/target", "method": "POST"}}
        load.once(1, soon(3), handler=None, **call)  # type: ignore[arg-type]
        load.now(1, None, **call)  # type: ignore[arg-type]
        load.now(1, None, **call)  # type: ignore[arg-type]
        later, at_once = traced(load, 0), traced(load, 1)
        noonmark.publish(load)
        noonmark.settle(load)

        chain = whole(noonmark, spans, later)
        assert parents(chain) == [CLIENT_SPAN, *(span.span_id for span in chain[:-1])]
        services = ["intake", "trigger", "dispatcher", "worker", "worker"]
        assert [span.service for span in chain] == [f"noonmark-{service}" for service in services]
        assert len({span.instance for span in chain}) == 4
        assert not [span for span in chain if span.failed or span.seconds < 0]
        assert [span.kind for span in chain] == [
            *("CONSUMER", "INTERNAL", "PRODUCER", "CONSUMER", "INTERNAL")
        ]
        submit, _, relay, execute, _ = (span.attributes for span in chain)
        topics = noonmark.topics
        assert submit.items() >= of_message("process", topics.submissions, group=topics.group_intake).items()
        lane = Lane.HIGH
        assert relay.items() >= of_message("send", topics.runs("default", lane)).items()
        received = of_message(
            "process", topics.runs("default", lane), group=topics.group_worker("default", lane)
        )
        assert execute.items() >= received.items()
        for attributes in (submit, execute):
            assert attributes["messaging.destination.partition.id"] in {"0", "1"}
            assert int(str(attributes["messaging.kafka.offset"])) >= 0

        exemplars_name_traces_where_openmetrics_is_asked_for(noonmark, later, at_once)
        (run,) = {span.attributes["noonmark.run_id"] for span in chain[1:]}
        assert noonmark.rows("select id::text from runs where id::text = %s", run)

        # Due on arrival: intake wrote the run itself, in the transaction that took the job in.
        short = whole(noonmark, spans, at_once)
        assert parents(short) == [CLIENT_SPAN, *(span.span_id for span in short[:-1])]
        assert short[1].service == "noonmark-intake"

        told = {call["traceparent"] for call in spans.calls if "traceparent" in call}
        executed = {f"00-{c[3].trace_id}-{c[3].span_id}-01" for c in (chain, short)}
        assert told == executed
        assert len(spans.calls) == 3

    events = [json.loads(message.value()) for message in everything(noonmark, noonmark.topics.lifecycle)]
    outcomes = [outcome for event in events for outcome in event["data"]["outcomes"]]
    assert {outcome["traceparent"] for outcome in outcomes if "traceparent" in outcome} == executed
    assert len(outcomes) == 3
    assert {span.trace_id for span in spans.spans} == {later, at_once}


@pytest.mark.slow
def test_requests_of_the_api_have_exemplars_only_where_tracing_is_on(noonmark: Cluster) -> None:
    trace_id = secrets.token_hex(16)
    sampled, other = f"00-{trace_id}-{CLIENT_SPAN}-01", f"00-{secrets.token_hex(16)}-{CLIENT_SPAN}-00"
    openmetrics = "application/openmetrics-text; version=1.0.0"
    with collector() as spans:
        (traced,) = noonmark.start("api", api_port="0", otlp_endpoint=spans.url)
        (plain,) = noonmark.start("api", api_port="0")
        for node in (traced, plain):
            for given in (sampled, other):
                headers = {"traceparent": given}
                assert httpx.get(f"{node.api_url}/v1/jobs", headers=headers).status_code == 401
        name = "noonmark_api_request_seconds_bucket"
        noonmark.wait(lambda: traced.metric(f"{name}", le="+Inf") == 2, "both requests to be counted")
        shown = traced._get("/metrics", accept=openmetrics)[1]
        assert set(re.findall(rf'^{name}.* # {{trace_id="(\w+)"}}', shown, re.MULTILINE)) == {trace_id}
        assert "trace_id" not in traced._get("/metrics")[1]
        assert "trace_id" not in plain._get("/metrics", accept=openmetrics)[1]


@pytest.mark.slow
def test_of_runs_that_nobody_asked_to_be_traced_a_share_is_each_attempt_of_them(noonmark: Cluster) -> None:
    load = Load()
    with collector() as spans:
        noonmark.settings |= {"NOONMARK_OTLP_ENDPOINT": spans.url, "NOONMARK_TRACE_SHARE": "1"}
        noonmark.start("intake", "trigger", "dispatcher", "worker")
        load.interval(1, soon(2), 1)
        load.now(1, "chaos.flaky", payload={"fails": 1}, retry_delay_seconds=0.1)
        noonmark.publish(load)
        noonmark.settle(load)
        planned, flaky = (
            noonmark.value("select id from runs where attempt = %s", attempt).hex for attempt in (1, 2)
        )

        chain = whole(noonmark, spans, planned, CHAIN[1:])
        assert parents(chain) == ["", *(span.span_id for span in chain[:-1])]
        assert chain[0].service == "noonmark-trigger"

        noonmark.wait(lambda: len([s for s in spans.spans if s.trace_id == flaky]) == 7, "both attempts")
        of_flaky = [span for span in spans.spans if span.trace_id == flaky]
        by_fence = {(span.name, span.attributes.get("noonmark.fence")): span for span in of_flaky}
        claim = by_fence["claim", None]
        for fence in (1, 2):
            relay, execute = by_fence["relay", fence], by_fence["execute", fence]
            assert (relay.parent, execute.parent) == (claim.span_id, relay.span_id)
            assert execute.failed == (fence == 1)
            assert execute.attributes.get("error.type") == ("failed" if fence == 1 else None)
