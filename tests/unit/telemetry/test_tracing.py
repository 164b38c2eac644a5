"""The tracer: off by default, plain to whoever lacks its packages, and dropping what nobody takes."""

import ast
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from noonmark.core.monitoring.trace_context import Hop, SpanKind, TraceContext
from noonmark.telemetry.span_attributes import ERROR_TYPE, of_message, of_request
from noonmark.telemetry.tracing import TracingError, open_tracer

ROOT = Path(__file__).parents[3]
CONTEXT = TraceContext("1" * 32, "2" * 16)


def test_without_an_endpoint_there_is_no_tracer():
    assert open_tracer("worker", "") is None


def test_one_module_knows_opentelemetry_and_imports_it_only_where_traces_are_on():
    files = [path for folder in ("shared", "services", "schemas") for path in (ROOT / folder).rglob("*.py")]
    users = [path for path in files if "from opentelemetry" in path.read_text(encoding="utf-8")]
    assert [path.name for path in users] == ["tracing.py"]

    loaded = ast.parse(users[0].read_text(encoding="utf-8")).body
    modules = {node.module for node in loaded if isinstance(node, ast.ImportFrom)}
    assert not [name for name in modules if name and name.startswith("opentelemetry")]


def test_whoever_lacks_the_packages_is_told_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(TracingError, match=r'NOONMARK_OTLP_ENDPOINT is set.*install "noonmark\[tracing\]"'):
        open_tracer("worker", "http://127.0.0.1:9")


def test_attributes_have_the_current_names_of_the_semantic_conventions():
    used = {
        *of_message("process", "topic", partition=0, offset=0, group="group"),
        *of_request(method="GET", route="/", path="/", scheme="http", status=200),
        ERROR_TYPE,
    }
    known = {}
    for module in (
        # The conventions for messaging are not stable yet.
        import_module("opentelemetry.semconv._incubating.attributes.messaging_attributes"),
        *(
            import_module(f"opentelemetry.semconv.attributes.{name}_attributes")
            for name in ("http", "url", "error")
        ),
    ):
        # The note on each name is the string after it.
        body = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8")).body
        for node, note in pairwise(body):
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
                known[node.value.value] = ast.unparse(note)
    assert used <= set(known)
    assert not [name for name in used if "Deprecated" in known[name]]
    assert (
        of_message("send", "t").keys() < of_message("process", "t", partition=0, offset=0, group="g").keys()
    )


def test_a_collector_that_is_away_holds_nobody_up():
    tracer = open_tracer("worker", "http://127.0.0.1:9")
    assert tracer is not None
    for _ in range(5000):
        tracer.record(
            *(Hop.EXECUTE, CONTEXT),
            kind=SpanKind.CONSUMER,
            parent=None,
            began=1.0,
            ended=0.5,
            attributes={"a": 1},
            error="x",
        )
    tracer.close(0.05)
