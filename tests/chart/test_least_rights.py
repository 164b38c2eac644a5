"""The chart connects each service as users of its own, as docs/kubernetes.md shows and the acceptance run does."""

import re

import pytest
import yaml
from tests.support import chart
from tests.support.chart import environment, of_kind
from tests.support.guarded_connections import connections

VALUES = "least-rights"
SERVICES = ("intake", "trigger", "dispatcher", "worker", "observer", "api")
PAGE = (chart.ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")


def connected(told: dict[str, str]) -> dict[str, str]:
    """The variables that say where and how to connect."""
    wide = {"NOONMARK_KAFKA_GROUP_PROTOCOL", "NOONMARK_KAFKA_PARTITIONS", "NOONMARK_KAFKA_REPLICATION"}
    named = re.compile(r"PG|NOONMARK_(DATABASE|KAFKA|TOPIC)_")
    return {name: value for name, value in told.items() if named.match(name) and name not in wide}


def expected(database: str, kafka: str) -> dict[str, str]:
    """The connections of the acceptance run, with references in place of values."""
    return connections(
        database_url=f"{database}/url",
        database_ca="/etc/noonmark/postgres/ca.crt",
        bootstrap="kafka.data:9093",
        topic_prefix="noonmark",
        kafka_user=f"{kafka}/username",
        kafka_password=f"{kafka}/password",
        kafka_ca="/etc/noonmark/kafka/ca.crt",
    )


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_connects_as_its_own_users(service):
    name = "worker-default" if service == "worker" else service
    (container,) = of_kind(VALUES, "Deployment")[name]["spec"]["template"]["spec"]["containers"]

    assert connected(environment(container)) == expected(f"postgres-{service}", f"kafka-{service}")


def test_the_migration_connects_as_the_owner_of_the_tables():
    (job,) = of_kind(VALUES, "Job").values()
    for container in chart.containers(job["spec"]["template"]["spec"]):
        assert connected(environment(container)) == expected("scheduler-owner", "kafka-migration")


def test_the_values_are_those_of_the_page():
    (text,) = [block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "kafkaSecret" in block]
    values = (chart.ROOT / "tests" / "chart" / "values" / f"{VALUES}.yaml").read_text(encoding="utf-8")

    assert yaml.safe_load(text) == yaml.safe_load(values)


def test_a_user_of_kafka_without_sasl_is_refused():
    done = chart.template(
        "{database: {existingSecret: d}, kafka: {bootstrap: 'k:9092'}, trigger: {kafkaSecret: {name: x}}}"
    )

    assert done.returncode != 0
    assert "trigger: kafkaSecret is set, but kafka.sasl.mechanism is not" in done.stderr
