"""What attempts printed and logged: the end of each stream, stored while they run and with the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

import orjson
import psycopg

from noonmark.core.output_stream import Cleaner, OutputStream, no_cleaner
from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement

Ends = tuple[int, int, int]
"""The number of bytes of stdout, stderr and log."""

_NOTHING: Final[Ends] = (0, 0, 0)


@dataclass(slots=True)
class AttemptLog:
    """What an attempt wrote: the end of each of its streams, at most 64 KB.

    Attributes:
        stdout: its standard output.
        stderr: its standard error.
        lines: what it logged through its context.
        unfinished_lines: of what was printed in the worker's process, the beginning of the last line of each
            stream: the worker's log does not have it yet.
        closed: whether the attempt is over: nothing more is added.
        saved: the ends of the streams that are stored; None if nothing is.
        saved_at: when they were stored, in monotonic seconds.
    """

    stdout: OutputStream = field(default_factory=OutputStream)
    stderr: OutputStream = field(default_factory=OutputStream)
    lines: OutputStream = field(default_factory=OutputStream)
    unfinished_lines: dict[str, bytes] = field(default_factory=dict)
    closed: bool = False
    saved: Ends | None = None
    saved_at: float = 0.0

    @property
    def streams(self) -> tuple[OutputStream, OutputStream, OutputStream]:
        """The streams in the order of their columns."""
        return self.stdout, self.stderr, self.lines

    @property
    def dropped(self) -> int:
        """The number of bytes before the kept ends of the streams."""
        return sum(stream.dropped for stream in self.streams)

    @property
    def ends(self) -> Ends:
        """The number of bytes of each stream so far, as far as it was moved."""
        return self.stdout.end, self.stderr.end, self.lines.end

    def take_unfinished_lines(self) -> list[tuple[str, bytes]]:
        """Remove and return the last lines that have no end."""
        lines, self.unfinished_lines = self.unfinished_lines, {}
        return list(lines.items())

    @property
    def has_unsaved(self) -> bool:
        """Whether something was added since the last move, or was moved and is not stored."""
        return any(stream.has_unmoved for stream in self.streams) or self.ends != (self.saved or _NOTHING)

    def add(self, line: str) -> None:
        """Append a line that was logged through the context. Any thread may call this."""
        self.lines.add(line.encode("utf-8", "backslashreplace") + b"\n")

    def move(self, cleaner_of: Callable[[], Cleaner | None], *, final: bool = False) -> None:
        """Clean what can be cleaned of each stream; at the end of the attempt everything, and close it.

        Args:
            cleaner_of: see `OutputStream.move`.
            final: whether the attempt is over.
        """
        for stream in self.streams:
            if final or stream.has_unmoved:
                stream.move(cleaner_of, final=final)
        if final:
            self.closed = True


class Ended(Protocol):
    """The parts of an outcome that are needed here."""

    run: StartedRun
    fence: int


@dataclass(frozen=True, slots=True)
class LiveLog:
    """The output of a running attempt that is to be stored.

    Attributes:
        run: the run.
        fence: the fence of the attempt.
        ends: the number of bytes of each stream.
        texts: the kept end of each stream; None if it is stored already.
        dropped: the number of bytes before the kept ends.
        size: the bytes of the texts.
    """

    run: StartedRun
    fence: int
    ends: Ends
    texts: tuple[str | None, str | None, str | None]
    dropped: int
    size: int

    @classmethod
    def of(cls, run: StartedRun, fence: int, log: AttemptLog) -> LiveLog | None:
        """Return what of a log is not stored yet; None if everything is."""
        stdout, stderr, lines = streams = [stream.stored() for stream in log.streams]
        ends, saved = (stdout.end, stderr.end, lines.end), log.saved or _NOTHING
        if ends == saved:
            return None
        new = [stream if stream.end != known else None for stream, known in zip(streams, saved, strict=True)]
        first, second, third = (stream.text if stream is not None else None for stream in new)
        size = sum(len(stream.kept) for stream in new if stream is not None)
        return cls(run, fence, ends, (first, second, third), sum(s.dropped for s in streams), size)


@dataclass(frozen=True, slots=True)
class SavedLogs:
    """The result of storing the output of running attempts.

    Attributes:
        saved: runs whose output was stored.
        busy: runs whose row was locked: try again.
    """

    saved: set[UUID]
    busy: set[UUID]


def save_logs(connection: psycopg.Connection, worker: int, epoch: int, logs: Sequence[LiveLog]) -> SavedLogs:
    """Store the output of attempts that the worker still runs, in one statement; skip the others.

    Args:
        connection: in autocommit mode, or in a transaction that is committed at once.
        worker: id of the worker.
        epoch: epoch of the worker's lease.
        logs: one for each run.
    """
    days = [log.run.scheduled_for for log in logs]
    given = {str(log.run.id): [log.fence, log.dropped, *log.ends, *log.texts] for log in logs}
    rows = connection.execute(
        statement("save_attempt_logs"),
        {
            "worker": worker,
            "epoch": epoch,
            "ids": [log.run.id for log in logs],
            "first": min(days),
            "last": max(days),
            "given": orjson.dumps(given).decode(),
        },
    ).fetchall()
    return SavedLogs({row[0] for row in rows if row[1]}, {row[0] for row in rows if not row[1]})


def write_logs(connection: psycopg.Connection, logs: Sequence[tuple[Ended, AttemptLog]]) -> None:
    """Store what attempts wrote, in the transaction of their outcomes."""
    if not logs:
        return
    for _, log in logs:
        log.move(no_cleaner, final=True)  # closed already if the attempt has received secrets
    connection.execute(
        statement("insert_attempt_logs"),
        {
            "run_ids": [o.run.id for o, _ in logs],
            "scheduled_for": [o.run.scheduled_for for o, _ in logs],
            "fences": [o.fence for o, _ in logs],
            "attempts": [o.run.attempt for o, _ in logs],
            "stdouts": [log.stdout.stored_text() for _, log in logs],
            "stderrs": [log.stderr.stored_text() for _, log in logs],
            "logs": [log.lines.stored_text() for _, log in logs],
            "dropped": [log.dropped for _, log in logs],
            "stdout_ends": [log.stdout.end for _, log in logs],
            "stderr_ends": [log.stderr.end for _, log in logs],
            "log_ends": [log.lines.end for _, log in logs],
        },
    )
