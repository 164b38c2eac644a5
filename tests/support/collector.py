"""An OpenTelemetry collector and an HTTP target in one: it keeps the spans that it is sent, and headers."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan


class Span(NamedTuple):
    """A span as it arrived; ids in hexadecimal, `parent` empty for the first of a trace."""

    name: str
    service: str
    instance: str
    trace_id: str
    span_id: str
    parent: str
    seconds: float
    began: int
    attributes: dict[str, object]
    failed: bool
    kind: str


class Collector(ThreadingHTTPServer):
    """Listens on loopback until it is closed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.spans: list[Span] = []
        self.calls: list[dict[str, str]] = []
        """Headers of calls of anything but the collector's path, by lower-case name."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def of(self, trace_id: str) -> dict[str, Span]:
        """Spans of a trace, by their name."""
        return {span.name: span for span in list(self.spans) if span.trace_id == trace_id}


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector on a thread of its own."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Requests(BaseHTTPRequestHandler):
    server: Collector
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/v1/traces":
            self.server.calls.append({name.lower(): value for name, value in self.headers.items()})
            self._answer(b"")
            return
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            about = {item.key: item.value.string_value for item in group.resource.attributes}
            for scope in group.scope_spans:
                self.server.spans += [_read(span, about) for span in scope.spans]
        self._answer(ExportTraceServiceResponse().SerializeToString())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_parts: object) -> None:
        """Keep quiet."""


def _read(span: Any, about: dict[str, str]) -> Span:
    return Span(
        span.name,
        about["service.name"],
        about["service.instance.id"],
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        span.start_time_unix_nano,
        {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes},
        span.status.code == 2,
        OtlpSpan.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
    )
