"""What attempts printed and logged: a bounded tail of each stream, kept with the outcome."""

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
    """What an attempt wrote: tails of its streams, each of at most 64 KB.

    Attributes:
        stdout: of its process, where it had one.
        stderr: the same.
        lines: what it logged through its context.
        dropped: bytes before the tails of the streams.
    """

    stdout: str = ""
    stderr: str = ""
    lines: Tail = field(default_factory=Tail)
    dropped: int = 0

    def add(self, line: str) -> None:
        """Append a line that was logged through the context; callable from any thread."""
        self.lines.add(line.encode("utf-8", "backslashreplace") + b"\n")


class Ended(Protocol):
    """An outcome, as far as it matters here."""

    run: StartedRun
    fence: int


def write_logs(connection: psycopg.Connection, logs: Sequence[tuple[Ended, AttemptLog]]) -> None:
    """Keep what attempts wrote, in the transaction of their outcomes."""
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
    """Make text storable: NUL and lone surrogates become escapes."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()
