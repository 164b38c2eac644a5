"""Errors of parameters: of the query, of headers and of the path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from noonmark.schemas.problems.refusal import FieldError, shown

_Context = Mapping[str, Any]

_EXPECTED: Final[dict[str, Callable[[_Context], str]]] = {
    "greater_than_equal": lambda limit: f"at least {limit['ge']:g}",
    "greater_than": lambda limit: f"more than {limit['gt']:g}",
    "less_than_equal": lambda limit: f"at most {limit['le']:g}",
    "less_than": lambda limit: f"less than {limit['lt']:g}",
    "enum": lambda known: str(known["expected"]).replace("'", ""),
    "literal_error": lambda known: str(known["expected"]).replace("'", ""),
    "int_parsing": lambda _: "an integer",
    "int_parsing_size": lambda _: "an integer of at most 64 bits",
    "float_parsing": lambda _: "a number",
    "bool_parsing": lambda _: "true or false",
    "uuid_parsing": lambda _: "a UUID",
    "string_too_short": lambda limit: f"at least {_characters(limit['min_length'])}",
    "string_too_long": lambda limit: f"at most {_characters(limit['max_length'])}",
    "too_short": lambda limit: f"at least {limit['min_length']} values",
    "too_long": lambda limit: f"at most {limit['max_length']} values",
    "string_pattern_mismatch": lambda limit: f"text of the form {limit['pattern']}",
}
"""What is expected, by the type of pydantic's error."""

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
    known = _EXPECTED.get(kind)
    if known is None:
        message, _, expected = text.partition(_PART)
        return ParameterError("", f"{source} parameter {name}: {message}", expected)
    given = "" if kind in {"too_short", "too_long"} else f"{shown(item['input'])} "
    verb = (
        "has too many values" if kind == "too_long" else "has too few values" if kind == "too_short" else ""
    )
    message = verb or f"{given}is not allowed"
    return ParameterError("", f"{source} parameter {name}: {message}", known(item.get("ctx", {})))


def _characters(count: int) -> str:
    return f"{count} character{'' if count == 1 else 's'}"
