"""Signs outbound calls with the keys of their namespace (docs/webhooks.md)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.access.webhook_signature import read_secret, sign, sign_fence
from noonmark.store.access.signing_keys import ensure_signing_keys
from noonmark.telemetry.logs import get_logger
from noonmark.worker.http.request import instant_text
from noonmark.worker.kinds.lookups import PostgresLookups

REFRESH_SECONDS: Final = 15.0
"""A rotated or retired key takes effect within twice this time."""

_MOST_NAMESPACES: Final = 10_000
_PAUSE_SECONDS: Final = 2.0

TRACEPARENT: Final = "traceparent"

_log = get_logger()


class SigningKeys:
    """The valid keys of namespaces, created at the first call and read again regularly."""

    def __init__(self, lookups: PostgresLookups) -> None:
        """Use these look-ups to read the keys."""
        self._lookups = lookups
        self._cached: dict[str, tuple[float, list[bytes]]] = {}
        self._reading: dict[str, asyncio.Task[list[bytes]]] = {}

    async def of(self, namespace: str) -> Sequence[bytes]:
        """Return the current keys, newest first. While they are read again, the old ones are used.

        Raises:
            psycopg.Error: the database is down, and no keys are cached.
        """
        cached = self.cached(namespace)
        return cached if cached is not None else await asyncio.shield(self._reader(namespace))

    def cached(self, namespace: str) -> Sequence[bytes] | None:
        """Return the keys without waiting, and have old ones read again; None if they were never read."""
        found = self._cached.get(namespace)
        if found is None:
            return None
        if time.monotonic() >= found[0]:
            self._reader(namespace)
        return found[1]

    def _reader(self, namespace: str) -> asyncio.Task[list[bytes]]:
        task = self._reading.get(namespace)
        if task is None:
            task = self._reading[namespace] = asyncio.create_task(self._read(namespace))
            task.add_done_callback(partial(self._read_again, namespace))
        return task

    async def _read(self, namespace: str) -> list[bytes]:
        keys = await self._lookups.call(partial(ensure_signing_keys, namespace=namespace))
        return [read_secret(key.secret) for key in keys]

    def _read_again(self, namespace: str, task: asyncio.Task[list[bytes]]) -> None:
        self._reading.pop(namespace, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            if len(self._cached) >= _MOST_NAMESPACES:
                self._cached.clear()
            self._cached[namespace] = (time.monotonic() + REFRESH_SECONDS, task.result())
            return
        if namespace in self._cached:
            # The old keys stay in use, and are read again after a pause.
            self._cached[namespace] = (time.monotonic() + _PAUSE_SECONDS, self._cached[namespace][1])
        _log.warning("signing_keys_not_read", namespace=namespace, error=str(error).strip())


def signature_headers(attempt: RunningAttempt, keys: Sequence[bytes], body: bytes) -> dict[str, str]:
    """Return the headers that sign one attempt of a run.

    Their time is the database's at the start of the attempt, plus the time that has passed since, so
    receivers accept a worker whose clock is wrong.
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
            scheduled_for=instant_text(run.scheduled_for),
        ),
    }


def trace_headers(attempt: RunningAttempt, given: object) -> Mapping[str, str]:
    """Return the header with which a target can continue the trace of an attempt, if it is traced.

    Args:
        attempt: the run.
        given: headers of the job; if it sets this header itself, its value is used.
    """
    if attempt.trace is None:
        return {}
    if isinstance(given, Mapping) and any(str(name).lower() == TRACEPARENT for name in given):
        return {}
    return {TRACEPARENT: attempt.trace.context.traceparent}
