"""Rewrites schemas, with the same meaning, into forms that code generators read.

Generators turn an object into a class of its `properties`, and `anyOf` into a union of types. They take rules
between fields for more types, see a map whose keys have a pattern as an empty class, and nested unions as
classes of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_RULES: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_ABOUT_RULES: Final = "Rules between fields. In `if`, they do not hide the fields from code generators."
_TYPE_OF: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}
_NAMED: Final = ("properties", "patternProperties", "$defs")
_VALUES: Final = ("default", "enum", "const", "examples", "example")


def readable(schema: Any) -> Any:
    """Return a schema in forms that code generators read; it accepts the same values.

    Args:
        schema: a JSON Schema 2020-12, or a part of one.
    """
    if isinstance(schema, list):
        return [readable(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = _with_parts(schema, readable, unchanged=_VALUES)
    _type_words(made)
    _flatten_unions(made)
    _type_keys(made)
    return _with_rules_in_if(made) if made.get("properties") else made


def without_defaults(schema: Any) -> Any:
    """Return the schema of a document with the defaults of its fields in their descriptions.

    Generated clients send defaults. A document with a default that its author did not choose means something
    else: a namespace, or a retry delay next to `retry`.

    Args:
        schema: a JSON Schema 2020-12, or a part of one.
    """
    if isinstance(schema, list):
        return [without_defaults(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = _with_parts(schema, without_defaults, unchanged=("default",))
    made.pop("default", None)
    text = str(made.get("description", ""))
    if "default" in schema and text and not re.search(r"\bdefault\b", text, re.IGNORECASE):
        value = schema["default"]
        shown = f"{value:g}" if isinstance(value, float) else json.dumps(value)
        made["description"] = f"{text.rstrip('.')}. Default: {shown}."
    return made


def _with_parts(
    schema: Mapping[str, Any], rewrite: Callable[[Any], Any], *, unchanged: Sequence[str]
) -> dict[str, Any]:
    """Return a copy of a schema with each part rewritten, except for the keywords that contain values."""
    return {
        key: {name: rewrite(field) for name, field in value.items()}
        if key in _NAMED
        else value
        if key in unchanged
        else rewrite(value)
        for key, value in schema.items()
    }


def _type_words(schema: dict[str, Any]) -> None:
    """Give an enumeration or a constant its type, and each of several types a schema of its own."""
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    kinds = {_TYPE_OF.get(type(word)) for word in words}
    if "type" not in schema and len(kinds) == 1 and (kind := kinds.pop()):
        schema["type"] = kind
    if isinstance(several := schema.get("type"), list) and "anyOf" not in schema:
        del schema["type"]
        schema["anyOf"] = [{"type": kind} for kind in several]


def _flatten_unions(schema: dict[str, Any]) -> None:
    """Make one union of a union in a union, and put the format of text next to the type of text."""
    parts = schema.get("anyOf")
    if parts is None:
        return
    flat: list[Any] = []
    for part in parts:
        inner = part["anyOf"] if isinstance(part, Mapping) and part.keys() <= {"anyOf", "default"} else ()
        flat += [item for item in inner or [part] if item not in flat]
    texts = [part for part in flat if part.get("type") == "string"]
    if len(texts) == 1 and "format" in schema and "format" not in texts[0]:
        texts[0]["format"] = schema.pop("format")
    if {} in flat:
        # Any value; the other parts add nothing.
        del schema["anyOf"]
        return
    schema["anyOf"] = flat


def _type_keys(schema: dict[str, Any]) -> None:
    """Say what the values of a map are: a single pattern of its keys becomes the rule for their names."""
    patterns = schema.get("patternProperties", {})
    if len(patterns) != 1 or schema.get("additionalProperties") is not False or "properties" in schema:
        return
    ((pattern, values),) = patterns.items()
    del schema["patternProperties"]
    schema["additionalProperties"] = values
    schema["propertyNames"] = {"pattern": pattern, **schema.get("propertyNames", {})}


def _with_rules_in_if(schema: dict[str, Any]) -> dict[str, Any]:
    """Move the rules between the fields of an object to where generators do not look."""
    rules = {key: schema.pop(key) for key in _RULES if key in schema}
    if not rules:
        return schema
    return {**schema, "$comment": _ABOUT_RULES, "if": rules, "else": {"not": {}}}
