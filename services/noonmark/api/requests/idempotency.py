"""Changes that a repeat with the same `Idempotency-Key` does not make again."""

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
    """Make a change in one transaction, or return the answer that its key got before.

    Args:
        caller: authorised here.
        namespace: of the change.
        key: of the request; None: it came without one.
        change: makes it, and the answer that is kept.
        changes: what is changed, for the audit log, where that is known before.

    Raises:
        ProblemError: the key came with another request; or the change raises one, and is not made.
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
    """Keep the answer to a change that took several transactions; where somebody was faster, return theirs.

    Until it is kept, a repeat makes the change again: only for those that do nothing twice.
    """
    if key is None:
        return reply
    with caller.parts.database.changing((namespace,)) as session:
        before = key.before(session.raw)
        if before is None:
            key.keep(session.raw, reply)
    return before or reply
