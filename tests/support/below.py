"""The processes that a test has started, by whatever way."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import psutil

T = TypeVar("T")

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


@contextlib.contextmanager
def closed_without_trace(create: Callable[..., T]) -> Iterator[Callable[..., T]]:
    """Give a function that creates benches, and close them: no process or zombie is left of anything.

    Args:
        create: creates one that has `executors`.
    """
    made: list[Any] = []
    before = {process.pid for process in below()}

    def keep(**more: Any) -> T:
        made.append(create(**more))
        return made[-1]

    yield keep
    for each in made:
        each.executors.close()
    assert [p for p in below() if p.pid not in before] == []
