"""Roles in namespaces, and the permissions of each role.

Deny by default: what is not granted here is not allowed, for every kind of request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

EVERYWHERE: Final = "*"
"""In grants: every namespace, existing or future."""


class Role(IntEnum):
    """A user's role in a namespace; each role includes all lower ones."""

    VIEWER = 1
    OPERATOR = 2
    EDITOR = 3
    ADMIN = 4

    @property
    def label(self) -> str:
        """The name used in documents, tokens and output."""
        return self.name.lower()

    @classmethod
    def named(cls, name: str) -> Role:
        """Read a role's name.

        Raises:
            ValueError: no role has this name.
        """
        try:
            return cls[name.upper()]
        except KeyError:
            names = ", ".join(role.label for role in cls)
            raise ValueError(f"{name!r} is not a role; use one of {names}") from None


class Permission(StrEnum):
    """One kind of action. Routes and commands name theirs; roles are sets of permissions."""

    JOBS_READ = "jobs:read"
    RUNS_READ = "runs:read"
    WORKERS_READ = "workers:read"
    SETTINGS_READ = "settings:read"
    """Calendars, limits and the namespace itself."""
    PAYLOADS_READ = "payloads:read"
    """Payloads, results, error texts and logs: they may contain data that viewers must not see."""
    JOBS_OPERATE = "jobs:operate"
    """Pause, resume, trigger."""
    RUNS_OPERATE = "runs:operate"
    """Cancel and retry runs; redrive and discard dead letters."""
    JOBS_WRITE = "jobs:write"
    """Create, replace, patch, cancel, delete; backfills."""
    CALENDARS_WRITE = "calendars:write"
    SETTINGS_WRITE = "settings:write"
    """Limits, default zone, caps and the pause of a namespace."""
    KEYS_WRITE = "keys:write"
    """API keys of the namespace."""
    AUDIT_READ = "audit:read"
    PLATFORM = "platform"
    """Everything about the installation: namespaces, pools, rejected records, zone data."""


ROLE_FOR: Final[Mapping[Permission, Role]] = MappingProxyType(
    {
        Permission.JOBS_READ: Role.VIEWER,
        Permission.RUNS_READ: Role.VIEWER,
        Permission.WORKERS_READ: Role.VIEWER,
        Permission.SETTINGS_READ: Role.VIEWER,
        Permission.PAYLOADS_READ: Role.OPERATOR,
        Permission.JOBS_OPERATE: Role.OPERATOR,
        Permission.RUNS_OPERATE: Role.OPERATOR,
        Permission.JOBS_WRITE: Role.EDITOR,
        Permission.CALENDARS_WRITE: Role.EDITOR,
        Permission.SETTINGS_WRITE: Role.ADMIN,
        Permission.KEYS_WRITE: Role.ADMIN,
        Permission.AUDIT_READ: Role.ADMIN,
    }
)
"""The lowest role with each permission; no role has `PLATFORM`, only platform admins do."""


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated user or service.

    Attributes:
        id: stable and unique: `key:<key id>`, `oidc:<subject>`, `local:<user>`.
        name: for people, in audit entries.
        grants: role per namespace; `*` stands for every namespace.
        platform: may do everything everywhere.
        scopes: if given, the only permissions of this credential, whatever its roles allow.
        rate_per_minute: requests; None: the server's default.
        expires_at: of a key that expires.
    """

    id: str
    name: str
    grants: Mapping[str, Role] = field(default_factory=dict)
    platform: bool = False
    scopes: frozenset[Permission] | None = None
    rate_per_minute: int | None = None
    expires_at: datetime | None = None

    def role_in(self, namespace: str) -> Role | None:
        """Return the highest role in a namespace; None if there is none."""
        if self.platform:
            return Role.ADMIN
        roles = [self.grants[place] for place in (namespace, EVERYWHERE) if place in self.grants]
        return max(roles, default=None)

    def may(self, permission: Permission, namespace: str | None = None) -> bool:
        """Return whether an action is allowed in a namespace; without one, whether it is in any."""
        if self.scopes is not None and permission not in self.scopes:
            return False
        if self.platform:
            return True
        least = ROLE_FOR.get(permission)
        if least is None:
            return False
        if namespace is None:
            return any(role >= least for role in self.grants.values())
        role = self.role_in(namespace)
        return role is not None and role >= least

    def namespaces(self, permission: Permission) -> frozenset[str] | None:
        """Return the namespaces in which an action is allowed; None: all of them."""
        if not self.may(permission):
            return frozenset()
        if self.platform or self.may(permission, EVERYWHERE):
            return None
        return frozenset(name for name in self.grants if self.may(permission, name))

    @property
    def visible(self) -> frozenset[str] | None:
        """Return the namespaces this credential has any role in; None: all of them."""
        return None if self.platform or EVERYWHERE in self.grants else frozenset(self.grants)

    @property
    def home(self) -> str | None:
        """The namespace of a credential that has only one: the default of its requests."""
        return next(iter(self.grants)) if len(self.grants) == 1 and EVERYWHERE not in self.grants else None
