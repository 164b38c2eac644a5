"""The configuration files of a single KRaft node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from noonmark.devstack.processes.ports import LOOPBACK

# One node cannot replicate; few partitions keep its internal topics quick to load.
DEFAULT_SETTINGS: Final[Mapping[str, str]] = {
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # With KIP-848 the broker decides how long a dead consumer keeps its partitions. Its default of
    # 45 s suits a cluster; a developer who kills a worker wants to see the work move.
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "2000",
    # A crashed node may rejoin only when its last session has expired: 9 s by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # The default buffer of 128 MB would be a quarter of the heap.
    "log.cleaner.dedupe.buffer.size": "16777216",
    # Segment indexes are preallocated: 10 MB each by default, for every partition.
    "log.index.size.max.bytes": "1048576",
}

LOG4J: Final = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="warn">
  <Appenders>
    <Console name="out"><PatternLayout pattern="%d{yyyy-MM-dd HH:mm:ss.SSS} %-5p %c{1}: %m%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="info"><AppenderRef ref="out"/></Root>
    <!-- Each prints every setting at info, hundreds of lines per start. -->
    <Logger name="kafka.server.KafkaConfig" level="warn"/>
    <Logger name="org.apache.kafka.common.config.AbstractConfig" level="warn"/>
    <Logger name="org.apache.kafka.clients" level="warn"/>
  </Loggers>
</Configuration>
"""


def server_properties(
    *,
    log_dir: Path,
    port: int,
    controller_port: int,
    settings: Mapping[str, str] | None = None,
    advertised_port: int | None = None,
) -> str:
    """The node's configuration: broker and controller in one process, on the loopback only.

    Args:
        log_dir: Where partitions are kept.
        port: For clients.
        controller_port: For the node's own controller.
        settings: Settings above `DEFAULT_SETTINGS`. `listeners` are further ones, beside the node's own.
        advertised_port: The port that clients connect to, such as a proxy's; None: `port`.
    """
    given = {**DEFAULT_SETTINGS, **(settings or {})}
    further = given.pop("listeners", "")
    more = f",{further}" if further else ""
    fixed = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}{more}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{advertised_port or port}{more}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(log_dir),
    }
    lines = [f"{name}={value}" for name, value in {**given, **fixed}.items()]
    return "\n".join(lines) + "\n"
