"""The documents that describe the interfaces, as the API serves them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.asgi import Caller

pytestmark = pytest.mark.postgres

EXPORTED = Path(__file__).parents[3] / "schemas" / "json"


def test_openapi_is_served_as_it_is_exported(call: Caller):
    answer = call("GET", "/openapi.json")
    assert answer.body == (EXPORTED / "openapi.json").read_bytes()
    assert answer.headers["content-type"] == "application/json"
    again = call("GET", "/openapi.json", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


def test_asyncapi_is_served_as_it_is_exported(call: Caller):
    answer = call("GET", "/asyncapi.json")
    assert answer.body == (EXPORTED / "asyncapi.json").read_bytes()


def test_every_exported_schema_is_served_by_its_name_its_file_and_its_id(call: Caller, token):
    key = token("viewer")
    files = [file for file in EXPORTED.glob("*.json") if file.name not in {"asyncapi.json", "openapi.json"}]
    assert len(files) > 10
    for file in files:
        for name in (
            file.stem,
            file.name,
            f"urn:noonmark:schema:{file.stem}",
            f"urn%3Anoonmark%3Aschema%3A{file.stem}",
        ):
            assert call("GET", f"/schemas/{name}", key=key).body == file.read_bytes(), name
    missing = call("GET", "/schemas/jop", key=key)
    assert missing.status == 404
    assert "noonmark.job.create.v1" in missing.json()["detail"]
