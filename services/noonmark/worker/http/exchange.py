"""One request and its response, over a connection of aiohttp's pool.

Pool, name resolution, TLS and the parser of responses are aiohttp's. Its session is not used: redirects,
cookies, proxies, authentication, streamed bodies and traces take most of its time, and no job has them. A
session also repeats a request when a kept connection breaks, which would be two calls under one fence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage

from noonmark.worker.http.request import Request
from noonmark.worker.http.response import MAX_BODY_BYTES, Body, read_body

_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=None)
"""The caller limits the time of everything together."""

_SWITCHING_PROTOCOLS: Final = 101


@dataclass(slots=True)
class Sending:
    """The sending of a request.

    Attributes:
        before_send: called when there is a connection; if it raises, nothing is sent.
        sent: whether the target may have received the request.
    """

    before_send: Callable[[], None] | None
    sent: bool = False


@dataclass(slots=True)
class Response:
    """A response, complete or cut at the limit of its body."""

    status: int
    headers: Mapping[str, str]
    body: Body


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """Where requests go.

    Attributes:
        connect: finds or opens a connection; nothing of it is sent.
        place: path and query.
        host: the value of the header.
    """

    connect: aiohttp.ClientRequest
    place: str
    host: str


def encode(request: Request, destination: Destination, headers: Mapping[str, str], *, last: bool) -> bytes:
    """Return the bytes of a request.

    Args:
        request: its method and headers are valid: none contains a line break.
        destination: where it goes.
        headers: further ones, of our own.
        last: the target shall close the connection after its response.
    """
    lines = [f"{request.method} {destination.place} HTTP/1.1\r\nHost: {destination.host}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in request.headers.items()]
    lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
    lines += [request.defaults, "Connection: close\r\n\r\n" if last else "\r\n"]
    head = "".join(lines).encode()
    return head if request.body is None else head + request.body


async def exchange(
    connector: aiohttp.BaseConnector,
    destination: Destination,
    request: Request,
    data: bytes,
    sending: Sending,
) -> Response:
    """Send the bytes of a request once, and read its response.

    Raises:
        aiohttp.ClientError: no connection, or it broke.
        aiohttp.http.HttpProcessingError: the response is not valid HTTP.
        OSError: as from the connector.
    """
    connection = await connector.connect(destination.connect, [], _NO_TIMEOUT)
    if sending.before_send is not None:
        try:
            sending.before_send()
        except BaseException:
            connection.release()
            raise
    complete = False
    try:
        protocol = connection.protocol
        transport = connection.transport
        if protocol is None or transport is None:
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params(
            skip_payload=request.method == "HEAD", read_until_eof=True, read_bufsize=MAX_BODY_BYTES
        )
        sending.sent = True
        transport.write(data)
        head, payload = await _read_head(protocol)
        body = await read_body(payload, request)
        # A target can answer before it has read everything: then the rest would precede the next request.
        complete = not body.truncated and not transport.get_write_buffer_size()
    finally:
        (connection.release if complete else connection.close)()
    return Response(head.code, head.headers, body)


async def _read_head(protocol: ResponseHandler) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
    """Return the head of the final response, after any that only inform."""
    while True:
        head, payload = await protocol.read()
        if not 100 <= head.code < 200 or head.code == _SWITCHING_PROTOCOLS:
            return head, payload
