"""Run messages: a signed pointer to a run, as a CloudEvents 1.0 JSON document.

A worker executes what the database returns for the pointer, never what a message says. The signature
keeps strangers from making workers ask; the start statement decides.

Receivers ignore members they do not know (CloudEvents extensions, later fields), so that workers and
dispatchers of neighbouring versions understand each other. The major version is in `type`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from noonmark.core.words import Lane

RUN_TYPE: Final = "noonmark.run.queued.v1"
RUN_SOURCE: Final = "noonmark/dispatcher"
MAX_RUN_BYTES: Final = 4096
"""A run message is far smaller; anything larger is none of ours."""

_Label = Literal["high", "normal", "low"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LANES: Final = {lane.label: lane for lane in Lane}
_LABELS: Final[tuple[_Label, ...]] = ("high", "normal", "low")
"""By lane number: an index costs a tenth of an enum's hash."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class RunMessageError(Exception):
    """A run message that must not be acted on."""

    code = "invalid"


class MalformedMessage(RunMessageError):  # noqa: N818 - the names say what arrived
    """The bytes are no run message."""

    code = "malformed"


class BadSignature(RunMessageError):  # noqa: N818
    """The signature does not belong to the content."""

    code = "bad_signature"


class UnknownKey(RunMessageError):  # noqa: N818
    """The signature names a key that this process does not have."""

    code = "unknown_key"


class RunMessage(msgspec.Struct, frozen=True, gc=False):
    """The pointer: which run, queued under which fence.

    Attributes:
        run_id: the run.
        job_id: its job.
        namespace: the job's namespace.
        pool: the worker pool it was queued for.
        lane: its lane, by label.
        scheduled_for: the nominal instant, aware UTC, to the microsecond.
        fence: the number of this queueing.
        job_version: the job's version the run was planned with.
        key_id: which key signed.
        signature: HMAC-SHA256 in hex.
    """

    run_id: UUID
    job_id: UUID
    namespace: _Name
    pool: _Name
    lane: _Label
    scheduled_for: Annotated[datetime, msgspec.Meta(tz=True)]
    fence: _Count
    job_version: _Count
    key_id: _Name
    signature: Annotated[str, msgspec.Meta(min_length=64, max_length=64)]


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    specversion: Literal["1.0"]
    type: Literal["noonmark.run.queued.v1"]
    id: str
    source: str
    data: RunMessage
    datacontenttype: str = "application/json"


class Signer:
    """Signs and checks run messages with the keys of a pool.

    Args:
        keys: key id to secret. Old keys stay until their last message has expired.
        current: the key that signs.

    Raises:
        ValueError: no such current key, or a secret or key id that cannot work.
    """

    __slots__ = ("_current", "_keyed", "current")

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        if current not in keys:
            raise ValueError(
                f"signing key {current!r} is not among the keys given ({', '.join(sorted(keys)) or 'none'})"
            )
        for key_id, secret in keys.items():
            if (
                not key_id.isascii()
                or not key_id.replace("-", "").replace("_", "").replace(".", "").isalnum()
            ):
                raise ValueError(f"signing key id {key_id!r}: use letters, digits, '-', '_' and '.' only")
            if len(secret) < 16:
                raise ValueError(
                    f"signing key {key_id!r} is only {len(secret)} bytes long; use at least 16 random ones"
                )
        # Copying a keyed state costs less than keying anew for each message.
        self._keyed = {key_id: hmac.new(secret, digestmod="sha256") for key_id, secret in keys.items()}
        self.current = current
        self._current = self._keyed[current]

    def __repr__(self) -> str:
        return f"Signer(current={self.current!r}, keys={sorted(self._keyed)})"

    def sign(self, content: str) -> str:
        """Return the signature of a canonical string under the current key, in hex."""
        state = self._current.copy()
        state.update(content.encode())
        return state.hexdigest()

    def verify(self, message: RunMessage) -> None:
        """Check a message's signature in constant time.

        Raises:
            UnknownKey: its key is not among ours.
            BadSignature: the content is not what was signed.
        """
        keyed = self._keyed.get(message.key_id)
        if keyed is None:
            raise UnknownKey(
                f"run {message.run_id}: signed with key {message.key_id!r}, which this process lacks"
            )
        state = keyed.copy()
        state.update(
            _canonical(
                message.namespace,
                message.pool,
                message.lane,
                message.run_id,
                message.job_id,
                message.scheduled_for,
                message.fence,
                message.job_version,
            ).encode()
        )
        if not hmac.compare_digest(state.hexdigest().encode(), message.signature.encode()):
            raise BadSignature(f"run {message.run_id}: the signature does not match the message's content")


def _canonical(  # noqa: PLR0917 - the order is the format
    namespace: str,
    pool: str,
    lane: str,
    run_id: UUID,
    job_id: UUID,
    scheduled_for: datetime,
    fence: int,
    version: int,
) -> str:
    """Return the string that is signed: ids in hex without dashes, the instant in whole microseconds.

    Names hold no `|`, so no two messages share a string.
    """
    microseconds = (scheduled_for - _EPOCH) // _MICROSECOND
    return (
        f"v1|{namespace}|{pool}|{lane}|{run_id.int:032x}|{job_id.int:032x}|{microseconds}|{fence}|{version}"
    )


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
) -> bytes:
    """Return the message value of a queued run. `scheduled_for` must be aware; it is written in UTC."""
    label = _LABELS[lane]
    if scheduled_for.tzinfo is not UTC:
        scheduled_for = scheduled_for.astimezone(UTC)
    content = _canonical(namespace, pool, label, run_id, job_id, scheduled_for, fence, job_version)
    data = RunMessage(
        run_id,
        job_id,
        namespace,
        pool,
        label,
        scheduled_for,
        fence,
        job_version,
        signer.current,
        signer.sign(content),
    )
    return _encode(_Envelope("1.0", RUN_TYPE, f"{run_id}.{fence}", RUN_SOURCE, data))


_encode: Final = msgspec.json.Encoder().encode
_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode


def decode_run(value: bytes) -> RunMessage:
    """Read a run message. Its signature is not checked: `Signer.verify` does that.

    Raises:
        MalformedMessage: too large, no JSON, or a missing or mistyped member.
    """
    if len(value) > MAX_RUN_BYTES:
        raise MalformedMessage(f"{len(value)} bytes; a run message has at most {MAX_RUN_BYTES}")
    try:
        envelope = _decode_envelope(value)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedMessage(f"not a run message: {error}") from error
    return envelope.data


def lane_of(message: RunMessage) -> Lane:
    """Return the message's lane."""
    return _LANES[message.lane]
