"""A gRPC server to call in tests, its service described only by the descriptors that jobs carry."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any, Self

import grpc
import grpc.aio
from google.protobuf import any_pb2, descriptor_pb2, duration_pb2

from noonmark.core.kinds.grpc_methods import method_of

METHOD = "billing.v1.Billing/Send"


def descriptor_set(*more: descriptor_pb2.FileDescriptorProto) -> str:
    """The service `billing.v1.Billing`: Send is unary, Watch is not."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="billing.proto", package="billing.v1", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    line = file.message_type.add(name="Line")
    line.field.add(name="text", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    message = file.message_type.add(name="Invoice")
    message.field.add(name="user_id", number=1, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    message.field.add(name="note", number=2, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    message.field.add(
        name="lines",
        number=3,
        type=field.TYPE_MESSAGE,
        type_name=".billing.v1.Line",
        label=field.LABEL_REPEATED,
    )
    message.field.add(
        name="due",
        number=4,
        type=field.TYPE_MESSAGE,
        type_name=".google.protobuf.Timestamp",
        label=field.LABEL_OPTIONAL,
    )
    service = file.service.add(name="Billing")
    service.method.add(name="Send", input_type=".billing.v1.Invoice", output_type=".billing.v1.Invoice")
    service.method.add(
        name="Watch", input_type=".billing.v1.Invoice", output_type=".billing.v1.Line", server_streaming=True
    )
    return encoded(file, *more)


def encoded(*files: descriptor_pb2.FileDescriptorProto) -> str:
    return base64.b64encode(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()).decode()


def retry_info(seconds: float) -> bytes:
    """A google.rpc.Status with a google.rpc.RetryInfo, written field by field."""
    delay = duration_pb2.Duration()
    delay.FromNanoseconds(round(seconds * 1e9))
    raw = delay.SerializeToString()
    info = any_pb2.Any(
        type_url="type.googleapis.com/google.rpc.RetryInfo", value=b"\x0a" + bytes([len(raw)]) + raw
    )
    packed = info.SerializeToString()
    return b"\x08\x08\x1a" + bytes([len(packed)]) + packed


Answer = Callable[[dict[str, Any], grpc.aio.ServicerContext], Awaitable[dict[str, Any]]]


class GrpcServer:
    """Serves `Send` on loopback; `answer` takes and gives JSON. `calls` has the metadata of each call."""

    def __init__(self, answer: Answer, credentials: grpc.ServerCredentials | None = None) -> None:
        self.answer = answer
        self.calls: list[dict[str, str]] = []
        self.cancelled = asyncio.Event()
        self.begun = asyncio.Event()
        self.left: list[float] = []
        self.bodies: list[bytes] = []
        self._credentials = credentials
        self._method = method_of(descriptor_set(), METHOD)
        self._server = grpc.aio.server()
        self.port = 0

    async def __aenter__(self) -> Self:
        handler = grpc.unary_unary_rpc_method_handler(self._serve)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("billing.v1.Billing", {"Send": handler}),)
        )
        if self._credentials is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            self.port = self._server.add_secure_port("127.0.0.1:0", self._credentials)
        await self._server.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._server.stop(0)

    async def _serve(self, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        self.calls.append({name: str(value) for name, value in context.invocation_metadata() or ()})
        self.bodies.append(request)
        self.left.append(context.time_remaining() or 0.0)
        self.begun.set()
        try:
            answer = await self.answer(self._method.decode(request), context)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return self._method.encode(answer)


async def echo(request: dict[str, Any], _context: grpc.aio.ServicerContext) -> dict[str, Any]:
    return request
