"""`noonmark why` against real processes, of which one kind after the other is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.cli import Called
from tests.support.cluster import Cluster

pytestmark = pytest.mark.slow


class Asking:
    """Who submits jobs and asks about them on the command line."""

    def __init__(self, noonmark: Cluster, command: Callable[..., Called]) -> None:
        self.noonmark = noonmark
        self.command = command

    def submit(self, handler: str = "chaos.record", run_at: datetime | None = None) -> str:
        """Submit a job and wait until it is taken in; return its id."""
        job: dict[str, Any] = {"namespace": "shop", "type": "python", "handler": handler}
        if run_at is not None:
            job["run_at"] = run_at.astimezone(UTC).isoformat()
        file = self.noonmark.folder / "job.json"
        file.write_text(json.dumps(job))
        known = {row[0] for row in self.noonmark.rows("select id from jobs")}
        self.command("submit", str(file))
        fresh = "select id from jobs where id <> all (%s)"
        return str(self.noonmark.wait(lambda: self.noonmark.rows(fresh, list(known)), "the job")[0][0])

    def first(self, job: str) -> dict[str, Any]:
        """Return the first answer about a job."""
        answers = json.loads(self.command("why", job, "--json").stdout)["answers"]
        found: dict[str, Any] = answers[0]
        return found

    def await_answer(self, job: str, code: str) -> dict[str, Any]:
        """Wait until this stands first."""
        seen: list[str] = []

        def look() -> dict[str, Any] | None:
            found = self.first(job)
            seen.append(found["code"])
            return found if found["code"] == code else None

        found: dict[str, Any] = self.noonmark.wait(look, f"{code} to be named first")
        return found


@pytest.fixture
def asking(noonmark: Cluster, command: Callable[..., Called]) -> Asking:
    noonmark.prepare()
    return Asking(noonmark, command)


def test_what_is_missing_on_the_way_of_a_run_is_named(noonmark: Cluster, asking: Asking) -> None:
    noonmark.start("intake", "trigger", "dispatcher")

    job = asking.submit()
    assert asking.await_answer(job, "no_worker")["facts"]["pool"] == "default"

    noonmark.start("worker", handlers="tests.support.note_handlers")
    found = asking.await_answer(job, "no_worker_for_handler")
    assert (found["facts"]["handler"], found["facts"]["workers"]) == ("chaos.record", 1)
    assert "has a handler 'chaos.record'" in found["sentence"]

    noonmark.node("dispatcher").stop()
    unsent = asking.submit("notes.fails")
    found = asking.await_answer(unsent, "dispatcher_stopped")
    run = noonmark.value("select id from runs where job_id = %s", unsent)
    assert found["facts"]["run"] == str(run)

    noonmark.node("trigger").stop()
    due = noonmark.soon(0.5)
    late = asking.submit("notes.fails", due)
    found = asking.await_answer(late, "trigger_stopped")
    assert datetime.fromisoformat(found["facts"]["due_since"]) == due
