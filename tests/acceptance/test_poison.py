"""One job that cannot be planned and runs that cannot be delivered, amid a thousand good ones."""

import os
import subprocess
import sys

import pytest
from tests.support.cluster import ROOT, SERVICES, SHORT, Cluster
from tests.support.publish import Load

from noonmark.store.cluster.pools import register_pool


@pytest.mark.slow
def test_bad_ones_wait_aside_with_their_reason_while_a_thousand_settle(noonmark: Cluster) -> None:
    noonmark.start(*SERVICES)
    # A pool in the table whose topics do not exist.
    register_pool(noonmark.database, "ghost")
    load, bad = Load(), Load()
    with noonmark.standing_clock():
        bad.interval(1, noonmark.soon(1), instants=2)
        bad.now(3, pool="ghost")
        noonmark.take_in(bad)
        planted = noonmark.rows(
            """update jobs set schedule = '{"every": "whenever"}' where schedule is not null returning id"""
        )
    assert len(planted) == 1
    load.now(500)
    load.once(500, noonmark.soon(3))
    noonmark.publish(load)

    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": 1000}, "the good ones to settle")
    slowest = noonmark.value(
        "select max(started_at - scheduled_for) from runs where namespace = %s", load.namespace
    )
    assert slowest.total_seconds() <= 5
    state, reason = noonmark.rows("select state, state_reason from jobs where id = %s", planted[0][0])[0]
    assert state == "broken"
    assert "cannot be planned" in reason
    waiting = noonmark.rows("select state, reason, error from runs where pool = 'ghost'")
    assert len(waiting) == 3
    for state, reason, error in waiting:
        assert (state, reason) == ("waiting", "undeliverable")
        assert "topic" in error.lower()

    _create_topics(noonmark, "ghost")
    noonmark.start("worker", pool="ghost")
    ahead = 0
    while noonmark.states(bad.namespace) != {"succeeded": 3}:
        # A parked run is tried again after a minute of the database's time, and parked once more if the
        # dispatcher has asked for the topic a moment ago.
        ahead += 61
        assert ahead < 61 * 100, noonmark.state()
        noonmark.turn_clock(ahead)
        noonmark.wait(lambda: retried(noonmark, bad), "the parked runs to run, or to be parked again")
    assert noonmark.value("select count(*) from waits") == 0
    noonmark.assert_clean(load)


def retried(noonmark: Cluster, bad: Load) -> bool:
    """Whether every parked run has been looked at since the clock was turned."""
    due = "select count(*) from timers where namespace = %s and fire_at <= noonmark_now()"
    on_its_way = {"queued", "running"} & noonmark.states(bad.namespace).keys()
    return not on_its_way and noonmark.value(due, bad.namespace) == 0


def _create_topics(noonmark: Cluster, pool: str) -> None:
    """Do what an operator does."""
    subprocess.run(
        [sys.executable, "-m", "noonmark.cli.main", "pool", "create", pool],
        env={
            **os.environ,
            **SHORT,
            "NOONMARK_DATABASE_URL": noonmark.dsn,
            "NOONMARK_KAFKA_BOOTSTRAP": noonmark.bootstrap,
            "NOONMARK_TOPIC_PREFIX": noonmark.prefix,
        },
        cwd=ROOT,
        check=True,
        timeout=60,
    )
