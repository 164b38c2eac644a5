"""Conditions on results and verdicts: bounded, total, without code. A pointer that leads nowhere is false."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from noonmark.core.kinds.json_values import NOTHING, pointer_path, same_json, value_at
from noonmark.core.workflows import KEY_PATTERN
from noonmark.core.workflows.problems import InvalidWorkflowError, Problem, below

__all__ = [
    "MOST_LEVELS",
    "MOST_NODES",
    "MOST_VALUES",
    "NOTHING",
    "TESTS",
    "VERDICTS",
    "Condition",
    "parse_condition",
    "place_of",
]

MOST_NODES: Final = 50
"""Most conditions in a condition, including itself."""

MOST_LEVELS: Final = 10
"""Most levels of conditions."""

MOST_VALUES: Final = 100
"""Most values of `in`."""

VERDICTS: Final = ("succeeded", "failed", "skipped")
TESTS: Final = ("eq", "ne", "lt", "le", "gt", "ge", "in", "exists")

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_GROUPS: Final = ("all", "any")
_LATER: Final = ("run", "input", "item")
_KEY: Final = re.compile(KEY_PATTERN, re.ASCII)
_DEEPEST_VALUE: Final = 32
_FORMS: Final = "an object with all, any, not, verdict, or a comparison such as {at: /total, gt: 0}"
_A_KEY: Final = "the key of a task"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, from `parse_condition`.

    Attributes:
        stored: the JSON value that it was read from, in canonical form.
        reads: keys of the tasks whose results it reads.
        verdicts: keys of the tasks whose verdicts it reads.
    """

    stored: object
    reads: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()

    def holds(
        self, results: Callable[[str], object], verdicts: Callable[[str], str], own: object = None
    ) -> bool:
        """Whether it holds.

        Args:
            results: returns the result of a task by its key, `conditions.NOTHING` if it has none.
            verdicts: returns `succeeded`, `failed` or `skipped` for a task by its key.
            own: the result that a comparison without a task reads: that of the edge's parent.
        """
        return _holds(self.stored, results, verdicts, own)


def parse_condition(value: object, pointer: str = "", *, of_edge: bool = False) -> Condition:
    """Read a condition.

    Args:
        value: JSON.
        pointer: JSON pointer to the value, for problems.
        of_edge: whether a comparison can leave out the task: then it reads the result of the edge's parent.

    Raises:
        InvalidWorkflowError: it is not a condition.
    """
    reader = _Reader(of_edge=of_edge)
    stored = reader.read(value, pointer, 1)
    if reader.nodes > MOST_NODES:
        reader.problems.append(
            Problem(pointer, f"has more than {MOST_NODES} conditions", "a task whose result is the decision")
        )
    if reader.problems:
        raise InvalidWorkflowError(reader.problems)
    return Condition(stored, frozenset(reader.reads), frozenset(reader.verdicts))


def place_of(stored: object, key: str, pointer: str) -> str:
    """Return the pointer to the first place where a condition reads a task.

    Args:
        stored: the condition in canonical form.
        key: of the task.
        pointer: of the condition.
    """
    if isinstance(stored, dict):
        for name, part in stored.items():
            if name in {"result", "verdict"} and part == key:
                return below(pointer, name)
            if name in {*_GROUPS, "not"} and (found := place_of(part, key, below(pointer, name))):
                return found
    elif isinstance(stored, list):
        places = (place_of(part, key, f"{pointer}/{index}") for index, part in enumerate(stored))
        return next(filter(None, places), "")
    return ""


def _holds(node: Any, results: Callable[[str], object], verdicts: Callable[[str], str], own: object) -> bool:
    if "all" in node:
        return all(_holds(part, results, verdicts, own) for part in node["all"])
    if "any" in node:
        return any(_holds(part, results, verdicts, own) for part in node["any"])
    if "not" in node:
        return not _holds(node["not"], results, verdicts, own)
    if "verdict" in node:
        return verdicts(node["verdict"]) in node["in"]
    found = value_at(results(node["result"]) if "result" in node else own, _path(node.get("at", "")))
    if "exists" in node:
        return (found is not NOTHING) is node["exists"]
    return found is not NOTHING and _compares(node, found)


def _compares(node: Mapping[str, Any], found: object) -> bool:
    if "eq" in node:
        return same_json(found, node["eq"])
    if "ne" in node:
        return not same_json(found, node["ne"])
    if "in" in node:
        return any(same_json(found, one) for one in node["in"])
    test = next(name for name in _ORDERS if name in node)
    return _is_ordered(found, node[test]) and _ORDERS[test](found, node[test])


def _is_ordered(one: object, other: object) -> bool:
    """Whether JSON values have an order: two numbers, or two texts (by code point)."""
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in (int | float, str))


@lru_cache(maxsize=4096)
def _path(pointer: str) -> tuple[str, ...]:
    return pointer_path(pointer)


class _Reader:
    """Reads one condition, and collects its problems."""

    def __init__(self, *, of_edge: bool) -> None:
        self.nodes = 0
        self.problems: list[Problem] = []
        self.reads: set[str] = set()
        self.verdicts: set[str] = set()
        self._of_edge = of_edge

    def read(self, value: object, at: str, level: int) -> object:
        """Return the canonical form of a condition; anything if it has problems."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            return None
        if not isinstance(value, dict):
            return self._refuse(at, "is not an object", _FORMS)
        if level > MOST_LEVELS:
            return self._refuse(at, "is nested too deeply", f"at most {MOST_LEVELS} levels of conditions")
        forms = [name for name in (*_GROUPS, "not", "verdict") if name in value]
        if len(forms) > 1:
            return self._refuse(at, f"has {' and '.join(forms)}", "one of them")
        return self._form(forms[0] if forms else "", value, at, level)

    def _form(self, form: str, value: Mapping[str, Any], at: str, level: int) -> object:
        if form in _GROUPS:
            self._check_fields(value, at, (form,))
            return {form: self._group(value[form], f"{at}/{form}", level)}
        if form == "not":
            self._check_fields(value, at, ("not",))
            return {"not": self.read(value["not"], f"{at}/not", level + 1)}
        return self._verdict(value, at) if form else self._comparison(value, at)

    def _group(self, parts: object, at: str, level: int) -> object:
        if not isinstance(parts, list) or not parts:
            return self._refuse(
                at, "is not a list of conditions", f"a list of 1 to {MOST_NODES - 1} conditions"
            )
        left = MOST_NODES - self.nodes + 1
        return [self.read(part, f"{at}/{index}", level + 1) for index, part in enumerate(parts[:left])]

    def _verdict(self, value: Mapping[str, Any], at: str) -> object:
        self._check_fields(value, at, ("verdict", "in"))
        key = self._key(value["verdict"], f"{at}/verdict", self.verdicts)
        given = value.get("in")
        words = given if isinstance(given, list) else []
        if not 0 < len(words) <= len(VERDICTS) or any(word not in VERDICTS for word in words):
            what = "is not a list of verdicts" if "in" in value else "is missing"
            return self._refuse(f"{at}/in", what, f"a list of {', '.join(VERDICTS)}")
        return {"verdict": key, "in": [word for word in VERDICTS if word in words]}

    def _comparison(self, value: Mapping[str, Any], at: str) -> object:
        self._check_fields(value, at, ("result", "at", *TESTS))
        if any(name in value for name in _LATER):
            return None
        made: dict[str, object] = {}
        if "result" in value:
            made["result"] = self._key(value["result"], f"{at}/result", self.reads)
        elif not self._of_edge:
            self._refuse(f"{at}/result", "is missing", _A_KEY)
        if value.get("at", "") != "":
            made["at"] = self._pointer(value["at"], f"{at}/at")
        tests = [name for name in TESTS if name in value]
        if len(tests) != 1:
            return self._refuse(at, f"has {' and '.join(tests) or 'no test'}", f"one of {', '.join(TESTS)}")
        (test,) = tests
        self._check_operand(test, value[test], f"{at}/{test}")
        made[test] = value[test]
        return made

    def _check_operand(self, test: str, operand: object, at: str) -> None:
        if test == "exists" and not isinstance(operand, bool):
            self._refuse(at, "is not a boolean", "true or false")
        if test in _ORDERS and (isinstance(operand, bool) or not isinstance(operand, int | float | str)):
            self._refuse(at, "has no order", "a number or a string")
        if test == "in" and not (isinstance(operand, list) and 0 < len(operand) <= MOST_VALUES):
            self._refuse(at, "is not a list of values", f"a list of 1 to {MOST_VALUES} values")
        if not _is_shallow(operand, _DEEPEST_VALUE):
            self._refuse(at, "is nested too deeply", f"at most {_DEEPEST_VALUE} levels of nesting")

    def _key(self, value: object, at: str, found: set[str]) -> object:
        if not isinstance(value, str) or not _KEY.fullmatch(value):
            return self._refuse(at, "is not the key of a task", _A_KEY)
        found.add(value)
        return value

    def _pointer(self, value: object, at: str) -> object:
        try:
            pointer_path(value)
        except ValueError as error:
            return self._refuse(at, f"is not a JSON pointer: {error}", "a JSON pointer such as /total")
        return value

    def _check_fields(self, value: Mapping[str, Any], at: str, known: tuple[str, ...]) -> None:
        for name in value:
            if name in known:
                continue
            if name in _LATER and "at" in known:
                self._refuse(below(at, name), "is not available in this version", "no such field")
            else:
                self._refuse(below(at, str(name)), "unknown field", f"one of {', '.join(known)}")

    def _refuse(self, at: str, message: str, expected: str) -> object:
        """Add a problem; return a condition in its place."""
        self.problems.append(Problem(at, message, expected))
        return None


def _is_shallow(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not inner or (levels > 0 and all(_is_shallow(part, levels - 1) for part in inner))
