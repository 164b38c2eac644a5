"""Signs outbound calls with the keys of their namespace (docs/webhooks.md)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC
from functools import partial
from typing import Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.access.webhook_signature import read_secret, sign, sign_fence
from noonmark.store.access.signing_keys import ensure_signing_keys
from noonmark.telemetry.logs import get_logger
from noonmark.worker.kinds.lookups import PostgresLookups

REFRESH_SECONDS: Final = 15.0
"""A rotated or retired key counts within twice this."""

_MOST_NAMESPACES: Final = 10_000
_PAUSE_SECONDS: Final = 2.0

TRACEPARENT: Final = "traceparent"

_log = get_logger()


class SigningKeys:
    """The valid keys of namespaces, made at their first call and read again now and then."""

    def __init__(self, lookups: PostgresLookups) -> None:
        """Take what asks the database."""
        self._lookups = lookups
        self._known: dict[str, tuple[float, list[bytes]]] = {}
        self._asked: dict[str, asyncio.Task[list[bytes]]] = {}

    async def of(self, namespace: str) -> Sequence[bytes]:
        """Return the keys that sign now, newest first. Old ones serve on while they are read again.

        Raises:
            psycopg.Error: the database cannot be asked, and no keys are known yet.
        """
        found = self._known.get(namespace)
        if found is not None and time.monotonic() < found[0]:
            return found[1]
        task = self._asked.get(namespace)
        if task is None:
            task = self._asked[namespace] = asyncio.create_task(self._read(namespace))
            task.add_done_callback(partial(self._read_again, namespace))
        return found[1] if found is not None else await asyncio.shield(task)

    async def _read(self, namespace: str) -> list[bytes]:
        keys = await self._lookups.call(partial(ensure_signing_keys, namespace=namespace))
        return [read_secret(key.secret) for key in keys]

    def _read_again(self, namespace: str, task: asyncio.Task[list[bytes]]) -> None:
        self._asked.pop(namespace, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            if len(self._known) >= _MOST_NAMESPACES:
                self._known.clear()
            self._known[namespace] = (time.monotonic() + REFRESH_SECONDS, task.result())
            return
        if namespace in self._known:
            # They serve on, and are asked for again after a pause.
            self._known[namespace] = (time.monotonic() + _PAUSE_SECONDS, self._known[namespace][1])
        _log.warning("signing_keys_not_read", namespace=namespace, error=str(error).strip())


def signature_headers(attempt: RunningAttempt, keys: Sequence[bytes], body: bytes) -> Mapping[str, str]:
    """Return the headers that vouch for one attempt of a run.

    Their time is the database's, by its word at the start of the attempt and our clock since: a worker whose
    clock is wrong is still believed.
    """
    run = attempt.run
    call_id = str(run.id)
    timestamp = int(run.started_at.timestamp() + time.monotonic() - attempt.taken_at)
    return {
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(call_id, timestamp, body, keys),
        "Noonmark-Signature": sign_fence(
            call_id,
            timestamp,
            keys,
            fence=attempt.fence,
            attempt=run.attempt,
            scheduled_for=run.scheduled_for.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        ),
    }


def trace_headers(attempt: RunningAttempt, given: object) -> Mapping[str, str]:
    """Return the header by which a target goes on with the trace of an attempt, if that is traced.

    Args:
        attempt: the run.
        given: headers of the job; one of that name is the job's own business.
    """
    if attempt.trace is None:
        return {}
    if isinstance(given, Mapping) and any(str(name).lower() == TRACEPARENT for name in given):
        return {}
    return {TRACEPARENT: attempt.trace.context.traceparent}
