"""The fixture `noonmark_stack` in a project of its own, as its users have it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

JOBS = """
from noonmark.handlers import Context, handler


@handler("shop.confirm")
def confirm(ctx: Context) -> object:
    ctx.log("confirming")
    return ctx.payload
"""

TESTS = """
import threading


def test_a_job_by_the_api(noonmark_stack):
    client = noonmark_stack.client
    job = client.jobs.create({"type": "python", "handler": "shop.confirm", "payload": {"order": 7}})
    run = noonmark_stack.wait_for_job(job["id"])
    assert (run["state"], run["result"]) == ("succeeded", {"order": 7})
    assert noonmark_stack.wait_for(run["id"])["state"] == "succeeded"
    assert client.runs.logs(run["id"])["attempts"][0]["log"] == "confirming\\n"


def test_a_job_by_an_event_and_what_is_told_of_it(noonmark_stack):
    client = noonmark_stack.client
    job = client.jobs.create({"type": "python", "handler": "shop.confirm", "run_at": "2090-01-01T00:00:00Z"})
    told = client.runs.events(job_id=job["id"])
    seen = threading.Event()

    def trigger_until_seen():
        while not seen.wait(0.5):
            client.jobs.trigger(job["id"])

    triggering = threading.Thread(target=trigger_until_seen)
    triggering.start()
    event = next(told)
    seen.set()
    triggering.join()
    assert (event.event, event.data["job_id"], event.data["state"]) == ("run", job["id"], "succeeded")
    told.close()

    noonmark_stack.publisher.publish(
        {"name": "nightly", "type": "python", "handler": "shop.confirm", "schedule": "0 3 * * *"}
    ).result(30)
    waiting = threading.Event()
    while not list(client.jobs.list(name="nightly", namespace="default")):
        waiting.wait(0.1)
"""


def run_pytest(folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_where_no_stack_can_run_the_tests_are_skipped_and_told_why(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys\n\nsys.modules['noonmark.devstack.processes.processes'] = None\n"
    )
    (tmp_path / "test_it.py").write_text("def test_it(noonmark_stack):\n    raise AssertionError\n")
    told = run_pytest(tmp_path)
    assert "1 skipped" in told
    assert "noonmark_stack cannot run here: the package" in told
    assert "pip install 'noonmark[dev-stack]'" in told


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.kafka
def test_a_project_tests_its_handlers_on_the_whole_of_noonmark(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nnoonmark_handlers = jobs\nfilterwarnings = error\n")
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "test_shop.py").write_text(TESTS)
    assert "2 passed" in run_pytest(tmp_path, "--strict-markers", "--strict-config")
