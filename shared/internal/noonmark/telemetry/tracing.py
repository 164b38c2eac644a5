"""Sends spans to an OpenTelemetry collector. Tracing is off by default; then OpenTelemetry is not imported.

A span is finished before it is recorded, and its ids are derived from its run (`core.trace_context`). It
uses no current span, no propagation through threads and no instrumentation of libraries.
"""

from __future__ import annotations

import socket
import threading
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from noonmark.core.monitoring.trace_context import Hop, SpanKind, TraceContext
from noonmark.telemetry.span_attributes import SCHEMA_URL, Attributes

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

_PATH: Final = "/v1/traces"
_EXPORT_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 3.0


class TracingError(RuntimeError):
    """Tracing is configured but not possible; the message says what to do."""


class Tracer:
    """Sends finished spans in the background. Thread-safe.

    Spans that the collector does not accept are dropped, so tracing never delays work.
    """

    def __init__(self, exporter: OTLPSpanExporter, resource: Resource, scope: InstrumentationScope) -> None:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - only if tracing is on

        self._exporter = exporter
        self._processor = BatchSpanProcessor(exporter)
        self._resource = resource
        self._scope = scope

    def record(
        self,
        hop: Hop,
        context: TraceContext,
        *,
        kind: SpanKind,
        parent: str | None,
        began: float,
        ended: float,
        attributes: Attributes,
        error: str | None = None,
    ) -> None:
        """Record a finished span.

        Args:
            hop: the step that it describes.
            context: its trace id and span id.
            kind: its role between processes.
            parent: id of its parent span in the same trace; None for the root span.
            began: its start, in seconds since 1970.
            ended: its end, in seconds since 1970.
            attributes: its attributes.
            error: why it failed, if it did.
        """
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 - only if tracing is on
        from opentelemetry.trace import SpanContext, TraceFlags  # noqa: PLC0415
        from opentelemetry.trace import SpanKind as Kinds  # noqa: PLC0415
        from opentelemetry.trace.status import Status, StatusCode  # noqa: PLC0415

        def ids(span_id: str, *, remote: bool) -> SpanContext:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(int(context.trace_id, 16), int(span_id, 16), remote, flags)

        self._processor.on_end(
            ReadableSpan(
                hop.value,
                context=ids(context.span_id, remote=False),
                parent=None if parent is None else ids(parent, remote=True),
                resource=self._resource,
                attributes=attributes,
                kind=Kinds[kind.value],
                status=Status(StatusCode.UNSET) if error is None else Status(StatusCode.ERROR, error),
                start_time=int(began * 1e9),
                end_time=int(max(began, ended) * 1e9),
                instrumentation_scope=self._scope,
            )
        )

    def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Send the remaining spans for at most `seconds`, and drop the rest."""
        ending = threading.Thread(target=self._processor.shutdown, name="tracing-close", daemon=True)
        ending.start()
        ending.join(seconds)
        # Stops an exporter that waits for its next retry.
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def open_tracer(service: str, endpoint: str) -> Tracer | None:
    """Create the tracer of a process; return None if tracing is off.

    Args:
        service: name of the service, without `noonmark`.
        endpoint: URL of a collector that accepts OTLP over HTTP; empty if tracing is off.

    Raises:
        TracingError: the packages are not installed.
    """
    if not endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415
    except ImportError as error:
        raise TracingError(
            f"NOONMARK_OTLP_ENDPOINT is set, but {error.name or 'OpenTelemetry'} is not installed: install"
            ' "noonmark[tracing]", or unset the setting to run without tracing'
        ) from None
    url = endpoint.rstrip("/")
    exporter = OTLPSpanExporter(url if url.endswith(_PATH) else url + _PATH, timeout=_EXPORT_SECONDS)
    release = version("noonmark")
    resource = Resource.create(
        {
            "service.name": f"noonmark-{service}",
            "service.version": release,
            "service.instance.id": f"{socket.gethostname()}/{threading.get_native_id()}",
        }
    )
    scope = InstrumentationScope("noonmark", release, SCHEMA_URL)
    return Tracer(exporter, resource, scope)


def wall_clock(monotonic: float) -> float:
    """Convert a value of `time.monotonic` to seconds since 1970."""
    return time.time() - (time.monotonic() - monotonic)
