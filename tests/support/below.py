"""The processes that a test has started, by whatever way."""

import contextlib
import os

import psutil

SERVERS = frozenset({"postgres", "java"})
"""What the servers of the tests start by themselves, at any time, is nobody's doing."""


def below() -> list[psutil.Process]:
    """All processes below this one, zombies included, but for those of the servers."""
    found = []
    for process in psutil.Process(os.getpid()).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() not in SERVERS:
                found.append(process)
    return found
