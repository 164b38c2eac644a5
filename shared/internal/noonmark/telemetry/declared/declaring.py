"""Declares metrics: on the registry, and in the table from which docs/metrics.md is generated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    ProcessCollector,
    disable_created_metrics,
)

from noonmark.telemetry.declared.instruments import BatchHistogram, Declared, SnapshotGauge

PREFIX: Final = "noonmark_"

REGISTRY: Final = CollectorRegistry()
"""The registry of `/metrics`: the declared metrics, and the process's CPU, memory and files."""

TABLE: Final[list[Declared]] = []
"""All metrics; the page sorts them by the service that exports them."""

# `_created` series double the output, and only show what a restart shows, too.
disable_created_metrics()  # type: ignore[no-untyped-call]
ProcessCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)


class Part:
    """Declares the metrics of one part of the system."""

    def __init__(self, shown_by: str) -> None:
        """Take the service that exports the metrics; `every` if several do."""
        self._shown_by = shown_by

    def counter(self, name: str, labels: Sequence[str], meaning: str, action: str) -> Counter:
        """Declare a counter."""
        full_name = self._row(name, "counter", labels, meaning, action)
        return Counter(full_name, meaning, labels, registry=REGISTRY)

    def gauge(self, name: str, labels: Sequence[str], meaning: str, action: str) -> SnapshotGauge:
        """Declare a gauge whose series can disappear."""
        full_name = self._row(name, "gauge", labels, meaning, action)
        return SnapshotGauge(full_name, meaning, labels, registry=REGISTRY)

    def histogram(
        self, name: str, labels: Sequence[str], buckets: Sequence[float], meaning: str, action: str
    ) -> BatchHistogram:
        """Declare a histogram; `buckets` are upper bounds in the unit of the metric."""
        full_name = self._row(name, "histogram", labels, meaning, action)
        return BatchHistogram(full_name, meaning, labels, registry=REGISTRY, buckets=buckets)

    def _row(self, name: str, kind: str, labels: Sequence[str], meaning: str, action: str) -> str:
        TABLE.append(Declared(PREFIX + name, kind, tuple(labels), meaning, action, self._shown_by))
        return PREFIX + name
