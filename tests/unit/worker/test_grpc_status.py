"""What is read off a gRPC status: whether to try again, when, and whether the server may have acted."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest
from tests.support.grpc_server import retry_info

from noonmark.core.failures import Failure
from noonmark.worker.grpc.status import failure_of, retry_delay, was_sent


def error(code, details="", *trailers):
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailers), details)


@pytest.mark.parametrize("seconds", [0.0, 1.25, 93.5])
def test_the_delay_of_a_retry_info(seconds):
    assert retry_delay(retry_info(seconds)) == seconds


@pytest.mark.parametrize(
    "details", [b"", b"\xff", b"\x1a\x02\x0a\x00", b"\x08\x08\x12\x02no", retry_info(1)[:-1], b"\x1a\x7f"]
)
def test_details_without_one_or_broken_ask_for_nothing(details):
    assert retry_delay(details) is None


def test_a_negative_delay_is_none_at_all():
    assert retry_delay(retry_info(-5)) == 0.0


def test_facts_of_a_failure():
    trailers = (("grpc-status-details-bin", retry_info(7)), ("other", "x"))
    assert failure_of(error(grpc.StatusCode.ABORTED, "x", *trailers), sent=True) == Failure(
        grpc="ABORTED", retry_after_seconds=7.0, retryable=True
    )
    assert failure_of(error(grpc.StatusCode.NOT_FOUND), sent=True) == Failure(
        grpc="NOT_FOUND", retryable=False
    )


@pytest.mark.parametrize("code", ["CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE", "UNKNOWN"])
def test_statuses_that_a_broken_connection_gives_too_leave_open_what_the_server_did(code):
    status = grpc.StatusCode[code]
    assert failure_of(error(status), sent=True).unknown
    assert not failure_of(error(status), sent=False).unknown


def test_an_answer_too_large_would_come_again_and_the_servers_work_with_it():
    for words in (
        "CLIENT: Received message larger than max (5 vs. 4)",
        "Sent message larger than max (5 vs. 4)",
    ):
        failure = failure_of(error(grpc.StatusCode.RESOURCE_EXHAUSTED, words), sent=True)
        assert (failure.retryable, failure.unknown) == (False, True)


def test_only_a_failure_to_connect_proves_that_nothing_was_sent():
    refused = error(grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses; last error: x")
    assert not was_sent(refused, connected=False)
    assert was_sent(refused, connected=True)
    assert was_sent(error(grpc.StatusCode.UNAVAILABLE, "Socket closed"), connected=False)
    assert was_sent(error(grpc.StatusCode.INTERNAL, "failed to connect to all addresses"), connected=False)
