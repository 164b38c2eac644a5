"""A process that cannot work gives its partitions to another one: its share of the work does not wait for it."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest
from tests.chaos.scenarios.conftest import Way
from tests.support.cluster import Cluster
from tests.support.node import Node
from tests.support.proxy import Proxy, Toxic
from tests.support.publish import Load
from tests.support.stack import Postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

CUTS = {"refused": Toxic(down=True), "silent": Toxic(silent=True)}
ROUNDS = 12
PER_ROUND = 6


def cut(proxy: Proxy, how: str) -> None:
    """Take Postgres away from those behind the proxy; Kafka stays."""
    proxy.set(CUTS[how])
    if how == "refused":
        proxy.reset()


def publish_steadily(noonmark: Cluster, load: Load) -> None:
    """Publish some jobs a second, over all partitions."""
    for _ in range(ROUNDS):
        published = len(load.events)
        load.now(PER_ROUND)
        noonmark.publish(load, events=load.events[published:])
        time.sleep(0.5)


def settled_by_another(noonmark: Cluster, proxy: Proxy, cut_off: Node) -> list[Load]:
    """Publish work that must settle while a process is cut off, and more once it works again; return both loads."""
    load = Load()
    publish_steadily(noonmark, load)
    noonmark.settle(load, 90)
    assert not cut_off.ready()
    proxy.heal()
    noonmark.wait(cut_off.ready, f"{cut_off.name} to work again", 60)
    after = Load()
    after.now(60)
    noonmark.publish(after)
    return [after, load]


def heartbeat_of(worker: Node) -> psutil.Process:
    """The heartbeat process of a worker."""
    (found,) = [
        child
        for child in psutil.Process(worker.pid).children()
        if "noonmark.worker.leases.heartbeat" in " ".join(child.cmdline())
    ]
    return found


@pytest.mark.parametrize("how", CUTS)
def test_a_worker_without_postgres_gives_its_lanes_to_another(noonmark: Cluster, way: Way, how: str) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    cut_off = noonmark.start("worker", database_url=way.url)[0]
    noonmark.start("worker")
    before = Load()
    before.now(60)
    noonmark.publish(before)
    noonmark.settle(before)
    cut(way.proxy, how)

    loads = settled_by_another(noonmark, way.proxy, cut_off)

    noonmark.assert_clean(*loads, before)


def test_an_intake_without_postgres_gives_its_submissions_to_another(noonmark: Cluster, way: Way) -> None:
    noonmark.start("trigger", "dispatcher", "worker")
    cut_off = noonmark.start("intake", database_url=way.url)[0]
    noonmark.start("intake")
    cut(way.proxy, "refused")

    loads = settled_by_another(noonmark, way.proxy, cut_off)

    noonmark.assert_clean(*loads)


def test_a_heartbeat_process_that_stands_still_is_replaced_and_no_run_is_lost(noonmark: Cluster) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    worker = noonmark.start("worker")[0]
    load = Load()
    load.now(6, "chaos.slow", payload={"seconds": 25})
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"running": 6}, "every run to begin", 30)
    stopped = heartbeat_of(worker)
    os.kill(stopped.pid, signal.SIGSTOP)
    short = Load()
    publish_steadily(noonmark, short)

    noonmark.wait(lambda: worker.logged("heartbeat_silent"), "the heartbeat process to be replaced", 60)

    noonmark.wait(lambda: not psutil.pid_exists(stopped.pid), "the old one to end")
    noonmark.assert_clean(short, load)
    assert noonmark.value("select count(*) from workers where lapsed_at is not null") == 0
    assert heartbeat_of(worker).status() != psutil.STATUS_STOPPED


def test_a_worker_renews_its_lease_itself_while_its_heartbeat_process_cannot_connect(
    noonmark: Cluster, postgres_server: Postgres
) -> None:
    """Postgres takes no new connections, as at its limit, when that of the heartbeat process breaks."""
    noonmark.start("intake", "trigger", "dispatcher", "worker")
    before = Load()
    before.now(60)
    noonmark.publish(before)
    noonmark.settle(before)
    name = noonmark.value("select current_database()")
    postgres_server.run(f"alter database {name} with allow_connections false")
    try:
        noonmark.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = 'noonmark-beat'"
        )
        load = Load()
        publish_steadily(noonmark, load)
        noonmark.settle(load)
    finally:
        postgres_server.run(f"alter database {name} with allow_connections true")
    noonmark.assert_clean(load, before)
    assert noonmark.value("select count(*) from workers where lapsed_at is not null") == 0
