"""`noonmark job export`, and `job apply` of what it, `job show --json` and `job list --json` print."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.cli import call
from tests.support.grpc_server import METHOD, descriptor_set

pytestmark = pytest.mark.postgres

Noonmark = Callable[..., str]

RULES = [
    {"cron": "*/5 * * * *", "timezone": "Europe/Berlin"},
    {"cron": "0 30 9 ? * MON-FRI", "seconds_field": "first", "dst_gap": "skip"},
    "@hourly",
    "H H(1-4) * * *",
    {"rrule": "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9", "dtstart": "2026-01-01T09:00:00", "timezone": "Asia/Tokyo"},
    {
        "every": "PT1H30M",
        "start": "2026-01-01T00:00:00Z",
        "end": "2036-01-01T00:00:00Z",
        "jitter_seconds": 30,
    },
    {"every": 3600, "max_runs": 40},
    {"cron": "0 9 * * *", "calendars": {"exclude": ["holidays"], "include": ["busy"]}},
    {
        "any": [
            {"cron": "0 9 * * 1-5"},
            {"cron": "0 11 * * 6"},
        ],
        "timezone": "Europe/Berlin",
        "calendars": {"exclude": ["holidays"]},
    },
]
KINDS: list[dict[str, Any]] = [
    {"type": "python", "handler": "a.b", "payload": None},
    {
        "type": "python",
        "handler": "a.b",
        "payload": {"on": "off", "none": None, "at": "12:30", "text": "a\n b\n", "e": "1e3", "\u1f600": [1.5, True]},
    },
    {
        "type": "http",
        "payload": {
            "url": "https://billing.example.com/invoices", "method": "POST",
            "headers": {"Authorization": "Bearer ${secret://billing-token}"},
            "body": {"id": 42, "none": None}, "success": {"pointer": "/status", "in": ["ok", "queued"]},
        },
        "retry": {"delays": [1, 60], "never_on": {"status": [404]}},
    },
    {"type": "grpc", "payload": {"target": "billing.example.com:443", "method": METHOD, "descriptor_set": descriptor_set()}},
    {"type": "script", "payload": {"argv": ["/opt/jobs/close", "--month", "05"], "env": {"A": "1"}, "stdin": {"a": False}}},
    {"type": "kafka", "payload": {"topic": "billing.invoices", "key": "a", "value": {"id": 1}, "headers": {"x": "y"}}},
]  # fmt: skip
FULL = {
    "priority": "high", "pool": "reports", "labels": {"team": "shop", "empty": ""}, "overlap": "queue_one",
    "misfire": {"policy": "fire_all", "grace_seconds": 5, "look_back_seconds": 600}, "max_retries": 0,
    "limits": ["stripe", {"name": "stripe", "key": "eu"}], "timeout_seconds": 1.5, "owner": "ann",
    "description": "two\nlines: # no comment", "late_after_seconds": 60, "deadline_seconds": 900,
    "pause_after_failures": 3, "start_deadline_seconds": 30, "delivery": "at_most_once",
}  # fmt: skip


@pytest.fixture
def database(emptied_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        connection.execute("insert into pools (name) values ('default'), ('reports') on conflict do nothing")
        yield connection


@pytest.fixture
def jobs(noonmark: Noonmark, database: psycopg.Connection) -> list[str]:
    """Creates a job of each type with each form of schedule, and some with every field; returns the names."""
    noonmark(
        "calendar",
        "set",
        "holidays",
        "--date",
        "2026-12-25",
        "--range",
        "2026-12-27..2026-12-30",
        "--weekday",
        "SUN",
    )
    noonmark("calendar", "set", "busy", "--yearly", "12-24")
    noonmark("limit", "set", "stripe", "--max-running", "5", "--rate", "100/60s", "--burst", "10")
    documents = []
    for number, kind in enumerate(KINDS):
        for place, rule in enumerate(RULES):
            whole = FULL if (number + place) % 3 == 0 else {}
            own = {"name": f"{kind['type']} {number}/{place}", "schedule": rule}
            documents.append(kind | whole | own | {"idempotency_key": f"key-{number}-{place}"})
    Path("made.json").write_text(json.dumps(documents))
    report = json.loads(noonmark("job", "apply", "-f", "made.json", "--json"))
    assert report["created"] == len(documents) == len(KINDS) * len(RULES)
    return [document["name"] for document in documents]


def applied(*options: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(call("job", "apply", "--json", *options).stdout)
    return report


def counts(report: dict[str, Any]) -> tuple[int, int, int, int]:
    return report["created"], report["changed"], report["unchanged"], report["ended"]


def test_an_unchanged_export_of_all_kinds_of_jobs_changes_nothing(noonmark, jobs, database):
    before = database.execute("select name, version, updated_at from jobs order by name").fetchall()
    noonmark("job", "export", "--file", "all.yaml")
    noonmark("job", "export", "--folder", "jobs")
    assert len(list(Path("jobs").iterdir())) == len(jobs)
    for source in ("all.yaml", "jobs"):
        assert counts(applied("-f", source)) == (0, 0, len(jobs), 0)
    assert database.execute("select name, version, updated_at from jobs order by name").fetchall() == before


def test_an_export_makes_the_same_jobs_elsewhere(noonmark, jobs, database):
    noonmark("job", "export", "-f", "all.yaml")
    text = Path("all.yaml").read_text()
    database.execute("delete from jobs")
    # Everything that the jobs use is named with the command that makes it.
    commands = [line[2:] for line in text.splitlines() if line.startswith("# noonmark ")]
    assert commands == [
        "noonmark pool create reports",
        "noonmark calendar set busy --yearly 12-24",
        "noonmark calendar set holidays --date 2026-12-25 --range 2026-12-27..2026-12-30 --weekday SUN",
        "noonmark limit set stripe --max-running 5 --rate 100/60s --burst 10",
    ]
    for command in commands[1:]:
        noonmark(*command.split()[1:])
    assert counts(applied("-f", "all.yaml")) == (len(jobs), 0, 0, 0)
    assert noonmark("job", "export") == text


def make(noonmark: Noonmark, name: str, *options: str) -> str:
    args = ("job", "create", "--type", "python", "--handler", "a.b", "--name", name, "--json")
    made: str = json.loads(noonmark(*args, *options))["id"]
    return made


def names(text: str) -> list[str]:
    return [line.removeprefix("name: ") for line in text.splitlines() if line.startswith("name: ")]


def test_jobs_are_chosen_by_label_name_state_and_namespace(noonmark, database):
    make(noonmark, "report-a", "--schedule", "@daily", "--label", "team:shop")
    make(noonmark, "report-b", "--schedule", "@daily", "--label", "team:shop", "--label", "tier=1")
    make(noonmark, "sync_c", "--schedule", "@daily", "--namespace", "shop")
    make(noonmark, "sync.d", "--schedule", "@daily")
    make(noonmark, "once")
    make(noonmark, "gone", "--schedule", "@daily")
    noonmark("job", "delete", "gone")
    noonmark("job", "pause", "report-b")
    assert names(noonmark("job", "export")) == ["report-a", "report-b", "sync.d"]
    assert names(noonmark("job", "export", "--label", "team=shop", "--label", "tier:1")) == ["report-b"]
    assert names(noonmark("job", "export", "--name", "report-*")) == ["report-a", "report-b"]
    assert names(noonmark("job", "export", "--name", "sync?d")) == ["sync.d"]
    paused = noonmark("job", "export", "--state", "paused")
    assert names(paused) == ["report-b"]
    assert "# This job is paused" in paused
    assert names(noonmark("job", "export", "--namespace", "shop")) == ["sync_c"]
    assert "run `noonmark job list`" in noonmark("job", "export", "--name", "x*", code=1)
    assert "is not a label; use KEY:VALUE" in noonmark("job", "export", "--label", "team", code=2)


def test_an_export_replaces_files_only_with_force(noonmark, database):
    make(noonmark, "a/b", "--schedule", "@daily")
    make(noonmark, "A b", "--schedule", "@daily")
    noonmark("job", "export", "--folder", "jobs")
    assert sorted(path.name for path in Path("jobs").iterdir()) == ["A-b.yaml", "a-b-2.yaml"]
    assert Path("jobs/A-b.yaml").stat().st_mode & 0o777 == 0o600
    assert "is not empty; pass --force" in noonmark("job", "export", "--folder", "jobs", code=2)
    Path("jobs/mine.yaml").write_text("")
    forced = call("job", "export", "--folder", "jobs", "--force")
    assert "not from this export: mine.yaml" in forced.stderr
    noonmark("job", "export", "-f", "all.yaml")
    assert "all.yaml exists; pass --force" in noonmark("job", "export", "-f", "all.yaml", code=2)
    noonmark("job", "export", "-f", "all.yaml", "--force")


def test_apply_takes_what_show_and_export_print_as_json(noonmark, database):
    shown = []
    for name in ("a", "b"):
        make(noonmark, name, "--schedule", "@daily", "--payload", '{"x": [null]}')
        shown.append(noonmark("job", "show", name, "--json"))
    files = {
        "one.json": shown[0],
        "pretty.json": json.dumps(json.loads(shown[0]), indent=2),
        "lines.jsonl": "".join(shown),
        "list.json": json.dumps(list(map(json.loads, shown))),
        "items.json": json.dumps({"items": list(map(json.loads, shown)), "next_cursor": None}),
    }
    for name, text in files.items():
        Path(name).write_text(text)
        called = call("job", "apply", "-f", name, "--json")
        report = json.loads(called.stdout)
        assert counts(report) == (0, 0, 1 if name in {"one.json", "pretty.json"} else 2, 0)
        assert "only `document` of jobs" in called.stderr
    Path("export.json").write_text(noonmark("job", "export", "--json"))
    called = call("job", "apply", "-f", "export.json", "--json")
    assert counts(json.loads(called.stdout)) == (0, 0, 2, 0)
    assert called.stderr == ""


def test_a_listed_job_has_no_payload_and_is_refused_with_what_to_use(noonmark, database):
    make(noonmark, "a", "--schedule", "@daily")
    Path("list.json").write_text(json.dumps(json.loads(noonmark("job", "list", "--json")), indent=1))
    (problem,) = json.loads(call("job", "apply", "-f", "list.json", "--json", code=1).stdout)["problems"]
    assert "use `noonmark job export`" in problem["message"]
    assert problem["line"] > 1
    assert "use `noonmark job export`" in noonmark("job", "create", "-f", "list.json", code=2)


def test_a_problem_in_a_shown_job_names_the_field_of_its_document(noonmark, database):
    make(noonmark, "a", "--schedule", "@daily")
    shown = json.loads(noonmark("job", "show", "a", "--json"))
    shown["document"]["retires"] = 3
    text = json.dumps(shown, indent=2)
    Path("one.json").write_text(text)
    (problem,) = json.loads(call("job", "apply", "-f", "one.json", "--json", code=1).stdout)["problems"]
    assert problem["pointer"] == "/retires"
    assert "retires" in text.splitlines()[problem["line"] - 1]


def test_an_edit_keeps_a_payload_that_is_null(noonmark, database, monkeypatch):
    Path("a.json").write_text(json.dumps({**KINDS[0], "name": "a", "schedule": "@daily"}))
    noonmark("job", "apply", "-f", "a.json")
    Path("editor.sh").write_text('#!/bin/sh\nsed -i "s/^timeout_seconds: .*/timeout_seconds: 99/" "$1"\n')
    Path("editor.sh").chmod(0o755)
    monkeypatch.setenv("VISUAL", str(Path("editor.sh").resolve()))
    noonmark("job", "edit", "a")
    document = json.loads(noonmark("job", "show", "a", "--json"))["document"]
    assert (document["timeout_seconds"], document["payload"]) == (99, None)
