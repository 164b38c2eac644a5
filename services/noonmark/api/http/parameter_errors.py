"""Errors of parameters: of the query, of headers and of the path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from noonmark.schemas.problems.constraints import allowed_values
from noonmark.schemas.problems.refusal import FieldError, shown

_PART: Final = "; expected "


class ParameterError(FieldError):
    """One problem of a parameter: its message names the parameter, because no pointer leads to it."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.message + (f"{_PART}{self.expected}" if self.expected else "")


def query_error(name: str, message: str, expected: str = "") -> ParameterError:
    """Return the problem of a query parameter."""
    return ParameterError("", f"query parameter {name}: {message}", expected)


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
