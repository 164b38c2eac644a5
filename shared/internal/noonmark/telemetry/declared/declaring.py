"""Declares metrics: on the registry, and in the table from which docs/metrics.md is generated.

A counter or histogram has a series at 0 for each known combination of its label values when its service
starts: `rate` and `increase` ignore the first value of a series that appears later, and so the first event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
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

REGISTRY: Final = CollectorRegistry(auto_describe=True)
"""All declared metrics, and the process's CPU, memory and files. `/metrics` has those of its service."""

TABLE: Final[list[Declared]] = []
"""All metrics; the page sorts them by the service that exports them."""

# `_created` series double the output, and only show what a restart shows, too.
disable_created_metrics()  # type: ignore[no-untyped-call]
_PROCESS: Final = (ProcessCollector(registry=REGISTRY), GCCollector(registry=REGISTRY))

Known = Mapping[str, Sequence[str]]
"""Each label of a counter or histogram, in order, and the values that every process can count.

No value: the service adds the series when it has read its configuration, or it cannot know the values.
"""


class Part:
    """Declares the metrics of one part of the system."""

    def __init__(self, *shown_by: str) -> None:
        """Take the services that export the metrics; `every` if all do."""
        self._shown_by = shown_by

    def counter(self, name: str, labels: Known, meaning: str, action: str) -> Counter:
        """Declare a counter."""
        counter = Counter(PREFIX + name, meaning, tuple(labels), registry=REGISTRY)
        about = (PREFIX + name, "counter", tuple(labels), meaning, action)
        TABLE.append(Declared(*about, self._shown_by, counter, _known(labels)))
        return counter

    def gauge(self, name: str, labels: Sequence[str], meaning: str, action: str) -> SnapshotGauge:
        """Declare a gauge whose series can disappear."""
        gauge = SnapshotGauge(PREFIX + name, meaning, labels, registry=REGISTRY)
        about = (PREFIX + name, "gauge", tuple(labels), meaning, action)
        # A gauge has no series before it is measured.
        TABLE.append(Declared(*about, self._shown_by, gauge, ()))
        return gauge

    def histogram(
        self, name: str, labels: Known, buckets: Sequence[float], meaning: str, action: str
    ) -> BatchHistogram:
        """Declare a histogram; `buckets` are upper bounds in the unit of the metric."""
        histogram = BatchHistogram(PREFIX + name, meaning, tuple(labels), registry=REGISTRY, buckets=buckets)
        about = (PREFIX + name, "histogram", tuple(labels), meaning, action)
        # Each bucket, that without a bound, the count and the sum.
        width = len(buckets) + 3
        TABLE.append(Declared(*about, self._shown_by, histogram, _known(labels), width))
        return histogram


def _known(labels: Known) -> Sequence[tuple[str, ...]]:
    return tuple(product(*labels.values()))


def rows_of(service: str) -> list[Declared]:
    """Return the declarations of the metrics that a service exports."""
    return [row for row in TABLE if {"every", service} & set(row.shown_by)]


def metrics_of(service: str) -> CollectorRegistry:
    """Return the metrics of a service, with a series at 0 for everything that it can count.

    Args:
        service: name of the service. A name that no metric is declared for has the metrics of every service.
    """
    registry = CollectorRegistry(auto_describe=True)
    for collector in _PROCESS:
        registry.register(collector)
    for row in rows_of(service):
        registry.register(row.instrument)
        for values in row.known:
            if values:
                row.instrument.labels(*values)
    return registry
