"""What an attempt kept is found by the next one, however the first ended."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import Cluster

pytestmark = pytest.mark.slow

MODULE = {"handlers": "tests.support.note_handlers"}
RETRY = {"max_retries": 3, "delay_seconds": 0.2, "jitter": "none"}


def submit(command, tmp_path: Path, *names: str) -> None:
    file = tmp_path / "jobs.json"
    jobs = [{"name": name, "type": "python", "handler": f"notes.{name}", "retry": RETRY} for name in names]
    file.write_text(json.dumps(jobs), encoding="utf-8")
    command("submit", str(file))


def result(noonmark: Cluster, name: str) -> Any:
    query = "select runs.state, runs.result from runs join jobs on jobs.id = job_id where jobs.name = %s"
    state, found = noonmark.wait(
        lambda: next((row for row in noonmark.rows(query, name) if row[0] in {"succeeded", "dead"}), None),
        f"{name} to end",
        within=60,
    )
    assert state == "succeeded"
    return found


def test_each_attempt_goes_on_where_the_last_one_was(noonmark: Cluster, command, tmp_path) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.start("worker", **MODULE)
    submit(command, tmp_path, "fails", "async", "process")
    for name in ("fails", "async", "process"):
        assert result(noonmark, name) == [1, 2]
    shown = {
        name: (fence, progress, checkpoint)
        for name, fence, progress, checkpoint in noonmark.rows(
            """select jobs.name, run_notes.fence, progress, checkpoint
               from run_notes join runs on runs.id = run_id join jobs on jobs.id = job_id"""
        )
    }
    assert shown == {
        "fails": (3, 1.0, [1, 2, 3]),
        "async": (3, None, [1, 2, 3]),
        "process": (3, 0.5, [1, 2, 3]),
    }
    lines = noonmark.rows(
        """select jobs.name, attempt_logs.fence, log from attempt_logs
           join runs on runs.id = run_id join jobs on jobs.id = job_id order by 1, 2"""
    )
    assert [line for line in lines if line[0] == "fails"] == [
        ("fails", 1, "attempt number=1 found=[]\n"),
        ("fails", 2, "attempt number=2 found=[1]\n"),
        ("fails", 3, "attempt number=3 found=[1, 2]\n"),
    ]
    assert [line[2] for line in lines if line[0] == "process"] == [f"attempt number={n}\n" for n in (1, 2, 3)]


def test_a_checkpoint_outlives_its_worker(noonmark: Cluster, command, tmp_path) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    (first,) = noonmark.start("worker", **MODULE)
    first.expected_alive = False
    submit(command, tmp_path, "dies")
    noonmark.wait(lambda: not first.alive, "the handler to take its worker down")
    noonmark.start("worker", **MODULE)
    assert result(noonmark, "dies") == {"by": 1}


def test_a_worker_that_drains_hands_back_with_the_checkpoint(noonmark: Cluster, command, tmp_path) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    (first,) = noonmark.start("worker", **MODULE, drain_seconds="0")
    submit(command, tmp_path, "drained")
    noonmark.wait(
        lambda: noonmark.value("select count(*) from runs where state = 'running'"), "the run to run"
    )
    first.expected_alive = False
    first.process.send_signal(signal.SIGTERM)
    noonmark.wait(lambda: not first.alive, "the first worker to end")
    noonmark.start("worker", **MODULE)
    assert result(noonmark, "drained") == "before the drain"
