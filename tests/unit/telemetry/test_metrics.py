"""The metrics module, its page, and the instruments that take batches."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from noonmark.intake.batch_checks import _WORDS
from noonmark.schemas.jobs.work_fields import WORK_KINDS
from noonmark.store.jobs.requests import Reason, Status
from noonmark.telemetry import metrics
from noonmark.telemetry.declared import labels
from noonmark.telemetry.declared.instruments import (
    BatchHistogram,
    SnapshotGauge,
    exemplar_of,
    show_nothing,
)
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


def test_traced_values_of_a_batch_are_the_exemplars_of_their_buckets():
    registry = CollectorRegistry()
    delays = histogram(registry).labels("high")
    delays.observe_many([0.05, 0.5, 5.0, 50.0, -1.0], [(0.5, "a" * 32), (50.0, "b" * 32), (-1.0, "c" * 32)])
    delays.observe(3.0, exemplar_of("d" * 32))
    delays.observe(3.0, exemplar_of(None))
    found = {
        sample.labels["le"]: (sample.exemplar.labels["trace_id"][0], sample.exemplar.value)
        for family in registry.collect()
        for sample in family.samples
        if sample.exemplar
    }
    assert found == {"0.1": ("c", 0.0), "1.0": ("a", 0.5), "10.0": ("d", 3.0), "+Inf": ("b", 50.0)}
    assert registry.get_sample_value("delay_seconds_count", {"lane": "high"}) == 7
    assert b"trace_id" in generate_openmetrics(registry)
    assert b"trace_id" not in generate_latest(registry)


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
    for row in metrics.TABLE:
        assert row.shown_by, row.name
        assert set(row.shown_by) <= {"every", *SERVICES, "verify"}, row.name


LATER = {
    "api_requests_total",
    "api_request_seconds",
    "app_outbox_relayed_total",
    "alert_deliveries_total",
    "leader_changes_total",
    "owner_changes_total",
    "loop_iterations_total",
}
"""What starts at 0 only when the service has read its configuration; the page gives the reasons."""


def test_every_counter_and_histogram_knows_its_series_from_the_start():
    unknown = {row.name for row in metrics.TABLE if row.kind != "gauge" and not row.known}
    assert unknown == {f"noonmark_{name}" for name in LATER}


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_shows_what_it_can_count_at_0_and_nothing_of_others(service):
    # In a process of its own: tests of this one have counted.
    script = (
        "import sys; from prometheus_client import generate_latest;"
        " from noonmark.telemetry.metrics import metrics_of;"
        " sys.stdout.buffer.write(generate_latest(metrics_of(sys.argv[1])))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script, service], capture_output=True, text=True, check=True
    ).stdout
    rows = metrics.rows_of(service)
    assert set(re.findall(r"^# TYPE (noonmark_\w+)", shown, re.MULTILINE)) == {row.name for row in rows}
    assert {"process_cpu_seconds_total", "python_gc_collections_total"} <= set(
        re.findall(r"^# TYPE (\w+)", shown, re.MULTILINE)
    )
    values = re.findall(r"^noonmark_\w+(?:\{.*\})? (\S+)$", shown, re.MULTILINE)
    assert len(values) == sum(row.series for row in rows) + len(["noonmark_build_info"])
    assert set(values) == {"0.0", "1.0"}
    assert values.count("1.0") == 1
    # A platform team plans for this number times its processes.
    assert len(values) < 1_000


def test_words_of_other_modules_are_those_of_the_labels():
    assert set(labels.SUBMISSION_RESULTS) == set(Status)
    assert set(labels.SUBMISSION_TYPES) == {*_WORDS.values(), "unknown"}
    assert set(labels.REJECTION_REASONS) >= set(Reason)
    assert labels.KINDS == WORK_KINDS


def test_every_name_of_the_one_import_place_is_a_metric_of_the_table():
    exported = [
        getattr(metrics, name)
        for name in metrics.__all__
        if name not in {"TABLE", "LABELS", "REGISTRY", "metrics_of", "page", "rows_of"}
    ]
    assert len(exported) == len(metrics.TABLE)


def test_no_created_series_are_exposed():
    metrics.LOST_RUNS.inc(0)
    assert b"_created" not in generate_latest(metrics.REGISTRY)
