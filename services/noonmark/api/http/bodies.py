"""Reads request bodies like all other documents: strictly, and with a pointer for each problem."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from anyio import to_thread
from fastapi import Request
from pydantic import ValidationError

from noonmark.api.http.problems import ProblemError
from noonmark.schemas.problems.pydantic_errors import Document, field_errors
from noonmark.schemas.problems.refusal import FieldError, Refused, kind_of
from noonmark.schemas.problems.screening import MAX_DEPTH, parse_json
from noonmark.schemas.problems.types import TOO_LARGE

Body = TypeVar("Body", bound=Document)

_LARGE: Final = 1024 * 1024
"""Size above which a body is parsed outside of the event loop."""

_MOST_CONTAINERS: Final = 1_000_000
"""Most objects and arrays in a large body. Each needs hundreds of bytes of memory for two bytes of body."""

_ENVELOPE_DEPTH: Final = 2
"""Levels around the job documents in a body."""


async def _object_of(request: Request, max_depth: int, *, required: bool) -> dict[str, Any]:
    """Read the body of a request: a JSON object that can be stored.

    Raises:
        Refused: if it is not a JSON object, or contains a value that cannot be stored.
        ProblemError: if it contains too many objects and arrays.
    """
    raw = await request.body()
    if not raw and not required:
        return {}
    if len(raw) < _LARGE:
        return _object(parse_json(raw, max_depth=max_depth))
    if raw.count(b"{") + raw.count(b"[") > _MOST_CONTAINERS:
        raise ProblemError(
            TOO_LARGE,
            f"the body contains more than {_MOST_CONTAINERS:,} objects and arrays: split it "
            f"into several requests",
        )
    # Outside of the event loop, which serves other requests meanwhile.
    return _object(await to_thread.run_sync(partial(parse_json, raw, max_depth=max_depth)))


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused([FieldError("", f"is {kind_of(value)}", "a JSON object")])
    return value


def parse_document(raw: bytes) -> dict[str, Any]:
    """Parse a small body as a job document; it is checked later.

    Raises:
        Refused: if it is not a JSON object, or contains a value that cannot be stored.
    """
    return _object(parse_json(raw, max_depth=MAX_DEPTH))


async def document_body(request: Request) -> dict[str, Any]:
    """Read the body as a job document; it is checked later."""
    return await _object_of(request, MAX_DEPTH, required=True)


def checked_body(model: type[Body]) -> Callable[[Request], Awaitable[Body]]:
    """Create a dependency that reads the body as a model; it raises `Refused` if the body does not fit.

    A missing body counts as an empty object.
    """

    async def read(request: Request) -> Body:
        given = await _object_of(request, MAX_DEPTH + _ENVELOPE_DEPTH, required=False)
        try:
            return model.model_validate(given)
        except ValidationError as error:
            raise Refused(field_errors(error, model, given=given)) from None

    return read


def described(model: type[Document], *, required: bool = True) -> dict[str, Any]:
    """Return the OpenAPI description of a body that `checked_body` reads. The model must not refer to others.

    The title, which is the name of the model, becomes the name of the schema in the document.
    """
    schema = model.model_json_schema()
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}
