"""`noonmark submit --dry-run`, as people run it: documents are checked as intake does, and nothing is published."""

import json

import pytest
from tests.support.cli import call

GOOD = {"name": "nightly", "type": "python", "handler": "a.b", "schedule": "0 9 * * *"}
NO_DATABASE = "postgresql://app:s3cret@127.0.0.1:1/jobs"


@pytest.fixture
def check(command_line, tmp_path, monkeypatch):
    """Checks documents in an empty folder, with an empty database and a broker that is not there."""
    monkeypatch.setenv("NOONMARK_KAFKA_BOOTSTRAP", "127.0.0.1:1")

    def run(*documents, text=None, code=0, json_form=True):
        (tmp_path / "jobs.yaml").write_text(text or json.dumps(list(documents)))
        done = call("submit", "--dry-run", "jobs.yaml", *(["--json"] if json_form else []), code=code)
        return json.loads(done.stdout) if json_form else done.stdout

    return run


def test_documents_are_checked_with_the_default_zone_and_the_calendars_of_the_database(check):
    call("namespace", "set", "shop", "--timezone", "Asia/Kolkata")
    call("calendar", "set", "weekend", "--weekday", "SAT", "--weekday", "SUN", "--namespace", "shop")
    under = {"cron": "0 9 * * *", "calendars": {"exclude": ["weekend"]}}
    found = check(
        {**GOOD, "namespace": "shop"},
        {**GOOD, "namespace": "shop", "schedule": under},
        {**GOOD, "schedule": under},
        code=1,
    )
    first, second, third = found["items"]
    assert (first["result"], first["type"], first["job"]) == ("ok", "create", "nightly")
    assert first["next_fire_at"].endswith("T03:30:00Z")
    assert second["result"] == "ok"
    assert (third["result"], third["errors"][0]["pointer"]) == ("refused", "/schedule/calendars/exclude")
    assert found["refused"] == 1
    assert found["database"] is not None


def test_pools_and_limits_that_are_not_there_are_told(check):
    call("limit", "set", "stripe", "--max-running", "1")
    (refused, good) = check(
        {**GOOD, "pool": "nowhere", "limits": ["stripe", "strpe"]}, {**GOOD, "limits": ["stripe"]}, code=1
    )["items"]

    assert [(error["pointer"], error["message"]) for error in refused["errors"]] == [
        ("/limits/1", "namespace 'default' has no limit 'strpe'; did you mean 'stripe'?"),
        ("/pool", "no pool is named 'nowhere'"),
    ]
    assert good["result"] == "ok"


def test_every_problem_is_told_with_its_pointer_and_the_exit_code_is_1(check):
    text = "name: a\ntype: python\nhandler: a.b\n---\nname: b\nhandler: a.b\nnmae: x\nschedule: 0 25 * * *\n"
    lines = check(text=text, code=1, json_form=False).splitlines()
    assert lines[0].split() == ["#", "REQUEST", "JOB", "RESULT", "NEXT", "FIRE", "NOTE"]
    assert lines[1].split() == ["1", "create", "a", "ok", "-", "now"]
    assert lines[2].split() == ["2", "create", "b", "refused", "-", "-"]
    assert lines[3] == "document 2 (b)"
    assert {line.split()[0] for line in lines[4:7]} == {"/type:", "/nmae:", "/schedule:"}
    assert "2 documents checked, 1 would be rejected; dry run, nothing published" in lines
    assert lines[-1].startswith(
        "checked with the zones, calendars, pools, live workers and limits of the database "
    )


def test_events_are_checked_as_they_stand(check):
    order = {"specversion": "1.0", "id": "1", "source": "/me", "data": {"name": "a"}}
    found = check(
        {**order, "type": "noonmark.job.pause.v1"},
        {**order, "type": "noonmark.job.pause.v1", "data": {}},
        {**order, "type": "noonmark.job.paus.v1"},
        {"specversion": "1.0"},
        code=1,
    )["items"]
    assert [one["result"] for one in found] == ["ok", "refused", "refused", "refused"]
    assert (found[0]["type"], found[0]["job"], found[0]["next_fire_at"]) == ("pause", "a", None)
    assert [one["errors"][0]["pointer"] for one in found[1:3]] == ["/data", "/type"]


def test_a_job_of_a_paused_namespace_is_told_to_be_held(check):
    call("namespace", "pause", "shop")
    (found,) = check({**GOOD, "namespace": "shop"})["items"]
    assert found["note"] == "namespace shop is paused: the job would be created paused"


def test_without_a_database_documents_are_checked_all_the_same_and_that_is_said(check, monkeypatch):
    monkeypatch.setenv("NOONMARK_DATABASE_URL", NO_DATABASE)
    under = {"cron": "0 9 * * *", "calendars": {"exclude": ["weekend"]}}
    (found,) = check({**GOOD, "schedule": under})["items"]
    assert (found["result"], found["note"]) == ("ok", "calendars not checked")
    assert found["next_fire_at"].endswith("T09:00:00Z")
    told = check(GOOD, json_form=False).splitlines()[-1]
    assert told.startswith("checked without the database jobs at 127.0.0.1:1 (")
    assert told.endswith("): default zones are UTC; calendars, pools, handlers and limits are not checked")
    assert "s3cret" not in told


def test_a_document_that_is_too_large_is_refused(check, monkeypatch):
    monkeypatch.setenv("NOONMARK_MAX_SUBMISSION_BYTES", "2000")
    (found,) = check({**GOOD, "description": "x" * 3000}, code=1)["items"]
    assert found["errors"][0]["expected"] == "at most 2000 bytes"


def test_a_file_that_cannot_be_read_is_wrong_usage(command_line):
    assert "cannot read" in call("submit", "--dry-run", "none.yaml", code=2).stderr
