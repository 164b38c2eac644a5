"""Identifiers: uuid7 (RFC 9562 section 5.7), so that keys created together are close together in an index."""

from __future__ import annotations

import os
import struct
import threading
import time
import uuid
from typing import Final

_FIXED: Final = (0x7 << 76) | (0b10 << 62)
"""Version and variant."""

_RANDOM: Final = 0x3FFFFFFFFFFFFFFF

_lock = threading.Lock()
_last_ms = 0
_counter = 0


def uuid7() -> uuid.UUID:
    """Return a uuid7; those of one process strictly increase, also within one millisecond."""
    return uuid7_batch(1)[0]


def uuid7_batch(count: int) -> list[uuid.UUID]:
    """Return `count` increasing uuid7 values, with one lock and one read of the clock for all."""
    global _last_ms, _counter  # noqa: PLW0603 - the generator's state is the process's
    tails = struct.unpack(f"!{count}Q", os.urandom(8 * count))
    ids = []
    with _lock:
        now_ms = time.time_ns() // 1_000_000
        if now_ms > _last_ms:
            _last_ms, _counter = now_ms, 0
        for tail in tails:
            _counter += 1
            if _counter > 0xFFF:
                _last_ms, _counter = _last_ms + 1, 0
            ids.append(uuid.UUID(int=(_last_ms << 80) | (_counter << 64) | _FIXED | (tail & _RANDOM)))
    return ids


def shard_of(job_id: uuid.UUID, shards: int) -> int:
    """Return the shard of a job: its random low bits, the same on every host and in every process."""
    return (job_id.int & 0xFFFFFFFF) % shards
