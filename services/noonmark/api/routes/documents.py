"""Routes of the documents that describe the interfaces: OpenAPI, AsyncAPI, JSON Schemas."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from noonmark.api.http.problems import ProblemError
from noonmark.api.openapi import document as openapi
from noonmark.api.requests.routing import PROBLEMS, Caller, needs, resource
from noonmark.schemas import export
from noonmark.schemas.events import asyncapi
from noonmark.schemas.problems.types import NOT_FOUND

TAG: Final = "documents"
_URN: Final = "urn:noonmark:schema:"


class SchemaResponse(Response):
    """A JSON Schema."""

    media_type = "application/schema+json"


open_router = APIRouter(tags=[TAG], responses={"5XX": PROBLEMS["5XX"]})
"""Router of the paths without credentials: exactly those in `gate.OPEN_PATHS`."""

router = resource(TAG, prefix="")


@open_router.get("/healthz", response_class=JSONResponse)
async def health() -> JSONResponse:
    """Check that the process responds.

    `/readyz` of the metrics port reports whether it is ready.
    """
    return JSONResponse({"status": "ok"})


@open_router.get("/openapi.json", name="openapi")
def read_openapi(request: Request) -> Response:
    """Read the OpenAPI document."""
    parts = request.app.state
    if getattr(parts, "openapi_bytes", None) is None:
        parts.openapi_bytes = openapi.encode(openapi.document(request.app))
    return _document(parts.openapi_bytes, "application/json")


@open_router.get("/asyncapi.json", name="asyncapi")
def read_asyncapi() -> Response:
    """Read the AsyncAPI document of the topics."""
    return _document(_asyncapi(), "application/json")


@router.get(
    "/schemas/{name}",
    name="schema",
    response_class=SchemaResponse,
    responses={200: {"content": {SchemaResponse.media_type: {"schema": {"type": "object"}}}}},
)
def read_schema(name: str, caller: Caller = needs(None)) -> Response:  # noqa: ARG001
    """Read the JSON Schema of job documents (`job`) or of an event type (`noonmark.job.create.v1`).

    The name can also be the `$id` of the schema, or end in `.json`.
    """
    files = _schemas()
    wanted = name.removeprefix(_URN).removesuffix(".json")
    content = files.get(wanted)
    if content is None:
        raise ProblemError(NOT_FOUND, f"there is no schema {name[:200]!r}; use one of {', '.join(files)}")
    return _document(content, SchemaResponse.media_type)


def _document(content: bytes, media_type: str) -> Response:
    """Respond with a document that changes only with the version of the server."""
    etag = f'"{hashlib.blake2b(content, digest_size=9).hexdigest()}"'
    return Response(content, headers={"ETag": etag, "Cache-Control": "no-cache"}, media_type=media_type)


@cache
def _schemas() -> dict[str, bytes]:
    files = export.documents()
    del files[export.ASYNCAPI_FILE]
    return {name.removesuffix(".json"): content for name, content in files.items()}


@cache
def _asyncapi() -> bytes:
    """Return the document as it is exported."""
    return openapi.encode(asyncapi.document(export.event_schemas()))
