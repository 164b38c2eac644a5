"""A worker whose consumer groups were deleted ends, instead of looking healthy and reading nothing."""

from __future__ import annotations

import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.support.cluster import Cluster
from tests.support.publish import Load

from noonmark.core.states import Lane


def test_a_worker_whose_groups_are_gone_does_not_stay_up_without_reading(noonmark: Cluster) -> None:
    worker = noonmark.launch("worker", lease_seconds="60")
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.await_ready(worker)
    worker.pause()
    admin = AdminClient({"bootstrap.servers": noonmark.bootstrap})
    left = {noonmark.topics.group_worker("default", lane) for lane in Lane}
    until = time.monotonic() + 60
    while left and time.monotonic() < until:  # as soon as the sessions of the stopped worker are over
        for group, answer in admin.delete_consumer_groups(sorted(left)).items():
            try:
                answer.result(30)
                left.discard(group)
            except KafkaException:
                time.sleep(0.2)
    assert not left
    worker.expected_alive = False
    worker.resume()
    load = Load()
    load.now(6)
    noonmark.publish(load)

    noonmark.wait(lambda: not worker.alive, "the worker to end", 60)
    noonmark.start("worker")
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": 6}, "another one to read", 60)
