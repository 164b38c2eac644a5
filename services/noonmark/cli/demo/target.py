"""The HTTP service that the demo's HTTP jobs call; its log is compared with the ledger."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

REPAIRED_LATER: Final = "/sales/orders"
"""The path that is answered with 503 until `Target.repair`."""

_MAX_BODY: Final = 1_000_000
_KEPT: Final = ("Idempotency-Key", "Noonmark-Run-Id", "Noonmark-Attempt", "Noonmark-Fence")


class Target:
    """A server on loopback that answers every POST with 200, one path at first with 503, and records it."""

    def __init__(self, log_file: Path) -> None:
        """Start listening on a free port."""
        self.calls: list[dict[str, Any]] = []
        self._log_file = log_file
        self._lock = Lock()
        self._is_repaired = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, name="demo-target", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """URL of the service."""
        return f"http://127.0.0.1:{self._server.server_port}/billing/send"

    def calls_of(self, run_id: str) -> list[dict[str, Any]]:
        """Return the recorded calls of a run."""
        with self._lock:
            return [call for call in self.calls if call["Noonmark-Run-Id"] == run_id]

    def repair(self) -> None:
        """Answer every path with 200 from now on."""
        self._is_repaired = True

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _status(self, path: str) -> int:
        return 503 if path == REPAIRED_LATER and not self._is_repaired else 200

    def _note(self, path: str, headers: dict[str, str | None], body: str) -> None:
        call = {"at": datetime.now(UTC).isoformat(), "path": path, **headers, "body": body}
        with self._lock:
            self.calls.append(call)
            with self._log_file.open("a", encoding="utf-8") as log:
                log.write(json.dumps(call) + "\n")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        note, status_of = self._note, self._status

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                size = min(int(self.headers.get("Content-Length") or 0), _MAX_BODY)
                body = self.rfile.read(size).decode("utf-8", errors="replace")
                note(self.path, {name: self.headers.get(name) for name in _KEPT}, body)
                answer = b'{"sent": true}'
                self.send_response(status_of(self.path))
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
                """Write nothing to stderr: the log is a file."""

        return Handler
