"""Generates docs/api-reference.md from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_HEAD: Final = """\
# API reference

{preamble}
The OpenAPI document is served at `/openapi.json` and exported as
[schemas/json/openapi.json](../schemas/json/openapi.json); [problems.md](problems.md) lists the errors.
Send `Authorization: Bearer <API key or token>` with every request, except with those marked as open.

Roles apply to a namespace, and each role includes those before it: {roles}.

`python -m noonmark.api.export_reference` generates this page; do not edit it by hand.
"""
_ORDER: Final = {"path": 0, "query": 1, "header": 2}
_PROBLEMS_OF_ALL: Final = frozenset({"400", "401", "403", "404", "413", "415", "422", "429", "500", "503"})


def page(made: Mapping[str, Any]) -> str:
    """Return the text of the page.

    Args:
        made: the OpenAPI document.
    """
    scheme = made["components"]["securitySchemes"]["apiKey"]["description"]
    roles = scheme.partition("includes those before it: ")[2].partition(". Scopes")[0]
    lines = [_HEAD.format(preamble=made["info"]["description"], roles=roles)]
    operations = [
        (method.upper(), path, operation)
        for path, item in made["paths"].items()
        for method, operation in item.items()
        if "x-alias-of" not in operation
    ]
    for tag in made["tags"]:
        lines += [f"\n## {_title(tag['name'])}\n", tag["description"]]
        for method, path, operation in operations:
            if operation["tags"][0] == tag["name"]:
                lines += _operation(method, path, operation)
    lines += [
        "\n## Schemas\n",
        "Schemas of request bodies and responses. Fields that are not required can be omitted in a request.",
    ]
    for name, schema in made["components"]["schemas"].items():
        lines += _schema(name, schema)
    return "\n".join(lines) + "\n"


def _title(name: str) -> str:
    return name.replace("-", " ").capitalize()


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n### {method} {path}\n"
    yield f"{operation['summary']}. {' '.join(operation['description'].split())}"
    parameters = sorted(operation.get("parameters", ()), key=lambda item: _ORDER.get(item["in"], 3))
    if parameters:
        yield "\n| parameter | in | values | meaning |\n|---|---|---|---|"
        for item in parameters:
            name = f"`{item['name']}`" + (
                " (required)" if item.get("required") and item["in"] != "path" else ""
            )
            cells = (name, item["in"], _values(item["schema"]), _cell(item.get("description", "")))
            yield f"| {' | '.join(cells)} |"
    yield from _body(operation.get("requestBody"))
    yield from _answers(operation["responses"])


def _body(body: Mapping[str, Any] | None) -> Iterator[str]:
    if body is None:
        return
    for media_type, content in body["content"].items():
        optional = "" if body.get("required") else ", optional"
        yield f"\nBody (`{media_type}`{optional}): {_values(content['schema'])}."
        for example in content.get("examples", {}).values():
            yield f"\n{example['summary']}:\n\n```json\n{_shown(example['value'])}\n```"


def _schema(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n### {name}\n"
    yield _cell(schema.get("description", "")) or _values(schema)
    fields = schema.get("properties")
    if fields:
        yield "\n| field | values | meaning |\n|---|---|---|"
        for field, inner in fields.items():
            needed = " (required)" if field in schema.get("required", ()) else ""
            nullable = {"type": "null"} in inner.get("anyOf", ())
            values = f"{_values(inner) or 'any'}{' or null' if nullable else ''}"
            yield f"| `{field}`{needed} | {values} | {_cell(inner.get('description', ''))} |"


def _answers(responses: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    for status, response in responses.items():
        if "$ref" in response:
            continue
        schemas = [_values(content["schema"]) for content in response.get("content", {}).values()]
        what = f": {schemas[0]}" if schemas and schemas[0] else ""
        headers = [f"`{name}`" for name in response["headers"] if name != "Noonmark-Request-Id"]
        headers_text = f", with {', '.join(headers)}" if headers else ""
        yield f"- **{status}** {response['description'].rstrip('.')}{what}{headers_text}."
    own = [status for status in responses if status not in _PROBLEMS_OF_ALL and "$ref" in responses[status]]
    if own:
        yield f"- Also {', '.join(own)}: see [problems.md](problems.md)."


def _values(schema: Mapping[str, Any]) -> str:
    """Describe the values of a schema briefly."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            parts = [_values(part) for part in schema[key] if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(filter(None, parts)))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if schema.get("type") == "array":
        return f"list of {_values(schema.get('items', {})) or 'any'}"
    return _plain(schema)


def _plain(schema: Mapping[str, Any]) -> str:
    kind = str(schema.get("format") or schema.get("type", ""))
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        kind += f", {low} to {high}"
    if (most := schema.get("maxLength")) is not None:
        kind += f", up to {most} characters"
    if (default := schema.get("default")) is not None:
        kind += f", default {json.dumps(default)}"
    return kind


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _shown(value: Any) -> str:
    """Format JSON on one line if it fits, otherwise with one line per field."""
    line = json.dumps(value)
    return line if len(line) <= 110 else json.dumps(value, indent=2)
