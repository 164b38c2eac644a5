"""Writes the JSON Schemas and the AsyncAPI document: `python -m noonmark.schemas.export [--check] DIR`.

The files describe events in structured mode, as JSON Schema 2020-12. With `--check`, nothing is written,
and the exit code is 1 if a file differs from the models.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from noonmark.schemas.events import asyncapi, lifecycle, run_message, submissions
from noonmark.schemas.events.envelope import MAX_ATTRIBUTE
from noonmark.schemas.jobs.documents import JobDocument
from noonmark.schemas.jobs.payloads import PAYLOADS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
JOB_FILE: Final = "job.json"
ASYNCAPI_FILE: Final = "asyncapi.json"
OPENAPI_FILE: Final = "openapi.json"
"""In the same folder, but generated from the API's routes: `python -m noonmark.api.export_openapi`."""

_EXTENSIONS: Final[dict[str, type[BaseModel]]] = dict.fromkeys(
    (run_message.QUEUED, run_message.SEVERAL_QUEUED), run_message.RunExtensions
)
"""Models of the extension attributes of an event type."""

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": MAX_ATTRIBUTE}


def event_models() -> dict[str, type[BaseModel]]:
    """Return the model of the data of every event type."""
    models: dict[str, type[BaseModel]] = {name: submissions.data_model(name) for name in submissions.TYPES}
    models[run_message.QUEUED] = run_message.RunQueued
    models[run_message.SEVERAL_QUEUED] = run_message.RunsQueued
    models.update(lifecycle.MODELS)
    return models


def event_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of every event type."""
    return {name: _event_schema(name, model) for name, model in event_models().items()}


def documents() -> dict[str, bytes]:
    """Return every file by name."""
    files = {JOB_FILE: {**_head("job", "noonmark job document"), **_with_definitions(JobDocument)}}
    events = event_schemas()
    files.update({f"{name}.json": schema for name, schema in events.items()})
    files[ASYNCAPI_FILE] = asyncapi.document(events)
    return {name: _encode(content) for name, content in files.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the files; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m noonmark.schemas.export", description=__doc__)
    parser.add_argument("directory", type=Path, help="folder of the files, such as schemas/json")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file differs")
    options = parser.parse_args(arguments)
    files = documents()
    if options.check:
        stale = [name for name, content in files.items() if _content(options.directory / name) != content]
        extra = sorted({path.name for path in options.directory.glob("*.json")} - {*files, OPENAPI_FILE})
        for name in [*stale, *extra]:
            sys.stderr.write(
                f"{options.directory / name} differs from the models; "
                f"run python -m noonmark.schemas.export {options.directory}\n"
            )
        return 1 if stale or extra else 0
    options.directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (options.directory / name).write_bytes(content)
    sys.stdout.write(f"{len(files)} files in {options.directory}\n")
    return 0


def _encode(content: dict[str, Any]) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n"


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _head(name: str, title: str) -> dict[str, Any]:
    return {"$schema": DIALECT, "$id": f"urn:noonmark:schema:{name}", "title": title}


def definitions(*models: type[BaseModel], prefix: str = "#/$defs/") -> dict[str, Any]:
    """Return the schemas of models and of all models they refer to, by name.

    Args:
        models: a job document includes the payloads of all kinds.
        prefix: prefix of references between them.
    """
    needed: list[tuple[type[BaseModel], Any]] = [(model, "validation") for model in models]
    if any(issubclass(model, JobDocument) for model in models):
        needed += [(payload, "validation") for payload in PAYLOADS.values()]
    _, schema = models_json_schema(needed, ref_template="#/$defs/{model}")
    tidied = {name: tidy(definition) for name, definition in schema["$defs"].items()}
    # Hand-written rules of models contain references, too.
    found: dict[str, Any] = orjson.loads(orjson.dumps(tidied).replace(b'"#/$defs/', f'"{prefix}'.encode()))
    return found


def _with_definitions(model: type[BaseModel]) -> dict[str, Any]:
    """Return `$ref` to the model, and `$defs` at the root with all models it refers to."""
    return {"$ref": f"#/$defs/{model.__name__}", "$defs": definitions(model)}


def tidy(schema: Any) -> Any:
    """Drop titles and null defaults that pydantic adds; close objects whose keys have patterns."""
    if isinstance(schema, list):
        return [tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            kept[key] = {name: tidy(field) for name, field in value.items()}
        elif not (key == "title" or (key == "default" and value is None)):
            kept[key] = tidy(value)
    if "patternProperties" in kept:
        kept.setdefault("additionalProperties", False)
    return kept


def _event_schema(name: str, model: type[BaseModel]) -> dict[str, Any]:
    data = _with_definitions(model)
    extra = _EXTENSIONS[name].model_json_schema() if name in _EXTENSIONS else {}
    extensions = tidy(extra.get("properties", {}))
    return {
        **_head(name, name),
        "description": (model.__doc__ or "").strip(),
        "type": "object",
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {
                **_TEXT,
                "description": "Unique within the source; source and id identify a repeated event.",
            },
            "source": {**_TEXT, "description": "Sender of the event: a URI reference."},
            "type": {"const": name},
            "subject": {**_TEXT, "description": "Subject of the event."},
            "time": {"type": "string", "format": "date-time", "description": "Time of the event."},
            "sequence": {
                "anyOf": [{"type": "string", "pattern": "^[0-9]{1,19}$"}, {"type": "integer", "minimum": 0}],
                "description": "Order among the events of one job: a lower one never overwrites a higher.",
            },
            "datacontenttype": {"type": "string", "examples": ["application/json"]},
            **extensions,
            "data": {"$ref": data["$ref"]},
        },
        "required": ["specversion", "id", "source", "type", *extra.get("required", ()), "data"],
        "$defs": data["$defs"],
    }


if __name__ == "__main__":
    sys.exit(main())
