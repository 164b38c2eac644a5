"""The checked-in schemas equal the models, and say what the parser does."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from noonmark.kafka import messages
from noonmark.schemas.events import lifecycle, run_message, submissions
from noonmark.schemas.events.envelope import parse_event
from noonmark.schemas.export import documents, event_models, main
from noonmark.schemas.jobs.documents import JobDocument
from noonmark.schemas.jobs.job import parse_job
from noonmark.store.documents.jobs import effective

ROOT = Path(__file__).parents[3]
JSON_DIR = ROOT / "schemas" / "json"
NOW = datetime(2026, 5, 1, tzinfo=UTC)
FLOOR = datetime(2026, 4, 1, tzinfo=UTC)
_SHOWN: list[str] = re.findall(
    r"^```json\n(.*?)^```", (ROOT / "docs" / "events.md").read_text(), re.DOTALL | re.MULTILINE
)
BLOCKS = [
    orjson.dumps(event).decode() if shown.startswith("[") else shown
    for shown in _SHOWN
    for event in (orjson.loads(shown) if shown.startswith("[") else [shown])
]
"""Each event of a batch on its own."""
EXAMPLES = [orjson.loads(block) for block in BLOCKS]
SIGNER = messages.Signer({"k1": b"0123456789abcdef0123456789abcdef"}, "k1")
FILES = {name: orjson.loads(content) for name, content in documents().items()}


def validator(file: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(FILES[file])


def test_the_checked_in_files_equal_the_models(capsys: pytest.CaptureFixture[str]):
    code = main(["--check", str(JSON_DIR)])
    assert code == 0, capsys.readouterr().err


def test_check_tells_missing_changed_and_left_over_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    (tmp_path / "job.json").write_bytes(b"{}")
    (tmp_path / "asyncapi.json").unlink()
    (tmp_path / "old.json").write_bytes(b"{}")
    capsys.readouterr()
    assert main(["--check", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert all(name in told for name in ("job.json", "asyncapi.json", "old.json"))
    assert len(told.splitlines()) == 3


@pytest.mark.parametrize("file", [name for name in FILES if name != "asyncapi.json"])
def test_every_schema_is_valid_json_schema(file: str):
    jsonschema.Draft202012Validator.check_schema(FILES[file])


def test_every_reference_of_the_asyncapi_document_resolves():
    document = FILES["asyncapi.json"]

    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            return (
                [node["$ref"]]
                if "$ref" in node
                else [ref for item in node.values() for ref in references(item)]
            )
        return [ref for item in node for ref in references(item)] if isinstance(node, list) else []

    found = references(document)
    for reference in found:
        assert reference.startswith("#/"), "a reader of the document has no other file"
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
    payloads = {name: message["payload"] for name, message in document["components"]["messages"].items()}
    assert payloads == {name: {"$ref": f"#/components/schemas/{name}"} for name in event_models()}
    told = {kind for channel in document["channels"].values() for kind in channel["messages"]}
    assert told == event_models().keys()


@pytest.mark.parametrize("name", event_models())
def test_a_schema_in_the_asyncapi_document_accepts_what_its_own_file_accepts(name: str):
    bundled = FILES["asyncapi.json"]["components"]
    whole = {"$ref": f"#/components/schemas/{name}/schema", "components": bundled}
    own = FILES[f"{name}.json"]
    for change in ({}, {"specversion": "2.0"}, {"data": 1}, {"sequence": -1}, {"id": ""}):
        event = {"specversion": "1.0", "id": "1", "source": "/s", "type": name, "data": {}, **change}
        found = [
            sorted(error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(event))
            for schema in (whole, own)
        ]
        assert found[0] == found[1]


def test_every_field_of_the_job_document_has_a_description():
    for definition in FILES["job.json"]["$defs"].values():
        for name, field in definition["properties"].items():
            assert len(field.get("description", "")) > 10, name


def test_the_page_on_events_shows_every_type():
    shown = {example["type"] for example in EXAMPLES if "specversion" in example}
    assert shown == event_models().keys()
    spelt = {field for example in EXAMPLES if "specversion" not in example for field in example}
    assert spelt == {field.alias or name for name, field in JobDocument.model_fields.items()}


@pytest.mark.parametrize(
    "block", BLOCKS, ids=[example.get("id") or example.get("name") or "job" for example in EXAMPLES]
)
def test_every_example_on_the_page_works_as_it_stands(block: str):
    example = orjson.loads(block)
    if "specversion" not in example:
        assert parse_job(example, now=NOW, ledger_floor=FLOOR)
        validator("job.json").validate(example)
        return
    validator(f"{example['type']}.json").validate(example)
    event = parse_event(block.encode(), None)
    if event.type in submissions.TYPES:
        assert submissions.parse_submission(event, now=NOW, ledger_floor=FLOOR)
    elif event.type in (run_message.QUEUED, run_message.SEVERAL_QUEUED):
        assert messages.open_runs(block.encode(), SIGNER)
    else:
        assert lifecycle.read_published(event)


SCHEDULES = FILES["job.json"]["$defs"]["JobDocument"]["properties"]["schedule"]["examples"]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_the_schedules_that_editors_offer_are_taken(schedule: object):
    document = {**PYTHON, "name": "n", "schedule": schedule}
    assert parse_job(document, now=NOW, ledger_floor=FLOOR)
    validator("job.json").validate(document)


PYTHON: dict[str, Any] = {"type": "python", "handler": "a.b"}
HTTP: dict[str, Any] = {"type": "HTTP", "payload": {"url": "http://x.example"}}


def flow(**tasks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "workflow", "tasks": tasks}


FLOW = flow(a=PYTHON, b={**HTTP, "depends_on": ["a"], "rule": "all_done", "may_fail": True, "handles": ["a"]})


@pytest.mark.parametrize(
    "document",
    [
        PYTHON,
        HTTP,
        {**PYTHON, "priority": "HIGH", "overlap": None, "labels": {"a": ""}},
        {**PYTHON, "max_retries": 1, "retry": {"delay_seconds": 5}},
        {**PYTHON, "max_retries": 1, "retry": {"delays": [5, 60], "never_on": {"exceptions": ["a.B"]}}},
        {**PYTHON, "delivery": "exactly_once", "retry": {"delays": None, "factor": 3}},
        {
            **HTTP,
            "handler": None,
            "payload": {"url": "http://x.example", "method": "get", "expected_status": ["200-204"]},
        },
        {**PYTHON, "name": "n", "schedule": {"every": "PT1H"}, "misfire": {"policy": "skip"}},
        {**PYTHON, "name": "n", "schedule": ["0 9 * * 1", {"at": "2026-06-01T00:00:00Z"}]},
        {**PYTHON, "tasks": None, "finally": None, "defaults": None, "result": None},
        FLOW,
        {**FLOW, "type": "Workflow", "handler": None, "retry": None, "finally": {}},
        {
            **FLOW,
            "defaults": {"pool": "etl", "retry": {"delays": [1, 2]}, "priority": "HIGH"},
            "finally": {"tidy": {**PYTHON, "when": {"verdict": "b", "in": ["failed", "skipped"]}}},
            "result": {"result": "b", "at": "/total"},
            "deadline_seconds": 60,
            "limits": ["stripe"],
        },
        flow(a=PYTHON, b={**HTTP, "depends_on": [{"task": "a", "if": {"not": {"at": "/n", "lt": 3}}}]}),
        flow(a=PYTHON, b={**HTTP, "depends_on": ["a"], "when": {"result": "a", "in": [1, "x", None]}}),
        flow(a=PYTHON, b={**PYTHON, "depends_on": ["a"], "when": {"any": [{"result": "a", "eq": None}]}}),
    ],
)
def test_what_the_parser_takes_the_schema_takes(document: dict[str, Any]):
    spec = parse_job(document, now=NOW, ledger_floor=FLOOR)
    validator("job.json").validate(document)
    validator("job.json").validate(effective(spec))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"type": "python"},
        {"type": "grpc", "handler": "a.b"},
        {"type": "http"},
        {**HTTP, "handler": "a.b"},
        {**HTTP, "payload": {"url": "ftp://x"}},
        {**HTTP, "payload": {"url": "http://x", "headers": {"a b": "c"}}},
        {**PYTHON, "max_retries": 101},
        {**PYTHON, "max_retries": "3"},
        {**PYTHON, "priority": 11},
        {**PYTHON, "pool": "a.b"},
        {**PYTHON, "nmae": "x"},
        {**PYTHON, "labels": {"a b": "c"}},
        {**PYTHON, "schedule": "0 9 * * 1"},
        {**PYTHON, "schedule": ["0 9 * * 1"]},
        {**PYTHON, "name": "n", "schedule": ["0 9 * * 1"], "run_at": "2026-06-01T09:00:00Z"},
        {**PYTHON, "dst_gap": "skip"},
        {**PYTHON, "name": "n", "schedule": {"every": 5, "cron": "0 9 * * 1"}},
        {**PYTHON, "name": "n", "schedule": "0 9 * * 1", "run_at": "2026-06-01T09:00:00Z"},
        {**PYTHON, "max_retries": 1, "retry": {"max_retries": 5}},
        {**PYTHON, "retry": {"delays": [1], "factor": 2}},
        {**PYTHON, "retry_delay_seconds": 1, "retry": {"delays": [1]}},
        {**HTTP, "delivery": "exactly_once"},
        {"type": "workflow"},
        {**PYTHON, "tasks": {"a": PYTHON}},
        {**PYTHON, "result": {"result": "a"}},
        {**FLOW, "pool": "etl"},
        {**FLOW, "payload": {}},
        {**FLOW, "tasks": {}},
        {**FLOW, "defaults": {"handler": "a.b"}},
        {**FLOW, "result": {"result": "a", "at": 1}},
        flow(A=PYTHON),
        flow(a={}),
        flow(a={"type": "wait"}),
        flow(a={"type": "http"}),
        flow(a={**PYTHON, "schedule": "0 9 * * 1"}),
        flow(a={**PYTHON, "rule": "always"}),
        flow(a={**PYTHON, "when": {}}),
        flow(a={**PYTHON, "when": {"verdict": "b"}}),
        flow(a={**PYTHON, "when": {"result": "b", "eq": 1, "ne": 2}}),
        flow(a={**PYTHON, "when": {"all": []}}),
    ],
)
def test_what_the_schema_can_refuse_it_refuses(document: dict[str, Any]):
    assert list(validator("job.json").iter_errors(document))
