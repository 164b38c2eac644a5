"""Audit entries of commands that change the database without the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg


def write_entry(
    connection: psycopg.Connection,
    action: str,
    target: str,
    *,
    namespace: str | None = None,
    reason: str | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write the audit entry of a change in its transaction, with the user of this process as actor.

    Args:
        connection: in the transaction of the change.
        action: object and verb: `pool.create`.
        target: the object: `pool:reports`.
        namespace: namespace of the object; None for the whole installation.
        reason: the reason, if one was given.
        before: the old values, without secrets.
        after: the new values, without secrets.
    """
    from noonmark.cli.connections.api import local_principal  # noqa: PLC0415 - drivers take a while to load
    from noonmark.core.ids import uuid7  # noqa: PLC0415
    from noonmark.store.access.audit import AuditEntry, Outcome, write_entries  # noqa: PLC0415

    user = local_principal()
    entry = AuditEntry(
        actor=user.id,
        actor_name=user.name,
        action=action,
        namespace=namespace,
        object=target,
        outcome=Outcome.DONE,
        reason=reason,
        before=dict(before) if before is not None else None,
        after=dict(after) if after is not None else None,
        request_id=str(uuid7()),
        address=None,
    )
    write_entries(connection, [entry])
