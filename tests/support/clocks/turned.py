"""Turns the wall clock of single processes: a small library, compiled once, that a process preloads.

Only CLOCK_REALTIME is turned, as `date --set` on a host does it; monotonic clocks stay.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("turned_clock.c")
VARIABLE: Final = "NOONMARK_TEST_CLOCK"
_OFFSET: Final = struct.Struct("=q")


@dataclass(slots=True)
class TurnedClock:
    """The clock of the processes that are started with its environment.

    Attributes:
        library: that they preload.
        file: holds the offset; readable for every user, since Postgres may run as another one.
        seconds: by which it is ahead now.
    """

    library: Path
    file: Path
    seconds: float = 0.0
    _mapped: mmap.mmap = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.file.write_bytes(_OFFSET.pack(0))
        self.file.chmod(0o644)
        with self.file.open("r+b") as opened:
            self._mapped = mmap.mmap(opened.fileno(), _OFFSET.size)

    def turn(self, seconds: float) -> None:
        """Let the clock be ahead by so much (or behind) from now on."""
        self.seconds = seconds
        self._mapped[:] = _OFFSET.pack(int(seconds * 1e9))

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to have this clock; its children inherit it."""
        return {"LD_PRELOAD": str(self.library), VARIABLE: str(self.file)}

    @contextmanager
    def inherited(self) -> Iterator[None]:
        """Let processes that are started in the block have this clock, where their starter takes no environment."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


class NoCompilerError(RuntimeError):
    """The library cannot be compiled here; the message says why."""


def compile_library(folder: Path) -> Path:
    """Compile the library into a folder.

    Raises:
        NoCompilerError: there is no C compiler, or it refuses the source.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NoCompilerError("there is no C compiler")
    library = folder / "turned_clock.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoCompilerError(f"the C compiler refused the clock: {done.stderr.strip()[-300:]}")
    library.chmod(0o755)
    return library
