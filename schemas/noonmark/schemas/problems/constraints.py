"""The allowed values of a field or parameter, read from pydantic's error and the constraints of the field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from annotated_types import Ge, Le

_Context = Mapping[str, Any]

_BOUNDS: Final = frozenset({"greater_than_equal", "less_than_equal", "int_type"})

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
    "too_short": lambda limit: f"at least {_values(limit['min_length'])}",
    "too_long": lambda limit: f"at most {_values(limit['max_length'])}",
    "string_pattern_mismatch": lambda limit: f"text of the form {limit['pattern']}",
    "int_type": lambda _: "an integer",
    "float_type": lambda _: "a number",
    "bool_type": lambda _: "true or false",
    "string_type": lambda _: "a string",
    "uuid_type": lambda _: "a UUID",
    "list_type": lambda _: "an array",
    "dict_type": lambda _: "an object",
    "model_type": lambda _: "an object",
    "model_attributes_type": lambda _: "an object",
}
"""What is expected, by the type of pydantic's error."""


def allowed_values(kind: str, context: _Context, metadata: Sequence[object] = ()) -> str:
    """Return the values that a rule allows; "" if it does not say.

    Args:
        kind: the type of pydantic's error.
        context: the context of the error, with the constraint that was not met.
        metadata: the constraints of the field; a lower and an upper bound are named together.
    """
    if kind in _BOUNDS:
        least = next((note.ge for note in metadata if isinstance(note, Ge)), None)
        most = next((note.le for note in metadata if isinstance(note, Le)), None)
        if isinstance(least, int) and isinstance(most, int):
            return f"an integer from {least} to {most}"
    known = _EXPECTED.get(kind)
    return known(context) if known is not None else ""


def _characters(count: int) -> str:
    return f"{count} character{'' if count == 1 else 's'}"


def _values(count: int) -> str:
    return f"{count} value{'' if count == 1 else 's'}"
