"""Output of handlers, processes and scripts is followed while they run, over retries and the death of a worker."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import Cluster

pytestmark = pytest.mark.slow

RETRY = {"max_retries": 3, "delay_seconds": 0.1, "jitter": "none"}
SHELL = 'n=0; while [ ! -e "$0/end-1" ]; do n=$((n + 1)); echo line $n; sleep 0.2; done; printf "the end"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ends"
    made.mkdir()
    return made


@pytest.fixture
def start(noonmark: Cluster, command: Any, tmp_path: Path, folder: Path) -> Callable[[str], str]:
    """Submit a job of a handler, or the script, and wait until it runs; return the run's id."""
    noonmark.start("intake", "trigger", "dispatcher")

    def begin(name: str) -> str:
        job: dict[str, Any] = {"name": name, "type": "python", "handler": f"printing.{name}", "retry": RETRY}
        job["payload"] = {"folder": str(folder)}
        if name == "script":
            job = {"name": name, "type": "script", "payload": {"argv": ["/bin/sh", "-c", SHELL, str(folder)]}}
        file = tmp_path / "job.json"
        file.write_text(json.dumps([job]), encoding="utf-8")
        command("submit", str(file))
        query = "select runs.id from runs join jobs on jobs.id = job_id where name = %s and runs.state = 'running'"
        return str(noonmark.wait(lambda: noonmark.rows(query, name), f"{name} to run")[0][0])

    return begin


def following(*words: str) -> subprocess.Popen[str]:
    # Tests in the background of a shell ignore SIGINT, and so would what they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "noonmark.cli.main", "run", "logs", *words, "--follow"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def followed(*words: str) -> Iterator[Iterator[str]]:
    """The lines of `noonmark run logs -f` as they come."""
    process = following(*words)
    assert process.stdout is not None
    try:
        yield map(str.rstrip, process.stdout)
    finally:
        process.kill()
        process.communicate()


def worker(noonmark: Cluster, **settings: str) -> Any:
    (node,) = noonmark.start(
        "worker", handlers="tests.support.printing_handlers", scripts="/bin/sh", **settings
    )
    return node


@pytest.mark.parametrize("name", ["sync", "async", "process", "script"])
def test_lines_are_followed_before_the_run_has_ended(noonmark, start, folder, name):
    worker(noonmark)
    run = start(name)
    with followed(run, "--stream", "stdout") as lines:
        assert [next(lines) for _ in range(3)] == ["line 1", "line 2", "line 3"]
        assert noonmark.value("select state from runs where id = %s", run) == "running"
        (folder / "end-1").touch()
        rest = list(lines)
    assert rest == [*(f"line {4 + n}" for n in range(len(rest) - 1)), "the end"]
    assert noonmark.value("select state from runs where id = %s", run) == "succeeded"


def test_all_streams_are_followed_over_a_retry_and_the_worker_logs_them(noonmark, start, folder):
    node = worker(noonmark)
    run = start("retried")
    interrupted = following(run)
    assert interrupted.stdout is not None
    interrupted.stdout.readline()
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.communicate(timeout=60)[1] == ""
    assert interrupted.returncode == 130
    with followed(run) as lines:
        first = [next(lines) for _ in range(2)]
        (folder / "end-1").touch()
        for line in lines:
            first.append(line)
            if line.startswith("== attempt 2"):
                break
        (folder / "end-2").touch()
        second = list(lines)
    assert first[:2] == ["== attempt 1, fence 1: log", "logged number=1"]
    assert {"== attempt 1, fence 1: stdout", "line 1", "warning 1", "the end"} <= set(first)
    assert "the end" in second
    assert second[-1] == "== run is succeeded"
    printed = [
        json.loads(line) for line in node.log_file.read_text().splitlines() if "handler_printed" in line
    ]
    assert {"line 1", "warning 1", "the end"} <= {line["message"] for line in printed}
    assert {(line["run_id"], line["stream"]) for line in printed} == {(run, "stdout"), (run, "stderr")}


def test_the_output_of_a_killed_worker_is_kept_and_the_next_attempt_is_followed(
    noonmark, start, folder, command
):
    killed = worker(noonmark)
    run = start("sync")
    number = noonmark.value("select owner from runs where id = %s", run)
    with followed(run) as lines:
        assert "line 2" in lines
        killed.kill()
        lost = next(line for line in lines if line.startswith("== worker"))
        assert lost == f"== worker {number} lost in attempt 1; waiting for the next attempt"
        worker(noonmark)
        assert "line 1" in lines, "the next attempt begins"
        (folder / "end-1").touch()
        assert "the end" in lines
    shown = json.loads(command("run", "logs", run, "--json").stdout)["attempts"]
    assert [(one["fence"], one["ended"]) for one in shown] == [(1, True), (2, True)]
    assert shown[0]["stdout"].startswith("line 1\nline 2\n")


def test_a_worker_that_drains_leaves_the_last_line(noonmark, start, command):
    first = worker(noonmark, drain_seconds="0")
    run = start("process")
    with followed(run, "--stream", "stdout") as lines:
        next(lines)
        first.terminate()
        first.expected_alive = False
        noonmark.wait(lambda: not first.alive, "the worker to end")
    (shown,) = json.loads(command("run", "logs", run, "--json").stdout)["attempts"]
    assert shown["ended"]
    printed = [
        json.loads(line) for line in first.log_file.read_text().splitlines() if "handler_logged" in line
    ]
    assert shown["log"].splitlines() == [line["message"] for line in printed]
