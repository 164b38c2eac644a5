"""`noonmark job check`: files are checked as the server does, without one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cli import call

WORKFLOW = """\
name: nightly
type: workflow
schedule: {cron: "30 2 * * *", calendars: {exclude: [holidays]}}
tasks:
  extract: {type: python, handler: etl.extract}
  orders: {type: python, handler: etl.orders, depends_on: [extract]}
  customers: {type: python, handler: etl.customers, depends_on: [{task: extract, if: {at: /n, gt: 0}}]}
  publish: {type: python, handler: etl.publish, depends_on: [orders, customers], rule: none_failed}
finally:
  cleanup: {type: python, handler: etl.cleanup}
"""
JOB = "name: tick\ntype: python\nhandler: mails.tick\nschedule: 0 9 * * 1\n"

Write = Callable[..., str]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    # Nothing is asked of a database or an API.
    monkeypatch.setenv("NOONMARK_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")

    def write(text: str, name: str = "jobs.yaml") -> str:
        (tmp_path / name).write_text(text)
        return name

    return write


def test_the_tasks_of_a_workflow_are_shown_in_their_order(file: Write) -> None:
    shown = call("job", "check", file(WORKFLOW)).stdout.splitlines()

    assert shown[:2] == [
        "jobs.yaml:1: nightly is a valid workflow: 5 tasks, 4 dependencies",
        "longest path, 3 tasks: extract → customers → publish",
    ]
    assert [line.split() for line in shown[2:8]] == [
        ["#", "TASK", "TYPE", "RULE", "AFTER"],
        ["0", "extract", "python", "all_succeeded", "-"],
        ["1", "customers", "python", "all_succeeded", "extract", "(if)"],
        ["2", "orders", "python", "all_succeeded", "extract"],
        ["3", "publish", "python", "none_failed", "orders,", "customers"],
        ["4", "cleanup", "python", "all_succeeded", "all", "others"],
    ]
    assert shown[-1].startswith("1 document checked: no problems found; checked offline")


def test_every_problem_is_shown_with_its_line_and_field(file: Write) -> None:
    text = WORKFLOW.replace("depends_on: [extract]", "depends_on: [extarct]").replace(
        "handler: etl.cleanup", ""
    )
    found = call("job", "check", file(text), code=1).stdout.splitlines()

    assert found[0].startswith("jobs.yaml:6: /tasks/orders/depends_on/0: ")
    assert "did you mean 'extract'?" in found[0]
    assert found[1].startswith("jobs.yaml:10: /finally/cleanup/handler: is missing")
    assert found[2].startswith("1 document checked: 2 problems found")


def test_a_circle_is_named(file: Write) -> None:
    text = WORKFLOW.replace("handler: etl.extract", "handler: etl.extract, depends_on: [publish]")

    assert "is a circle" in call("job", "check", file(text), code=1).stdout


def test_other_jobs_are_checked_as_well(file: Write) -> None:
    names = file(JOB), file(JOB.replace("0 9 * * 1", "0 99 * * 1"), "wrong.yaml")

    found = call("job", "check", *names, code=1).stdout

    assert "jobs.yaml:1: tick is a valid python job" in found
    assert "wrong.yaml:4: /schedule" in found


def test_scripts_get_tasks_and_problems_as_json(file: Write) -> None:
    found = json.loads(call("job", "check", file(f"{WORKFLOW}---\nname: x\n"), "--json", code=1).stdout)

    (item,) = found["items"]
    assert item == {
        "file": "jobs.yaml",
        "line": 1,
        "name": "nightly",
        "type": "workflow",
        "tasks": ["extract", "customers", "orders", "publish", "cleanup"],
        "dependencies": 4,
        "longest_path": ["extract", "customers", "publish"],
    }
    assert [(one["line"], one["pointer"]) for one in found["problems"]] == [(12, "/type")]


def test_a_long_path_is_shortened(file: Write) -> None:
    tasks = [f"  t{n:03}: {{type: python, handler: a.b, depends_on: [t{n - 1:03}]}}" for n in range(1, 50)]
    text = "\n".join(["name: x", "type: workflow", "tasks:", "  t000: {type: python, handler: a.b}", *tasks])

    line = call("job", "check", file(text)).stdout.splitlines()[1]

    assert line.startswith("longest path, 50 tasks: t000 → t001 → ")
    assert line.endswith(" → … → t049")
