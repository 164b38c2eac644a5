"""gRPC jobs: makes one guarded unary call per attempt, and turns the response into an outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC
from typing import Any, Final

import grpc
import grpc.aio
import orjson
import psycopg

from noonmark.attempts.context import context_of
from noonmark.attempts.outcomes import NO_RETRY, failed, is_final, succeeded, timed_out, too_late
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretResolver
from noonmark.core.failures import Failure
from noonmark.core.kinds.grpc_call import BadCallError, check_metadata, parse_target
from noonmark.core.kinds.grpc_methods import GrpcMethod, method_of
from noonmark.core.kinds.http_request import BadRequestError
from noonmark.core.states import AttemptOutcome
from noonmark.handlers.results import ResultError, encode_result
from noonmark.store.runs.finish import Outcome
from noonmark.worker.grpc.channels import GrpcChannels
from noonmark.worker.grpc.status import failure_of, was_sent
from noonmark.worker.http.address_guard import AddressRefusedError
from noonmark.worker.http.signing import signature_headers, trace_headers
from noonmark.worker.kinds.lookups import without_timeout

KeysOf = Callable[[str], Awaitable[Sequence[bytes]]]

EXCERPT_CHARS: Final = 4 * 1024
"""Characters that are stored of a response that is too long."""

_LATE_SECONDS: Final = 0.05
"""A call that ends this close to the deadline of the attempt has timed out."""

_NO_ANSWER: Final = Failure(grpc="UNAVAILABLE", retryable=True, unknown=True)
"""A connection that broke under the call."""


class GrpcKind:
    """Makes the call of each attempt and evaluates the response."""

    def __init__(self, channels: GrpcChannels, secrets: SecretResolver, keys_of: KeysOf) -> None:
        """Create the kind.

        Args:
            channels: provides channels to targets.
            secrets: resolves references in message, metadata and TLS settings.
            keys_of: returns the signing keys of a namespace.
        """
        self._channels = channels
        self._secrets = secrets
        self._keys_of = keys_of

    async def run(self, attempt: RunningAttempt) -> Outcome:
        """Make the call; its deadline is the remaining time of the attempt.

        Raises:
            SecretError: a reference in the job cannot be resolved.
            NotBegunError: the call was not made, because the lease of the worker may be over.
        """
        spec = attempt.payload
        ends_at, connected = 0.0, False
        try:
            target = parse_target(spec["target"])
            method = method_of(spec["descriptor_set"], spec["method"])
            request = method.encode(self._secrets.fill(attempt, spec.get("message") or {}))
            tls = self._secrets.fill(attempt, spec.get("tls"))
            async with without_timeout(attempt):
                keys = await self._keys_of(attempt.run.namespace)
            if (too_old := too_late(attempt)) is not None:
                return too_old
            metadata = self._metadata(attempt, request, keys)
            ends_at = attempt.began_at + attempt.timeout_seconds
            async with self._channels.use(target, tls, fresh=is_final(attempt, _NO_ANSWER)) as channel:
                connected = await _connect(channel, ends_at)
                attempt.ensure_may_begin()
                answer = await _call(channel, method.path, request, metadata, ends_at - time.monotonic())
        except grpc.aio.AioRpcError as error:
            late = time.monotonic() > ends_at - _LATE_SECONDS
            return (
                timed_out(attempt)
                if late and _is_late(error)
                else _not_ok(attempt, error, connected=connected)
            )
        except (BadCallError, BadRequestError, AddressRefusedError, psycopg.Error, OSError) as error:
            return _not_sent(attempt, error)
        return succeeded(attempt, {"status": "OK", **_kept(method, answer)})

    async def close(self) -> None:
        """Close the connections."""
        await self._channels.close()

    def _metadata(
        self, attempt: RunningAttempt, request: bytes, keys: Sequence[bytes]
    ) -> list[tuple[str, str]]:
        given = check_metadata(self._secrets.fill(attempt, attempt.payload.get("metadata") or {}))
        signed = {name.lower(): text for name, text in signature_headers(attempt, keys, request).items()}
        return list({**given, **_own_metadata(attempt), **signed, **trace_headers(attempt, given)}.items())


async def _connect(channel: grpc.aio.Channel, ends_at: float) -> bool:
    """Wait until the channel has connected or failed; return whether it has connected.

    Raises:
        TimeoutError: neither happened in the time of the attempt.
    """
    waiting = (grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING)
    state = channel.get_state(try_to_connect=True)
    if state in waiting:
        # End before the timeout of the attempt, which would mean that the outcome is unknown.
        async with asyncio.timeout(ends_at - _LATE_SECONDS - time.monotonic()):
            while state in waiting:
                await channel.wait_for_state_change(state)
                state = channel.get_state(try_to_connect=True)
    return state is grpc.ChannelConnectivity.READY


async def _call(
    channel: grpc.aio.Channel,
    path: str,
    request: bytes,
    metadata: list[tuple[str, str]],
    seconds: float,
) -> bytes:
    """Make a unary call with bytes in and out. Cancelling it cancels the call at the server."""
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    return await method(
        request, timeout=max(0.0, seconds), metadata=grpc.aio.Metadata(*metadata), wait_for_ready=False
    )


def _own_metadata(attempt: RunningAttempt) -> Mapping[str, str]:
    """Return metadata that identifies the run, with the names of the HTTP headers in lower case."""
    ctx = context_of(attempt)
    return {
        "webhook-id": str(ctx.run_id),
        "idempotency-key": ctx.idempotency_key,
        "noonmark-run-id": str(ctx.run_id),
        "noonmark-attempt": str(ctx.attempt),
        "noonmark-fence": str(ctx.fence),
        "noonmark-scheduled-for": ctx.scheduled_for.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }


def _is_late(error: grpc.aio.AioRpcError) -> bool:
    return error.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def _not_sent(attempt: RunningAttempt, error: Exception) -> Outcome:
    """Return the outcome of a call that was not sent."""
    target = attempt.payload["target"]
    if isinstance(error, AddressRefusedError):
        return failed(attempt, f"not sent: {target} may not be called: {error}", failure=NO_RETRY)
    if isinstance(error, BadCallError | BadRequestError):
        return failed(attempt, f"not sent: {error}", failure=NO_RETRY)
    if isinstance(error, psycopg.Error):
        return failed(attempt, f"not sent: cannot query the database: {error}"[:1000])
    if isinstance(error, TimeoutError):
        text = f"not sent: no connection to {target} within {attempt.timeout_seconds:g} s"
        failure = Failure(grpc="DEADLINE_EXCEEDED")
        return failed(attempt, text, outcome=AttemptOutcome.TIMED_OUT, failure=failure)
    text = getattr(error, "strerror", None) or str(error)
    return failed(attempt, f"not sent: {target} cannot be resolved: {text}"[:1000])


def _not_ok(attempt: RunningAttempt, error: grpc.aio.AioRpcError, *, connected: bool) -> Outcome:
    """Return the outcome of a call that did not end with OK."""
    text = (error.details() or "no details")[:1000]
    place = attempt.payload["target"]
    sent = was_sent(error, connected=connected)
    failure = failure_of(error, sent=sent)
    if not sent:
        return failed(attempt, f"not sent: no connection to {place}: {text}", failure=failure)
    return failed(attempt, f"the call of {place} ended with {error.code().name}: {text}", failure=failure)


def _kept(method: GrpcMethod, answer: bytes) -> dict[str, Any]:
    """Return what is stored of a response. The call succeeded: its response cannot make it a failure."""
    try:
        decoded = method.decode(answer)
    except ValueError as error:
        return {"answer_bytes": len(answer), "unreadable": str(error)}
    try:
        kept = {"answer": decoded}
        # Including the status, which also counts against the limit.
        encode_result({"status": "OK", **kept})
    except ResultError:
        excerpt = orjson.dumps(decoded).decode()[:EXCERPT_CHARS].replace("\\u0000", "\\ufffd")
        return {"answer_bytes": len(answer), "answer_excerpt": excerpt}
    return kept
