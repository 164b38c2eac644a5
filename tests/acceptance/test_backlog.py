"""A message that nobody has read is not lost, however old; one that is gone is sent again once that is proven."""

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.cluster import Cluster
from tests.support.publish import Load

from noonmark.core.states import Lane
from noonmark.store.cluster.pools import register_pool

THREE_HOURS = 3 * 3600.0
ROUNDS = "noonmark_loop_iterations_total"


def queued_without_a_worker(noonmark: Cluster, count: int) -> Load:
    """Runs whose messages lie in Kafka, unread."""
    load = Load()
    load.now(count)
    noonmark.publish(load)
    noonmark.wait(
        lambda: (
            noonmark.states(load.namespace) == {"queued": count}
            and noonmark.value("select count(*) from outbox") == 0
        ),
        "all messages to be in Kafka",
    )
    return load


def look_again_in_three_hours(noonmark: Cluster) -> None:
    """Turn the clock, and wait until positions were measured and vanished runs were sought after that."""
    noonmark.turn_clock(THREE_HOURS)
    # Of the pool without any message something can always be proven; it is looked at after the other.
    noonmark.wait(
        lambda: noonmark.rows(
            "select from topic_progress, (select max(queued_at) as at from runs) as last"
            " where topic = %s and passed_until > last.at + interval '1 hour'",
            noonmark.topics.runs("idle", Lane.LOW),
        ),
        "positions to be measured",
    )
    trigger = next(node for node in noonmark.nodes if node.service == "trigger")
    rounds = trigger.metric(ROUNDS, loop="housekeeping")
    noonmark.wait(
        lambda: trigger.metric(ROUNDS, loop="housekeeping") > rounds + 2, "vanished runs to be sought"
    )


def begin(noonmark: Cluster) -> Load:
    """Everything but a worker, and a backlog in all lanes."""
    register_pool(noonmark.database, "idle")
    noonmark.prepare(["default", "idle"])
    noonmark.start("intake", "dispatcher")
    noonmark.start("trigger", resend_check_seconds="1")
    return queued_without_a_worker(noonmark, 90)


@pytest.mark.slow
def test_a_backlog_three_hours_old_is_not_sent_again(noonmark: Cluster) -> None:
    load = begin(noonmark)
    look_again_in_three_hours(noonmark)
    noonmark.start("worker")
    report = noonmark.assert_clean(load)
    assert report["calls"] == 90
    assert noonmark.rows("select distinct fence, losses from runs") == [(1, 0)]


@pytest.mark.slow
def test_a_message_that_vanished_is_sent_again(noonmark: Cluster) -> None:
    load = begin(noonmark)
    look_again_in_three_hours(noonmark)
    topics = [noonmark.topics.runs("default", lane) for lane in Lane]
    admin = AdminClient({"bootstrap.servers": noonmark.bootstrap})
    for deleted in admin.delete_topics(topics, operation_timeout=30).values():
        deleted.result(30)
    noonmark.wait(lambda: not set(topics) & noonmark.kafka.topics().keys(), "the topics to go")
    noonmark.prepare()
    noonmark.wait(
        lambda: noonmark.rows("select distinct fence from runs") == [(2,)], "all to be sent again", 30
    )
    noonmark.start("worker")
    report = noonmark.assert_clean(load)
    assert report["calls"] == 90
    assert noonmark.rows("select distinct fence, attempt, losses from runs") == [(2, 1, 0)]
