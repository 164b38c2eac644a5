"""What attempts printed and logged: the bounded tail of each stream, stored with the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import psycopg

from noonmark.core.bounded_tail import Tail
from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement


@dataclass(slots=True)
class AttemptLog:
    """What an attempt wrote: the tail of each of its streams, at most 64 KB.

    Attributes:
        stdout: standard output of its process, if it had one.
        stderr: standard error of its process, if it had one.
        lines: what it logged through its context.
        dropped: the number of bytes cut off before the tails of the streams.
    """

    stdout: str = ""
    stderr: str = ""
    lines: Tail = field(default_factory=Tail)
    dropped: int = 0

    def add(self, line: str) -> None:
        """Append a line that was logged through the context. Any thread may call this."""
        self.lines.add(line.encode("utf-8", "backslashreplace") + b"\n")


class Ended(Protocol):
    """The parts of an outcome that are needed here."""

    run: StartedRun
    fence: int


def write_logs(connection: psycopg.Connection, logs: Sequence[tuple[Ended, AttemptLog]]) -> None:
    """Store what attempts wrote, in the transaction of their outcomes."""
    if logs:
        connection.execute(
            statement("insert_attempt_logs"),
            {
                "run_ids": [o.run.id for o, _ in logs],
                "scheduled_for": [o.run.scheduled_for for o, _ in logs],
                "fences": [o.fence for o, _ in logs],
                "attempts": [o.run.attempt for o, _ in logs],
                "stdouts": [storable(log.stdout) for _, log in logs],
                "stderrs": [storable(log.stderr) for _, log in logs],
                "logs": [storable(log.lines.text()) for _, log in logs],
                "dropped": [log.dropped + log.lines.dropped for _, log in logs],
            },
        )


def storable(text: str) -> str:
    """Return text that Postgres can store: NUL and lone surrogates become escapes."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
