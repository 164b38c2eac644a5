"""The broker is away for a while: nothing is lost, deadlines hold on its return, and the backlog drains.

NOONMARK_TEST_BROKER_AWAY sets the seconds (20), NOONMARK_TEST_RATE the runs per second (40).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.tally import Tally
from tests.support.cluster import SERVICES, Cluster, cluster, fresh_prefix
from tests.support.publish import Load
from tests.support.stack import QUICK_GROUPS

from noonmark.devstack.kafka.server import KafkaServer, start_kafka

AWAY_SECONDS = float(os.environ.get("NOONMARK_TEST_BROKER_AWAY", "20"))
RATE = int(os.environ.get("NOONMARK_TEST_RATE", "40"))
DEADLINE_SECONDS = 5.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(int(AWAY_SECONDS * 4 + 240))]


@pytest.fixture
def own_kafka(server_dir: Path) -> Iterator[KafkaServer]:
    """A broker that the test may kill."""
    server = start_kafka(server_dir / "kafka-away", settings=QUICK_GROUPS)
    yield server
    server.stop()


def drained(noonmark: Cluster, load: Load) -> float:
    """Runs per second of the middle nine tenths of a load: lanes come back one after another."""
    begin, end, count = noonmark.rows(
        "select percentile_disc(0.05) within group (order by finished_at),"
        " percentile_disc(0.95) within group (order by finished_at), count(*) from runs"
        " where namespace = %s and state = 'succeeded'",
        load.namespace,
    )[0]
    return float(0.9 * count / max(0.001, (end - begin).total_seconds()))


def test_a_broker_that_was_away_brings_no_loss_no_late_start_and_no_storm(
    own_kafka: KafkaServer, database_url: str, tmp_path: Path, tally: Tally
) -> None:
    count = int(AWAY_SECONDS * RATE)
    with cluster(database_url, own_kafka.bootstrap, fresh_prefix(), tmp_path) as noonmark:
        noonmark.start(*SERVICES, "worker")
        steady = Load()
        with noonmark.standing_clock():
            steady.once(count, noonmark.soon(2))
            noonmark.take_in(steady)
        noonmark.assert_clean(steady, within=60 + AWAY_SECONDS)
        load, urgent = Load(), Load()
        with noonmark.standing_clock():
            load.once(count, noonmark.soon(3), spread_seconds=AWAY_SECONDS - 1)
            urgent.once(50, noonmark.soon(3), start_deadline_seconds=DEADLINE_SECONDS)
            for job in urgent.jobs:
                job.ends.append("skipped")
            noonmark.take_in(load)
            noonmark.take_in(urgent)
            own_kafka.kill()
            back_at = time.monotonic() + AWAY_SECONDS + 3
        # The length of the outage is what is tested.
        time.sleep(max(0.0, back_at - time.monotonic()))
        assert all(node.alive for node in noonmark.nodes)
        server = start_kafka(own_kafka.data_dir, port=own_kafka.port, settings=QUICK_GROUPS)
        own_kafka.process = server.process
        noonmark.settle(load, within=60 + AWAY_SECONDS)
        noonmark.assert_clean(urgent)
        noonmark.assert_clean(load)
        late = (
            "select count(*) from runs where namespace = %s and started_at > scheduled_for + interval '5 s'"
        )
        assert noonmark.value(late, urgent.namespace) == 0
        skipped = noonmark.rows(
            "select reason, count(*) from runs where namespace = %s and state = 'skipped' group by 1",
            urgent.namespace,
        )
        assert skipped == [("start_deadline", 50)]
        assert noonmark.rows("select distinct losses from runs") == [(0,)]
        before, after = drained(noonmark, steady), drained(noonmark, load)
        tally.figures.append(
            f"broker away {AWAY_SECONDS:g} s at {RATE} runs/s: {count} runs, 0 lost, 50 of 50 with a deadline of"
            f" {DEADLINE_SECONDS:g} s skipped; backlog drained at {after:.0f} runs/s, {after / before:.0%} of a"
            f" burst of the same size ({before:.0f} runs/s; aim: 80 %)"
        )
