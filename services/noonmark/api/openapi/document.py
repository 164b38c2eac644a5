"""Builds the OpenAPI document of an application's routes.

FastAPI provides paths, parameters and models. This module adds the permission that each route requires, the
schemas of bodies that our own parsers check, headers, problems, and examples.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from noonmark.api.http.route_list import routes_of
from noonmark.api.openapi.operations import OPERATIONS, Operation
from noonmark.api.openapi.parts import (
    COMPONENTS,
    HEADERS,
    PARAMETER_EXAMPLES,
    PREAMBLE,
    PROBLEM_RESPONSES,
    SCHEMA_PREFIX,
    STORED_DOCUMENT,
    STORED_DOCUMENT_IN,
    TAGS,
    body_schemas,
    ref,
)
from noonmark.api.openapi.readable import readable
from noonmark.api.requests.routing import needs_of
from noonmark.core.access.roles import ROLE_FOR
from noonmark.schemas.export import tidy

_PLAIN: Final = Operation()
_ALIAS: Final = "_execution"
_PAGE_NAME: Final = re.compile(r"Page_(\w+?)_(?=\"|$)")


def document(app: FastAPI) -> dict[str, Any]:
    """Return the document of an application's routes.

    Raises:
        ValueError: if two different models have the same name.
    """
    made: dict[str, Any] = get_openapi(
        title="noonmark",
        version=version("noonmark"),
        description=PREAMBLE,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": "/", "description": "The server that served this document."}],
        routes=app.routes,
    )
    routes = dict(routes_of(app))
    inline: dict[str, Any] = {}
    for path, item in made["paths"].items():
        for method, operation in item.items():
            _complete(operation, routes[method.upper(), path], inline)
    used = {operation["tags"][0] for item in made["paths"].values() for operation in item.values()}
    made["tags"] = [{"name": name, "description": text} for name, text in TAGS.items() if name in used]
    made["security"] = [{"apiKey": []}, {"token": []}]
    own = made.get("components", {}).get("schemas", {})
    tidied = {name: tidy(schema) for name, schema in own.items()}
    schemas = _merged(_merged(tidied, body_schemas()), inline)
    for name in STORED_DOCUMENT_IN:
        field = schemas[name]["properties"]["document"]
        schemas[name]["properties"]["document"] = {**ref(STORED_DOCUMENT), **_description(field)}
    made["components"] = {
        "schemas": {name: readable(schema) for name, schema in schemas.items()},
        **COMPONENTS,
    }
    return _with_page_names(made)


def operation_id(route: APIRoute) -> str:
    """Return the stable id of a route's operation: its tag and an action, such as `jobs.list`."""
    tag = str(route.tags[0])
    name = route.name.rstrip("_")
    for word in (tag.replace("-", "_"), tag.replace("-", "_").removesuffix("s")):
        name = name.replace(f"_{word}", "")
    return f"{tag}.{name}"


def encode(made: Mapping[str, Any]) -> bytes:
    """Encode a document for a file."""
    return orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n"


def _complete(operation: dict[str, Any], route: APIRoute, inline: dict[str, Any]) -> None:
    """Complete one operation with what FastAPI does not know.

    Args:
        operation: the operation; changed in place.
        route: route of the operation.
        inline: schemas by name; receives the inline schemas of the operation.
    """
    name = operation["operationId"]
    known = OPERATIONS.get(name) or OPERATIONS.get(name.removesuffix(_ALIAS), _PLAIN)
    _add_purpose(operation, route)
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = readable(tidy(parameter["schema"]))
        if parameter["in"] == "header":
            parameter["name"] = parameter["name"].title()
        name = parameter["name"]
        if parameter["in"] == "path" and name in PARAMETER_EXAMPLES:
            parameter["example"] = PARAMETER_EXAMPLES[name]
        if name in known.query:
            parameter["example"] = known.query[name]
    if known.body is not None:
        content = operation.setdefault("requestBody", {"content": {}, "required": True})
        content["content"] = {media_type: {"schema": known.body} for media_type in known.media_types}
    for body in operation.get("requestBody", {}).get("content", {}).values():
        name = body["schema"].get("title")
        body["schema"] = tidy(body["schema"])
        if name is not None and body["schema"].get("type") == "object":
            inline |= _merged(inline, {name: body["schema"]})
            body["schema"] = ref(name)
        if known.examples:
            body["examples"] = {
                _slug(title): {"summary": title, "value": value} for title, value in known.examples.items()
            }
    _complete_responses(operation, known, route.path)


def _add_purpose(operation: dict[str, Any], route: APIRoute) -> None:
    """Set the summary, the description and the required permission."""
    first, _, rest = operation.get("description", "").partition("\n\n")
    alias_of = operation.get("x-alias-of")
    operation["summary"] = f"Alias of {alias_of}" if alias_of else " ".join(first.split()).removesuffix(".")
    need = needs_of(route)
    if need is None:
        operation["security"] = []
        access = "Open: no credentials required."
    elif need.permission is None:
        operation["x-noonmark-permission"] = None
        access = "Requires any valid credential."
    else:
        least = ROLE_FOR.get(need.permission)
        operation["x-noonmark-permission"] = need.permission
        who = f"the role {least.label} in the namespace" if least else "a platform admin"
        access = f"Requires {who} (`{need.permission}`)."
    if "/complete" in route.path:
        operation["security"] = []
        del operation["x-noonmark-permission"]
        access = "Open: the one-time token in the body, from the request of the run, is the only credential."
    operation["description"] = "\n\n".join(filter(None, (rest.strip(), access)))


def _complete_responses(operation: dict[str, Any], known: Operation, path: str) -> None:
    """Add the headers of responses, and the possible problems."""
    responses: dict[str, Any] = operation["responses"]
    for status, response in list(responses.items()):
        if status in {"4XX", "5XX"}:
            del responses[status]
            continue
        if response["description"] == "Successful Response":
            response["description"] = known.answers or "Done."
        names = ("Noonmark-Request-Id", *known.headers)
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
        response["headers"] |= {name: {**HEADERS[name], "required": False} for name in known.sometimes}
        for content in response.get("content", {}).values():
            if "schema" in content:
                content["schema"] = tidy(content["schema"])
    parameters = operation.get("parameters", ())
    location_of = {parameter["name"].lower(): parameter["in"] for parameter in parameters}
    wanted = {
        "400": bool(parameters) or "requestBody" in operation,
        "401": operation.get("security") != [],
        "403": known.forbids or operation.get("x-noonmark-permission") is not None,
        "404": "path" in location_of.values() or "namespace" in location_of or "requestBody" in operation,
        "406": len(responses.get("200", {}).get("content", ())) > 1,
        "409": bool(known.conflicts),
        "412": "if-match" in location_of,
        "413": "requestBody" in operation,
        "415": "requestBody" in operation,
        "422": "requestBody" in operation or "idempotency-key" in location_of,
        "429": operation.get("security") != [] or "/complete" in path,
        "500": True,
        "503": True,
    }
    for status in (status for status, may_be in wanted.items() if may_be):
        responses[status] = {"$ref": f"#/components/responses/{PROBLEM_RESPONSES[status]}"}


def _description(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key == "description"}


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    for name in first.keys() & second.keys():
        if first[name] != second[name]:
            raise ValueError(f"two different models have the name {name}")
    return dict(sorted({**first, **second}.items()))


def _with_page_names(made: dict[str, Any]) -> dict[str, Any]:
    """Rename pages: a page of jobs is JobPage, instead of pydantic's name of the generic."""
    schemas = made["components"]["schemas"]
    text = orjson.dumps(made).decode()
    for name in schemas:
        if found := _PAGE_NAME.fullmatch(name):
            text = text.replace(f'{SCHEMA_PREFIX}{name}"', f'{SCHEMA_PREFIX}{found[1]}Page"')
            text = text.replace(f'"{name}":', f'"{found[1]}Page":')
    renamed: dict[str, Any] = orjson.loads(text)
    return renamed


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
