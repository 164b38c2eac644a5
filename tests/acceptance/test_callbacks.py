"""Targets that report the end of their work later: real processes, a worker that dies, the command line."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.support.cli import Called
from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load

pytestmark = pytest.mark.slow


class LateTarget(ThreadingHTTPServer):
    """Answers 202 to every call and keeps its headers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.calls: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/work"


class _Answer(BaseHTTPRequestHandler):
    server: LateTarget

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.calls.append({name.lower(): value for name, value in self.headers.items()})

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def late() -> Iterator[LateTarget]:
    target = LateTarget()
    thread = threading.Thread(target=target.serve_forever, daemon=True)
    thread.start()
    yield target
    target.shutdown()
    thread.join()
    target.server_close()


def job(load: Load, name: str, url: str, seconds: float, **more: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": f"{load.namespace}-{name}",
        "source": load.source,
        "type": "noonmark.job.create.v1",
        "data": {
            "name": name,
            "namespace": load.namespace,
            "type": "http",
            "payload": {"url": url, "method": "POST", "callback": {"timeout_seconds": seconds}},
            **more,
        },
    }


def test_a_run_outlives_its_worker_and_ends_with_the_report_of_its_target(
    noonmark: Cluster, late: LateTarget, command: Callable[..., Called]
) -> None:
    load = Load()
    noonmark.start(*SERVICES)
    noonmark.publish(load, events=[job(load, "film", late.url, 600)])
    waiting = "select id::text from runs where namespace = %s and state = 'running' and owner = 0"
    (run_id,) = noonmark.wait(lambda: noonmark.rows(waiting, load.namespace), "the target's answer")[0]
    (call,) = late.calls
    assert call["webhook-id"] == run_id

    noonmark.node("worker").kill()
    noonmark.start("worker")
    lapsed = "select count(*) from workers where lapsed_at is not null"
    noonmark.wait(lambda: noonmark.value(lapsed) == 1, "the dead worker's lease to lapse")
    assert noonmark.states(load.namespace) == {"running": 1}

    token = noonmark.folder / "token"
    token.write_text("x" * 43)
    command("run", "complete", run_id, "--token-file", str(token))
    refused = "select reason, errors::text from rejections"
    ((reason, errors),) = noonmark.wait(lambda: noonmark.rows(refused), "the wrong token to be refused")
    assert reason == "conflict"
    assert "used, has expired, or never existed" in errors

    token.write_text(call["noonmark-callback-token"])
    command("run", "complete", run_id, "--token-file", str(token), "--result", '{"seconds": 812}')
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": 1}, "the report to count")

    command("run", "complete", run_id, "--token-file", str(token), "--outcome", "failed")
    noonmark.wait(lambda: len(noonmark.rows(refused)) == 2, "the second report to be refused")
    shown = json.loads(command("run", "show", run_id, "--json").stdout)
    assert (shown["state"], shown["result"], shown["attempt"]) == ("succeeded", {"seconds": 812}, 1)
    assert len(late.calls) == 1


def test_a_target_that_reports_nothing_is_called_again_and_then_given_up(
    noonmark: Cluster, late: LateTarget
) -> None:
    load = Load()
    noonmark.start(*SERVICES)
    retry = {"max_retries": 1, "delay_seconds": 0}
    noonmark.publish(load, events=[job(load, "film", late.url, 1, retry=retry)])

    noonmark.wait(lambda: noonmark.states(load.namespace) == {"dead": 1}, "both attempts to time out")

    attempts = noonmark.rows("select attempt, outcome from attempts order by attempt")
    assert attempts == [(1, "timed_out"), (2, "timed_out")]
    assert len({call["noonmark-callback-token"] for call in late.calls}) == 2
    assert {call["noonmark-fence"] for call in late.calls} == {"1", "2"}
    assert noonmark.rows("select 1 from callbacks") == noonmark.rows("select 1 from start_batches") == []
