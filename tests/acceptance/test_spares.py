"""More processes than partitions: those without one are ready as well, so that a rollout does not wait for them."""

from __future__ import annotations

import pytest
from tests.support.cluster import COUNTS, Cluster
from tests.support.publish import Load

pytestmark = pytest.mark.slow

PARTITIONS = {"intake": COUNTS.submissions, "observer": COUNTS.lifecycle, "worker": COUNTS.runs}


def test_every_process_that_reads_topics_is_ready_without_a_partition(noonmark: Cluster) -> None:
    nodes = [noonmark.launch(service) for service, most in PARTITIONS.items() for _ in range(most + 1)]
    for node in nodes:
        noonmark.await_ready(node, within=90)

    # A rollout stops an old process once the new one is ready: a spare takes its partitions over.
    noonmark.start("trigger", "dispatcher")
    for service in PARTITIONS:
        old = next(node for node in nodes if node.service == service)
        old.expected_alive = False
        old.terminate()
        assert old.process.wait(60) == 0
    load = Load()
    load.now(20)
    noonmark.publish(load)
    noonmark.assert_clean(load)
