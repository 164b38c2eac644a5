"""`noonmark job pause`, `resume` and `trigger` of all jobs with a label or a name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.cli import call

from noonmark.cli.jobs.selection import JobSelection

pytestmark = pytest.mark.postgres


@pytest.fixture
def database(emptied_database: str, command_line: None) -> Iterator[psycopg.Connection]:
    """A database with jobs of two teams."""
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        connection.execute("insert into pools (name) values ('default') on conflict do nothing")
        base = {"type": "python", "handler": "a.b", "schedule": "@daily"}
        documents = [
            {**base, "name": f"report-{number}", "labels": {"team": "shop", "tier": str(number % 2)}}
            for number in range(7)
        ]
        documents.append({**base, "name": "other", "labels": {"team": "billing"}})
        Path("jobs.json").write_text(json.dumps(documents))
        call("job", "apply", "-f", "jobs.json")
        yield connection


def states(database: psycopg.Connection) -> dict[str, str]:
    return dict(database.execute("select name, state from jobs order by name").fetchall())


def shown(*words: str, code: int = 0) -> Any:
    return json.loads(call(*words, "--json", code=code).stdout)


def test_jobs_are_paused_and_resumed_by_label(database):
    dry = call("job", "pause", "--label", "team:shop", "--dry-run").stdout
    assert dry.startswith("pause affects 7 jobs (report-0, report-1, ")
    assert shown("job", "pause", "--label", "team:shop", "--dry-run")["matched"] == 7
    assert set(states(database).values()) == {"active"}
    # Above a few jobs, a confirmation is needed.
    assert "pass --yes" in call("job", "pause", "--label", "team:shop", code=2).stderr
    assert set(states(database).values()) == {"active"}
    few = call("job", "pause", "--label", "team:shop", "--label", "tier=1", "--reason", "outage").stdout
    assert few.splitlines() == [
        "job report-1 is paused",
        "job report-3 is paused",
        "job report-5 is paused",
        "3 of 3 jobs paused",
    ]
    again = call("job", "pause", "--label", "tier=1").stdout
    assert again == "3 jobs (report-1, report-3, report-5) were paused already: nothing to pause\n"
    assert shown("job", "pause", "--label", "tier=1")["items"] == []
    done = shown("job", "pause", "--label", "team:shop", "--yes")
    assert (done["matched"], done["refused"], [item["error"] for item in done["items"]]) == (4, 0, [None] * 4)
    assert states(database) == {f"report-{number}": "paused" for number in range(7)} | {"other": "active"}
    assert database.execute("select state_reason from jobs where name = 'report-1'").fetchone() == ("outage",)
    resumed = shown("job", "resume", "--name", "report-?", "--missed", "skip", "--yes")
    assert resumed["matched"] == 7
    assert set(states(database).values()) == {"active"}


def test_a_job_that_another_user_paused_meanwhile_is_said_to_have_been_paused(database, monkeypatch):
    read = JobSelection.read

    def then_paused(self: JobSelection, api: Any) -> Any:
        jobs = read(self, api)
        api.jobs.pause(next(job["id"] for job in jobs if job["name"] == "report-1"))
        return jobs

    monkeypatch.setattr(JobSelection, "read", then_paused)
    assert call("job", "pause", "--label", "tier=1").stdout.splitlines() == [
        "job report-1 was paused already: nothing to pause",
        "job report-3 is paused",
        "job report-5 is paused",
        "3 of 3 jobs paused",
    ]


def test_jobs_are_triggered_by_name(database):
    done = shown("job", "trigger", "--name", "*t-3", "--payload", '{"x": 1}')
    assert [item["name"] for item in done["items"]] == ["report-3"]
    found = database.execute("select id::text, origin from runs").fetchall()
    assert found == [(done["items"][0]["run_id"], "manual")]


def test_what_is_refused_is_told_by_job_and_is_a_problem(database, monkeypatch):
    read = JobSelection.read

    def then_cancelled(self: JobSelection, api: Any) -> Any:
        """As where a user cancels a job while the command waits for its confirmation."""
        jobs = read(self, api)
        api.jobs.delete(next(job["id"] for job in jobs if job["name"] == "report-2"))
        return jobs

    monkeypatch.setattr(JobSelection, "read", then_cancelled)
    done = shown("job", "pause", "--label", "team:shop", "--yes", code=1)
    assert (done["matched"], done["refused"]) == (7, 1)
    assert [item["name"] for item in done["items"] if item["error"]] == ["report-2"]
    assert states(database)["report-6"] == "paused"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("pause",), 2, "select jobs with --label or --name"),
        (("pause", "other", "--label", "team:shop"), 2, "not both"),
        (("resume", "other", "--dry-run"), 2, "--dry-run works with --label and --name"),
        (("trigger", "--label", "team:shop", "--wait"), 2, "--wait works for one job"),
        (
            ("resume", "--label", "team:shops", "--missed", "skip"),
            1,
            "no paused jobs found in namespace default",
        ),
        (("pause", "--label", "team"), 2, "use KEY:VALUE"),
    ],
)
def test_wrong_usage_is_told(database, words, code, told):
    assert told in call("job", *words, code=code).stderr


def test_a_trigger_says_what_has_become_of_its_run(database):
    assert " is queued; `noonmark run logs -f " in call("job", "trigger", "other").stdout
    again = shown("job", "trigger", "other", code=1)
    assert (again["state"], again["reason"]) == ("skipped", "overlap")
    told = call("job", "trigger", "other", code=1).stdout
    assert " is skipped and will not run (overlap): `noonmark why " in told
    call("job", "pause", "report-0")
    assert " waits (paused): `noonmark why " in call("job", "trigger", "report-0").stdout
