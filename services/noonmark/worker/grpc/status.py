"""What the status of a gRPC call means for the attempt."""

from __future__ import annotations

from typing import Final

import grpc
import grpc.aio
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, message_factory
from google.protobuf.message import DecodeError, Message

from noonmark.core.failures import Failure

PASSING: Final = frozenset(
    {
        "ABORTED",
        "CANCELLED",
        "DEADLINE_EXCEEDED",
        "INTERNAL",
        "RESOURCE_EXHAUSTED",
        "UNAVAILABLE",
        "UNKNOWN",
    }
)
"""Statuses after which another attempt can succeed. Servers return INTERNAL and UNKNOWN when they fail, like
500 in HTTP. The other statuses blame the request, and the next request would be the same."""

UNSURE: Final = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE", "UNKNOWN"})
"""Statuses that the client also sets itself, when a connection breaks during a call. They cannot be
distinguished from those of a server, so after one of them the server may have acted, or still be acting."""

DETAILS: Final = "grpc-status-details-bin"

_NOT_CONNECTED: Final = "failed to connect to all addresses"
_TOO_LARGE: Final = "message larger than max"


def failure_of(error: grpc.aio.AioRpcError, *, sent: bool) -> Failure:
    """Return the facts about a failed call that the retry rule needs.

    Args:
        error: the error of the call.
        sent: False if it was certainly not sent.
    """
    name = error.code().name
    # A retry would repeat the work of the server and return the same response.
    too_large = name == "RESOURCE_EXHAUSTED" and _TOO_LARGE in (error.details() or "")
    return Failure(
        grpc=name,
        retry_after_seconds=_retry_after(error.trailing_metadata()),
        retryable=name in PASSING and not too_large,
        unknown=sent and (name in UNSURE or too_large),
    )


def was_sent(error: grpc.aio.AioRpcError, *, connected: bool) -> bool:
    """Return whether the server may have received a call.

    A server can pass on the error of its own call that failed to connect, so this text proves nothing if
    there was a connection.
    """
    return (
        connected
        or error.code() is not grpc.StatusCode.UNAVAILABLE
        or not (error.details() or "").startswith(_NOT_CONNECTED)
    )


def _retry_after(trailers: grpc.aio.Metadata | None) -> float | None:
    """Return the delay of a google.rpc.RetryInfo among the details of a status."""
    for name, value in trailers or ():
        if name == DETAILS and isinstance(value, bytes):
            return retry_delay(value)
    return None


def retry_delay(details: bytes) -> float | None:
    """Return the seconds of the first google.rpc.RetryInfo in a serialised google.rpc.Status, if any."""
    try:
        status = _STATUS.FromString(details)
        for packed in status.details:  # type: ignore[attr-defined]
            if packed.type_url.rpartition("/")[2] == "google.rpc.RetryInfo":
                delay = _RETRY_INFO.FromString(packed.value).retry_delay  # type: ignore[attr-defined]
                return max(0.0, float(delay.seconds) + float(delay.nanos) / 1e9)
    except DecodeError:
        pass
    return None


def _rpc_messages() -> tuple[type[Message], type[Message]]:
    """Build the parts of google.rpc.Status and RetryInfo that are needed, in a separate pool."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="google/rpc/status.proto", package="google.rpc")
    file.syntax = "proto3"
    file.dependency.extend([any_pb2.DESCRIPTOR.name, duration_pb2.DESCRIPTOR.name])
    status, info = file.message_type.add(name="Status"), file.message_type.add(name="RetryInfo")
    status.field.add(
        name="details",
        number=3,
        type=field.TYPE_MESSAGE,
        label=field.LABEL_REPEATED,
        type_name=".google.protobuf.Any",
    )
    info.field.add(
        name="retry_delay",
        number=1,
        type=field.TYPE_MESSAGE,
        label=field.LABEL_OPTIONAL,
        type_name=".google.protobuf.Duration",
    )
    pool = descriptor_pool.DescriptorPool()
    for raw in (any_pb2.DESCRIPTOR.serialized_pb, duration_pb2.DESCRIPTOR.serialized_pb):
        pool.AddSerializedFile(raw)
    pool.AddSerializedFile(file.SerializeToString())
    made = [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"google.rpc.{name}"))
        for name in ("Status", "RetryInfo")
    ]
    return made[0], made[1]


_STATUS, _RETRY_INFO = _rpc_messages()
