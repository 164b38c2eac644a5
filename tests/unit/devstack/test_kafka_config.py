from pathlib import Path

from noonmark.devstack.containers import container_settings
from noonmark.devstack.kafka.config import server_properties
from noonmark.devstack.kafka.jars import kafka_version
from noonmark.devstack.kafka.server import new_cluster_id


def read(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_the_broker_listens_on_the_loopback_only() -> None:
    settings = read(server_properties(log_dir=Path("/data"), port=19092, controller_port=19093))
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19092"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:19093"
    assert settings["log.dirs"] == "/data"


def test_every_internal_topic_can_live_on_one_node_and_no_topic_is_made_by_accident() -> None:
    settings = read(server_properties(log_dir=Path("/data"), port=1, controller_port=2))
    assert settings["auto.create.topics.enable"] == "false"
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        assert settings[f"{topic}.replication.factor"] == "1"
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        assert settings[f"{topic}.min.isr"] == "1"


def test_given_settings_win_over_defaults_but_not_over_addresses() -> None:
    given = {"num.partitions": "7", "log.dirs": "/elsewhere"}
    settings = read(server_properties(log_dir=Path("/data"), port=1, controller_port=2, settings=given))
    assert settings["num.partitions"] == "7"
    assert settings["log.dirs"] == "/data"


def test_in_a_container_clients_are_sent_to_the_published_port_and_the_broker_to_itself() -> None:
    settings = container_settings(19092)
    assert settings["advertised.listeners"] == "CLIENTS://127.0.0.1:19092,SELF://localhost:9094"
    assert settings["inter.broker.listener.name"] == "SELF"


def test_cluster_ids_are_as_kafka_makes_them() -> None:
    ids = {new_cluster_id() for _ in range(300)}
    assert len(ids) == 300
    assert all(len(cluster_id) == 22 and cluster_id[0] != "-" for cluster_id in ids)


def test_the_version_of_kafka_comes_from_the_pom() -> None:
    assert kafka_version() == "4.4.0"
