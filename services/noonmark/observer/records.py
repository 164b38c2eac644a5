"""The record type that the stream passes to the outcome store."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """A record of the topic; `timestamp` is the broker's or the producer's, in seconds.

    `end` is the offset after the partition's last record, as far as the client knows it.
    """

    partition: int
    offset: int
    timestamp: float
    value: bytes | None
    end: int | None
