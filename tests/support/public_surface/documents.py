"""REST, events and channels, from the documents in `schemas/json`, without a word of prose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tests.support.public_surface.sources import PROBLEM_TYPES

FOLDER: Final = Path(__file__).resolve().parents[3] / "schemas" / "json"
_PROSE: Final = frozenset({"title", "description", "summary", "example", "examples", "externalDocs"})
_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "schemas", "headers", "messages"})
"""Whose keys are names, and so never prose."""


def without_prose(part: Any) -> Any:
    """Return a document without titles, descriptions and examples; `required` and `enum` sorted."""
    if isinstance(part, list):
        return [without_prose(one) for one in part]
    if not isinstance(part, dict):
        return part
    found = {}
    for key, value in part.items():
        if key in _BY_NAME and isinstance(value, dict):
            found[key] = {name: without_prose(one) for name, one in value.items()}
        elif key in {"const", "default"}:
            found[key] = value
        elif key == "required" and isinstance(value, list):
            found[key] = sorted(value)
        elif key == "enum":
            found[key] = sorted(value, key=str)
        elif key not in _PROSE:
            found[key] = without_prose(value)
    return found


def rest() -> dict[str, Any]:
    """Return each operation with its parameters, body and answers, and each schema field by field."""
    document = without_prose(_read("openapi.json"))
    found: dict[str, Any] = {"security": document["security"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found |= _operation(f"{method.upper()} {path}", operation)
    for kind, parts in document["components"].items():
        for name, part in parts.items():
            found |= _fields(name, part) if kind == "schemas" else {f"{kind} {name}": part}
    return found


def problems() -> dict[str, Any]:
    """Return the problems that the API answers with, and their status."""
    return {kind.uri: kind.status for kind in PROBLEM_TYPES}


def events() -> dict[str, Any]:
    """Return the event and job documents field by field; what several share is there once."""
    found: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for file in sorted(FOLDER.glob("*.json")):
        if file.name in {"openapi.json", "asyncapi.json"}:
            continue
        document = without_prose(_read(file.name))
        definitions = document.pop("$defs", {})
        found |= _fields(file.stem, document)
        for name, definition in definitions.items():
            own = name if shared.setdefault(name, definition) == definition else f"{file.stem} {name}"
            found |= _fields(f"$defs {own}", definition)
    return found


def channels() -> dict[str, Any]:
    """Return channels, operations and messages on Kafka."""
    document = without_prose(_read("asyncapi.json"))
    document.pop("info")
    found = {"content type": document["defaultContentType"]}
    for kind in ("channels", "operations"):
        found |= {f"{kind} {name}": part for name, part in document[kind].items()}
    for kind, parts in document["components"].items():
        found |= {f"{kind} {name}": part for name, part in parts.items()}
    return found


def _operation(name: str, operation: dict[str, Any]) -> dict[str, Any]:
    operation.pop("tags", None)
    parameters, answers = operation.pop("parameters", []), operation.pop("responses")
    body = operation.pop("requestBody", None)
    found: dict[str, Any] = {name: operation}
    for parameter in parameters:
        rest = {key: value for key, value in parameter.items() if key not in {"name", "in"}}
        found[f"{name} {parameter['in']} {parameter['name']}"] = rest
    if body is not None:
        found[f"{name} body"] = body
    return found | {f"{name} {status}": answer for status, answer in answers.items()}


def _fields(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema as one entry for itself and one per field."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    loose = sorted(set(required) - set(properties))
    rest = {key: value for key, value in schema.items() if key not in {"properties", "required", "$id"}}
    found = {name: {**rest, "required": loose} if loose else rest}
    for field, kind in properties.items():
        found[f"{name}.{field}"] = {**kind, "required": True} if field in required else kind
    return found


def _read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return document
