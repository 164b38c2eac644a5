"""What a consumer hands to its user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

import msgspec
from confluent_kafka import Message

Headers = list[tuple[str, bytes | str | None]]

UNREADABLE_HEADERS: Final[Headers] = [("", None)]
"""Stands for headers that the client cannot give out: a key that is not UTF-8. Compare by identity."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One consumed record.

    Attributes:
        topic: where it came from.
        partition: its partition.
        offset: its place there.
        epoch: the assignment it was polled under; unique within a process's consumer.
        key: its key, if any.
        value: its body; empty for a tombstone.
        timestamp_ms: milliseconds since 1970 as the broker stamped it; 0 when there is none.
        headers: its headers, where the consumer was asked for them and there are any;
            `UNREADABLE_HEADERS` where they cannot be read.
        is_stamped: the time stamp is the broker's own (LogAppendTime), not the publisher's.
    """

    topic: str
    partition: int
    offset: int
    epoch: int
    key: bytes | None
    value: bytes
    timestamp_ms: int
    headers: Headers | None = None
    is_stamped: bool = False


class ConsumerFailed(Exception):  # noqa: N818 - it names what happened, like the domain's other conditions
    """The client is beyond repair (fatal error); the process must start a new one, or end."""


@dataclass(slots=True)
class ConsumerCounters:
    """What a consumer has counted since it was made. Written by its owner thread, read by any.

    Attributes:
        records: records handed out.
        commits: commits that the group accepted.
        commits_dropped: commits refused because membership had moved on; sent again if still ours.
        commit_errors: commits that failed otherwise; sent again.
        assigned: partitions received.
        revoked: partitions given back in order.
        lost: partitions taken away without notice.
        late_marks: settled or started marks for records of a past assignment.
        rewinds: partitions whose offsets went backwards (topic made anew, or offsets reset).
        errors: other errors the client reported.
    """

    records: int = 0
    commits: int = 0
    commits_dropped: int = 0
    commit_errors: int = 0
    assigned: int = 0
    revoked: int = 0
    lost: int = 0
    late_marks: int = 0
    rewinds: int = 0
    errors: int = 0


def read_headers(message: Message) -> Headers | None:
    """Return a record's headers; any client that may publish can send a key that the client cannot decode."""
    try:
        return cast("Headers | None", message.headers())
    except (UnicodeDecodeError, SystemError):
        return UNREADABLE_HEADERS
