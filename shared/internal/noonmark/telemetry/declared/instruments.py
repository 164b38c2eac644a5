"""Prometheus instruments that accept a whole batch at once, and the rows of docs/metrics.md."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.samples import Exemplar, Sample

_TRACE_ID = "trace_id"
"""Label of exemplars, as Grafana and OpenTelemetry name it."""

_FEW = 8
"""Up to this number of values, one search for each is cheaper than walking all buckets."""


class BatchHistogram(Histogram):
    """A histogram that also accepts many values in one cheap call."""

    def observe_many(self, values: Iterable[float], traced: Iterable[tuple[float, str]] = ()) -> None:
        """Add the values of one batch, as if each had been observed.

        Values below zero (a clock that was set back) count as zero, so that the sum only rises.

        Args:
            values: the values in the unit of the metric; they are not changed.
            traced: those of them that belong to a trace, and its id. They become exemplars of their buckets.
        """
        batch = sorted(values)
        if not batch:
            return
        if batch[0] < 0:
            batch = [max(value, 0.0) for value in batch]
        self._raise_if_not_observable()  # type: ignore[no-untyped-call]
        bounds, buckets = self._upper_bounds, self._buckets
        if len(batch) <= _FEW:
            for value in batch:
                buckets[bisect_left(bounds, value)].inc(1)
        else:
            below = 0
            largest = batch[-1]
            for bound, bucket in zip(bounds, buckets, strict=True):
                upto = bisect_right(batch, bound, below)
                if upto > below:
                    bucket.inc(upto - below)
                    below = upto
                if bound >= largest:
                    break
        self._sum.inc(sum(batch))
        for value, trace_id in traced:
            buckets[bisect_left(bounds, max(value, 0.0))].set_exemplar(
                Exemplar({_TRACE_ID: trace_id}, max(value, 0.0), time.time())
            )


def exemplar_of(trace_id: str | None) -> dict[str, str] | None:
    """Return the exemplar of a single value of this trace; None without a trace."""
    return None if trace_id is None else {_TRACE_ID: trace_id}


class SnapshotGauge(Gauge):
    """A gauge whose series can disappear: partitions, slices, lanes of a pool.

    A gauge without labels has no series before the first `set` and after `forget`, so that a process that
    does not measure exports no 0.
    """

    _shown = False

    def set(self, value: float) -> None:
        """Set the value and export it."""
        super().set(value)
        self._shown = True

    def _child_samples(self) -> Iterable[Sample]:
        return super()._child_samples() if self._shown else ()

    def replace(self, values: Mapping[tuple[str | int, ...], float]) -> None:
        """Export exactly these series; other series of an earlier snapshot disappear.

        Args:
            values: the value of each series, by label values in the order of the declared labels.
        """
        shown = {tuple(map(str, labels)): value for labels, value in values.items()}
        if not self._labelnames:
            self._shown = () in shown
            if self._shown:
                self.set(shown[()])
            return
        for labels in set(self._metrics) - set(shown):
            self.remove(*labels)
        for labels, value in shown.items():
            self.labels(*labels).set(value)

    def forget(self, *labels: str) -> None:
        """Stop exporting this series until it is set again."""
        if not self._labelnames:
            self._shown = False
            return
        if labels in self._metrics:
            self.remove(*labels)


def show_nothing(gauges: Iterable[SnapshotGauge]) -> None:
    """Remove every series of these gauges, because this process no longer measures them."""
    for gauge in gauges:
        gauge.replace({})


@dataclass(frozen=True, slots=True)
class Declared:
    """One row of docs/metrics.md.

    Attributes:
        name: the exported name, with prefix.
        kind: counter, gauge or histogram.
        labels: label names in order.
        meaning: what is measured, with the unit.
        action: what an operator does when the value is wrong.
        shown_by: the services that export it; `every` if all do.
        instrument: what the services count with.
        known: label values of the series that exist from the start of a service.
        width: series for each combination of label values; more than 1 for histograms.
    """

    name: str
    kind: str
    labels: Sequence[str]
    meaning: str
    action: str
    shown_by: Sequence[str]
    instrument: MetricWrapperBase
    known: Sequence[tuple[str, ...]]
    width: int = 1

    @property
    def series(self) -> int:
        """The number of series that exist from the start of a service."""
        return len(self.known) * self.width
