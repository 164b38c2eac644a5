"""A job that is posted with a `traceparent` is part of that trace, where traces are on."""

from collections.abc import Iterator

import pytest
from tests.integration.api.test_jobs_create import NIGHTLY, ONCE
from tests.support.collector import Collector, collector

from noonmark.api.main import make_parts, read_cursor_key
from noonmark.service.run_traces import RunTraces
from noonmark.telemetry.span_attributes import of_request
from noonmark.telemetry.tracing import open_tracer

pytestmark = pytest.mark.postgres

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SENT = {"traceparent": f"00-{TRACE}-{SPAN}-01"}


@pytest.fixture
def spans() -> Iterator[Collector]:
    with collector() as server:
        yield server


@pytest.fixture
def traces(spans: Collector) -> RunTraces:
    tracer = open_tracer("api", spans.url)
    assert tracer is not None
    return RunTraces(tracer, 0.0)


@pytest.fixture
def parts(settings, database, traces):
    shards = database.execute("select shards from install").fetchone()[0]
    made = make_parts(settings, shards=shards, cursor_key=read_cursor_key(database), traces=traces)
    yield made
    made.close()


def kept(database):
    return dict(database.execute("select id::text, traceparent from jobs").fetchall())


def test_the_run_of_a_one_time_job_will_belong_to_the_trace_of_its_submission(api, database, spans, traces):
    job_id = api("POST", "/v1/jobs", 202, json=ONCE, headers=SENT).json()["id"]
    traces.tracer.close()

    (span,) = spans.spans
    assert (span.name, span.service, span.trace_id, span.parent) == ("submit", "noonmark-api", TRACE, SPAN)
    assert span.kind == "SERVER"
    assert span.attributes.pop("url.scheme") in {"http", "https"}
    request = of_request(method="POST", route="/v1/jobs", path="/v1/jobs", scheme="", status=202)
    del request["url.scheme"]
    assert span.attributes == {"noonmark.job_id": job_id, **request}
    assert kept(database) == {job_id: f"00-{TRACE}-{span.span_id}-01"}


def test_a_run_that_begins_at_once_is_told_of_with_its_submission(api, database, spans, traces):
    due = {name: value for name, value in ONCE.items() if name != "run_at"}
    job_id = api("POST", "/v1/jobs", 202, json=due, headers=SENT).json()["id"]
    traces.tracer.close()

    found = spans.of(TRACE)
    assert found.keys() == {"submit", "claim"}
    assert found["claim"].parent == found["submit"].span_id
    (run,) = database.execute("select id::text from runs").fetchone()
    assert found["claim"].attributes == {"noonmark.run_id": run, "noonmark.job_id": job_id}


def test_a_recurring_job_is_not_kept_in_the_trace_of_its_submission(api, database, spans, traces):
    job_id = api("POST", "/v1/jobs", 202, json=NIGHTLY, headers=SENT).json()["id"]
    traces.tracer.close()

    assert [span.name for span in spans.spans] == ["submit"]
    assert kept(database) == {job_id: None}


@pytest.mark.parametrize(
    "headers", [{}, {"traceparent": "nonsense"}, {"traceparent": f"00-{TRACE}-{SPAN}-00"}]
)
def test_without_a_trace_that_is_kept_nothing_is_told(api, database, spans, traces, headers):
    job_id = api("POST", "/v1/jobs", 202, json=ONCE, headers=headers).json()["id"]
    traces.tracer.close()

    assert spans.spans == []
    assert kept(database) == {job_id: None}


def test_what_is_refused_or_was_there_is_not_told(api, spans, traces):
    api("POST", "/v1/jobs", 422, json={**ONCE, "type": "nothing"}, headers=SENT)
    key = {"Idempotency-Key": "once"}
    api("POST", "/v1/jobs", 202, json=ONCE, headers=SENT | key)
    api("POST", "/v1/jobs", 202, json=ONCE, headers=SENT | key)
    traces.tracer.close()

    assert [span.name for span in spans.spans] == ["submit"]
