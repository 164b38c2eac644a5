"""Ends of attempts are counted alike by every service."""

from noonmark.telemetry.metrics import REGISTRY
from noonmark.telemetry.verdicts import count_ends, count_skipped, count_start_deadline


def value(name, **labels):
    return REGISTRY.get_sample_value(f"noonmark_{name}", labels) or 0


def test_verdicts_deaths_and_retries_are_counted_apart():
    names = [
        ("runs_settled_total", {"state": "dead", "lane": "low"}),
        ("dead_runs_total", {"kind": "http"}),
        ("retries_total", {"kind": "http"}),
        ("runs_settled_total", {"state": "retrying", "lane": "low"}),
        ("runs_settled_total", {"state": "running", "lane": "low"}),
    ]
    before = [value(name, **labels) for name, labels in names]
    count_ends({("dead", 2, "http"): 2, ("retrying", 2, "http"): 3, ("running", 2, "http"): 1})
    after = [value(name, **labels) for name, labels in names]
    assert [b - a for a, b in zip(before, after, strict=True)] == [2, 2, 3, 0, 0]


def test_skipped_instants_are_counted_by_reason_and_as_verdicts():
    labels = {"state": "skipped", "lane": "normal"}
    verdicts = value("runs_settled_total", **labels)
    late, missed = value("skipped_total", reason="start_deadline"), value("skipped_total", reason="misfired")
    count_skipped("misfired", 1, 4)
    count_start_deadline(1, 2)
    assert value("runs_settled_total", **labels) - verdicts == 6
    assert value("skipped_total", reason="misfired") - missed == 4
    assert value("skipped_total", reason="start_deadline") - late == 2
