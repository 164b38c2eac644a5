"""The metrics module, its page, and the instruments that take batches."""

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from noonmark.telemetry import metrics
from noonmark.telemetry.declared.instruments import BatchHistogram, SnapshotGauge, show_nothing
from noonmark.telemetry.declared.labels import SERVICES

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
BOUNDS = (0.1, 1, 10)


def histogram(registry):
    return BatchHistogram("delay_seconds", "Delay.", ("lane",), registry=registry, buckets=BOUNDS)


def test_the_metrics_page_is_what_the_module_prints():
    assert PAGE.read_text() == metrics.page(), "run: python -m noonmark.telemetry.metrics > docs/metrics.md"


def test_every_metric_has_the_prefix_a_meaning_and_an_action():
    for row in metrics.TABLE:
        assert re.fullmatch(r"noonmark_[a-z_]+", row.name)
        assert row.meaning.endswith("."), row.name
        assert row.action.endswith("."), row.name


def test_counters_end_in_total_and_nothing_else_does():
    for row in metrics.TABLE:
        assert row.name.endswith("_total") == (row.kind == "counter"), row.name


def test_every_label_is_described_and_every_described_label_is_used():
    assert {label for row in metrics.TABLE for label in row.labels} == set(metrics.LABELS)


def test_no_label_names_a_job_or_a_run():
    assert not {"job", "job_id", "run", "run_id", "name", "handler", "url"} & set(metrics.LABELS)


def test_the_table_and_the_registry_hold_the_same_metrics():
    exposed = {family.name for family in metrics.REGISTRY.collect() if family.name.startswith("noonmark_")}
    assert exposed == {row.name.removesuffix("_total") for row in metrics.TABLE}


@pytest.mark.parametrize(
    "batch",
    [[], [0.5], [0.1, 1.0, 10.0], [11.0] * 3, [0.01 * n for n in range(2000)], [10.0] * 20, [99.0, 0.0] * 9],
    ids=["none", "one", "few on the bounds", "few above", "many", "many on a bound", "many, unsorted"],
)
def test_a_batch_counts_like_the_same_values_one_by_one(batch):
    together, single = CollectorRegistry(), CollectorRegistry()
    histogram(together).labels("high").observe_many(batch)
    one = histogram(single).labels("high")
    for value in batch:
        one.observe(value)

    def sample(registry, suffix, **labels):
        return registry.get_sample_value(f"delay_seconds{suffix}", {"lane": "high", **labels})

    for le in ("0.1", "1.0", "10.0", "+Inf"):
        assert sample(together, "_bucket", le=le) == sample(single, "_bucket", le=le)
    assert sample(together, "_count") == len(batch)
    assert sample(together, "_sum") == pytest.approx(sum(batch))


def test_values_below_zero_count_as_zero():
    registry = CollectorRegistry()
    histogram(registry).labels("low").observe_many([-5.0, 0.5])
    assert registry.get_sample_value("delay_seconds_sum", {"lane": "low"}) == 0.5
    assert registry.get_sample_value("delay_seconds_count", {"lane": "low"}) == 2


def test_a_batch_leaves_the_callers_list_alone():
    values = [3.0, 1.0, 2.0] * 10
    histogram(CollectorRegistry()).labels("low").observe_many(values)
    assert values == [3.0, 1.0, 2.0] * 10


def test_a_snapshot_replaces_the_series_of_the_one_before():
    registry = CollectorRegistry()
    gauge = SnapshotGauge("backlog", "Backlog.", ("lane", "partition"), registry=registry)
    gauge.replace({("high", 0): 5, ("high", 1): 6})
    gauge.replace({("high", 1): 7})
    assert registry.get_sample_value("backlog", {"lane": "high", "partition": "0"}) is None
    assert registry.get_sample_value("backlog", {"lane": "high", "partition": "1"}) == 7


def test_a_gauge_without_labels_is_shown_only_while_it_is_measured():
    registry = CollectorRegistry()
    gauge = SnapshotGauge("letters", "Letters.", registry=registry)
    assert registry.get_sample_value("letters") is None
    gauge.set(0)
    assert registry.get_sample_value("letters") == 0
    gauge.replace({})
    assert registry.get_sample_value("letters") is None
    gauge.replace({(): 3})
    assert registry.get_sample_value("letters") == 3
    gauge.forget()
    assert registry.get_sample_value("letters") is None


def test_what_nobody_measures_any_more_is_removed_in_one_go():
    registry = CollectorRegistry()
    gauges = [SnapshotGauge(name, "Some.", ("lane",), registry=registry) for name in ("one", "two")]
    for gauge in gauges:
        gauge.replace({("high",): 1})
    show_nothing(gauges)
    assert [family.samples for family in registry.collect()] == [[], []]


def test_every_metric_names_who_shows_it():
    assert {row.shown_by for row in metrics.TABLE} <= {"every", *SERVICES, "observer", "watchdog", "verify"}


def test_every_name_of_the_one_import_place_is_a_metric_of_the_table():
    exported = [
        getattr(metrics, name)
        for name in metrics.__all__
        if name not in {"TABLE", "LABELS", "REGISTRY", "page"}
    ]
    assert len(exported) == len(metrics.TABLE)


def test_no_created_series_are_exposed():
    metrics.LOST_RUNS.inc(0)
    assert b"_created" not in generate_latest(metrics.REGISTRY)
