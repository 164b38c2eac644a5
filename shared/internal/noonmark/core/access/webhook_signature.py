"""Signatures of outbound calls: the scheme of Standard Webhooks, and a second one for the run's fence.

`webhook-signature` covers `id.timestamp.body`, as https://www.standardwebhooks.com says, so that any library
of that scheme can check it. It says nothing about our own headers; `noonmark-signature` covers those by which
a receiver orders calls: `fence.id.timestamp.FENCE.ATTEMPT.SCHEDULED_FOR`. It begins with a word that no id
has, so that a body which looks like the second content never makes a signature for it.

Both carry one signature per valid key, so that keys can be rotated without a call that a receiver refuses.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets as random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

TOLERANCE_SECONDS: Final = 300
"""How far the time of a call may be from the receiver's, in both directions."""

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the scheme's mark, no secret
_SECRET_BYTES: Final = 32
_MIN_SECRET_BYTES: Final = 16
_MAX_SIGNATURES: Final = 32
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_ID: Final = re.compile(r"[!-\-/-~]{1,200}")
"""Printable and without a dot, which separates the signed fields."""


class SecretError(ValueError):
    """A signing secret is not written as `whsec_` and base64 of at least 16 bytes. It is never quoted."""


class SignatureError(ValueError):
    """A call cannot be trusted; the message says why."""


@dataclass(frozen=True, slots=True)
class SignedCall:
    """The trusted facts of a call.

    Attributes:
        id: the run's id: the same for every attempt of the run.
        timestamp: Unix seconds of this attempt.
        fence: increases every time the run is queued; None if the call does not have it.
        attempt: number of the attempt; None if the call does not have it.
        scheduled_for: the due instant; None if the call does not have it.
    """

    id: str
    timestamp: int
    fence: int | None = None
    attempt: int | None = None
    scheduled_for: datetime | None = None


def new_secret() -> str:
    """Make a signing secret in its written form."""
    return SECRET_PREFIX + base64.b64encode(random.token_bytes(_SECRET_BYTES)).decode()


def read_secret(text: str) -> bytes:
    """Decode a written secret.

    Raises:
        SecretError: it is not written as one.
    """
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(SECRET_PREFIX) or len(key) < _MIN_SECRET_BYTES:
        raise SecretError(
            f"a signing secret is {SECRET_PREFIX} and base64 of at least {_MIN_SECRET_BYTES} bytes"
        )
    return key


def sign(call_id: str, timestamp: int, body: bytes, keys: Sequence[bytes]) -> str:
    """Return the value of `webhook-signature`: one `v1,…` per key, separated by spaces."""
    return _signatures(_content(call_id, timestamp, body), keys)


def sign_fence(
    call_id: str, timestamp: int, keys: Sequence[bytes], *, fence: int, attempt: int, scheduled_for: str
) -> str:
    """Return the value of `noonmark-signature`; `scheduled_for` as its header has it."""
    return _signatures(_fence_content(call_id, timestamp, fence, attempt, scheduled_for), keys)


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secrets: Iterable[str],
    *,
    now: float,
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> SignedCall:
    """Check a call as its receiver.

    Args:
        headers: of the request; their names in any case.
        body: the received bytes, before anything parses them as JSON.
        secrets: the written secrets that are valid; several while they are rotated.
        now: Unix seconds.
        tolerance_seconds: how far the call's time may be from `now`, in both directions.

    Raises:
        SignatureError: a header is missing or wrong, the time is too far off, or no signature matches.
        SecretError: a secret is not written as one.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    keys = [read_secret(secret) for secret in secrets]
    call_id, stamp = _header(lower, "webhook-id", _ID), _header(lower, "webhook-timestamp", _TIMESTAMP)
    timestamp = int(stamp)
    if abs(now - timestamp) > tolerance_seconds:
        raise SignatureError(
            f"webhook-timestamp is {abs(now - timestamp):.0f} s off; {tolerance_seconds:g} s are allowed"
        )
    _check(lower, "webhook-signature", _content(call_id, timestamp, body), keys)
    if "noonmark-fence" not in lower and "noonmark-signature" not in lower:
        return SignedCall(call_id, timestamp)
    fence = int(_header(lower, "noonmark-fence", _NUMBER))
    attempt = int(_header(lower, "noonmark-attempt", _NUMBER))
    scheduled_for = lower.get("noonmark-scheduled-for", "")
    content = _fence_content(call_id, timestamp, fence, attempt, scheduled_for)
    _check(lower, "noonmark-signature", content, keys)
    try:
        due = datetime.fromisoformat(scheduled_for)
    except ValueError:
        raise SignatureError("noonmark-scheduled-for is not an instant") from None
    return SignedCall(call_id, timestamp, fence, attempt, due)


def _content(call_id: str, timestamp: int, body: bytes) -> bytes:
    return b"%s.%d.%s" % (call_id.encode(), timestamp, body)


def _fence_content(call_id: str, timestamp: int, fence: int, attempt: int, scheduled_for: str) -> bytes:
    return f"fence.{call_id}.{timestamp}.{fence}.{attempt}.{scheduled_for}".encode()


def _signatures(content: bytes, keys: Sequence[bytes]) -> str:
    return " ".join(["v1," + _mac(key, content) for key in keys])


def _mac(key: bytes, content: bytes) -> str:
    return binascii.b2a_base64(hmac.digest(key, content, hashlib.sha256), newline=False).decode()


def _header(headers: Mapping[str, str], name: str, form: re.Pattern[str]) -> str:
    value = headers.get(name)
    if value is None:
        raise SignatureError(f"the header {name} is missing")
    if not form.fullmatch(value):
        raise SignatureError(f"the header {name} cannot be read")
    return value


def _check(headers: Mapping[str, str], name: str, content: bytes, keys: Sequence[bytes]) -> None:
    """Compare each signature with each key in constant time; other versions than v1 are ignored."""
    given = headers.get(name)
    if given is None:
        raise SignatureError(f"the header {name} is missing")
    wanted = [_mac(key, content).encode() for key in keys]
    fits = False
    for part in given.split(" ")[:_MAX_SIGNATURES]:
        version, _, value = part.partition(",")
        if version == "v1":
            for mac in wanted:
                fits |= hmac.compare_digest(mac, value.encode())
    if not fits:
        raise SignatureError(f"no signature in {name} matches: the secret differs, or the call was altered")
