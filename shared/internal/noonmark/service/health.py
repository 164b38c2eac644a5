"""Serves `/livez`, `/readyz` and `/metrics` on a separate port.

They report whether the loops make progress, not only that the process exists. They contain nothing about
jobs.
"""

from __future__ import annotations

import errno
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from noonmark.telemetry.metrics import LAST_PROGRESS, LOOP_ITERATIONS

_MOST_NAMES: Final = 100


class HealthServerError(RuntimeError):
    """The health server cannot listen; the message contains the reason and what to do."""


@dataclass(slots=True)
class Progress:
    """The progress of one loop; `beat` is cheap enough for every pass."""

    name: str
    max_age_seconds: float
    beaten_at: float
    clock: Callable[[], float]
    iterations: int = 0
    exposed_iterations: int = 0
    failure: str = ""
    failing_since: float | None = None
    last_error: str = ""

    def beat(self) -> None:
        """Record that the loop moves: in a pass, or by a pass that it has finished."""
        self.beaten_at = self.clock()
        self.iterations += 1

    def passed(self) -> None:
        """Record that the loop has finished a pass without an error."""
        self.beat()
        self.failing_since = None

    def failed(self, error: str) -> None:
        """Record that a pass failed, and that the loop tries again. It is alive, but achieves nothing."""
        self.beat()
        self.last_error = error
        if self.failing_since is None:
            self.failing_since = self.beaten_at

    def problem(self, now: float) -> str:
        """Return what is wrong, or an empty string."""
        if self.failure:
            return self.failure
        age = now - self.beaten_at
        if age > self.max_age_seconds:
            return f"no progress for {age:.1f} s; the limit is {self.max_age_seconds:g} s"
        return ""


class Health:
    """The state of a process: the progress of its loops, and the conditions for its work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._loops: dict[str, Progress] = {}
        self._conditions: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self._measures: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def progress(self, name: str, max_age_seconds: float) -> Progress:
        """Register a loop; from now on it must beat at least once in `max_age_seconds`.

        Raises:
            ValueError: the name is taken.
        """
        with self._lock:
            if name in self._loops:
                raise ValueError(f"a loop named {name!r} is registered already")
            loop = Progress(name, max_age_seconds, self._clock(), self._clock)
            self._loops[name] = loop
        LOOP_ITERATIONS.labels(name)
        return loop

    def beat(self, name: str) -> None:
        """Record progress of a registered loop."""
        self._loops[name].beat()

    def fail(self, name: str, reason: str) -> None:
        """Mark a loop as failed permanently; register it if necessary."""
        with self._lock:
            loop = self._loops.setdefault(name, Progress(name, 0, self._clock(), self._clock))
        loop.failure = reason

    def require(self, condition: str, missing: str = "not yet") -> None:
        """Add a condition for readiness; it is missing until `set_ready`."""
        with self._lock:
            self._conditions[condition] = missing

    def set_ready(self, condition: str, ready: bool, missing: str = "lost") -> None:
        """Set a condition; `missing` is a fixed phrase, visible to everyone who can read `/readyz`."""
        with self._lock:
            self._conditions[condition] = "" if ready else missing

    def note(self, name: str, problem: str = "") -> None:
        """Report a problem that does not affect readiness; "" means that there is none.

        `problem` is a fixed phrase, visible to everyone who can read `/readyz`.
        """
        with self._lock:
            self._notes[name] = problem

    def live(self) -> tuple[bool, dict[str, Any]]:
        """Return whether all loops make progress, and the body of `/livez`."""
        now = self._clock()
        with self._lock:
            loops = list(self._loops.values())
        stuck = {loop.name: problem for loop in loops if (problem := loop.problem(now))}
        body: dict[str, Any] = {"status": "stuck" if stuck else "ok", "loops": {}}
        if stuck:
            body["stuck"] = stuck
        for loop in loops:
            body["loops"][loop.name] = {
                "age_seconds": round(now - loop.beaten_at, 3),
                "max_age_seconds": loop.max_age_seconds,
            }
        return not stuck, body

    def failing(self, longer_than_seconds: float) -> dict[str, str]:
        """Return the loops whose every pass has failed for this time, with the last error of each.

        A restart would not help them, so `/livez` does not show them; people must know.
        """
        now = self._clock()
        with self._lock:
            loops = list(self._loops.values())
        return {
            loop.name: f"every pass has failed for {now - since:.0f} s, last with: {loop.last_error}"
            for loop in loops
            if (since := loop.failing_since) is not None and now - since > longer_than_seconds
        }

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Return whether the process can do its work, and the body of `/readyz`."""
        alive, body = self.live()
        with self._lock:
            conditions, notes = dict(self._conditions), dict(self._notes)
        missing = {name: why for name, why in conditions.items() if why}
        body["conditions"] = {name: why or "ok" for name, why in conditions.items()}
        if notes:
            body["notes"] = {name: problem or "ok" for name, problem in notes.items()}
        if missing:
            body["missing"] = missing
            if alive:
                body["status"] = "not ready"
        return alive and not missing, body

    def before_scrape(self, measure: Callable[[], None]) -> None:
        """Call `measure` before each scrape: it sets a metric that changes even while loops hang."""
        self._measures.append(measure)

    def expose(self) -> None:
        """Update the metrics of the loops, and those of `before_scrape`; called before a scrape."""
        for measure in self._measures:
            measure()
        now, wall = self._clock(), time.time()
        with self._lock:
            for loop in self._loops.values():
                LAST_PROGRESS.labels(loop.name).set(wall - (now - loop.beaten_at))
                counted = loop.iterations
                LOOP_ITERATIONS.labels(loop.name).inc(counted - loop.exposed_iterations)
                loop.exposed_iterations = counted


class HealthServer:
    """Serves a `Health` from separate threads until closed.

    Args:
        health: the state to serve.
        host: address to listen on, IPv4 or IPv6.
        port: port to listen on; 0 takes a free one, see the attribute `port`.
        metrics: what `/metrics` shows.

    Raises:
        HealthServerError: it cannot listen on the address.
    """

    def __init__(self, health: Health, host: str, port: int, metrics: CollectorRegistry) -> None:
        try:
            self._server = _Server(health, host, port, metrics)
        except OSError as error:
            raise HealthServerError(_cannot_listen(host, port, error)) from error
        self.port: int = self._server.server_address[1]
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="health", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # Not serve_forever: that wakes several times a second to check whether it should stop.
        while not self._closing:
            self._server.handle_request()

    def close(self) -> None:
        """Stop listening."""
        self._closing = True
        # Wakes the waiting thread: the listening socket becomes readable, and accept fails.
        self._server.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.server_close()


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    setting = "set NOONMARK_METRICS_PORT to another port, or to 0 for a free one"
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is used by another process: stop that process, or {setting}."
    if error.errno == errno.EACCES:
        return f"Port {port} on {host} needs more rights than this process has: {setting}."
    return (
        f"Cannot listen on {host}, port {port} ({error.strerror or error}): "
        "set NOONMARK_METRICS_HOST to an address of this machine."
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    # With port reuse, two services could share one port and answer for each other.
    allow_reuse_port = False

    def __init__(self, health: Health, host: str, port: int, metrics: CollectorRegistry) -> None:
        self.health, self.metrics = health, metrics
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Requests)

    def server_bind(self) -> None:
        # The version of HTTPServer looks up the host name, which can hang with DNS.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore callers that closed their connection."""


class _Requests(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5
    server_version = "noonmark"
    sys_version = ""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/livez":
            self._answer_json(*self.server.health.live())
        elif path == "/readyz":
            self._answer_json(*self.server.health.ready())
        elif path == "/metrics":
            self._answer_metrics(query)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"Try /livez, /readyz or /metrics.\n")

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks up

    def _answer_metrics(self, query: str) -> None:
        """Send the metrics that `name[]` selects, as in other Prometheus clients; without it, all."""
        try:
            names = parse_qs(query, max_num_fields=_MOST_NAMES).get("name[]")
        except ValueError:
            self._answer(HTTPStatus.BAD_REQUEST, "text/plain", b"At most %d names.\n" % _MOST_NAMES)
            return
        self.server.health.expose()
        metrics = self.server.metrics
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        chosen = metrics.restricted_registry(names) if names else metrics
        self._answer(HTTPStatus.OK, content_type, encode(chosen))

    def _answer_json(self, good: bool, body: dict[str, Any]) -> None:
        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, "application/json", json.dumps(body).encode() + b"\n")

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_parts: object) -> None:
        """Log nothing: probes come every few seconds."""
