"""A service that receives noonmark's calls and books each call once.

    python examples/receiver_wsgi.py bookings.db whsec_…

It uses WSGI, so it needs no other packages. docs/receiver.md shows the same service in FastAPI and Flask.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import make_server

from noonmark.receiver import FenceStore, SignatureError, StaleFence, Verdict, environ_headers, verify

MAX_BODY = 1024 * 1024
FENCES = FenceStore(sqlite3.paramstyle)


class Bookings:
    """The WSGI application."""

    def __init__(self, database: str, secrets: list[str]) -> None:
        """Create missing tables."""
        self.database = database
        self.secrets = secrets
        with sqlite3.connect(database) as db:
            FENCES.create(db)
            db.execute("create table if not exists bookings (run text, amount integer)")

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        length = int(environ.get("CONTENT_LENGTH") or 0)
        status, answer = self.answer(environ, environ["wsgi.input"].read(min(length, MAX_BODY)))
        start_response(status, [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    def answer(self, environ: dict[str, Any], body: bytes) -> tuple[str, dict[str, str]]:
        """Handle a call if its signature is valid and its fence is current."""
        try:
            call = verify(environ_headers(environ), body, self.secrets)
        except SignatureError:
            return "401 Unauthorized", {"error": "the signature does not match"}
        if call.fence is None:
            return "400 Bad Request", {"error": "the call has no fence"}
        try:
            with sqlite3.connect(self.database) as db:  # one transaction: the fence and the effect
                if FENCES.accept(db, call.id, call.fence) is Verdict.REPEATED:
                    return "200 OK", {"booked": "before"}
                if db.execute("select 1 from bookings where run = ?", [call.id]).fetchone():
                    return "200 OK", {"booked": "by an earlier attempt"}
                db.execute("insert into bookings values (?, ?)", [call.id, json.loads(body)["amount"]])
        except StaleFence:
            return "409 Conflict", {"error": "a newer attempt exists"}
        return "200 OK", {"booked": "now"}


if __name__ == "__main__":
    with make_server("127.0.0.1", 8088, Bookings(sys.argv[1], sys.argv[2:])) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}")
        server.serve_forever()
