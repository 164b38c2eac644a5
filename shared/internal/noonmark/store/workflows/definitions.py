"""Graphs of workflows that this process has read: a version never changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from uuid import UUID

from noonmark.core.workflows.definition import Definition

Version = tuple[UUID, int]
"""A job and its version."""

_MOST_VERSIONS: Final = 300
_MOST_TASKS: Final = 50_000


class Definitions:
    """Cache of graphs; the ones that were used last are kept. Thread-safe.

    Args:
        most_versions: how many are kept at most.
        most_tasks: how many tasks they have together at most; one graph is kept in any case.
    """

    def __init__(self, most_versions: int = _MOST_VERSIONS, most_tasks: int = _MOST_TASKS) -> None:
        self._most_versions = most_versions
        self._most_tasks = most_tasks
        self._known: OrderedDict[Version, Definition] = OrderedDict()
        self._tasks = 0
        self._lock = threading.Lock()

    def get(self, version: Version, read: Callable[[], Definition | None]) -> Definition | None:
        """Return the graph of a version; if it is not known, that of `read`. None is not kept."""
        with self._lock:
            if (known := self._known.get(version)) is not None:
                self._known.move_to_end(version)
                return known
        # Two threads may read the same one: waiting for each other would cost all others more.
        found = read()
        if found is not None:
            self._keep(version, found)
        return found

    def _keep(self, version: Version, definition: Definition) -> None:
        with self._lock:
            if version in self._known:
                return
            self._known[version] = definition
            self._tasks += len(definition.tasks)
            while len(self._known) > 1 and (
                len(self._known) > self._most_versions or self._tasks > self._most_tasks
            ):
                _, dropped = self._known.popitem(last=False)
                self._tasks -= len(dropped.tasks)
