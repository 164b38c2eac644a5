"""Errors of parameters: of the query, of headers and of the path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from noonmark.schemas.problems.constraints import allowed_values
from noonmark.schemas.problems.refusal import FieldError, shown

_PART: Final = "; expected "
_QUOTED: Final = re.compile("'([^']*)'")


class ParameterError(FieldError):
    """One problem of a parameter: its message names the parameter, because no pointer leads to it."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.message + (f"{_PART}{self.expected}" if self.expected else "")


def query_error(name: str, message: str, expected: str = "") -> ParameterError:
    """Return the problem of a query parameter."""
    return ParameterError("", f"query parameter {name}: {message}", expected)


def joined_choices(items: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Join errors about one value that is none of several lists of words: pydantic has one for each list."""
    joined: dict[object, Mapping[str, Any]] = {}
    for item in items:
        if item["type"] not in {"enum", "literal_error"} or item["loc"][0] == "body":
            joined[len(joined)] = item
            continue
        key = (*item["loc"][:2], repr(item["input"]))
        words = dict.fromkeys(
            word for one in (joined.get(key), item) if one for word in _QUOTED.findall(one["ctx"]["expected"])
        )
        *most, last = map(repr, words)
        expected = f"{', '.join(most)} or {last}" if most else last
        joined[key] = {**item, "ctx": {"expected": expected}}
    return list(joined.values())


def validation_error(item: Mapping[str, Any]) -> ParameterError:
    """Translate pydantic's error of a parameter, whose location is its source, its name, perhaps an index."""
    source, name = (*map(str, item["loc"]), "")[:2]
    text = str(item["msg"]).removeprefix("Value error, ")
    kind = item["type"]
    if kind == "missing":
        return ParameterError("", f"{source} parameter {name}: is missing", "a value")
    allowed = allowed_values(kind, item.get("ctx", {}))
    if not allowed:
        message, _, expected = text.partition(_PART)
        return ParameterError("", f"{source} parameter {name}: {message}", expected)
    given = "" if kind in {"too_short", "too_long"} else f"{shown(item['input'])} "
    verb = (
        "has too many values" if kind == "too_long" else "has too few values" if kind == "too_short" else ""
    )
    message = verb or f"{given}is not allowed"
    return ParameterError("", f"{source} parameter {name}: {message}", allowed)
