"""What is asked of the supervisor, and how a child ended."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended; reported when no process of it is left.

    Attributes:
        code: exit code; the negative number of the signal that killed it; None if unknown.
        error: why the code is unknown, as the end of a sentence.
        started: whether it was started.
        untaken: whether no supervisor took the request: nothing has begun, and it can be started again.
        cpu_seconds: CPU time of it and of the processes that it waited for.
        crowded: whether it was killed because it had too many processes.
    """

    code: int | None
    error: str = ""
    started: bool = True
    untaken: bool = False
    cpu_seconds: float = 0.0
    crowded: bool = False

    def text(self) -> str:
        """Describe it, as the end of a sentence."""
        if self.code is None:
            return self.error
        if self.code < 0:
            return f"was killed by {_signal_name(-self.code)}"
        return f"ended with exit code {self.code}"


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """A request to start a child.

    Attributes:
        path: absolute path of the executable.
        argv: its arguments; the first is its name.
        env: its whole environment.
        cwd: its working folder.
        limits: `cpu_seconds`, `memory_bytes`, `open_files`, `file_bytes` per process; `processes` in total.
        confined: whether it is prevented from gaining privileges (no_new_privs).
    """

    path: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    limits: Mapping[str, int] = field(default_factory=dict)
    confined: bool = False

    def encode(self) -> bytes:
        """Return it as JSON for the supervisor."""
        # Not orjson: variables and paths can be bytes that are not text.
        return json.dumps(
            {
                "path": self.path,
                "argv": list(self.argv),
                "env": dict(self.env),
                "cwd": self.cwd,
                "limits": dict(self.limits),
                "confined": self.confined,
            }
        ).encode()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
