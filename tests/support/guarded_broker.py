"""A broker that every client reaches by TLS and SCRAM alone, and that allows nothing that was not granted."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.support.authority import HOST, Authority, make_authority
from tests.support.stack import QUICK_GROUPS

from noonmark.devstack.kafka.server import COMPILED_LIGHTLY, start_kafka
from noonmark.devstack.processes.ports import free_port
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.rights import Resource, Right

_ANY_HOST = "*"
_LEAST_ITERATIONS = 4096


@dataclass(slots=True)
class GuardedBroker:
    """The broker, and what its administrator does.

    Attributes:
        inside: address of a listener for the administrator, who may do everything.
        bootstrap: address for clients.
        authority: who signed the broker's certificate.
        passwords: of the users that were made.
        admin: the administrator's client.
    """

    inside: str
    bootstrap: str
    authority: Authority
    passwords: dict[str, str] = field(default_factory=dict)
    admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        """Make the administrator's client."""
        self.admin = AdminClient({"bootstrap.servers": self.inside})

    def add_user(self, name: str) -> None:
        """Make a user with a password of its own."""
        password = self.passwords.setdefault(name, secrets.token_urlsafe(12))
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _LEAST_ITERATIONS)
        change = UserScramCredentialUpsertion(name, info, password.encode())
        for future in self.admin.alter_user_scram_credentials([change]).values():
            future.result(60)

    def grant(self, user: str, rights: Iterable[Right]) -> None:
        """Grant rights to a user."""
        bindings = [binding for right in rights for binding in _bindings(user, right)]
        if bindings:
            for future in self.admin.create_acls(bindings).values():
                future.result(60)

    def revoke_all(self, user: str) -> None:
        """Take every right from a user."""
        wanted = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            f"User:{user}",
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for future in self.admin.delete_acls([wanted]).values():
            future.result(60)

    def login(self, user: str) -> dict[str, str]:
        """What a `KafkaConfig` needs to connect as this user."""
        return {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": user,
            "sasl_password": self.passwords[user],
            "ssl_ca_location": str(self.authority.ca),
        }

    def client(self, user: str, **more: Any) -> dict[str, Any]:
        """Properties of a client that connects as this user."""
        return KafkaConfig(self.bootstrap, **self.login(user)).client(**more)


@contextmanager
def guarded_broker(folder: Path) -> Iterator[GuardedBroker]:
    """Start one in a folder; it ends with the block."""
    authority = make_authority(folder / "authority")
    port = free_port()
    server = start_kafka(
        folder / "broker",
        settings={**QUICK_GROUPS, **_settings(authority, port)},
        java_options=[COMPILED_LIGHTLY],
    )
    try:
        yield GuardedBroker(server.bootstrap, f"{HOST}:{port}", authority)
    finally:
        server.stop()


def _settings(authority: Authority, port: int) -> Mapping[str, str]:
    listener = "listener.name.guarded"
    return {
        "listeners": f"GUARDED://{HOST}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"{listener}.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        f"{listener}.ssl.keystore.type": "PEM",
        f"{listener}.ssl.keystore.location": str(authority.keystore),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        # Who comes by the other listener, which no client of a test uses.
        "super.users": "User:ANONYMOUS",
    }


def _bindings(user: str, right: Right) -> Sequence[AclBinding]:
    kind = {Resource.TOPIC: ResourceType.TOPIC, Resource.GROUP: ResourceType.GROUP}[right.resource]
    pattern = ResourcePatternType.PREFIXED if right.prefixed else ResourcePatternType.LITERAL
    return [
        AclBinding(
            kind,
            right.name,
            pattern,
            f"User:{user}",
            _ANY_HOST,
            AclOperation[operation.name],
            AclPermissionType.ALLOW,
        )
        for operation in right.operations
    ]
