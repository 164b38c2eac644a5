"""Groups whose coordinator is gone. The clients live in a process of their own, which must not die of it."""

import json
import subprocess
import sys

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.cluster import wait_until

from noonmark.devstack.kafka.server import COMPILED_LIGHTLY, start_kafka
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.lag.lag import LagProbe
from noonmark.kafka.topics import TopicSpec

pytestmark = pytest.mark.kafka

TOPIC = "groups.runs"
OFFSETS = "__consumer_offsets"
NOTHING_COMMITTED = [[], [None] * 12]
PROBE = """
import json, sys
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.lag.lag import LagProbe

probe = LagProbe(KafkaConfig(sys.argv[1]), timeout_seconds=5.0)
for line in sys.stdin:
    report = probe.measure_all((f"group-{number}", sys.argv[2]) for number in range(12))
    print(json.dumps([list(report.failed.values()), [lag.committed for lags in report.lags.values() for lag in lags]]))
    sys.stdout.flush()
probe.close()
"""


@pytest.fixture
def own_kafka(server_dir):
    """A broker that a test may rob of its offsets."""
    server = start_kafka(server_dir / "robbed-kafka", java_options=[COMPILED_LIGHTLY])
    yield KafkaConfig(server.bootstrap)
    server.stop()


@pytest.fixture
def measure(own_kafka):
    """Measure in another process; return the reasons of failures and the committed offsets."""
    command = [sys.executable, "-c", PROBE, own_kafka.bootstrap, TOPIC]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask():
        process.stdin.write("now\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"the process ended with {process.wait(10)}"
        return json.loads(answer)

    yield ask
    try:
        process.communicate(timeout=20)
        assert process.returncode == 0
    finally:
        process.kill()


def test_a_broker_that_no_longer_coordinates_a_group_ends_no_process(own_kafka, measure):
    ensure_topics(own_kafka, [TopicSpec(TOPIC, 1, 1, {})])
    wait_until(lambda: measure() == NOTHING_COMMITTED, "a measurement", 30)
    # Without the topic of the offsets no broker coordinates a group. It is made again when a client that
    # was told so asks who does.
    admin = AdminClient(own_kafka.client())
    for _ in range(3):
        admin.delete_topics([OFFSETS])[OFFSETS].result(20)
        wait_until(lambda: not has_offsets(admin), "the topic of the offsets to go", 30)
        wait_until(
            lambda: measure() == NOTHING_COMMITTED and has_offsets(admin),
            "the groups to have a coordinator again",
            30,
        )


def has_offsets(admin):
    return OFFSETS in admin.list_topics(timeout=30).topics


def test_a_probe_at_rest_measures_again(kafka):
    topic, probe = kafka.topic(), LagProbe(kafka.config)
    for _ in range(2):
        (lag,) = probe.measure(f"{kafka.name}.group", topic)
        assert lag.committed is None
        probe.close()
