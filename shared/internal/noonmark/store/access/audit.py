"""The audit log: who changed, or tried to change, what, with the object before and after."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import orjson
import psycopg

from noonmark.store.database.statements import statement

_LONGEST: Final = 500
"""Maximum stored length of names and reasons from outside, in characters."""

_LARGEST: Final = 64 * 1024
"""Maximum stored size of a document, in bytes."""

_NUL: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


class Outcome(StrEnum):
    """The outcome of an action."""

    DONE = "done"
    DENIED = "denied"
    FAILED = "failed"


class AuditEntry(NamedTuple):
    """One action.

    Attributes:
        actor: the principal's id.
        actor_name: its name at the time.
        action: the kind of object and a verb: `job.create`, `key.revoke`.
        namespace: the namespace; None if the action concerned the installation.
        object: id or name of the object.
        outcome: the outcome of the action.
        reason: why it was denied or failed, or the reason that the actor gave.
        before: the object before, without secrets.
        after: the object after, without secrets.
        request_id: id of the request, also in logs and responses.
        address: where the request came from.
    """

    actor: str
    actor_name: str
    action: str
    namespace: str | None
    object: str | None
    outcome: Outcome
    reason: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    request_id: str
    address: str | None


def write_entries(connection: psycopg.Connection, entries: Sequence[AuditEntry]) -> None:
    """Insert entries in the caller's transaction, so that they are committed together with the change."""
    if not entries:
        return
    connection.execute(
        statement("insert_audit_entries"),
        {
            **columns_of_origin(entries),
            "namespaces": [_text(entry.namespace) for entry in entries],
            "objects": [_text(entry.object) for entry in entries],
            "outcomes": [entry.outcome.value for entry in entries],
            "reasons": [_text(entry.reason) for entry in entries],
            "befores": [_document(entry.before) for entry in entries],
            "afters": [_document(entry.after) for entry in entries],
        },
    )


def columns_of_origin(entries: Sequence[AuditEntry]) -> dict[str, list[Any]]:
    """Return who acted, how, by which request and from where, as columns in the form that can be stored."""
    return {
        "actors": [entry.actor[:_LONGEST] for entry in entries],
        "actor_names": [_text(entry.actor_name) for entry in entries],
        "actions": [entry.action for entry in entries],
        "request_ids": [entry.request_id for entry in entries],
        "addresses": [entry.address for entry in entries],
    }


def _text(given: str | None) -> str | None:
    """Return a text in the form and the length that can be stored."""
    return None if given is None else given[:_LONGEST].replace("\0", "")


def _document(given: dict[str, Any] | None) -> str | None:
    """Return a document as JSON; for one that is too large, only its size."""
    if given is None:
        return None
    text = orjson.dumps(given, default=str, option=orjson.OPT_NON_STR_KEYS)
    if len(text) > _LARGEST:
        text = orjson.dumps({"omitted": f"{len(text)} bytes"})
    # Postgres stores no NUL; two backslashes before the u are one backslash, which stays.
    return _NUL.sub(r"\1", text.decode())
