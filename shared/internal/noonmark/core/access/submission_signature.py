"""Signatures of submissions on Kafka: they cover publisher, namespace, expiry and content.

A signature is in one header, `noonmark-signature`, next to the event in either content mode:
`v1.KEY_ID.NAMESPACE.EXPIRES.MAC`. MAC is base64 of the HMAC-SHA256, by the publisher's key, of these lines,
each ended by a line feed: `noonmark-submission-v1`, key id, namespace, expiry in Unix seconds, the event's
source, id, type and sequence (an empty line where it has none), and the SHA-256 of the record's value in hex.

The signature of a CloudEvents batch covers all its events: source, id and sequence are empty lines, the type
is the media type of batches.

A signed event can be neither altered nor sent in another publisher's name, and a signature is not valid for
another event. No part can contain a line feed, so no two events give the same lines.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SIGNATURE_HEADER: Final = "noonmark-signature"
JWT_HEADER: Final = "noonmark-jwt"

BATCH_TYPE: Final = "application/cloudevents-batch+json"

MOST_AHEAD_SECONDS: Final = 24 * 3600
"""The longest validity of a signature."""

LEEWAY_SECONDS: Final = 300
"""How far a publisher's clock may be ahead before its longest expiry is refused."""

USUAL_SECONDS: Final = 23 * 3600
"""The default validity: an event may wait long, and clocks differ."""

KEY_ID: Final = r"[a-z0-9]{12}"
NAMESPACE: Final = r"[a-z0-9][a-z0-9_-]{0,62}"
_WORDS: Final = "noonmark-submission-v1"
_MAC_BYTES: Final = 32
SIGNATURE_PATTERN: Final = rf"^v1\.({KEY_ID})\.({NAMESPACE})\.([0-9]{{1,12}})\.([A-Za-z0-9+/]{{43}}=)$"
_HEADER: Final = re.compile(SIGNATURE_PATTERN[1:-1])
_WRITTEN_KEY: Final = re.compile(rf"nmp_({KEY_ID})_([0-9a-f]{{64}})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class SubmissionSignatureError(ValueError):
    """A key or signature cannot be used; the message says why and never shows a secret."""


@dataclass(frozen=True, slots=True)
class PublisherKey:
    """A key that signs submissions, as its publisher holds it.

    Attributes:
        key_id: its id, which is in every signature.
        secret: the 32 bytes that sign.
    """

    key_id: str
    secret: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> PublisherKey:
        """Read a written key: `nmp_<key id>_<secret in hex>`.

        Raises:
            SubmissionSignatureError: it is not a publisher key.
        """
        found = _WRITTEN_KEY.fullmatch(text.strip())
        if found is None:
            problem = "an API key, which cannot sign" if text.startswith("nmk_") else "not written as one"
            raise SubmissionSignatureError(
                f"the publisher key is {problem}: use nmp_<key id>_<64 hex digits>"
            )
        return cls(found[1], bytes.fromhex(found[2]))

    @property
    def text(self) -> str:
        """The written key; only its publisher may see it."""
        return f"nmp_{self.key_id}_{self.secret.hex()}"


class SignedEvent(NamedTuple):
    """The signed parts of an event.

    Attributes:
        source: attribute of the event.
        id: attribute of the event.
        type: attribute of the event.
        sequence: attribute of the event, if it has one.
        value: the value of the Kafka record, whatever the content mode.
    """

    source: str
    id: str
    type: str
    sequence: int | None
    value: bytes


def signed_batch(value: bytes) -> SignedEvent:
    """Return the signed parts of a record with a CloudEvents batch: its value."""
    return SignedEvent("", "", BATCH_TYPE, None, value)


class Signature(NamedTuple):
    """A received signature: it is not trusted until `fits` returns True.

    Attributes:
        key_id: the key that it claims to be made with.
        namespace: the only one in which the event may act.
        expires_at: Unix seconds.
        mac: 32 bytes.
    """

    key_id: str
    namespace: str
    expires_at: int
    mac: bytes

    @classmethod
    def read(cls, header: bytes | str | None) -> Signature:
        """Read the header's value.

        Raises:
            SubmissionSignatureError: it is not a signature.
        """
        text = header.decode("ascii", "replace") if isinstance(header, bytes) else header or ""
        found = _HEADER.fullmatch(text)
        mac = _decoded(found[4]) if found is not None else b""
        if found is None or len(mac) != _MAC_BYTES:
            raise SubmissionSignatureError("it is not written as v1.KEY_ID.NAMESPACE.EXPIRES.MAC")
        return cls(found[1], found[2], int(found[3]), mac)

    def fits(self, secret: bytes, event: SignedEvent) -> bool:
        """Return, in constant time, whether this key signed this event for this namespace and expiry."""
        wanted = _mac(secret, self.key_id, self.namespace, self.expires_at, event)
        return hmac.compare_digest(wanted, self.mac)

    def check_time(self, at: float) -> None:
        """Check that the signature was valid at an instant, in Unix seconds.

        Raises:
            SubmissionSignatureError: it had expired, or is valid for too long.
        """
        ahead = self.expires_at - at
        if ahead <= 0:
            raise SubmissionSignatureError(f"it expired {-ahead:.0f} s before the event was received")
        if ahead > MOST_AHEAD_SECONDS + LEEWAY_SECONDS:
            raise SubmissionSignatureError(
                f"it expires {ahead:.0f} s after the event was received; {MOST_AHEAD_SECONDS} s are allowed"
            )


def sign(key: PublisherKey, event: SignedEvent, *, namespace: str, expires_at: int) -> str:
    """Return the value of the header `noonmark-signature`.

    Args:
        key: of the publisher.
        event: what is to be published.
        namespace: the one that the event acts in.
        expires_at: Unix seconds; at most `MOST_AHEAD_SECONDS` from now.

    Raises:
        SubmissionSignatureError: the namespace or an attribute is not valid in an event.
    """
    if not re.fullmatch(NAMESPACE, namespace):
        raise SubmissionSignatureError(f"{namespace!r} is not a namespace: use 1 to 63 of a-z, 0-9, - and _")
    if any(_CONTROL.search(part) for part in (event.source, event.id, event.type)):
        raise SubmissionSignatureError("source, id and type of an event hold no control characters")
    mac = base64.b64encode(_mac(key.secret, key.key_id, namespace, expires_at, event)).decode()
    return f"v1.{key.key_id}.{namespace}.{expires_at}.{mac}"


def signature_header(
    key: PublisherKey, event: SignedEvent, *, namespace: str, now: float, valid_seconds: float = USUAL_SECONDS
) -> tuple[str, bytes]:
    """Return the signature header of an event, name and value.

    Args:
        key: of the publisher.
        event: what is to be published.
        namespace: the one that the event acts in.
        now: Unix seconds.
        valid_seconds: how long the signature is valid; at most `MOST_AHEAD_SECONDS`.

    Raises:
        SubmissionSignatureError: it cannot be signed.
    """
    value = sign(key, event, namespace=namespace, expires_at=int(now + valid_seconds))
    return SIGNATURE_HEADER, value.encode()


def _mac(secret: bytes, key_id: str, namespace: str, expires_at: int, event: SignedEvent) -> bytes:
    sequence = "" if event.sequence is None else event.sequence
    digest = hashlib.sha256(event.value).hexdigest()
    content = (
        f"{_WORDS}\n{key_id}\n{namespace}\n{expires_at}\n"
        f"{event.source}\n{event.id}\n{event.type}\n{sequence}\n{digest}\n"
    )
    return hmac.digest(secret, content.encode("utf-8", "surrogatepass"), "sha256")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
