"""Messages between a worker and a child that runs handlers: JSON objects, each behind its length."""

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
    """What came is no message."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as it is sent.

    Raises:
        FrameError: nobody would take it.
    """
    data = orjson.dumps(message)
    if len(data) > MOST_BYTES:
        raise FrameError(_too_large(len(data)))
    return _LENGTH.pack(len(data)) + data


async def receive(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Wait for the next message.

    Raises:
        EOFError: there will be none.
        FrameError: it is none.
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
    return f"a message of {size} bytes, {MOST_BYTES} at most are taken"


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        message = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FrameError(f"not JSON: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise FrameError("no object with a type")
    return message
