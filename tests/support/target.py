"""An HTTP target in a process of its own that keeps its own log of every call.

`python -m tests.support.target --log FILE` prints the port it listens on, on loopback, and serves until
its standard input is closed or it is killed. `/ok` answers 200; `/flaky/<n>` answers 503 to the first n
attempts; `/fail` always answers 500.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Target(ThreadingHTTPServer):
    """Answers calls and appends a line for each before it does."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, log: str) -> None:
        super().__init__(("127.0.0.1", 0), Call)
        self.log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


class Call(BaseHTTPRequestHandler):
    server: Target
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        attempt = int(self.headers.get("Noonmark-Attempt", 0))
        line = {
            "event": "start",
            "run": self.headers.get("Noonmark-Run-Id"),
            "fence": int(self.headers.get("Noonmark-Fence", 0)),
            "attempt": attempt,
            "key": self.headers.get("Idempotency-Key"),
            "scheduled_for": self.headers.get("Noonmark-Scheduled-For"),
            "namespace": self.headers.get("X-Namespace"),
            "at": time.time(),
            "pid": os.getpid(),
            "via": "http",
        }
        os.write(self.server.log, json.dumps(line).encode() + b"\n")
        status = self._status(attempt)
        body = b"noted"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the base class names it

    def _status(self, attempt: int) -> int:
        if self.path.startswith("/flaky/"):
            return 503 if attempt <= int(self.path.rpartition("/")[2]) else 200
        return 500 if self.path == "/fail" else 200

    def log_message(self, *_arguments: Any) -> None:
        """The log of calls is the only one."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    target = Target(parser.parse_args().log)
    print(target.server_address[1], flush=True)
    threading.Thread(target=target.serve_forever, daemon=True).start()
    # Ends with whoever started it: a pipe closes even when its writer is killed.
    sys.stdin.read()


if __name__ == "__main__":
    main()
