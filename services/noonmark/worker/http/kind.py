"""HTTP jobs: prepares and signs the request of an attempt, and turns the response into an outcome."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeGuard

import psycopg

from noonmark.attempts.context import context_of
from noonmark.attempts.outcomes import NO_RETRY, awaited, failed, is_final, succeeded, timed_out, too_late
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretError, SecretResolver, refuse_references
from noonmark.core.failures import Failure
from noonmark.store.outcomes.callback_rows import Expected
from noonmark.store.runs.finish import Outcome
from noonmark.worker.http.callback_tokens import CallbackTokens
from noonmark.worker.http.client import HttpExecutor
from noonmark.worker.http.response import HttpResult
from noonmark.worker.http.signing import SigningKeys, signature_headers, trace_headers
from noonmark.worker.kinds.lookups import PostgresLookups, without_timeout

_MARGIN_SECONDS: Final = 0.02
"""The request times out this long before the attempt, because only it knows whether it was sent."""

_NO_ANSWER: Final = Failure(unknown=True)
"""A connection that broke after the request."""


class HttpKind:
    """Sends the request of each attempt, signed, and evaluates the response."""

    def __init__(
        self, http: HttpExecutor, secrets: SecretResolver, lookups: PostgresLookups, callbacks: CallbackTokens
    ) -> None:
        """Create the kind.

        Args:
            http: sends requests.
            secrets: resolves references in headers, body and TLS settings.
            lookups: reads signing keys from the database.
            callbacks: opens callbacks.
        """
        self._http = http
        self._secrets = secrets
        self._lookups = lookups
        self._keys = SigningKeys(lookups)
        self._callbacks = callbacks

    async def run(self, attempt: RunningAttempt) -> Outcome:
        """Send the request.

        Raises:
            NotBegunError: it was not sent, because the lease of the worker may be over.
        """
        try:
            spec = self._resolve(attempt)
            keys, token = self._keys.cached(attempt.run.namespace), None
            if keys is None or _wants_callback(spec):
                async with without_timeout(attempt):
                    keys = await self._keys.of(attempt.run.namespace)
                    token = await self._open_callback(attempt, spec)
            elif attempt.deadline_seconds is not None:
                attempt.start_clock()
        except SecretError as error:
            return failed(attempt, f"not sent: {error}", failure=Failure(retryable=error.retryable))
        except psycopg.Error as error:
            return failed(attempt, f"not sent: cannot query the database: {error}"[:1000])
        except _Taken:
            # Any outcome of it is fenced.
            return failed(attempt, "not sent: this worker does not own the run any more", failure=NO_RETRY)
        if (late := too_late(attempt)) is not None:
            return late
        left = attempt.timeout_seconds - (time.monotonic() - attempt.began_at) - _MARGIN_SECONDS
        result = await self._http.execute(
            spec,
            context_of(attempt),
            max(left, 0.0),
            sign=partial(_headers, attempt, keys, token),
            fresh=is_final(attempt, _NO_ANSWER),
            before_send=attempt.ensure_may_begin,
        )
        return _verdict(attempt, result, waits=token is not None and result.status == 202)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
        await self._lookups.close()

    def _resolve(self, attempt: RunningAttempt) -> Any:
        """Resolve the secrets of a payload; the URL may not contain any, because others can read it."""
        spec = attempt.payload
        # Most payloads have none; searching the text is faster than walking through the values.
        if "secret:" not in (attempt.run.work or "") or not isinstance(spec, Mapping):
            return spec
        refuse_references(spec.get("url"), "url")
        return self._secrets.fill(attempt, spec)

    async def _open_callback(self, attempt: RunningAttempt, spec: object) -> str | None:
        if not _wants_callback(spec):
            return None
        token = await self._callbacks.open(attempt)
        if token is None:
            raise _Taken
        # The total deadline of the run also bounds the callback.
        seconds = min(float(spec["callback"]["timeout_seconds"]), attempt.age().left_seconds)
        attempt.ensure_extras().callback = Expected(max(seconds, 0.0))
        return token


def _wants_callback(spec: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(spec, Mapping) and spec.get("callback") is not None


class _Taken(Exception):  # noqa: N818 - an event, not a fault
    """This worker does not own the run any more."""


def _headers(
    attempt: RunningAttempt, keys: Sequence[bytes], token: str | None, body: bytes
) -> Mapping[str, str]:
    headers = signature_headers(attempt, keys, body)
    headers.update(trace_headers(attempt, attempt.payload.get("headers")))
    if token is not None:
        headers["Noonmark-Callback-Token"] = token
    return headers


def _verdict(attempt: RunningAttempt, result: HttpResult, *, waits: bool) -> Outcome:
    """Return the outcome for a response, or for its absence."""
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
        # A response shows what happened; a connection that broke after the request does not.
        unknown=result.sent and result.status is None,
    )
    return failed(attempt, result.error or f"answered {result.status}", failure=failure)
