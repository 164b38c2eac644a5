"""Which series a PromQL expression reads, and by which labels: enough to hold rules and panels against what exists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(
    r"(?<![\w:$])((?:noonmark|process|python)_\w+|[a-z]+:noonmark_[\w:]+|noonmark:\w+|up|ALERTS)\b"
)
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")
_MATCHERS = re.compile(r"\s*\{([^{}]*)\}")
_SUFFIXES = ("_bucket", "_count", "_sum")

TARGET_LABELS = frozenset({"job", "namespace", "instance", "pod"})
"""What Prometheus knows of a target itself; `namespace` in Kubernetes only."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A series that is read, and the labels that are asked of it."""

    name: str
    labels: frozenset[str]


def selectors(expr: str) -> Iterator[Selector]:
    """The series that an expression reads."""
    bare = _GROUPING.sub(" ", _STRING.sub('""', expr))
    for found in _SELECTOR.finditer(bare):
        matchers = _MATCHERS.match(bare, found.end())
        named = re.findall(r"(\w+)\s*[=!]", matchers[1]) if matchers else []
        yield Selector(found[1], frozenset(named))


def grouped(expr: str) -> set[str]:
    """The labels that an expression sums or joins by."""
    return {
        label for group in _GROUPING.findall(_STRING.sub('""', expr)) for label in re.findall(r"\w+", group)
    }


def problems(expr: str, known: Mapping[str, frozenset[str]], histograms: frozenset[str]) -> list[str]:
    """Say what an expression reads that nobody shows.

    Args:
        expr: PromQL.
        known: labels by the name of each metric and recorded series.
        histograms: those of them that have buckets.
    """
    wrong, seen = [], set(TARGET_LABELS)
    for selector in selectors(expr):
        base, labels = _base(selector.name, histograms)
        if base not in known or (base in histograms and base == selector.name):
            wrong.append(f"no series {selector.name}")
            continue
        seen |= known[base] | labels
        wrong += [
            f"{selector.name} has no label {label}"
            for label in selector.labels - known[base] - labels - TARGET_LABELS
        ]
    wrong += [f"nothing here has the label {label}" for label in grouped(expr) - seen - _made(expr)]
    return wrong


def _base(name: str, histograms: frozenset[str]) -> tuple[str, frozenset[str]]:
    for suffix in _SUFFIXES:
        base = name.removesuffix(suffix)
        if base != name and base in histograms:
            return base, frozenset({"le"} if suffix == "_bucket" else ())
    return name, frozenset()


def _made(expr: str) -> set[str]:
    """Labels that the expression makes itself, and the name that Prometheus gives a label that is there twice."""
    made = set(re.findall(r'"(\w+)",\s*"\$1"', expr))
    return made | ({"exported_namespace"} if "exported_namespace" in expr else set())
