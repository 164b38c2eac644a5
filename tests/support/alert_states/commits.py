"""A worker that may no longer read its topics, so that Kafka refuses its commits."""

from __future__ import annotations

from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from tests.support.alert_states.ground import Ground
from tests.support.guarded_broker import GuardedBroker, guarded_broker
from tests.support.publish import Load
from tests.support.recordings import Recording

from noonmark.kafka.rights import Client, kafka_rights

RUNS = 60
ERRORS = 8
"""Between two scrapes; with a scrape a minute, more than one error in ten seconds."""


def commits_refused(ground: Ground) -> Recording:
    """Someone takes the right to read the run topics from the worker while it has runs in flight."""
    broker = ground.stack.enter_context(guarded_broker(ground.servers))
    place, gate = ground.installation(bootstrap=broker.inside), ground.folder / "gate"
    noonmark = place.noonmark
    user = Client.WORKER.value
    broker.add_user(user)
    broker.grant(user, kafka_rights(noonmark.topics)[Client.WORKER])
    noonmark.of_service["worker"] = {
        "NOONMARK_KAFKA_BOOTSTRAP": broker.bootstrap,
        "NOONMARK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "NOONMARK_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "NOONMARK_KAFKA_SASL_USERNAME": user,
        "NOONMARK_KAFKA_SASL_PASSWORD": broker.passwords[user],
        "NOONMARK_KAFKA_SSL_CA_LOCATION": str(broker.authority.ca),
    }
    place.start()
    load = Load()
    load.now(RUNS, "chaos.gate", payload={"gate": str(gate)})
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"running": RUNS}, "every run to begin")
    place.scrape(2)
    _forbid_reading(broker, user)
    gate.touch()
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": RUNS}, "every run to end")
    errors = 0.0
    for _ in range(14):
        errors += ERRORS
        noonmark.wait(
            lambda least=errors: place.metric("worker", "offsets_commit_errors_total") >= least, "refusals"
        )
        place.scrape()
    return place.recording


def _forbid_reading(broker: GuardedBroker, user: str) -> None:
    doomed = AclBindingFilter(
        ResourceType.TOPIC,
        None,
        ResourcePatternType.ANY,
        f"User:{user}",
        None,
        AclOperation.READ,
        AclPermissionType.ANY,
    )
    for future in broker.admin.delete_acls([doomed]).values():
        future.result(60)
