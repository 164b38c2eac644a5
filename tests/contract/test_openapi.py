"""The OpenAPI document: valid, exported as it is, and whole: nothing of a route is left to be guessed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from noonmark.api.app import build_api
from noonmark.api.http.route_list import routes_of
from noonmark.api.openapi import reference
from noonmark.api.openapi.document import document, encode
from noonmark.api.openapi.operations import OPERATIONS
from noonmark.api.openapi.parts import TAGS

ROOT = Path(__file__).parents[2]
APP = build_api()
DOCUMENT = document(APP)
OPERATION_IDS = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}
FREE = {"documents.openapi", "documents.asyncapi", "documents.schema", "documents.health", "events.follow"}
"""Their answers are documents of other standards, or no JSON."""


def operations() -> list[Any]:
    return [pytest.param(*found, id=name) for name, found in OPERATION_IDS.items()]


def bodies(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from operation.get("requestBody", {}).get("content", {}).values()


def validator_of(schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    """One whose references resolve in the document."""
    return jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def test_the_exported_document_is_that_of_the_routes():
    file = ROOT / "schemas" / "json" / "openapi.json"
    assert file.read_bytes() == encode(DOCUMENT), (
        "run: python -m noonmark.api.export_openapi > schemas/json/openapi.json"
    )


def test_the_page_of_the_reference_is_that_of_the_document():
    page = (ROOT / "docs" / "api-reference.md").read_text(encoding="utf-8")
    assert page == reference.page(DOCUMENT), (
        "run: python -m noonmark.api.export_reference > docs/api-reference.md"
    )


def test_the_document_is_valid_openapi():
    assert DOCUMENT["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(DOCUMENT).validate()


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_every_schema_is_valid_json_schema_with_a_name_that_people_can_say(name: str):
    jsonschema.Draft202012Validator.check_schema(DOCUMENT["components"]["schemas"][name])
    assert re.fullmatch(r"[A-Z][A-Za-z]+", name)


def test_every_schema_is_used_and_every_reference_leads_to_one():
    text = orjson.dumps(DOCUMENT).decode()
    found = set(re.findall(r'"\$ref":"([^"]+)"', text))
    kinds = ("schemas", "headers", "responses")
    assert {f"#/components/{kind}/{name}" for kind in kinds for name in DOCUMENT["components"][kind]} >= found
    for name in DOCUMENT["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, name


def test_every_route_that_is_served_is_described():
    routes = dict(routes_of(APP))
    assert {(method, path) for method, path, _ in OPERATION_IDS.values()} == set(routes)
    assert {route.tags[0] for route in routes.values()} <= TAGS.keys()


def test_no_two_operations_have_one_name_in_a_generated_client():
    """Generators make snake_case, camelCase or PascalCase of the id, and group operations by tag."""
    names = Counter(re.sub(r"[^a-z0-9]", "", name.lower()) for name in OPERATION_IDS)
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_every_alias_says_what_it_is_an_alias_of():
    for name, (method, path, operation) in OPERATION_IDS.items():
        original = path.replace("/executions", "/runs")
        assert operation.get("x-alias-of") == (original if original != path else None), name
        assert any(found[:2] == (method, original) for found in OPERATION_IDS.values()), name


def plain_objects() -> list[Any]:
    schemas = DOCUMENT["components"]["schemas"]
    return [pytest.param(schemas[name], id=name) for name in schemas if schemas[name].get("properties")]


@pytest.mark.parametrize("schema", plain_objects())
def test_a_generator_sees_the_fields_of_an_object_and_not_its_rules(schema: dict[str, Any]):
    assert schema["type"] == "object"
    assert schema.keys() & {"allOf", "anyOf", "oneOf", "not", "then", "patternProperties"} == set()


@pytest.mark.parametrize(
    "name", ["JobDocument", "JobPatch", "ScheduleDocument", "RetryDocument", "HttpPayload"]
)
def test_a_client_sends_no_default_that_its_user_did_not_choose(name: str):
    assert '"default":' not in orjson.dumps(DOCUMENT["components"]["schemas"][name]["properties"]).decode()


def valid(name: str, value: dict[str, Any]) -> bool:
    return validator_of({"$ref": f"#/components/schemas/{name}"}).is_valid(value)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("ScheduleDocument", {"cron": "0 9 * * 1"}, {"cron": "0 9 * * 1", "every": 60}),
        ("ScheduleDocument", {"every": "15m"}, {"timezone": "Europe/Berlin"}),
        (
            "ScheduleDocument",
            {"rrule": "FREQ=DAILY", "dtstart": "2026-03-08T02:30"},
            {"every": 60, "dtstart": "2026-03-08T02:30"},
        ),
        ("CalendarsDocument", {"exclude": "holidays"}, {"on_holiday": "skip"}),
        ("JobDocument", {"type": "python", "handler": "a.b"}, {"type": "python"}),
        (
            "JobDocument",
            {"type": "python", "handler": "a", "labels": {"a": "b"}},
            {"type": "python", "handler": "a", "labels": {"!": "b"}},
        ),
        ("ConditionDocument", {"pointer": "/a", "equals": 1}, {"pointer": "/a", "equals": 1, "exists": True}),
    ],
)
def test_the_rules_between_fields_hold_all_the_same(name: str, good: dict[str, Any], bad: dict[str, Any]):
    assert valid(name, good)
    assert not valid(name, bad)


def test_there_are_no_rows_about_operations_that_are_not():
    assert OPERATIONS.keys() <= OPERATION_IDS.keys()


@pytest.mark.parametrize(("method", "path", "operation"), operations())
def test_an_operation_says_what_it_is_for_and_who_may(method: str, path: str, operation: dict[str, Any]):
    assert re.fullmatch(r"[a-z-]+\.[a-z_]+", operation["operationId"])
    assert operation["summary"]
    assert not operation["summary"].endswith(".")
    assert re.search(r"Requires .+\.$|^Open:", operation["description"], re.MULTILINE)
    assert ("x-noonmark-permission" in operation) is ("Open" not in operation["description"])
    for parameter in operation.get("parameters", ()):
        assert parameter["in"] == "path" or parameter.get("description"), parameter["name"]
    for status in ("401", "429") if operation.get("security") != [] else ():
        assert status in operation["responses"]


@pytest.mark.parametrize(("method", "path", "operation"), operations())
def test_a_body_has_a_schema_of_its_own_and_examples_that_fit(
    method: str, path: str, operation: dict[str, Any]
):
    found = list(bodies(operation))
    if method in {"PUT", "PATCH"}:
        assert found
    for body in found:
        # Null stands for a body that is left out.
        named = [part for part in body["schema"].get("anyOf", [body["schema"]]) if part != {"type": "null"}]
        assert [part.keys() for part in named] == [{"$ref"}], "name the model of the body"
        assert body.get("examples"), "give an example in noonmark/api/operations.py"
        validator = validator_of(body["schema"])
        for example in body["examples"].values():
            validator.validate(example["value"])


@pytest.mark.parametrize(("method", "path", "operation"), operations())
def test_an_answer_has_a_schema_of_its_own(method: str, path: str, operation: dict[str, Any]):
    successes = [status for status in operation["responses"] if status.startswith(("2", "3"))]
    assert successes
    for status in successes:
        response = operation["responses"][status]
        assert "Noonmark-Request-Id" in response["headers"]
        if status == "204" or operation["operationId"] in FREE:
            continue
        schema = response["content"]["application/json"]["schema"]
        assert schema.keys() == {"$ref"}, "give the route a response_model"
    for status, response in operation["responses"].items():
        if status[0] in "45":
            assert response["$ref"].startswith("#/components/responses/")


def test_every_problem_that_is_named_carries_a_problem_document():
    for response in DOCUMENT["components"]["responses"].values():
        assert response["content"].keys() == {"application/problem+json"}
