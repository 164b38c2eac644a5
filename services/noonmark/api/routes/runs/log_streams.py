"""The output of a run as a stream of server-sent events, while its attempts run."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

import orjson
from anyio import to_thread
from fastapi import Header, Request
from sqlalchemy import Connection
from starlette.responses import Response

from noonmark.api.backend.log_followers import TooManyFollowers
from noonmark.api.http.event_streams import (
    CHECK_SECONDS,
    HEARTBEAT_SECONDS,
    EventStream,
    authenticate_again,
    too_many_streams,
)
from noonmark.api.http.problems import ProblemError
from noonmark.api.requests.routing import Caller
from noonmark.core.access.roles import Permission
from noonmark.core.transitions import VERDICTS
from noonmark.schemas.problems.types import TOO_MANY_REQUESTS
from noonmark.service.database_errors import DbFault, classify
from noonmark.store.views import lookups
from noonmark.store.views.attempts import OUTPUT_STREAMS, OutputPosition, lost_attempts, new_output
from noonmark.store.views.paging import Row
from noonmark.telemetry.logs import get_logger

_ROWS: Final = 10
"""Attempts that are read at once: each has up to 192 KB."""

_ID: Final = re.compile(r"(\d{1,10}):(\d{1,18}):(\d{1,18}):(\d{1,18})(:end)?")
_START: Final = OutputPosition(0, 0, 0, 0)

_ENDS: Final = {
    "shutdown": "the server shuts down; connect again",
    "failed": "the server cannot read logs; connect again",
    "revoked": "the credential is no longer valid, or cannot read the logs of this run",
    "deleted": "the run was deleted",
}

LastLogId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=100, description="`id` of the last event of a broken stream."),
]

_log = get_logger()


class FollowedRun(NamedTuple):
    """What a stream follows: a run of a namespace, or only its attempts with one number."""

    id: UUID
    namespace: str
    attempt: int | None


def follow_logs(
    request: Request, caller: Caller, connection: Connection, run: FollowedRun, last_event_id: str | None
) -> Response:
    """Return the stream of a run's output; 204 if an earlier stream already had all of it.

    Args:
        request: the request, which is authenticated again while the stream is open.
        caller: who may read the run.
        connection: of the caller.
        run: what to follow.
        last_event_id: id of the last event of an earlier stream.

    Raises:
        ProblemError: too many streams are open.
    """
    position, had_end = _parse(last_event_id)
    if had_end and lookups.run_state(connection, run.id) in VERDICTS:
        return Response(status_code=204)
    followers, who = caller.parts.log_followers, caller.principal.id
    try:
        followers.join(who)
    except TooManyFollowers as error:
        if error.own is None:
            raise too_many_streams() from None
        detail = f"the credential has {error.own} open streams of logs on this server"
        raise ProblemError(TOO_MANY_REQUESTS, detail, headers={"Retry-After": "5"}) from None
    return EventStream(_stream(request, caller, run, position), partial(followers.leave, who))


async def _stream(
    request: Request, caller: Caller, run: FollowedRun, position: OutputPosition
) -> AsyncIterator[bytes]:
    """Write output until the run finishes, or the client closes the stream."""
    check, sent_at = _Check(request, caller, run), time.monotonic()
    yield b"retry: 2000\n: following\n\n"
    while not (reason := await check.reason_to_end()):
        found = await to_thread.run_sync(_read, caller, run, position)
        for row in found.in_order():
            part, position = _events(row, position) if "lost_at" not in row else _loss(row, found.state)
            if part:
                sent_at = time.monotonic()
                yield part
        if len(found.rows) == _ROWS:
            continue
        if reason := found.failure:
            break
        if found.state in VERDICTS:
            yield _end(position, {"reason": "finished", "state": found.state})
            return
        if found.comment or time.monotonic() - sent_at >= HEARTBEAT_SECONDS - CHECK_SECONDS:
            sent_at = time.monotonic()
            yield f": {found.comment or 'heartbeat'}\n\n".encode()
        await asyncio.sleep(caller.parts.log_followers.poll_seconds)
    yield _end(position, {"reason": reason, "message": _ENDS[reason]})


class _Check:
    """Checks regularly whether a stream may stay open."""

    def __init__(self, request: Request, caller: Caller, run: FollowedRun) -> None:
        self._request = request
        self._followers = caller.parts.log_followers
        self._namespace = run.namespace
        self._checked_at = time.monotonic()

    async def reason_to_end(self) -> str:
        """Return why the stream must end; empty if it may stay open."""
        if self._followers.closed:
            return "shutdown"
        if time.monotonic() - self._checked_at >= CHECK_SECONDS:
            principal = await authenticate_again(self._request)
            if principal is None or not principal.may(Permission.PAYLOADS_READ, self._namespace):
                return "revoked"
            self._checked_at = time.monotonic()
        return ""


class _Found(NamedTuple):
    state: str | None = None
    rows: Sequence[Row] = ()
    losses: Sequence[Row] = ()
    comment: str = ""
    failure: str = ""

    def in_order(self) -> list[Row]:
        """Return output and lost attempts by fence; a loss comes after the output of its attempt."""
        last = self.rows[-1]["fence"] if len(self.rows) == _ROWS else None
        losses = [row for row in self.losses if last is None or row["fence"] < last]
        return sorted([*self.rows, *losses], key=lambda row: (row["fence"], "lost_at" in row))


def _read(caller: Caller, run: FollowedRun, position: OutputPosition) -> _Found:
    """Read the state of the run and its output after a position, both of the same moment."""
    try:
        with caller.reading() as session:
            state = lookups.run_state(session.sql, run.id)
            rows = new_output(session.sql, run.id, position, attempt=run.attempt, limit=_ROWS)
            losses = lost_attempts(session.sql, run.id, position, attempt=run.attempt)
    except Exception as error:  # noqa: BLE001 - the response has begun: the stream must say so
        if classify(error) is DbFault.PERMANENT:
            _log.exception("logs_not_read", run_id=str(run.id))
            return _Found(failure="failed")
        return _Found(comment="the database does not respond")
    return _Found(state, rows, losses, failure="" if state else "deleted")


def _events(row: Row, position: OutputPosition) -> tuple[bytes, OutputPosition]:
    """Write the new output of one attempt, and return the position after it."""
    if row["fence"] != position.fence:
        position = OutputPosition(row["fence"], 0, 0, 0)
    parts = []
    for stream in OUTPUT_STREAMS:
        known, data = getattr(position, stream), row[stream]
        if data is None:
            continue
        about = {"attempt": row["attempt"], "fence": row["fence"], "stream": stream}
        if missing := row[f"{stream}_end"] - known - len(data):
            parts.append(_event("gap", about | {"bytes": missing}))
        position = position._replace(**{stream: row[f"{stream}_end"]})
        # After a gap, output can begin within a character.
        text = bytes(data).decode("utf-8", "ignore")
        parts.append(_event("output", about | {"text": text}, _id(position)))
    return b"".join(parts), position


def _loss(row: Row, state: str | None) -> tuple[bytes, OutputPosition]:
    """Write that the worker of an attempt was lost, and return the position after it: the next attempt."""
    about = {name: row[name] for name in ("attempt", "fence", "worker", "lost_at")} | {"state": state}
    position = OutputPosition(row["fence"] + 1, 0, 0, 0)
    return _event("lost", about, _id(position)), position


def _end(position: OutputPosition, data: dict[str, Any]) -> bytes:
    return _event("end", data, _id(position) + (":end" if data["reason"] == "finished" else ""))


def _event(name: str, data: dict[str, Any], identifier: str = "") -> bytes:
    head = f"id: {identifier}\n" if identifier else ""
    return f"{head}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"


def _id(position: OutputPosition) -> str:
    return ":".join(map(str, position))


def _parse(last_event_id: str | None) -> tuple[OutputPosition, bool]:
    """Return the position of an id, and whether it is of the last event of a finished run."""
    found = _ID.fullmatch(last_event_id or "")
    if found is None:
        return _START, False
    *numbers, end = found.groups()
    return OutputPosition(*map(int, numbers)), end is not None
