"""The shape of a workflow for people: layers, and the longest path."""

from __future__ import annotations

import pytest

from noonmark.core.workflows.definition import Definition, Edge, Task
from noonmark.core.workflows.layers import layers, longest_path


def graph(*parents: list[int], final: int = 0) -> Definition:
    """A workflow by the parents of each task; the last `final` tasks are of `finally`."""
    first = len(parents) - final
    return Definition(
        [
            Task(no, f"t{no}", edges=tuple(map(Edge, edges)), is_final=no >= first)
            for no, edges in enumerate(parents)
        ]
    )


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (graph(), []),
        (graph([]), [[0]]),
        (graph([], [], []), [[0, 1, 2]]),
        (graph([], [0], [0], [1, 2]), [[0], [1, 2], [3]]),
        (graph([], [], [0], [2], [1, 3]), [[0, 1], [2], [3], [4]]),
        (graph([], [0], [], [2], final=2), [[0], [1], [2], [3]]),
        (graph([], [], final=2), [[0, 1]]),
    ],
)
def test_a_task_is_in_the_layer_after_the_last_that_it_depends_on(definition, expected):
    assert layers(definition) == expected


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (graph(), []),
        (graph([]), [0]),
        (graph([], []), [0]),
        (graph([], [0], [0], [1, 2]), [0, 1, 3]),
        (graph([], [], [0], [2], [1, 3]), [0, 2, 3, 4]),
        (graph([], [0], [], [2], [3], final=3), [2, 3, 4]),
    ],
)
def test_the_longest_path_goes_from_a_first_task_to_the_last_that_waits_for_most(definition, expected):
    assert longest_path(definition) == expected


def test_a_chain_of_the_most_tasks_is_no_recursion():
    chain = graph([], *([no] for no in range(4_999)))

    assert longest_path(chain) == list(range(5_000))
    assert layers(chain) == [[no] for no in range(5_000)]
