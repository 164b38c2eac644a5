"""The cache of the graphs of workflows."""

from __future__ import annotations

from uuid import UUID

import pytest

from noonmark.core.workflows.definition import Definition, Task
from noonmark.store.workflows.definitions import Definitions


class Versions:
    """Versions of workflows, each with some tasks, and how often each was read."""

    def __init__(self, known: Definitions) -> None:
        self.known = known
        self.read: list[int] = []

    def get(self, number: int, tasks: int = 1) -> Definition | None:
        def read() -> Definition | None:
            self.read.append(number)
            return Definition([Task(no, f"t{no}") for no in range(tasks)]) if tasks else None

        return self.known.get((UUID(int=number), 1), read)


def test_a_version_is_read_once() -> None:
    versions = Versions(Definitions())

    assert versions.get(1) is versions.get(1)
    assert versions.read == [1]


@pytest.mark.parametrize(("known", "tasks"), [(Definitions(2), 1), (Definitions(most_tasks=25), 10)])
def test_those_that_were_used_last_are_kept(known: Definitions, tasks: int) -> None:
    versions = Versions(known)
    for number in (1, 2, 1, 3, 1, 2):
        versions.get(number, tasks)

    assert versions.read == [1, 2, 3, 2]


def test_a_graph_that_is_larger_than_all_room_is_kept_alone() -> None:
    versions = Versions(Definitions(most_tasks=25))
    for number in (1, 2, 2, 1):
        versions.get(number, 30)

    assert versions.read == [1, 2, 1]


def test_what_does_not_exist_is_looked_for_again() -> None:
    versions = Versions(Definitions())

    assert versions.get(1, 0) is versions.get(1, 0) is None
    assert versions.read == [1, 1]
