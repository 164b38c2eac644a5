"""Finds a short circle in a graph, for people who have to break it. The same graph has the same answer.

Vertices are numbers, and smaller ones are preferred. An edge leads from a task to one that it depends on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final

_Graph = Mapping[int, Sequence[int]]

_WALKS: Final = 200_000
"""Edges that the search from single vertices follows at most, over all of them."""

_STEPS: Final = 3_000_000
"""Edges that the search from all vertices at once follows at most: a few tenths of a second."""


def shortest_circle(edges: Sequence[Iterable[int]]) -> list[int]:
    """Return the members of a shortest circle in their order, the smallest first; empty if there is none.

    In a graph with very many edges, in which all circles are long, it can be a longer one: the search ends
    after a fixed amount of work.

    Args:
        edges: for each vertex, by number, the vertices that its edges lead to.
    """
    graph = _on_circles({vertex: sorted(set(ends)) for vertex, ends in enumerate(edges)})
    if not graph:
        return []
    found, left = _from_single_vertices(graph)
    if left and (start := _smallest_on_a_shortest(left, len(found) - 1)) is not None:
        found = _through(left, start)
    first = found.index(min(found))
    return found[first:] + found[:first]


def _on_circles(graph: _Graph) -> dict[int, Sequence[int]]:
    """Drop the vertices, again and again, that no edge leads to or from."""
    before: dict[int, list[int]] = {vertex: [] for vertex in graph}
    for vertex, ends in graph.items():
        for end in ends:
            before[end].append(vertex)
    leaving = {vertex: len(ends) for vertex, ends in graph.items()}
    arriving = {vertex: len(starts) for vertex, starts in before.items()}
    dropped = [vertex for vertex in graph if not (leaving[vertex] and arriving[vertex])]
    gone = set(dropped)
    while dropped:
        vertex = dropped.pop()
        for neighbours, count in ((before[vertex], leaving), (graph[vertex], arriving)):
            for other in neighbours:
                count[other] -= 1
                if not count[other] and other not in gone:
                    gone.add(other)
                    dropped.append(other)
    return {
        vertex: [end for end in ends if end not in gone]
        for vertex, ends in graph.items()
        if vertex not in gone
    }


def _smallest_on_a_shortest(graph: _Graph, longest: int) -> int | None:
    """Return the smallest vertex on any shortest circle; None if all circles are longer, or too long to find.

    After n steps, the bits of a vertex are those that can be reached from it over exactly n edges.
    """
    place = {vertex: bit for bit, vertex in enumerate(graph)}
    reached = [1 << bit for bit in range(len(graph))]
    ends = [[place[end] for end in graph[vertex]] for vertex in graph]
    for _ in range(min(longest, max(1, _STEPS // sum(map(len, ends))))):
        reached = [reduce(or_, [reached[end] for end in leads], 0) for leads in ends]
        for vertex, bit in place.items():
            if reached[bit] >> bit & 1:
                return vertex
    return None


def _through(graph: _Graph, start: int) -> list[int]:
    """Return a shortest circle through a vertex; empty if there is none."""
    came_from: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        vertex = waiting.popleft()
        for end in graph[vertex]:
            if end == start:
                found = [vertex]
                while found[-1] != start:
                    found.append(came_from[found[-1]])
                return found[::-1]
            if end not in came_from:
                came_from[end] = vertex
                waiting.append(end)
    return []


def _walked(graph: _Graph) -> list[int]:
    """Return the circle that a walk along the first edges ends in."""
    walk: list[int] = []
    visited: dict[int, int] = {}
    vertex = min(graph)
    while vertex not in visited:
        visited[vertex] = len(walk)
        walk.append(vertex)
        vertex = graph[vertex][0]
    return walk[visited[vertex] :]


def _from_single_vertices(graph: _Graph) -> tuple[list[int], _Graph]:
    """Return the shortest circle found from one vertex after the other, and the graph of those that are left.

    Each vertex is dropped after its search, and with it those that are no longer on a circle. So if a few
    vertices are on all circles, as in one that has a few short cuts, nothing is left.
    """
    found = _walked(graph)
    budget = _WALKS
    while graph and budget > 0:
        budget -= sum(map(len, graph.values()))
        start = min(graph)
        shorter = _through(graph, start)
        if shorter and len(shorter) < len(found):
            found = shorter
        kept = {vertex: [end for end in ends if end != start] for vertex, ends in graph.items()}
        del kept[start]
        graph = _on_circles(kept)
    return found, graph
