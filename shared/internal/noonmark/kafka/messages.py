"""Run messages: signed pointers to runs, as CloudEvents 1.0 JSON documents.

A message has one run (`noonmark.run.queued.v1`), or several of one lane and partition
(`noonmark.runs.queued.v1`), which release 0.2 cannot read: sending, reading and checking a message costs as
much for one run as for many.

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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal
from uuid import UUID

import msgspec

from noonmark.core.states import Lane

if TYPE_CHECKING:
    from hashlib import _Hash

RUN_TYPE: Final = "noonmark.run.queued.v1"
RUNS_TYPE: Final = "noonmark.runs.queued.v1"
RUN_SOURCE: Final = "noonmark/dispatcher"
RUNS_PER_MESSAGE: Final = 64
"""Maximum number of runs in one message. Twice as many save little, and one that is unread delays more."""

MAX_MESSAGE_BYTES: Final = 65_536
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


class QueuedRun(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The pointer: which run, queued under which fence. An array in messages with several runs.

    Attributes:
        run_id: the run.
        job_id: its job.
        namespace: the job's namespace.
        scheduled_for: the nominal instant, aware UTC, to the microsecond.
        fence: the fence under which it was queued.
        job_version: the job version that the run was planned with.
    """

    run_id: UUID
    job_id: UUID
    namespace: _Name
    scheduled_for: Annotated[datetime, msgspec.Meta(tz=True)]
    fence: _Count
    job_version: _Count


class RunBatch(msgspec.Struct, frozen=True, gc=False):
    """What a message says: the runs of one lane of a pool, in the order in which they were queued.

    Attributes:
        pool: the worker pool that they were queued for.
        lane: their lane, by label.
        runs: the runs.
    """

    pool: _Name
    lane: _Label
    runs: Annotated[tuple[QueuedRun, ...], msgspec.Meta(min_length=1, max_length=1000)]


class _OneRun(msgspec.Struct, frozen=True, gc=False):
    """The data of a message with one run."""

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
    type: Literal["noonmark.run.queued.v1", "noonmark.runs.queued.v1"]
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
    signer: Signer, run: QueuedRun, *, pool: str, lane: Lane, traceparent: str | None = None
) -> bytes:
    """Return the value of a message with one run.

    Args:
        signer: has the pool's keys.
        run: the run; its instant is aware, and written in UTC.
        pool: the worker pool that it is queued for.
        lane: its lane there.
        traceparent: of a traced run; not signed, because nothing depends on it.

    Raises:
        ValueError: `scheduled_for` is naive.
    """
    at = _in_utc(run)
    data = _encode(
        _OneRun(run.run_id, run.job_id, run.namespace, pool, _LABELS[lane], at, run.fence, run.job_version)
    )
    run_id, key, signature = data[_RUN_ID], signer.current.encode(), signer.sign(data).encode()
    if traceparent is None:
        return _ENVELOPE % (run_id, run.fence, key, signature, data)
    return _TRACED_ENVELOPE % (run_id, run.fence, traceparent.encode(), key, signature, data)


def encode_runs(signer: Signer, runs: Sequence[QueuedRun], *, pool: str, lane: Lane) -> bytes:
    """Return the value of a message with several runs of one partition, in the order of the queue.

    Args:
        signer: has the pool's keys.
        runs: up to `RUNS_PER_MESSAGE`; their instants are in UTC, as Postgres returns them.
        pool: the worker pool that they are queued for.
        lane: their lane there.
    """
    data = _encode(RunBatch(pool, _LABELS[lane], tuple(runs)))
    first = runs[0]
    return _BATCH_ENVELOPE % (
        str(first.run_id).encode(),
        first.fence,
        len(runs),
        signer.current.encode(),
        signer.sign(data).encode(),
        data,
    )


def _in_utc(run: QueuedRun) -> datetime:
    at = run.scheduled_for
    if at.tzinfo is UTC:
        return at
    offset = at.utcoffset()
    if offset is None:
        raise ValueError(f"run {run.run_id}: scheduled_for {at} has no zone; it must be aware")
    return at.astimezone(UTC) if offset else at  # msgspec writes every zone with offset zero as `Z`


def traceparent_of(value: bytes) -> str | None:
    """Return the `traceparent` of a run message that `open_runs` has read; None if it is not traced."""
    found = _TRACED.search(value, 0, 512)
    return found[1].decode() if found else None


_encode: Final = msgspec.json.Encoder().encode
_decode_envelope: Final = msgspec.json.Decoder(_Envelope).decode
_decode_one: Final = msgspec.json.Decoder(_OneRun).decode
_decode_batch: Final = msgspec.json.Decoder(RunBatch).decode

_ENVELOPE: Final = (
    f'{{"specversion":"1.0","type":"{RUN_TYPE}","id":"%b.%d","source":"{RUN_SOURCE}",'
    '"datacontenttype":"application/json","keyid":"%b","signature":"%b","data":%b}'
).encode()
"""No inserted value needs escaping: an id, a number, a key id that `Signer` checked, hex, JSON."""

_TRACED_ENVELOPE: Final = _ENVELOPE.replace(b'"keyid"', b'"traceparent":"%b","keyid"')
_BATCH_ENVELOPE: Final = _ENVELOPE.replace(RUN_TYPE.encode(), RUNS_TYPE.encode()).replace(
    b'"%b.%d"', b'"%b.%d.%d"'
)
_TRACED: Final = re.compile(rb'"traceparent":"([0-9a-f-]{55})","keyid"')

_COUNT: Final = re.compile(rb'"type":"noonmark\.runs\.queued\.v1","id":"[0-9a-f-]{36}\.[0-9]+\.([0-9]{1,3})"')
"""The id of a message with several runs ends with their number."""

_RUN_ID: Final = slice(len('{"run_id":"'), len('{"run_id":"') + 36)
"""The position of the run id, the first member of the data: slicing costs a tenth of formatting it again."""


def open_runs(value: bytes, signer: Signer) -> RunBatch:
    """Parse a run message of either form; its signature is checked before any of its content is used.

    Raises:
        MalformedMessage: too large, not JSON, or a missing or mistyped member.
        UnknownKey: signed with a key that `signer` lacks; the key may be new.
        BadSignature: the data is not what was signed.
    """
    if len(value) > MAX_MESSAGE_BYTES:
        raise OversizedMessage(f"{len(value)} bytes; a run message has at most {MAX_MESSAGE_BYTES}")
    try:
        envelope = _decode_envelope(value)
        signer.verify(envelope.data, envelope.keyid, envelope.signature)
        if envelope.type == RUNS_TYPE:
            return _decode_batch(envelope.data)
        one = _decode_one(envelope.data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise MalformedMessage(f"not a run message: {error}") from error
    run = QueuedRun(one.run_id, one.job_id, one.namespace, one.scheduled_for, one.fence, one.job_version)
    return RunBatch(one.pool, one.lane, (run,))


def count_runs(value: bytes) -> int:
    """Return how many runs a message has by its id, which is not checked: for measurements only."""
    found = _COUNT.search(value, 0, 256)
    return min(int(found[1]), RUNS_PER_MESSAGE) if found else 1


def lane_of(batch: RunBatch) -> Lane:
    """Return the lane of a message."""
    return _LANES[batch.lane]
