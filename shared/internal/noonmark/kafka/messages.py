"""Run messages: a signed pointer to a run, as a CloudEvents 1.0 JSON document.

A worker executes what the database returns for the pointer, never what a message contains. The signature
keeps unauthorised publishers from making workers query the database; the start statement decides.

The signature is an HMAC-SHA256 of the bytes of `data` exactly as they are in the message. The extension
attribute `keyid` names the key, `signature` has the result. Nothing outside `data` is trusted.

Receivers ignore unknown members (CloudEvents extensions, later fields), so that workers and dispatchers of
neighbouring versions understand each other. The major version is in `type`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal
from uuid import UUID

import msgspec

from noonmark.core.states import Lane

if TYPE_CHECKING:
    from hashlib import _Hash

RUN_TYPE: Final = "noonmark.run.queued.v1"
RUN_SOURCE: Final = "noonmark/dispatcher"
MAX_RUN_BYTES: Final = 4096
"""A run message is far smaller; anything larger is not a run message of noonmark."""

_Label = Literal["high", "normal", "low"]
_LANES: Final = {lane.label: lane for lane in Lane}
_LABELS: Final[tuple[_Label, ...]] = ("high", "normal", "low")
"""By lane number: an index costs a tenth of an enum's hash."""

_BLOCK_BYTES: Final = 64
"""SHA-256 works in blocks of this size; HMAC pads its key to one."""

_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class RunMessageError(Exception):
    """A run message that must not be acted on."""

    code = "invalid"


class MalformedMessage(RunMessageError):  # noqa: N818 - the names say what was received
    """The bytes are not a run message."""

    code = "malformed"


class OversizedMessage(MalformedMessage):
    """More bytes than a run message can have; they were not parsed."""

    code = "too_large"


class BadSignature(RunMessageError):  # noqa: N818
    """The signature does not match the content."""

    code = "bad_signature"


class UnknownKey(RunMessageError):  # noqa: N818
    """The message is signed with a key that this process does not have."""

    code = "unknown_key"


class RunMessage(msgspec.Struct, frozen=True, gc=False):
    """The pointer: which run, queued under which fence.

    Attributes:
        run_id: the run.
        job_id: its job.
        namespace: the job's namespace.
        pool: the worker pool that it was queued for.
        lane: its lane, by label.
        scheduled_for: the nominal instant, aware UTC, to the microsecond.
        fence: the fence under which it was queued.
        job_version: the job version that the run was planned with.
    """

    run_id: UUID
    job_id: UUID
    namespace: _Name
    pool: _Name
    lane: _Label
    scheduled_for: Annotated[datetime, msgspec.Meta(tz=True)]
    fence: _Count
    job_version: _Count


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    specversion: Literal["1.0"]
    type: Literal["noonmark.run.queued.v1"]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    source: str
    keyid: _Name
    signature: Annotated[str, msgspec.Meta(min_length=64, max_length=64)]
    data: msgspec.Raw


class Signer:
    """Signs and verifies the data of run messages with the keys of a pool.

    Args:
        keys: key id to secret. Keep old keys until their last message has expired.
        current: the id of the key that signs.

    Attributes:
        current: id of the key that signs; letters, digits, `-`, `_` and `.` only.

    Raises:
        ValueError: the current key is not among the keys, or a secret or key id is invalid.
    """

    __slots__ = ("_current", "_keyed", "current")

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        if current not in keys:
            raise ValueError(
                f"signing key {current!r} is not among the keys given ({', '.join(sorted(keys)) or 'none'})"
            )
        for key_id, secret in keys.items():
            if not _KEY_ID.fullmatch(key_id):
                raise ValueError(
                    f"signing key id {key_id!r}: use 1 to 128 letters, digits, '-', '_' and '.' only"
                )
            if len(secret) < 16:
                raise ValueError(
                    f"signing key {key_id!r} is only {len(secret)} bytes long; use at least 16 random ones"
                )
        self._keyed = {key_id: _keyed(secret) for key_id, secret in keys.items()}
        self.current = current
        self._current = self._keyed[current]

    def __repr__(self) -> str:
        return f"Signer(current={self.current!r}, keys={sorted(self._keyed)})"

    def sign(self, data: bytes) -> str:
        """Return the HMAC-SHA256 of `data` under the current key, in hex."""
        return _hmac(self._current, data)

    def verify(self, data: bytes | msgspec.Raw, key_id: str, signature: str) -> None:
        """Check a signature in constant time.

        Raises:
            UnknownKey: the key is not among the signer's keys.
            BadSignature: the data is not what was signed.
        """
        keyed = self._keyed.get(key_id)
        if keyed is None:
            raise UnknownKey(f"signed with key {key_id!r}, which this process lacks")
        # As bytes: text that is not ASCII cannot be compared in constant time.
        if not hmac.compare_digest(_hmac(keyed, data).encode(), signature.encode()):
            raise BadSignature(f"the signature of key {key_id!r} does not match the data")


def _keyed(secret: bytes) -> tuple[_Hash, _Hash]:
    """Return the inner and the outer hash of HMAC (RFC 2104), each after reading the padded key.

    Copying these for each message takes 0.6 of the time of copying an `hmac.HMAC`, and half of keying again.
    """
    if len(secret) > _BLOCK_BYTES:
        secret = hashlib.sha256(secret).digest()
    block = secret.ljust(_BLOCK_BYTES, b"\0")
    inner, outer = bytes(byte ^ 0x36 for byte in block), bytes(byte ^ 0x5C for byte in block)
    return hashlib.sha256(inner), hashlib.sha256(outer)


def _hmac(keyed: tuple[_Hash, _Hash], data: bytes | msgspec.Raw) -> str:
    inner = keyed[0].copy()
    inner.update(data)
    outer = keyed[1].copy()
    outer.update(inner.digest())
    return outer.hexdigest()


def encode_run(
    signer: Signer,
    *,
    run_id: UUID,
    job_id: UUID,
    namespace: str,
    pool: str,
    lane: Lane,
    scheduled_for: datetime,
    fence: int,
    job_version: int,
    traceparent: str | None = None,
) -> bytes:
    """Return the message value of a queued run.

    Args:
        signer: has the pool's keys.
        run_id: the run.
        job_id: its job.
        namespace: the job's namespace.
        pool: the worker pool that it is queued for.
        lane: its lane there.
        scheduled_for: the nominal instant, aware; it is written in UTC.
        fence: the fence under which it is queued.
        job_version: the job version that the run was planned with.
        traceparent: of a traced run; not signed, because nothing depends on it.

    Raises:
        ValueError: `scheduled_for` is naive.
    """
    if scheduled_for.tzinfo is not UTC:
        offset = scheduled_for.utcoffset()
        if offset is None:
            raise ValueError(f"run {run_id}: scheduled_for {scheduled_for} has no zone; it must be aware")
        if offset:  # msgspec writes every zone with offset zero as `Z`
            scheduled_for = scheduled_for.astimezone(UTC)
    data = _encode(
        RunMessage(run_id, job_id, namespace, pool, _LABELS[lane], scheduled_for, fence, job_version)
    )
    run, key, signature = data[_RUN_ID], signer.current.encode(), signer.sign(data).encode()
    if traceparent is None:
        return _ENVELOPE % (run, fence, key, signature, data)
    return _TRACED_ENVELOPE % (run, fence, traceparent.encode(), key, signature, data)


def traceparent_of(value: bytes) -> str | None:
    """Return the `traceparent` of a run message that `open_run` has read; None if it is not traced."""
    found = _TRACED.search(value, 0, 512)
    return found[1].decode() if found else None


_encode: Final = msgspec.json.Encoder().encode
_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode
_decode_data: Final = msgspec.json.Decoder(RunMessage).decode

_ENVELOPE: Final = (
    f'{{"specversion":"1.0","type":"{RUN_TYPE}","id":"%b.%d","source":"{RUN_SOURCE}",'
    '"datacontenttype":"application/json","keyid":"%b","signature":"%b","data":%b}'
).encode()
"""No inserted value needs escaping: an id, a number, a key id that `Signer` checked, hex, JSON."""

_TRACED_ENVELOPE: Final = _ENVELOPE.replace(b'"keyid"', b'"traceparent":"%b","keyid"')
_TRACED: Final = re.compile(rb'"traceparent":"([0-9a-f-]{55})","keyid"')

_RUN_ID: Final = slice(len('{"run_id":"'), len('{"run_id":"') + 36)
"""The position of the run id, the first member of the data: slicing costs a tenth of formatting it again."""


def open_run(value: bytes, signer: Signer) -> RunMessage:
    """Parse a run message; its signature is checked before any of its content is used.

    Raises:
        MalformedMessage: too large, not JSON, or a missing or mistyped member.
        UnknownKey: signed with a key that `signer` lacks; the key may be new.
        BadSignature: the data is not what was signed.
    """
    if len(value) > MAX_RUN_BYTES:
        raise OversizedMessage(f"{len(value)} bytes; a run message has at most {MAX_RUN_BYTES}")
    try:
        envelope = _decode_envelope(value)
        signer.verify(envelope.data, envelope.keyid, envelope.signature)
        return _decode_data(envelope.data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedMessage(f"not a run message: {error}") from error


def lane_of(message: RunMessage) -> Lane:
    """Return the message's lane."""
    return _LANES[message.lane]
