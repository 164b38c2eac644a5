"""`noonmark verify` as people and scripts call it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.support.cli import call


@pytest.fixture(autouse=True)
def _addressed(command_line):
    """The command finds the database of the test."""


def test_a_clean_ledger_exits_0_and_says_what_was_checked(ledger):
    called = call("verify")

    assert called.stdout.startswith("7 runs due from ")
    assert called.stdout.endswith("checked: all promises kept\n")
    assert called.stderr == ""


def test_a_broken_promise_exits_1_with_its_rule_its_run_and_what_to_do(ledger):
    ledger.world.db.execute("delete from dead_letters")

    called = call("verify", code=1)

    (line,) = called.stderr.splitlines()
    assert line.startswith("S11 ")
    assert f"(run {ledger.dead}) is dead without a dead letter. Find out what" in line
    assert called.stdout.endswith("1 broken promise\n")


def test_the_json_has_the_count_of_every_rule_and_why_others_were_not_judged(ledger):
    ledger.world.db.execute("delete from dead_letters")

    found = json.loads(call("verify", "--json", code=1).stdout)

    assert (found["clean"], found["runs"]) == (False, 7)
    assert found["rules"]["S11"] == 1
    assert sum(found["rules"].values()) == 1
    assert {"S5", "V1"} < set(found["unjudged"])
    (finding,) = found["findings"]
    assert (finding["rule"], finding["kind"]) == ("S11", "no_letter")
    assert (finding["run_id"], finding["namespace"]) == (str(ledger.dead), "tests")
    assert json.loads(call("verify", "--json", "--until", "1h").stdout)["clean"] is True
    assert json.loads(call("verify", "--json", "--instants", code=1).stdout)["rules"]["V1"] == 0


def test_only_the_namespaces_that_were_named_are_checked(ledger):
    ledger.world.db.execute("delete from dead_letters")

    assert call("verify", "--namespace", "other").stdout.startswith("0 runs ")
    assert call("verify", "--namespace", "other", "--namespace", "tests", code=1).stdout.startswith("7 runs ")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--rate", "0"], "--rate 0 is not a share"),
        (["--rate", "1.5"], "--rate 1.5 is not a share"),
        (["--since", "soon"], "--since 'soon' is not a time span"),
        (["--until", "soon"], "--until 'soon' is not a time span"),
        (["--since", "1h", "--until", "2h"], "--since is not before --until"),
        (["--step", "0"], "step"),
    ],
)
def test_options_that_make_no_sense_exit_2(options, told):
    assert told in call("verify", *options, code=2).stderr


def test_a_database_that_does_not_answer_exits_3(monkeypatch):
    monkeypatch.setenv("NOONMARK_DATABASE_URL", "postgresql://x@127.0.0.1:1/none")

    assert "cannot connect to the database" in call("verify", code=3).stderr


def test_the_metrics_are_written_to_a_file_with_every_rule(ledger, tmp_path):
    ledger.world.db.execute("delete from dead_letters")
    file = tmp_path / "noonmark.prom"

    call("verify", "--metrics-file", str(file), code=1)

    lines = file.read_text().splitlines()
    assert 'noonmark_verify_findings{rule="S11"} 1.0' in lines
    assert 'noonmark_verify_findings{rule="S3"} 0.0' in lines
    assert "noonmark_verify_runs 7.0" in lines
    assert {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")} == {
        "noonmark_verify_findings",
        "noonmark_verify_runs",
        "noonmark_verify_completed_timestamp_seconds",
    }
    assert list(tmp_path.iterdir()) == [file]


def test_a_metrics_file_that_cannot_be_written_is_named(ledger, tmp_path):
    called = call("verify", "--metrics-file", str(tmp_path / "none" / "x.prom"), code=1)

    assert "none/x.prom: No such file or directory" in called.stderr


@pytest.fixture
def reader(world) -> Iterator[str]:
    """A role that may select from every table, as a user for reports has it."""
    role = f"reader_{uuid4().hex[:8]}"
    world.db.execute(f"create role {role}; grant select on all tables in schema public to {role}")
    yield role
    world.db.execute(f"drop owned by {role}; drop role {role}")


def test_a_user_who_cannot_see_all_rows_gets_an_error_and_no_clean_report(
    ledger, reader, emptied_database, monkeypatch
):
    mark = "&" if "?" in emptied_database else "?"
    monkeypatch.setenv("NOONMARK_DATABASE_URL", f"{emptied_database}{mark}options=-c%20role%3D{reader}")

    assert "the database user cannot read all rows" in call("verify", code=2).stderr

    ledger.world.db.execute(f"alter role {reader} bypassrls")
    assert call("verify").stdout.startswith("7 runs")
