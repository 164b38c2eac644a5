"""Spans for an OpenTelemetry collector. Off by default: then nothing of OpenTelemetry is imported.

Processes finish a span before it is sent, and its ids are made of its run (`core.trace_context`): there is no
current span, no propagation through threads and no instrumentation of libraries.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from noonmark.core.monitoring.trace_context import Hop, TraceContext

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

_PATH: Final = "/v1/traces"
_EXPORT_SECONDS: Final = 5.0
_CLOSE_SECONDS: Final = 3.0
_CONSUMERS: Final = frozenset({Hop.EXECUTE})
_PRODUCERS: Final = frozenset({Hop.RELAY})

Attributes = Mapping[str, str | int | float | bool]


class TracingError(RuntimeError):
    """Traces are asked for and cannot be made; the message says what to do."""


class Tracer:
    """Takes finished spans and sends them in the background. Safe to use from many threads.

    What the collector does not take is dropped: traces never hold up work.
    """

    def __init__(self, exporter: OTLPSpanExporter, resource: Resource, scope: InstrumentationScope) -> None:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - only where traces are on

        self._exporter = exporter
        self._processor = BatchSpanProcessor(exporter)
        self._resource = resource
        self._scope = scope

    def record(
        self,
        hop: Hop,
        context: TraceContext,
        *,
        parent: str | None,
        began: float,
        ended: float,
        attributes: Attributes,
        error: str | None = None,
    ) -> None:
        """Send a span.

        Args:
            hop: what it stands for.
            context: its own ids.
            parent: id of the span that it belongs to, in the same trace; None: it is the first.
            began: seconds since 1970.
            ended: likewise.
            attributes: what is known of it.
            error: why it failed, if it did.
        """
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 - only where traces are on
        from opentelemetry.trace import SpanContext, SpanKind, TraceFlags  # noqa: PLC0415
        from opentelemetry.trace.status import Status, StatusCode  # noqa: PLC0415

        def ids(span_id: str, *, remote: bool) -> SpanContext:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(int(context.trace_id, 16), int(span_id, 16), remote, flags)

        kind = SpanKind.INTERNAL
        if hop in _PRODUCERS:
            kind = SpanKind.PRODUCER
        elif hop in _CONSUMERS:
            kind = SpanKind.CONSUMER
        self._processor.on_end(
            ReadableSpan(
                hop.value,
                context=ids(context.span_id, remote=False),
                parent=None if parent is None else ids(parent, remote=True),
                resource=self._resource,
                attributes=attributes,
                kind=kind,
                status=Status(StatusCode.UNSET) if error is None else Status(StatusCode.ERROR, error),
                start_time=int(began * 1e9),
                end_time=int(max(began, ended) * 1e9),
                instrumentation_scope=self._scope,
            )
        )

    def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Send what is left, if the collector takes it within so many seconds; the rest is dropped."""
        ending = threading.Thread(target=self._processor.shutdown, name="tracing-close", daemon=True)
        ending.start()
        ending.join(seconds)
        # Ends an exporter that waits for its next try.
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def open_tracer(service: str, endpoint: str) -> Tracer | None:
    """Make the tracer of a process; None where traces are off.

    Args:
        service: its name, without `noonmark`.
        endpoint: URL of a collector that takes OTLP over HTTP; empty: none.

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
            f"NOONMARK_OTLP_ENDPOINT is set, and {error.name or 'OpenTelemetry'} is not installed: install"
            ' "noonmark[tracing]", or unset it to run without traces'
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
    scope = InstrumentationScope("noonmark", release)
    return Tracer(exporter, resource, scope)


def wall_clock(monotonic: float) -> float:
    """Return the seconds since 1970 of a moment of `time.monotonic`."""
    return time.time() - (time.monotonic() - monotonic)
