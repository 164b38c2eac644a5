"""Makes changes idempotent: a repeat with the same `Idempotency-Key` gets the stored response."""

from __future__ import annotations

from collections.abc import Callable

from noonmark.api.http.replies import IdempotencyKeyHash, StoredResponse
from noonmark.api.requests.routing import AuditedChange, Caller


def run_idempotent(
    caller: Caller,
    namespace: str,
    key: IdempotencyKeyHash | None,
    change: Callable[[AuditedChange], StoredResponse],
    *,
    changes: str | None = None,
) -> StoredResponse:
    """Make a change in one transaction, or return the stored response of its key.

    Args:
        caller: the caller; it is authorised here.
        namespace: namespace of the change.
        key: idempotency key of the request; None: it has none.
        change: makes the change and returns the response to store.
        changes: object of the change for the audit log, if it is known in advance.

    Raises:
        ProblemError: if the key was used for another request, or the change fails; nothing is changed then.
    """
    with caller.changing(namespace) as act:
        act.object = changes
        if key is not None and (before := key.before(act.session.raw)) is not None:
            act.after = {"replayed": True}
            return before
        reply = change(act)
        if key is not None:
            key.keep(act.session.raw, reply)
    return reply


def store_response(
    caller: Caller, namespace: str, key: IdempotencyKeyHash | None, reply: StoredResponse
) -> StoredResponse:
    """Store the response to a change of several transactions; return the one of a faster repeat.

    Until the response is stored, a repeat makes the change again, so the change must be idempotent.
    """
    if key is None:
        return reply
    with caller.parts.database.changing((namespace,)) as session:
        before = key.before(session.raw)
        if before is None:
            key.keep(session.raw, reply)
    return before or reply
