"""The rules for calls of gRPC jobs: target, method name and metadata.

One set of rules for intake and worker, like `noonmark.core.kinds.http_request` for HTTP: intake refuses what
breaks them, and the worker checks again before it sends. The worker's guard decides which addresses may be
called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from noonmark.core.kinds.http_request import BadRequestError, parse_url

MAX_TARGET: Final = 300
MAX_METADATA: Final = 50
MAX_METADATA_BYTES: Final = 8 * 1024
"""Names and values together: what servers accept by default, minus what noonmark adds."""

MAX_SET_BYTES: Final = 64 * 1024
"""Bytes of a descriptor set, decoded."""

METADATA_NAME: Final = r"^[0-9a-z_.-]{1,200}$"
METADATA_VALUE: Final = r"^[\x20-\x7e]*$"
"""Patterns of JSON Schema, and what the protocol allows of text."""

METHOD_NAME: Final = r"^([A-Za-z_][A-Za-z0-9_]*\.)*[A-Za-z_][A-Za-z0-9_]*/[A-Za-z_][A-Za-z0-9_]*$"

# A job that set the first kind could break the framing of its call, one that set the second could pretend
# # to be another run.
_FRAMING: Final = frozenset({"connection", "content-type", "host", "te", "transfer-encoding", "upgrade"})
_OURS: Final = frozenset({"idempotency-key", "user-agent"})
_RESERVED_PREFIXES: Final = ("grpc-", "noonmark-", "proxy-", "webhook-")

_SCHEMES: Final = frozenset({"grpc", "grpcs"})
_TARGET: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.]*)://)?([!-~]+)")
_NAME: Final = re.compile(METADATA_NAME[1:-1])
_VALUE: Final = re.compile(METADATA_VALUE[1:-1])


class BadCallError(ValueError):
    """The call of a gRPC job is not valid. Values are never quoted.

    Attributes:
        message: what is wrong, without its subject.
        expected: what is allowed, if the field's general description does not say it.
    """

    def __init__(self, message: str, expected: str = "", *, subject: str = "") -> None:
        super().__init__(f"{subject} {message}" if subject else message)
        self.message = message
        self.expected = expected


@dataclass(frozen=True, slots=True)
class GrpcTarget:
    """A parsed target.

    Attributes:
        host: lower case; an IPv6 address without brackets.
        port: always set.
        tls: whether the connection is encrypted: always, unless its scheme is grpc.
        is_address: the host is an IP address, so no name will be resolved.
    """

    host: str
    port: int
    tls: bool
    is_address: bool

    @property
    def authority(self) -> str:
        """Host and port as the call sends them to the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_target(target: object) -> GrpcTarget:
    """Parse a target: `host`, `host:port`, either with `grpc://` (no TLS) or `grpcs://` before it.

    Without a port it is 443, or 80 with `grpc://`.

    Raises:
        BadCallError: anything else, such as another scheme, a path, user information.
    """
    if not isinstance(target, str):
        raise BadCallError(f"must be a string, not {type(target).__name__}", subject="the target")
    if len(target) > MAX_TARGET:
        raise BadCallError(f"has more characters than {MAX_TARGET}", subject="the target")
    found = _TARGET.fullmatch(target)
    if found is None or any(mark in found[2] for mark in "/?#"):
        raise BadCallError("is neither a host nor host:port", subject="the target")
    scheme = (found[1] or "grpcs").lower()
    if scheme not in _SCHEMES:
        raise BadCallError(
            "has a scheme that is neither grpc:// nor grpcs://; names are resolved by the worker",
            subject="the target",
        )
    try:
        place = parse_url(f"{'http' if scheme == 'grpc' else 'https'}://{found[2]}/")
    except BadRequestError as error:
        raise BadCallError(_of_target(error.message), subject="the target") from None
    return GrpcTarget(place.host, place.port, scheme == "grpcs", place.is_address)


def _of_target(message: str) -> str:
    """Adapt a message about URLs to targets."""
    return message.replace("send credentials in a header", "send credentials as metadata").replace(
        "is not a URL: ", ""
    )


def check_metadata(metadata: object) -> dict[str, str]:
    """Return a copy of a job's metadata if all may be sent.

    Raises:
        BadCallError: naming the entry; its value, which may be a secret, is not shown.
    """
    if not isinstance(metadata, Mapping):
        raise BadCallError("metadata must be an object of names and values")
    if len(metadata) > MAX_METADATA:
        raise BadCallError(f"{len(metadata)} entries of metadata are too many; {MAX_METADATA} are allowed")
    for name, value in metadata.items():
        _check_name(name)
        if not isinstance(value, str) or _VALUE.fullmatch(value) is None:
            raise BadCallError(f"the value of {name} holds a control character or is not ASCII text")
    if sum(len(name) + len(value) for name, value in metadata.items()) > MAX_METADATA_BYTES:
        raise BadCallError(
            f"the metadata is longer than {MAX_METADATA_BYTES} bytes",
            f"names and values of at most {MAX_METADATA_BYTES} bytes together",
        )
    return dict(metadata)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise BadCallError(f"the name {name!r} is not 1 to 200 of a-z, 0-9, '_', '-' and '.'")
    if name in _FRAMING or name in _OURS or name.startswith(_RESERVED_PREFIXES):
        raise BadCallError(
            f"{name} is set by gRPC or noonmark and cannot be given",
            "names that neither frame the call nor name its run "
            "(not grpc-…, noonmark-…, webhook-…, proxy-…, idempotency-key, user-agent)",
        )
    if name.endswith("-bin"):
        raise BadCallError(f"{name} is binary metadata, which cannot be given", "text under another name")
