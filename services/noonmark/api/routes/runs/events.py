"""Route of live events of runs, as a stream of server-sent events."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

import orjson
from anyio import to_thread
from fastapi import Header, Query, Request
from starlette.responses import Response

from noonmark.api.backend.live_events import Listener, LiveEvent, TooManyListeners, parse_position
from noonmark.api.http.event_streams import (
    CHECK_SECONDS,
    HEARTBEAT_SECONDS,
    EventStream,
    authenticate_again,
    too_many_streams,
)
from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller, NamespaceParameter, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.problems.types import NOT_FOUND
from noonmark.store.views.lookups import namespace_of_job

router = resource("events")

_ENDS: Final = {
    "slow": "events arrived faster than you read them; reconnect with the last id",
    "shutdown": "the server shuts down; connect again",
    "failed": "the server cannot read events; connect again",
    "gone": "the stream is closed",
    "revoked": "the credential is no longer valid, or cannot read these runs",
}

LastEventId = Annotated[
    str | None,
    Header(max_length=20_000, description="`id` of the last event of a broken stream, to resume there."),
]


@router.get(
    "/events",
    status_code=200,
    response_class=EventStream,
    responses={
        200: {
            "description": "Events of type `run`, one for each outcome.",
            "content": {"text/event-stream": {}},
        }
    },
)
async def follow_events(
    request: Request,
    namespace: NamespaceParameter = None,
    job: Annotated[UUID | None, Query(description="Only runs of this job.")] = None,
    last_event_id: LastEventId = None,
    caller: Caller = needs(Permission.RUNS_READ),
) -> Response:
    """Follow the outcomes of runs of a namespace, or of one job, as published on the lifecycle topic.

    Each event `run` is one outcome of `noonmark.runs.settled.v1`. A comment is sent at least every 15 s.
    """
    where = caller.namespace(namespace)
    if job is not None:
        where = await to_thread.run_sync(_namespace_of, caller, job, namespace)
    listener = Listener(where, job, parse_position(last_event_id))
    live = caller.parts.live
    try:
        live.join(listener)
    except TooManyListeners:
        raise too_many_streams() from None
    return EventStream(_stream(request, caller, listener, where), partial(live.leave, listener))


def _namespace_of(caller: Caller, job: UUID, namespace: str | None) -> str:
    with caller.reading() as session:
        found = namespace_of_job(session.sql, job)
    if found is None or caller.principal.role_in(found) is None or namespace not in (None, found):
        raise ProblemError(NOT_FOUND, f"there is no job {job}")
    caller.require(found)
    return found


async def _stream(
    request: Request, caller: Caller, listener: Listener, namespace: str
) -> AsyncIterator[bytes]:
    """Write events until the listener stops, or the client closes the stream."""
    payloads = caller.may(Permission.PAYLOADS_READ, namespace)
    sent_at = checked = time.monotonic()
    yield b"retry: 2000\n: noonmark\n\n"
    while listener.end is None:
        await listener.news(CHECK_SECONDS)
        if time.monotonic() - checked >= CHECK_SECONDS:
            principal = await authenticate_again(request)
            if principal is None or not principal.may(Permission.RUNS_READ, namespace):
                listener.end = "revoked"
                break
            payloads, checked = principal.may(Permission.PAYLOADS_READ, namespace), time.monotonic()
        if part := b"".join(_parts(listener, payloads=payloads)):
            sent_at = time.monotonic()
            yield part
        elif time.monotonic() - sent_at >= HEARTBEAT_SECONDS - CHECK_SECONDS:
            sent_at = time.monotonic()
            yield _comment(listener, "heartbeat")
    data = orjson.dumps({"reason": listener.end, "message": _ENDS[listener.end]})
    yield b"event: end\ndata: " + data + b"\n\n"


def _parts(listener: Listener, *, payloads: bool) -> list[bytes]:
    parts = []
    while listener.waiting and listener.end is None:
        parts += _events(listener.next(), payloads=payloads)
    while listener.notes:
        parts.append(_comment(listener, listener.notes.popleft()))
    return parts


def _events(event: LiveEvent, *, payloads: bool) -> list[bytes]:
    """Write the outcomes of one record; only the last one has the `id`, so that a resume skips none."""
    parts = []
    for number, outcome in enumerate(event.outcomes, start=1):
        shown: dict[str, Any] = outcome
        if not payloads:
            shown = {**outcome, "error": None, "error_hidden": outcome.get("error") is not None}
        head = f"id: {event.position}\n" if number == len(event.outcomes) else ""
        parts.append(f"{head}event: run\ndata: ".encode() + orjson.dumps(shown) + b"\n\n")
    return parts


def _comment(listener: Listener, text: str) -> bytes:
    # Even without events of this stream, the position advances with those of others.
    head = f"id: {listener.reached}\n" if listener.reached and not listener.waiting else ""
    return f"{head}: {text}\n\n".encode()
