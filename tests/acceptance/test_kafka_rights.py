"""Every service's user of Kafka may do what the list of rights says, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.guarded_broker import GuardedBroker, guarded_broker
from tests.support.tried_rights import tried_on_cluster, tried_on_groups, tried_on_topics

from noonmark.cli.submissions.submit import send
from noonmark.cli.terminal.problems import CliError
from noonmark.client import Publisher, PublishError
from noonmark.core.states import Lane
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.membership import coordinator_answers
from noonmark.kafka.consumers.records import ConsumerFailed
from noonmark.kafka.producers.delivery import OutboundMessage
from noonmark.kafka.producers.producer import RelayProducer
from noonmark.kafka.rights import Client, Operation, Resource, kafka_rights
from noonmark.kafka.topics import PartitionCounts, Topics, TopicSpec
from noonmark.settings import Settings

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TOPICS = Topics("noonmark")
BOUND, EMITTED, FOREIGN = "orders.jobs", "shop.done", "noonmarket"
RIGHTS = kafka_rights(TOPICS, pools=["default"], bound=[BOUND], emitted=["shop.*"])
COUNTS = PartitionCounts(*[1] * 7)
EXISTING = [
    *(spec.name for spec in TOPICS.topic_specs(["default", "default-2"], counts=COUNTS)),
    *(BOUND, EMITTED, FOREIGN),
]
ABSENT = ["noonmark.runs.fresh.high", "noonmarked", "shop.fresh", "fresh"]
GROUPS = [
    *(TOPICS.group_intake, TOPICS.group_observer),
    *(TOPICS.group_worker(pool, Lane.NORMAL) for pool in ("default", "default-2")),
    *("noonmark.lag-probe", "noonmark.api-live", "noonmark.range-reader", "elsewhere"),
]
NOT_GRANTED = (
    "this client may not WRITE topic noonmark.submissions: grant its principal that right,"
    " `noonmark rights kafka` prints the commands that grant it"
)
INCLUDES_DESCRIBE = {Operation.READ, Operation.WRITE, Operation.DESCRIBE}


@pytest.fixture(scope="module")
def broker(server_dir: Path) -> Iterator[GuardedBroker]:
    """A broker with the topics of an installation, a record in each, and a user for each client."""
    with guarded_broker(server_dir / "kafka-rights") as started:
        specs = [TopicSpec(name, 1, 1) for name in EXISTING]
        ensure_topics(KafkaConfig(started.inside), specs)
        producer = Producer({"bootstrap.servers": started.inside})
        for name in EXISTING:
            producer.produce(name, b"first")
        assert producer.flush(120) == 0
        for client, rights in RIGHTS.items():
            started.add_user(client)
            started.grant(client, rights)
        yield started


def allowed(client: Client, resource: Resource, names: list[str], *operations: Operation) -> set[str]:
    """The names on which the list of rights has one of the operations."""
    return {
        name
        for name in names
        for right in RIGHTS[client]
        if right.covers(resource, name) and set(operations) & set(right.operations)
    }


@pytest.mark.parametrize("client", Client)
def test_every_operation_on_every_topic_is_allowed_or_refused_as_listed(
    broker: GuardedBroker, client: Client
) -> None:
    tried = tried_on_topics(partial(broker.client, client), EXISTING, ABSENT)

    on = partial(allowed, client, Resource.TOPIC)
    assert tried == {
        "read": on(EXISTING, Operation.READ),
        "write": on(EXISTING, Operation.WRITE),
        "describe": on(EXISTING, *INCLUDES_DESCRIBE),
        "create": on(ABSENT, Operation.CREATE),
        "delete": set(),
        "delete records": set(),
        "add partitions": set(),
        "describe configs": set(),
        "alter configs": set(),
    }


@pytest.mark.parametrize("client", Client)
def test_every_operation_on_every_group_is_allowed_or_refused_as_listed(
    broker: GuardedBroker, client: Client
) -> None:
    tried = tried_on_groups(partial(broker.client, client), GROUPS, TOPICS.submissions)

    on = partial(allowed, client, Resource.GROUP)
    assert tried == {
        "read": on(GROUPS, Operation.READ),
        "describe": on(GROUPS, *INCLUDES_DESCRIBE),
        "delete": set(),
    }


@pytest.mark.parametrize("client", Client)
def test_nothing_on_the_whole_cluster_is_allowed(broker: GuardedBroker, client: Client) -> None:
    assert tried_on_cluster(partial(broker.client, client)) == set()


# One may not even see the topic; the other may, and is refused the id of a producer instead.
@pytest.mark.parametrize("client", [Client.WATCHDOG, Client.OPERATOR])
def test_a_publisher_without_the_right_to_write_is_told_which_and_how_to_grant_it(
    broker: GuardedBroker, client: Client
) -> None:
    publisher = Publisher(broker.client(client))
    sent = publisher.publish({"type": "python", "handler": "a.b"}, event_id="order-1")

    with pytest.raises(PublishError) as refused:
        publisher.close(60)

    ((event_id, reason),) = refused.value.failed
    assert event_id == "order-1"
    assert reason == NOT_GRANTED
    assert isinstance(sent.exception(0), PublishError)


@pytest.mark.parametrize("client", [Client.WATCHDOG, Client.OPERATOR])
def test_a_submission_by_the_command_line_without_the_right_to_write_is_told_the_same(
    broker: GuardedBroker, client: Client
) -> None:
    settings = Settings(
        kafka_bootstrap=broker.bootstrap,
        **{f"kafka_{name}": value for name, value in broker.login(client).items()},
    )

    with pytest.raises(CliError) as refused:
        send(settings, TOPICS.submissions, [(b"order-1", b"{}", [])])

    assert str(refused.value) == f"Kafka at {broker.bootstrap} refuses the command: {NOT_GRANTED}"


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_the_coordinator_answers_no_member_without_the_rights_of_its_service(
    broker: GuardedBroker, protocol: str
) -> None:
    def answers(user: str, within: float) -> bool:
        config = KafkaConfig(broker.bootstrap, group_protocol=protocol, **broker.login(user))
        consumer = BatchConsumer(config, TOPICS.submissions, TOPICS.group_intake)
        deadline = time.monotonic() + within
        try:
            while not coordinator_answers(consumer) and time.monotonic() < deadline:
                with suppress(ConsumerFailed):
                    consumer.poll_batch(1, 0.1)
            return coordinator_answers(consumer)
        finally:
            consumer.close(1)

    # A worker's user has the same rights on other topics and groups.
    assert not answers(Client.WORKER, 5)
    assert answers(Client.INTAKE, 60)


def test_a_relay_without_the_right_to_write_reports_its_messages_as_unsent_and_goes_on_when_it_is_granted(
    broker: GuardedBroker,
) -> None:
    broker.add_user("late")
    broker.grant("late", [right for right in RIGHTS[Client.OPERATOR] if right.resource is Resource.TOPIC])
    relay = RelayProducer(KafkaConfig(broker.bootstrap, **broker.login("late")), delivery_timeout_seconds=5)
    messages = [OutboundMessage(TOPICS.submissions, b"order", b"%d" % number) for number in range(100)]

    refused = relay.send_batch(messages)

    assert sorted(refused.failed) == list(range(100))
    assert {failure.is_permanent for failure in refused.failed.values()} == {False}
    broker.grant("late", RIGHTS[Client.PUBLISHER])
    deadline = time.monotonic() + 60
    while not relay.send_batch(messages).all_acknowledged:
        assert time.monotonic() < deadline
    relay.close()
