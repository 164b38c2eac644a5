"""What a running installation shows at /metrics is what docs/metrics.md lists, also when nobody consumes."""

import re

import pytest
from tests.support.cluster import SERVICES, Cluster
from tests.support.node import Node
from tests.support.publish import Load, soon

from noonmark.store.cluster.pools import register_pool
from noonmark.telemetry.metrics import TABLE, rows_of

NOT_HERE = {
    f"noonmark_{name}"
    for name in (
        *("app_outbox_oldest_seconds", "app_outbox_rows", "app_outbox_reachable", "events_refused"),
        *("runs_in_state", "namespace_runs"),
    )
}
"""Gauges with series only where there is something of the kind."""


def samples(node: Node) -> dict[str, set[str]]:
    """Label sets of each series that a process shows, by name of the metric."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(
        r"^(noonmark_\w+?)(?:\{(.*)\})? \S+$", node._get("/metrics")[1], re.MULTILINE
    ):
        found.setdefault(name, set()).add(labels)
    return found


def described(node: Node) -> dict[str, str]:
    """Type of each metric that a process knows."""
    return dict(re.findall(r"^# TYPE (noonmark_\w+) (\w+)$", node._get("/metrics")[1], re.MULTILINE))


def counted(node: Node) -> dict[str, set[str]]:
    """Label sets of the counters and histograms that a process shows, by name of the series."""
    bases = {row.name for row in TABLE if row.kind != "gauge"}
    return {
        name: labels
        for name, labels in samples(node).items()
        if name in bases or re.sub("_(bucket|count|sum)$", "", name) in bases
    }


@pytest.mark.slow
def test_a_running_installation_shows_what_the_page_lists(noonmark: Cluster) -> None:
    register_pool(noonmark.database, "idle")
    noonmark.prepare(["default", "idle"])
    nodes = [noonmark.launch(service) for service in (*SERVICES, "observer", "watchdog")]
    nodes.append(noonmark.launch("api", api_port="0"))
    for node in nodes:
        noonmark.await_ready(node)
    _, trigger, dispatcher, worker, *_ = nodes
    at_first = {node.name: counted(node) for node in nodes}
    load = Load()
    load.now(9)
    load.now(3, "chaos.flaky", ends=("dead",), payload={"fails": 9}, retry_delay_seconds=0, max_retries=1)
    noonmark.publish(load)
    noonmark.settle(load)
    for node in nodes:
        assert described(node) == {row.name: row.kind for row in rows_of(node.service)}
    wanted = {
        row.name
        for row in TABLE
        if row.kind == "gauge" and {"every", "trigger", "dispatcher", "worker"} & set(row.shown_by)
    }

    def shown() -> set[str]:
        return set().union(*(samples(node) for node in (trigger, dispatcher, worker)))

    noonmark.wait(lambda: shown() >= wanted - NOT_HERE, "every gauge to be measured", 30)
    assert sum(node.metric("noonmark_retries_total", kind="python") for node in noonmark.nodes) == 3
    assert sum(node.metric("noonmark_dead_runs_total", kind="python") for node in noonmark.nodes) == 3
    assert worker.metric("noonmark_start_slo_total") == 12
    noonmark.wait(lambda: trigger.metric("noonmark_dead_letters") == 3, "dead letters to be counted", 30)
    noonmark.wait(
        lambda: trigger.metric("noonmark_namespace_runs", namespace=load.namespace, state="dead") == 3,
        "the namespace's runs to be counted",
        30,
    )
    # Nothing happened that had no series at 0 before, so no `rate` misses a first event.
    for node in nodes:
        now = counted(node)
        later = {name: now[name] - series for name, series in at_first[node.name].items()}
        assert not {name: series for name, series in later.items() if series}
    # Who measures nothing says nothing: a 0 of another process would be as good as the right figure.
    assert not {"noonmark_dead_letters", "noonmark_due_timers", "noonmark_start_backlog"} & set(
        samples(worker)
    )


@pytest.mark.slow
def test_backlog_and_lag_are_measured_with_no_consumer_at_all(noonmark: Cluster) -> None:
    intake, trigger, dispatcher = noonmark.start("intake", "trigger", "dispatcher")
    load = Load()
    load.now(9, priority="high")
    load.once(1, soon(3600))
    noonmark.take_in(load)
    intake.stop()
    late = Load()
    late.now(4)
    noonmark.publish(late)
    lane = {"pool": "default", "lane": "high"}

    noonmark.wait(lambda: dispatcher.metric("noonmark_start_backlog", **lane) == 9, "the backlog", 30)
    assert dispatcher.metric("noonmark_commit_lag", **lane) == 9
    noonmark.wait(lambda: dispatcher.metric("noonmark_start_backlog_seconds", **lane) > 0, "its age", 30)
    assert dispatcher.metric("noonmark_start_backlog_partition_seconds", **lane) > 0
    noonmark.wait(lambda: dispatcher.metric("noonmark_submissions_oldest_seconds") > 0, "submissions", 30)
    noonmark.wait(lambda: dispatcher.metric("noonmark_submissions_lag") == 4, "their lag", 30)
    workers = {
        'pool="default",state="live"',
        'pool="default",state="silent"',
        'pool="default",state="draining"',
    }
    noonmark.wait(lambda: samples(trigger).get("noonmark_workers") == workers, "no worker to be shown", 30)
    assert trigger.metric("noonmark_workers") == 0

    # The lead moves on: so do the figures.
    (successor,) = noonmark.start("dispatcher")
    dispatcher.kill()
    noonmark.wait(lambda: successor.metric("noonmark_start_backlog", **lane) == 9, "the next leader", 30)
