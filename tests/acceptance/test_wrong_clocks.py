"""A dispatcher whose host has a wrong clock sends all events, also to topics that an earlier release created."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.support.clocks.turned import NoCompilerError, TurnedClock, compile_library
from tests.support.cluster import Cluster
from tests.support.publish import Load

pytestmark = pytest.mark.slow


@pytest.fixture
def clock(tmp_path: Path) -> TurnedClock:
    try:
        return TurnedClock(compile_library(tmp_path), tmp_path / "clock")
    except NoCompilerError as error:
        pytest.skip(str(error))


def date_as_producers_say(noonmark: Cluster, *topics: str) -> None:
    """Give topics the timestamp type that the brokers use by default."""
    entry = ConfigEntry("message.timestamp.type", "CreateTime", incremental_operation=AlterConfigOpType.SET)
    resources = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry]) for name in topics]
    admin = AdminClient({"bootstrap.servers": noonmark.bootstrap})
    for altered in admin.incremental_alter_configs(resources).values():
        altered.result(30)


@pytest.mark.parametrize("timestamps", ["LogAppendTime", "CreateTime"])
@pytest.mark.parametrize("hours", [2, -2])
def test_a_dispatcher_whose_clock_is_wrong_sends_every_event(
    noonmark: Cluster, clock: TurnedClock, timestamps: str, hours: int
) -> None:
    if timestamps == "CreateTime":
        date_as_producers_say(noonmark, noonmark.topics.lifecycle, noonmark.topics.dead)
    clock.turn(hours * 3600)
    dispatcher = noonmark.launch("dispatcher", environment=clock.environment)
    noonmark.start("intake", "trigger", "worker")
    noonmark.await_ready(dispatcher)
    load = Load()
    load.now(20)
    load.now(5, "chaos.flaky", payload={"fails": 1}, max_retries=0, ends=("dead",))
    noonmark.publish(load)

    noonmark.assert_clean(load)
    assert not dispatcher.logged("messages_not_acknowledged")
    assert dispatcher.ready()
