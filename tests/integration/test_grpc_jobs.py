"""gRPC jobs against a real server on loopback, over real connections."""

from __future__ import annotations

import asyncio
import base64
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc
import orjson
import pytest
import uvloop
from tests.support.grpc_server import METHOD, GrpcServer, descriptor_set, echo, retry_info
from tests.unit.worker.hands import hand

from noonmark.attempts.running_attempt import NotBegunError
from noonmark.attempts.secrets import SecretError, SecretResolver
from noonmark.core.access.webhook_signature import read_secret, verify
from noonmark.core.states import AttemptOutcome, DeliverySemantics, RunState
from noonmark.worker.grpc.channels import MAX_ANSWER_BYTES, GrpcChannels
from noonmark.worker.grpc.kind import GrpcKind
from noonmark.worker.handlers.coroutines import LoopExecutor

LOOPBACK = ("127.0.0.0/8",)
CERTIFICATES = Path(__file__).parents[1] / "support" / "certificates"
SIGNING_SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()


def job(
    port: int,
    *,
    host: str = "grpc://127.0.0.1",
    timeout_seconds: float = 30.0,
    delivery="at_least_once",
    **payload,
):
    made = hand(kind="grpc", timeout_seconds=timeout_seconds, fence=7, attempt=2)
    made.payload = {
        "target": f"{host}:{port}",
        "method": METHOD,
        "descriptor_set": descriptor_set(),
        "message": {"userId": 42, "due": "2026-06-01T09:00:00Z"},
        "metadata": {},
        **payload,
    }
    made.delivery = DeliverySemantics(delivery)
    made.began_at = time.monotonic()
    return made


def kind(allow=LOOPBACK, *, lookup=None, secrets=None, clock=time.monotonic):
    async def keys(namespace):
        assert namespace == "tests"
        return [read_secret(SIGNING_SECRET)]

    return GrpcKind(
        GrpcChannels(allow, lookup=lookup, clock=clock), SecretResolver(None, secrets or {}), keys
    )


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    uvloop.run(scenario())


def answering(status: grpc.StatusCode, details: str = "", trailers: tuple[tuple[str, bytes], ...] = ()):
    async def answer(_request, context):
        await context.abort(status, details, trailing_metadata=trailers)

    return answer


async def one(made, answer=echo, **options):
    """Serve one call of a job made for the server's port; return server and outcome."""
    async with GrpcServer(answer) as server:
        grpc_kind = kind(**options)
        try:
            return server, await grpc_kind.run(made(server.port))
        finally:
            await grpc_kind.close()


def test_a_call_names_its_run_and_its_answer_is_the_result():
    async def scenario():
        made = []

        def of(port):
            made.append(job(port, metadata={"authorization": "Bearer ${secret://token}"}))
            return made[0]

        server, outcome = await one(of, secrets={"NOONMARK_SECRET_TESTS__TOKEN": "s3cr3t-t0ken"})
        assert (outcome.state, outcome.attempt_outcome) == (RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
        assert orjson.loads(outcome.result) == {
            "status": "OK",
            "answer": {"userId": 42, "due": "2026-06-01T09:00:00Z"},
        }
        run_row = made[0].run
        (call,) = server.calls
        assert call["authorization"] == "Bearer s3cr3t-t0ken"
        assert call["webhook-id"] == call["noonmark-run-id"] == str(run_row.id)
        assert (call["noonmark-fence"], call["noonmark-attempt"]) == ("7", "2")
        assert call["noonmark-scheduled-for"] == "2026-06-01T09:00:00Z"
        assert call["idempotency-key"] == f"{run_row.job_id}/2026-06-01T09:00:00.000000Z/schedule/"
        assert 28 < server.left[0] <= 30
        signed = verify(call, server.bodies[0], [SIGNING_SECRET], now=made[0].run.started_at.timestamp())
        assert (signed.id, signed.fence, signed.attempt) == (str(run_row.id), 7, 2)

    run(scenario)


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, RunState.RETRYING, None),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, RunState.RETRYING, None),
        (grpc.StatusCode.ABORTED, RunState.RETRYING, None),
        (grpc.StatusCode.INTERNAL, RunState.RETRYING, None),
        (grpc.StatusCode.UNKNOWN, RunState.RETRYING, None),
        (grpc.StatusCode.DEADLINE_EXCEEDED, RunState.RETRYING, None),
        (grpc.StatusCode.INVALID_ARGUMENT, RunState.DEAD, "not_retryable"),
        (grpc.StatusCode.NOT_FOUND, RunState.DEAD, "not_retryable"),
        (grpc.StatusCode.ALREADY_EXISTS, RunState.DEAD, "not_retryable"),
        (grpc.StatusCode.PERMISSION_DENIED, RunState.DEAD, "not_retryable"),
        (grpc.StatusCode.UNAUTHENTICATED, RunState.DEAD, "not_retryable"),
        (grpc.StatusCode.FAILED_PRECONDITION, RunState.DEAD, "not_retryable"),
        (grpc.StatusCode.OUT_OF_RANGE, RunState.DEAD, "not_retryable"),
        (grpc.StatusCode.UNIMPLEMENTED, RunState.DEAD, "not_retryable"),
        (grpc.StatusCode.DATA_LOSS, RunState.DEAD, "not_retryable"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_which_statuses_are_tried_again(status, state, reason):
    async def scenario():
        _, outcome = await one(job, answering(status, "no stock"))
        assert (outcome.state, outcome.reason) == (state, reason)
        assert outcome.error.endswith(f" ended with {status.name}: no stock")

    run(scenario)


def test_a_retry_info_of_the_server_is_obeyed():
    async def scenario():
        trailers = (("grpc-status-details-bin", retry_info(93.5)),)
        _, outcome = await one(job, answering(grpc.StatusCode.UNAVAILABLE, "later", trailers))
        assert outcome.state is RunState.RETRYING
        assert 93.5 <= outcome.retry_seconds < 120

    run(scenario)


def test_the_deadline_of_the_attempt_ends_the_call_at_both_ends():
    async def scenario():
        async def never(_request, _context):
            await asyncio.Event().wait()

        server, outcome = await one(lambda port: job(port, timeout_seconds=0.5), never)
        assert outcome.attempt_outcome is AttemptOutcome.TIMED_OUT
        assert outcome.state is RunState.RETRYING
        assert outcome.error == "timed out after 0.5 s"
        await asyncio.wait_for(server.cancelled.wait(), 10)

    run(scenario)


def test_a_cancelled_attempt_ends_its_call_at_the_server():
    async def scenario():
        async def never(_request, _context):
            await asyncio.Event().wait()

        async with GrpcServer(never) as server:
            grpc_kind = kind()
            task = asyncio.ensure_future(grpc_kind.run(job(server.port)))
            await asyncio.wait_for(server.begun.wait(), 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.cancelled.wait(), 10)
            await grpc_kind.close()

    run(scenario)


def test_no_call_is_made_once_the_lease_may_be_over():
    async def scenario():
        async with GrpcServer(echo) as server:
            grpc_kind, attempt = kind(), job(server.port)
            attempt.may_begin = lambda _: False
            with pytest.raises(NotBegunError):
                await grpc_kind.run(attempt)
            attempt.may_begin = lambda _: True
            assert (await grpc_kind.run(attempt)).state is RunState.SUCCEEDED
            assert len(server.calls) == 1
            await grpc_kind.close()

    run(scenario)


def test_calls_work_on_the_loop_that_workers_run_them_on():
    async def scenario():
        done = asyncio.Event()
        loop, outcomes = asyncio.get_running_loop(), []

        def take(batch):
            outcomes.extend(batch)
            if len(outcomes) == 20:
                loop.call_soon_threadsafe(done.set)

        grpc_kind = kind()
        executor = LoopExecutor(grpc_kind.run, take, grpc_kind.close)
        async with GrpcServer(echo) as server:
            executor.submit([job(server.port) for _ in range(20)])
            await asyncio.wait_for(done.wait(), 20)
        await asyncio.to_thread(executor.close)
        assert {o.state for o in outcomes} == {RunState.SUCCEEDED}

    asyncio.run(scenario())


def test_loopback_is_refused_unless_the_operator_allows_it():
    async def scenario():
        server, outcome = await one(job, allow=())
        assert (outcome.state, outcome.reason) == (RunState.DEAD, "not_retryable")
        assert outcome.error.startswith(
            f"not sent: grpc://127.0.0.1:{server.port} may not be called: 127.0.0.1 is not public"
        )
        assert server.calls == []

    run(scenario)


def test_a_name_that_means_something_else_later_is_judged_again():
    """DNS rebinding: the first answer may be called, the second may not, and the open connection is not used."""

    async def scenario():
        answers = iter([["127.0.0.1"], ["127.0.0.1", "169.254.169.254"], ["127.0.0.1"]])
        now = [1000.0]

        async def lookup(_host):
            return next(answers)

        async with GrpcServer(echo) as server:
            grpc_kind = kind(lookup=lookup, clock=lambda: now[0])
            assert (
                await grpc_kind.run(job(server.port, host="grpc://billing.test"))
            ).state is RunState.SUCCEEDED
            # Within the time that addresses are kept, nobody asks.
            assert (
                await grpc_kind.run(job(server.port, host="grpc://billing.test"))
            ).state is RunState.SUCCEEDED
            now[0] += 11
            refused = await grpc_kind.run(job(server.port, host="grpc://billing.test"))
            assert refused.state is RunState.DEAD
            assert "169.254.169.254 is the metadata service" in refused.error
            again = await grpc_kind.run(job(server.port, host="grpc://billing.test"))
            assert again.state is RunState.SUCCEEDED
            assert len(server.calls) == 3
            await grpc_kind.close()

    run(scenario)


def test_the_vetted_address_is_called_and_the_name_is_only_told():
    async def scenario():
        asked = []

        async def lookup(host):
            asked.append(host)
            return ["127.0.0.1"]

        authorities = []

        async def answer(request, context):
            authorities.append(context.peer())
            return request

        # No resolver of this machine knows the name: only the vetted address can have been called.
        server, outcome = await one(
            lambda port: job(port, host="grpc://no-such-name.invalid"), answer, lookup=lookup
        )
        assert outcome.state is RunState.SUCCEEDED
        assert asked == ["no-such-name.invalid"]
        assert authorities[0].startswith("ipv4:127.0.0.1:")
        assert len(server.calls) == 1

    run(scenario)


def test_a_proxy_of_the_environment_is_not_used(monkeypatch):
    for name in ("http_proxy", "https_proxy", "grpc_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def scenario():
        _, outcome = await one(job)
        assert outcome.state is RunState.SUCCEEDED

    run(scenario)


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
def test_a_call_that_never_left_is_tried_again_whatever_the_delivery(unused_port, delivery):
    async def scenario():
        grpc_kind = kind()
        outcome = await grpc_kind.run(job(unused_port, delivery=delivery))
        assert outcome.state is RunState.RETRYING
        assert outcome.error.startswith(
            f"not sent: no connection to grpc://127.0.0.1:{unused_port}: failed to connect"
        )
        await grpc_kind.close()

    run(scenario)


@pytest.mark.parametrize(
    ("delivery", "state"), [("at_least_once", RunState.RETRYING), ("at_most_once", RunState.UNKNOWN)]
)
def test_a_connection_that_breaks_under_a_call_leaves_its_outcome_unknown(delivery, state):
    async def scenario():
        took = asyncio.Event()

        async def swallow(reader, writer):
            """Speak just enough HTTP/2 to be given a call, then hang up."""
            writer.write(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")  # SETTINGS
            data = b""
            while b"billing" not in data and len(data) < 300:
                data += await reader.read(4096)
            took.set()
            writer.transport.abort()

        server = await asyncio.start_server(swallow, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        grpc_kind = kind()
        outcome = await grpc_kind.run(job(port, delivery=delivery))
        assert took.is_set()
        assert outcome.state is state
        assert "UNAVAILABLE" in outcome.error
        await grpc_kind.close()
        server.close()

    run(scenario)


def test_words_of_a_server_about_its_own_calls_prove_nothing():
    async def scenario():
        handed_on = answering(
            grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses; last error: x"
        )
        _, outcome = await one(lambda port: job(port, delivery="at_most_once"), handed_on)
        assert outcome.state is RunState.UNKNOWN

    run(scenario)


def test_an_answer_that_blames_the_request_is_a_known_failure():
    async def scenario():
        refusing = answering(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota")
        _, outcome = await one(lambda port: job(port, delivery="at_most_once"), refusing)
        assert outcome.state is RunState.RETRYING

    run(scenario)


def test_a_server_that_never_greets_was_sent_nothing():
    async def scenario():
        writers = []

        async def mute(_reader, writer):
            writers.append(writer)

        server = await asyncio.start_server(mute, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        grpc_kind = kind()
        outcome = await grpc_kind.run(job(port, timeout_seconds=0.4, delivery="at_most_once"))
        assert (outcome.state, outcome.attempt_outcome) == (RunState.RETRYING, AttemptOutcome.TIMED_OUT)
        assert outcome.error == f"not sent: no connection to grpc://127.0.0.1:{port} within 0.4 s"
        await grpc_kind.close()
        for writer in writers:
            writer.transport.abort()
        server.close()
        await server.wait_closed()

    run(scenario)


def test_an_answer_larger_than_allowed_is_not_read():
    async def scenario():
        async def much(_request, _context):
            return {"note": "x" * (MAX_ANSWER_BYTES + 1)}

        _, outcome = await one(job, much)
        assert (outcome.state, outcome.reason) == (RunState.DEAD, "not_retryable")
        assert "RESOURCE_EXHAUSTED" in outcome.error

    run(scenario)


def test_an_answer_too_long_to_keep_leaves_its_beginning():
    async def scenario():
        async def much(_request, _context):
            return {"note": "x" * 100_000 + "\0"}

        _, outcome = await one(job, much)
        assert outcome.state is RunState.SUCCEEDED
        result = orjson.loads(outcome.result)
        assert result["answer_bytes"] == 100_005
        assert len(result["answer_excerpt"]) == 4096
        assert result["answer_excerpt"].startswith('{"note":"xxx')

    run(scenario)


def test_an_answer_that_the_descriptors_do_not_describe_is_no_failure():
    """The server has done the work: trying again would do it twice."""

    async def scenario():
        async with GrpcServer(echo) as server:
            server._method = _Garbled(server._method)
            grpc_kind = kind()
            outcome = await grpc_kind.run(job(server.port))
            assert outcome.state is RunState.SUCCEEDED
            assert orjson.loads(outcome.result) == {
                "status": "OK",
                "answer_bytes": 3,
                "unreadable": "is not a billing.v1.Invoice as the descriptor set defines it",
            }
            await grpc_kind.close()

    run(scenario)


class _Garbled:
    def __init__(self, method):
        self.decode = method.decode

    def encode(self, _answer):
        return b"\xff\xff\xff"


def tls_server(answer=echo):
    pair = ((CERTIFICATES / "server.key").read_bytes(), (CERTIFICATES / "server.pem").read_bytes())
    return GrpcServer(answer, grpc.ssl_server_credentials([pair]))


AUTHORITY = (CERTIFICATES / "ca.pem").read_text()


@pytest.mark.parametrize(
    ("host", "tls", "works"),
    [
        ("billing.test", {"ca": AUTHORITY}, True),
        ("grpcs://billing.test", {"ca": AUTHORITY}, True),
        ("other.test", {"ca": AUTHORITY, "server_name": "billing.test"}, True),
        ("127.0.0.1", {"ca": AUTHORITY, "server_name": "billing.test"}, True),
        ("other.test", {"ca": AUTHORITY}, False),
        ("127.0.0.1", {"ca": AUTHORITY}, False),
        ("billing.test", {"ca": AUTHORITY, "server_name": "other.test"}, False),
        ("billing.test", None, False),
    ],
)
def test_the_certificate_must_be_for_the_name(host, tls, works):
    async def scenario():
        async def lookup(_host):
            return ["127.0.0.1"]

        async with tls_server() as server:
            grpc_kind = kind(lookup=lookup)
            outcome = await grpc_kind.run(job(server.port, host=host, tls=tls))
            assert outcome.state is (RunState.SUCCEEDED if works else RunState.RETRYING), outcome.error
            assert len(server.calls) == works
            if not works:
                assert outcome.error.startswith("not sent: no connection to")
            await grpc_kind.close()

    run(scenario)


def test_a_text_that_is_no_certificate_is_told_before_anything_is_sent():
    async def scenario():
        grpc_kind = kind()
        broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        outcome = await grpc_kind.run(job(443, host="127.0.0.1", tls={"ca": broken}))
        assert (outcome.state, outcome.error) == (
            RunState.DEAD,
            "not sent: tls.ca is not a certificate in PEM",
        )
        await grpc_kind.close()

    run(scenario)


def test_a_missing_secret_stops_the_call():
    async def scenario():
        async with GrpcServer(echo) as server:
            grpc_kind = kind()
            with pytest.raises(SecretError, match="secret://token"):
                await grpc_kind.run(job(server.port, metadata={"authorization": "secret://token"}))
            assert server.calls == []
            await grpc_kind.close()

    run(scenario)


def test_places_are_forgotten_when_nobody_uses_them_or_there_are_too_many():
    async def scenario():
        now = [1000.0]

        async def lookup(host):
            return ["10.0.0.1" if host.startswith("refused") else "127.0.0.1"]

        async with GrpcServer(echo) as server:
            grpc_kind = kind(lookup=lookup, clock=lambda: now[0])
            channels = grpc_kind._channels
            assert (
                await grpc_kind.run(job(server.port, host="grpc://first.test"))
            ).state is RunState.SUCCEEDED
            for number in range(300):
                await grpc_kind.run(job(server.port, host=f"grpc://refused-{number}.test"))
            assert len(channels._targets) < 260
            assert any("first.test" in key[0] for key in channels._targets)
            now[0] += 121
            assert (
                await grpc_kind.run(job(server.port, host="grpc://second.test"))
            ).state is RunState.SUCCEEDED
            assert [key[0] for key in channels._targets] == [f"second.test:{server.port}"]
            await grpc_kind.close()

    run(scenario)
