"""`noonmark job apply`, `create`, `edit` and the orders about a job, through the API in the command's own process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from tests.support.cli import call

from noonmark.cli.jobs import edit as job_edit
from noonmark.cli.submissions import apply_steps

pytestmark = pytest.mark.postgres

Noonmark = Callable[..., str]

TICK = "name: tick\ntype: python\nhandler: a.b\nschedule: {cron: '*/5 * * * *', timezone: Europe/Berlin}\n"
SYNC = "name: sync\ntype: http\nschedule: {every: 60}\npayload: {url: https://example.com/sync}\nlabels: {team: shop}\n"


@pytest.fixture
def database(emptied_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        connection.execute("insert into pools (name) values ('default') on conflict do nothing")
        yield connection


@pytest.fixture
def apply(noonmark: Noonmark, database: psycopg.Connection) -> Callable[..., dict[str, Any]]:
    """Writes files, applies the folder that they are in, and returns the JSON report."""

    def run(*options: str, code: int = 0, **files: str) -> dict[str, Any]:
        folder = Path("jobs")
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text)
        called = call("job", "apply", "-f", "jobs", "--json", *options, code=code)
        report: dict[str, Any] = json.loads(called.stdout)
        return report

    return run


def counts(report: dict[str, Any]) -> tuple[int, int, int, int]:
    return report["created"], report["changed"], report["unchanged"], report["ended"]


def versions(database: psycopg.Connection) -> dict[str, tuple[int, str]]:
    rows = database.execute("select name, version, state from jobs order by name").fetchall()
    return {name: (version, state) for name, version, state in rows}


def test_what_is_declared_is_made_and_then_left_alone(apply, database):
    report = apply(a=TICK + "---\n" + SYNC)
    assert counts(report) == (2, 0, 0, 0)
    assert [(one["name"], one["file"], one["line"]) for one in report["items"]] == [
        ("tick", "jobs/a.yaml", 1),
        ("sync", "jobs/a.yaml", 6),
    ]
    assert counts(apply(a=TICK, b=SYNC)) == (0, 0, 2, 0)
    # Defaults written out are the same job, in any form.
    spelt = (
        TICK
        + "max_retries: 3\npriority: 5\noverlap: skip\nmisfire: {policy: fire_latest}\ntimeout_seconds: 3600\nnamespace: default\n"
    )
    assert counts(apply(a=spelt, b=SYNC.replace("60", "PT1M"))) == (0, 0, 2, 0)
    assert versions(database) == {"tick": (1, "active"), "sync": (1, "active")}


def test_what_differs_is_told_field_by_field_and_changed_and_nothing_else(apply, database):
    apply(a=TICK, b=SYNC)
    changed = TICK.replace("*/5", "*/10") + "labels: {team: ops}\npool: default\n"
    dry = apply("--dry-run", a=changed, b=SYNC)
    told = [
        {"field": "schedule.cron", "from": "*/5 * * * *", "to": "*/10 * * * *"},
        {"field": "labels.team", "from": None, "to": "ops"},
    ]
    assert dry["items"][0]["changes"] == told
    assert versions(database)["tick"] == (1, "active")
    assert counts(apply(a=changed, b=SYNC)) == (0, 1, 1, 0)
    assert versions(database) == {"tick": (2, "active"), "sync": (1, "active")}
    assert counts(apply(a=TICK, b=SYNC)) == (0, 1, 1, 0)


def test_an_interval_keeps_its_rhythm(apply, database):
    apply(a=SYNC)
    before = database.execute("select schedule from jobs").fetchone()
    apply(a=SYNC + "description: x\n")
    assert database.execute("select schedule from jobs").fetchone() == before


@pytest.mark.parametrize(
    "damage",
    ["delete from timers", "update timers set fire_at = '9000-01-01Z', scheduled_for = '9000-01-01Z'"],
)
def test_a_job_whose_timer_was_lost_or_moved_is_planned_again(apply, database, damage):
    apply(a=TICK, b=SYNC)
    database.execute(f"{damage} where job_id = (select id from jobs where name = 'tick')")
    due = "select name from jobs join timers on job_id = jobs.id where fire_at < now() + interval '1 day' order by 1"
    assert database.execute(due).fetchall() == [("sync",)]
    report = apply(a=TICK, b=SYNC)
    assert counts(report) == (0, 1, 1, 0)
    assert [one["field"] for one in report["items"][0]["changes"]] == ["next instant"]
    assert database.execute(due).fetchall() == [("sync",), ("tick",)]
    assert counts(apply(a=TICK, b=SYNC)) == (0, 0, 2, 0)


def test_nothing_is_changed_when_anything_is_wrong(apply, database):
    report = apply(
        a=TICK,
        b=SYNC + "retires: 3\n---\nname: late\ntype: python\nhandler: a.b\nrun_at: 2031-01-01T00:00:00Z\n",
        code=1,
    )
    assert [(one["line"], one["pointer"], one["file"]) for one in report["problems"]] == [
        (6, "/retires", "jobs/b.yaml"),
        (8, "", "jobs/b.yaml"),
    ]
    report = apply(
        a=TICK, b=SYNC + "retires: 3\n", c=TICK.replace("tick", "tock").replace("*/5", "61"), code=1
    )
    assert [(one["file"], one["line"], one["pointer"]) for one in report["problems"]] == [
        ("jobs/b.yaml", 6, "/retires"), ("jobs/c.yaml", 4, "/schedule/cron")
    ]  # fmt: skip
    assert versions(database) == {}


def test_what_jobs_name_and_is_not_there_is_told_before_anything_is_changed(apply, database):
    assert counts(apply(a=TICK, b=SYNC)) == (2, 0, 0, 0)
    database.execute(
        "insert into workers (pool, host, pid, beat_at, lease_seconds, catalogue)"
        """ values ('default', 'w', 1, noonmark_now(), 3600, '{"kinds": ["http"], "handlers": {}}')"""
    )
    more = TICK.replace("tick", "tock")
    report = apply(a=TICK, b=SYNC.replace("60", "30") + "pool: nowhere\nlimits: [stripe]\n", c=more, code=1)
    assert [(one["file"], one["line"], one["pointer"]) for one in report["problems"]] == [
        ("jobs/b.yaml", 6, "/pool"), ("jobs/b.yaml", 7, "/limits/0"), ("jobs/c.yaml", 2, "/type")
    ]  # fmt: skip
    assert versions(database) == {"sync": (1, "active"), "tick": (1, "active")}
    # No worker that lives runs it, and it is to stay as it is: that holds nothing up.
    assert counts(apply(a=TICK, b=SYNC.replace("60", "30"))) == (0, 1, 1, 0)


def test_a_job_is_declared_once_whether_its_namespace_is_written_or_not(apply, database):
    (problem,) = apply(a=TICK, b=TICK + "namespace: default\n", code=1)["problems"]
    assert (problem["file"], problem["line"], problem["pointer"]) == ("jobs/b.yaml", 1, "/name")
    assert versions(database) == {}


def test_prune_ends_the_jobs_of_the_set_that_are_gone_and_no_others(apply, noonmark, database):
    apply("--set", "reports", a=TICK, b=SYNC)
    noonmark("job", "create", "--handler", "a.b", "--name", "other", "--schedule", "@daily")
    dry = apply("--set", "reports", "--prune", "--dry-run", a=TICK)
    assert counts(dry) == (0, 0, 1, 1)
    assert versions(database)["sync"] == (1, "active")
    refused = call("job", "apply", "-f", "jobs", "--set", "reports", "--prune", code=2)
    assert "pass --yes" in refused.stderr
    assert counts(apply("--set", "reports", "--prune", "--yes", a=TICK)) == (0, 0, 1, 1)
    assert {name: state for name, (_, state) in versions(database).items()} == {
        "tick": "active",
        "sync": "cancelled",
        "other": "active",
    }
    # A name that has ended is free again.
    assert counts(apply("--set", "reports", a=TICK, b=SYNC)) == (1, 0, 1, 0)


def test_prune_looks_only_where_the_files_are_for(apply, database):
    elsewhere = SYNC + "namespace: shop\n"
    apply("--set", "reports", a=TICK, b=elsewhere)
    # Another team's set of the same name.
    assert counts(apply("--set", "reports", "--prune", "--yes", a=TICK)) == (0, 0, 1, 0)
    assert versions(database)["sync"] == (1, "active")
    here = TICK + "namespace: default\n"
    assert counts(apply("--set", "reports", "--prune", "--yes", "--namespace", "shop", a=here)) == (
        0,
        0,
        1,
        1,
    )
    assert versions(database)["sync"][1] == "cancelled"


def test_a_job_that_leaves_the_set_before_it_is_ended_stays(apply, database, monkeypatch):
    apply("--set", "reports", a=TICK, b=SYNC)
    carry_out = apply_steps._carry_out

    def later(api: Any, steps: Any) -> None:
        """As where somebody takes the job over while the question is still on the screen."""
        (sync,) = [step for step in steps if step.name == "sync"]
        api.jobs.patch(sync.job_id, {"labels": {apply_steps.SET_LABEL: "others"}})
        carry_out(api, steps)

    monkeypatch.setattr(apply_steps, "_carry_out", later)
    Path("jobs/b.yaml").unlink()
    stopped = call("job", "apply", "-f", "jobs", "--set", "reports", "--prune", "--yes", code=1)
    assert "apply again to continue" in stopped.stderr
    assert versions(database)["sync"] == (2, "active")


def test_without_a_terminal_the_diff_is_plain_text_with_a_summary(apply, noonmark):
    apply(a=TICK)
    Path("jobs/a.yaml").write_text(TICK.replace("*/5", "*/10"))
    shown = noonmark("job", "apply", "-f", "jobs/a.yaml")
    assert shown.splitlines() == [
        "~ default/tick (jobs/a.yaml:1)",
        '    schedule.cron: "*/5 * * * *" -> "*/10 * * * *"',
        "0 created, 1 changed, 0 unchanged, 0 ended",
    ]


def test_a_job_is_made_of_options_and_told_what_is_wrong(noonmark, database):
    made = json.loads(
        noonmark(
            "job",
            "create",
            "--type",
            "python",
            "--handler",
            "a.b",
            "--name",
            "tick",
            "--schedule",
            "0 9 * * *",
            "--zone",
            "Asia/Tokyo",
            "--label",
            "team=ops",
            "--priority",
            "high",
            "--json",
        )
    )
    row = database.execute(
        "select name, labels, schedule ->> 'timezone' from jobs where id = %s", [made["id"]]
    ).fetchone()
    assert row == ("tick", {"team": "ops"}, "Asia/Tokyo")
    told = noonmark("job", "create", "--type", "http", "--name", "x", "--schedule", "61 * * * *", code=1)
    assert "/payload: is missing" in told
    assert "/schedule" in told


def test_orders_are_carried_out_when_they_are_answered(noonmark, apply, database):
    apply(a=TICK)

    def state():
        return database.execute("select state, state_reason from jobs").fetchone()

    noonmark("job", "pause", "tick", "--reason", "too loud")
    assert state() == ("paused", "too loud")
    assert "a pause of this job" in noonmark("job", "show", "tick")
    again = noonmark("job", "pause", "tick", "--reason", "too loud")
    assert again.startswith("job tick was paused already: nothing to pause; ")
    assert noonmark("job", "pause", "tick", "--reason", "moving").startswith("job tick is paused; ")
    noonmark("job", "resume", "tick", "--missed", "skip")
    assert state() == ("active", None)
    assert noonmark("job", "resume", "tick").startswith("job tick was active already: nothing to resume; ")
    run = json.loads(
        noonmark("job", "trigger", "tick", "--payload", '{"x": 1}', "--priority", "high", "--json")
    )["run_id"]
    assert database.execute("select origin, state from runs where id = %s", [run]).fetchone() == (
        "manual",
        "queued",
    )
    assert "--payload is not JSON" in noonmark("job", "trigger", "tick", "--payload", "{", code=2)
    job = json.loads(noonmark("job", "show", "tick", "--json"))["id"]
    noonmark("job", "delete", "tick")
    assert state()[0] == "cancelled"
    assert noonmark("job", "cancel", job).startswith(f"job {job} was cancelled already: nothing to cancel; ")
    assert "recurring job 'tick' does not exist" in noonmark("job", "pause", "tick", code=1)


@pytest.mark.usefixtures("database")
def test_a_job_is_created_for_a_time_as_other_options_take_it(noonmark):
    given = ("job", "create", "--handler", "a.b", "--timeout", "5m", "--run-at")
    before = datetime.now(UTC)
    found = {}
    for name, *times in (
        ("local", "2030-11-27T09:00", "--zone", "Europe/Berlin"),
        ("ahead", "in 2h"),
        ("past", "2h ago"),
    ):
        told = noonmark(*given, *times, "--name", name)
        assert told.startswith(f"job {name} (")
        assert ("in the past: now" in told) == (name == "past")
        found[name] = json.loads(noonmark("job", "show", name, "--json"))["document"]
    told = noonmark(
        "job", "create", "--handler", "a.b", "--run-at", "2030-11-27T09:00", "--zone", "Europe/Berlin"
    )
    assert " created, due 2030-11-27T08:00:00Z; run `noonmark job show " in told
    assert (found["local"]["run_at"], found["local"]["timeout_seconds"]) == ("2030-11-27T08:00:00Z", 300.0)
    for name, hours in (("ahead", 2), ("past", -2)):
        at = datetime.fromisoformat(found[name]["run_at"])
        assert before <= at - timedelta(hours=hours) <= datetime.now(UTC)


def test_versions_and_what_changed_between_them(noonmark, apply):
    apply(a=TICK)
    apply(a=TICK.replace("*/5", "*/10"))
    listed = json.loads(noonmark("job", "versions", "tick", "--json"))["items"]
    assert [one["version"] for one in listed] == [2, 1]
    assert noonmark("job", "diff", "tick").splitlines() == ['/schedule/cron: "*/5 * * * *" -> "*/10 * * * *"']
    assert "is the first" in noonmark("job", "diff", "tick", "--to", "1", code=1)


def editor(monkeypatch: pytest.MonkeyPatch, *scripts: str) -> None:
    """Let the editor be a program that runs the first `sed` script, then the second, and so on."""
    steps = Path("steps")
    steps.mkdir()
    for number, script in enumerate(scripts):
        (steps / str(number)).write_text(script)
    program = Path("editor.sh")
    program.write_text(
        '#!/bin/sh\ncp "$1" seen.$(ls steps | head -1)\nsed -i -f "steps/$(ls steps | head -1)" "$1"\nrm "steps/$(ls steps | head -1)"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(program.resolve()))


def test_a_job_is_edited_and_what_is_refused_is_shown_again(noonmark, apply, monkeypatch, database):
    apply(a=TICK)
    editor(
        monkeypatch,
        "s/^timeout_seconds: .*/timeout_seconds: soon/",
        "s/^timeout_seconds: .*/timeout_seconds: 99/",
    )
    assert "changed; run" in noonmark("job", "edit", "tick")
    assert Path("seen.1").read_text().count("# /timeout_seconds: ") == 1
    assert versions(database) == {"tick": (2, "active")}
    assert database.execute("select (work ->> 'timeout_seconds')::float from jobs").fetchone() == (99.0,)


def test_an_edit_that_changes_nothing_makes_no_version(noonmark, apply, monkeypatch, database):
    apply(a=TICK)
    editor(monkeypatch, "", "1,$d")
    assert noonmark("job", "edit", "tick") == "nothing changed\n"
    assert noonmark("job", "edit", "tick") == "nothing changed\n"
    assert versions(database) == {"tick": (1, "active")}


def test_an_edit_of_a_job_that_changed_meanwhile_is_kept_and_not_made(noonmark, apply, monkeypatch, database):
    apply(a=TICK)
    editor(monkeypatch, "s/^timeout_seconds: .*/timeout_seconds: 99/")
    opened = job_edit._open_editor

    def meanwhile(path: str) -> None:
        opened(path)
        database.execute("update jobs set version = version + 1, updated_at = now()")

    monkeypatch.setattr(job_edit, "_open_editor", meanwhile)
    told = noonmark("job", "edit", "tick", code=1)
    kept = Path(told.rsplit("your text is in ", 1)[1].strip())
    assert "timeout_seconds: 99" in kept.read_text()
    kept.unlink()


def test_an_imported_crontab_is_applied_and_then_the_same(noonmark, database):
    text = "CRON_TZ=Europe/Berlin\n0 2 * * * /opt/a --x\n*/5 * * * * B=1 /opt/b\n"
    Path("crontab").write_text(text)
    for counted in ((2, 0, 0, 0), (0, 0, 2, 0)):
        report = json.loads(noonmark("import", "crontab", "crontab", "--apply", "--set", "cron", "--json"))
        assert counts(report["applied"]) == counted
        assert [one["line"] for one in report["applied"]["items"]] == [2, 3]
    assert versions(database) == {"cron-a": (1, "active"), "cron-b": (1, "active")}


@pytest.mark.parametrize(("ended", "code"), [("succeeded", 0), ("cancelled", 1)])
def test_a_run_that_is_waited_for_tells_by_the_exit_code_how_it_ended(
    apply, database, monkeypatch, ended, code
):
    apply(a=TICK)

    def meanwhile(_seconds: float) -> None:
        database.execute("update runs set state = %s, finished_at = noonmark_now()", [ended])

    monkeypatch.setattr("noonmark.client.drivers.time", SimpleNamespace(sleep=meanwhile))
    told = call("job", "trigger", "tick", "--wait", code=code).stdout
    assert told.endswith("succeeded\n" if code == 0 else "finished as cancelled\n")
