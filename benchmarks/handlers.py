"""The handlers that the benchmark's worker runs: one does nothing, one notes when it was begun."""

from __future__ import annotations

import os
import struct
import threading
import time
from typing import BinaryIO, Final

from noonmark.handlers import Context, handler

STAMPS_VARIABLE: Final = "BENCHMARK_STAMPS"
"""Names the file that `bench.stamp` writes to."""

STAMP: Final = struct.Struct("<dd")
"""One entry of it: the due instant and the instant of the handler's first line, Unix seconds."""

_FLUSH_SECONDS: Final = 0.25


@handler("bench.noop")
def noop(_context: Context) -> None:
    """Do nothing."""


@handler("bench.stamp")
def stamp(context: Context) -> None:
    """Note the instant."""
    now = time.time()
    if _stamps is not None:
        _stamps.write(STAMP.pack(context.scheduled_for.timestamp(), now))


def _open() -> BinaryIO | None:
    place = os.environ.get(STAMPS_VARIABLE)
    if not place:
        return None
    # Open as long as the worker lives; its buffer keeps the handler free of system calls.
    stamps = open(place, "ab")  # noqa: SIM115, PTH123

    def flush() -> None:
        while True:
            time.sleep(_FLUSH_SECONDS)
            stamps.flush()

    threading.Thread(target=flush, name="stamps", daemon=True).start()
    return stamps


_stamps = _open()
