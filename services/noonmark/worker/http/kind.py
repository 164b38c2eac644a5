"""HTTP jobs: the request of an attempt made ready, and what its answer says about the attempt."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import psycopg

from noonmark.attempts.context import context_of
from noonmark.attempts.outcomes import NO_RETRY, awaited, failed, succeeded, timed_out
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretError, SecretResolver, refuse_references
from noonmark.core.failures import Failure
from noonmark.store.outcomes.callback_rows import Expected
from noonmark.store.runs.finish import Outcome
from noonmark.worker.http.callback_tokens import CallbackTokens
from noonmark.worker.http.client import HttpExecutor
from noonmark.worker.http.response import HttpResult
from noonmark.worker.http.signing import SigningKeys, signature_headers, trace_headers
from noonmark.worker.kinds.lookups import PostgresLookups

_MARGIN_SECONDS: Final = 0.02
"""The request ends this much before the attempt: only we know whether it had reached its target."""


class HttpKind:
    """Sends the request of each attempt, signed, and judges the answer."""

    def __init__(
        self, http: HttpExecutor, secrets: SecretResolver, lookups: PostgresLookups, callbacks: CallbackTokens
    ) -> None:
        """Take the parts.

        Args:
            http: sends.
            secrets: resolves the references in headers, body and TLS settings.
            lookups: asks the database for signing keys.
            callbacks: opens callbacks.
        """
        self._http = http
        self._secrets = secrets
        self._lookups = lookups
        self._keys = SigningKeys(lookups)
        self._callbacks = callbacks

    async def run(self, attempt: RunningAttempt) -> Outcome:
        """Send the request."""
        try:
            spec = self._resolve(attempt)
            keys = await self._keys.of(attempt.run.namespace)
            token = await self._open_callback(attempt, spec)
        except SecretError as error:
            return failed(attempt, f"not sent: {error}", failure=Failure(retryable=error.retryable))
        except psycopg.Error as error:
            return failed(attempt, f"not sent: the database could not be asked: {error}"[:1000])
        except _Taken:
            # Whatever is said of it is fenced off.
            return failed(attempt, "not sent: the run is not this worker's any more", failure=NO_RETRY)
        left = attempt.timeout_seconds - (time.monotonic() - attempt.began_at) - _MARGIN_SECONDS
        result = await self._http.execute(
            spec, context_of(attempt), max(left, 0.0), sign=partial(_headers, attempt, keys, token)
        )
        return _verdict(attempt, result, waits=token is not None and result.status == 202)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
        await self._lookups.close()

    def _resolve(self, attempt: RunningAttempt) -> Any:
        """Resolve the secrets of a payload, where it has any; what others can read may hold none."""
        spec = attempt.payload
        # Most work has none, which its text tells faster than a walk through it.
        if "secret:" not in (attempt.run.work or "") or not isinstance(spec, Mapping):
            return spec
        refuse_references(spec.get("url"), "url")
        return self._secrets.fill(attempt, spec)

    async def _open_callback(self, attempt: RunningAttempt, spec: object) -> str | None:
        if not isinstance(spec, Mapping) or spec.get("callback") is None:
            return None
        token = await self._callbacks.open(attempt)
        if token is None:
            raise _Taken
        # The total deadline of the run bounds its target, too.
        seconds = min(float(spec["callback"]["timeout_seconds"]), attempt.age().left_seconds)
        attempt.ensure_extras().callback = Expected(max(seconds, 0.0))
        return token


class _Taken(Exception):  # noqa: N818 - an event, not a fault
    """The run went to somebody else."""


def _headers(
    attempt: RunningAttempt, keys: Sequence[bytes], token: str | None, body: bytes
) -> Mapping[str, str]:
    headers = {
        **signature_headers(attempt, keys, body),
        **trace_headers(attempt, attempt.payload.get("headers")),
    }
    return headers if token is None else {**headers, "Noonmark-Callback-Token": token}


def _verdict(attempt: RunningAttempt, result: HttpResult, *, waits: bool) -> Outcome:
    """Say what the answer, or its absence, means for the run."""
    if waits:
        return awaited(attempt)
    if result.ok:
        return succeeded(attempt, result.kept())
    if result.timed_out:
        return timed_out(attempt, sent=result.sent)
    failure = Failure(
        status=result.status,
        retry_after_seconds=result.retry_after_seconds,
        retryable=False if result.refused else None,
        # An answer says what happened; a connection that broke after the request does not.
        unknown=result.sent and result.status is None,
    )
    return failed(attempt, result.error or f"answered {result.status}", failure=failure)
