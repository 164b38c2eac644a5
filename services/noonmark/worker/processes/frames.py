"""Messages between a worker and its child processes: JSON objects, each after its length."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final

import orjson

MOST_BYTES: Final = 4 * 1024 * 1024
_LENGTH: Final = struct.Struct(">I")


class FrameError(ValueError):
    """The received bytes are not a valid message."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Encode a message.

    Raises:
        FrameError: it is too large.
    """
    data = orjson.dumps(message)
    if len(data) > MOST_BYTES:
        raise FrameError(_too_large(len(data)))
    return _LENGTH.pack(len(data)) + data


async def receive(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Wait for the next message.

    Raises:
        EOFError: the other side closed the connection.
        FrameError: the bytes are not a valid message.
    """
    return _decoded(await reader.readexactly(_size(await reader.readexactly(_LENGTH.size))))


def receive_blocking(source: socket.socket) -> dict[str, Any]:
    """Wait for the next message without an event loop; raises like `receive`."""
    return _decoded(_exactly(source, _size(_exactly(source, _LENGTH.size))))


def _exactly(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _size(head: bytes) -> int:
    size: int = _LENGTH.unpack(head)[0]
    if size > MOST_BYTES:
        raise FrameError(_too_large(size))
    return size


def _too_large(size: int) -> str:
    return f"the message has {size} bytes; the limit is {MOST_BYTES}"


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        message = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FrameError(f"not JSON: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise FrameError("not an object with a type")
    return message
