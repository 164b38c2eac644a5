"""Audit entries of commands that change an installation over its database, without the API."""

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
    """Write the entry of a change inside its transaction, as done by the user of this process.

    Args:
        connection: in the transaction of the change.
        action: a verb and what it was done to: `pool.create`.
        target: what it was done to: `pool:reports`.
        namespace: of that; None: it concerns the installation.
        reason: why, if that was said.
        before: how it was, without secrets.
        after: how it is now, likewise.
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
