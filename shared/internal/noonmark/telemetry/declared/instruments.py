"""Prometheus instruments that take a whole batch at once, and the record of what is declared."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Gauge, Histogram
from prometheus_client.samples import Sample

_FEW = 8
"""Up to this many values one search each is cheaper than sorting them and walking all buckets."""


class BatchHistogram(Histogram):
    """A histogram that also takes many values for the price of a few."""

    def observe_many(self, values: Iterable[float]) -> None:
        """Add the values of one batch, as if each had been observed.

        Values below zero (a clock that was set back) count as zero, so that the sum only rises.

        Args:
            values: in the unit of the metric; not changed.
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


class SnapshotGauge(Gauge):
    """A gauge whose series come and go: partitions, slices, lanes of a pool.

    One without labels has its only series from the first `set` on until it is forgotten: a process that does
    not measure shows no 0.
    """

    _shown = False

    def set(self, value: float) -> None:
        """Show this value."""
        super().set(value)
        self._shown = True

    def _child_samples(self) -> Iterable[Sample]:
        return super()._child_samples() if self._shown else ()

    def replace(self, values: Mapping[tuple[str | int, ...], float]) -> None:
        """Show exactly these series; those of an earlier snapshot that are missing here disappear.

        Args:
            values: value by label values, in the order of the declared labels.
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
        """Show this series no more, until it is set again."""
        if not self._labelnames:
            self._shown = False
            return
        if labels in self._metrics:
            self.remove(*labels)


def show_nothing(gauges: Iterable[SnapshotGauge]) -> None:
    """Remove every series of these gauges: nobody here measures them any more."""
    for gauge in gauges:
        gauge.replace({})


@dataclass(frozen=True, slots=True)
class Declared:
    """One row of docs/metrics.md.

    Attributes:
        name: as it is exposed, prefix included.
        kind: counter, gauge or histogram.
        labels: label names in order.
        meaning: what is measured, unit included.
        action: what an operator does when it looks wrong.
        shown_by: the service that shows it; `every` where several may.
    """

    name: str
    kind: str
    labels: Sequence[str]
    meaning: str
    action: str
    shown_by: str
