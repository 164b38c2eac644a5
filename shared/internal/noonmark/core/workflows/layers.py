"""The shape of a workflow: the layer of each task, and the longest path, for people."""

from __future__ import annotations

from noonmark.core.workflows.definition import Definition


def layers(definition: Definition) -> list[list[int]]:
    """Return the numbers of tasks by layer: a task is in the layer after the last one that it depends on.

    Tasks of `finally` are in layers after all others.
    """
    found: list[list[int]] = []
    for no, layer in enumerate(_layer_of_each(definition)):
        while layer >= len(found):
            found.append([])
        found[layer].append(no)
    return found


def longest_path(definition: Definition) -> list[int]:
    """Return the numbers of the tasks on a longest path of dependencies, from its first task to its last.

    Of several, the one with the lowest numbers at its end. Tasks of `finally` do not continue a path of
    others, on which they do not depend.
    """
    lengths: list[int] = []
    before: list[int] = []
    for task in definition.tasks:
        longest = max(task.edges, key=lambda edge: (lengths[edge.parent], -edge.parent), default=None)
        lengths.append(1 if longest is None else 1 + lengths[longest.parent])
        before.append(-1 if longest is None else longest.parent)
    if not lengths:
        return []
    path = [lengths.index(max(lengths))]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return path[::-1]


def _layer_of_each(definition: Definition) -> list[int]:
    found: list[int] = []
    first_of_finally = 0
    for task in definition.tasks:
        if task.is_final and task.no == definition.main_count:
            first_of_finally = 1 + max(found, default=-1)
        after = max((found[edge.parent] for edge in task.edges), default=-1)
        found.append(max(after + 1, first_of_finally))
    return found
