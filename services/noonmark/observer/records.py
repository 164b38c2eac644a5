"""What passes between the stream and the store."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """A record of the topic; `timestamp` is the broker's or the producer's, in seconds.

    `end` is the offset after the last record that the client knows of, where it knows one.
    """

    partition: int
    offset: int
    timestamp: float
    value: bytes | None
    end: int | None
