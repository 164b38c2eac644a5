"""`noonmark submit --wait`: what intake made of each event, and not only that Kafka has it."""

from __future__ import annotations

import json

import pytest
from tests.support.cli import call

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

GOOD = {"name": "nightly", "type": "python", "handler": "tests.noop", "run_at": "2100-01-01T00:00:00Z"}
WRONG = {**GOOD, "name": "wrong", "schedul": "* * * * *", "type": "pyhton"}


@pytest.fixture
def submit(line, monkeypatch, tmp_path):
    """Submit documents to the line."""
    for name, value in line.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def run(*documents, code=0, options=()):
        (tmp_path / "jobs.json").write_text(json.dumps(list(documents)))
        return call("submit", "jobs.json", *options, code=code)

    return run


def test_it_waits_for_the_verdict_of_each_and_shows_the_problems_of_what_is_rejected(line, submit):
    with line.intake():
        found = json.loads(submit(GOOD, options=("--wait", "--timeout", "900", "--json")).stdout)
        assert [one["result"] for one in found["items"]] == ["accepted"]
        shown = submit(
            WRONG, {**GOOD, "name": "second"}, code=1, options=("--wait", "--timeout", "900")
        ).stdout.splitlines()
    assert shown[0].split() == ["EVENT", "REQUEST", "JOB", "RESULT"]
    assert [line.split()[-1] for line in shown[1:3]] == ["rejected", "accepted"]
    assert shown[3] == "document 1 (wrong)"
    assert {line.split(":")[0] for line in shown[4:6]} == {"  /data/schedul", "  /data/type"}
    assert shown[-1] == "1 accepted, 1 rejected"
    assert line.count("jobs") == 2


def test_without_an_intake_the_wait_ends_and_says_what_to_check(submit):
    done = submit(GOOD, code=1, options=("--wait", "--timeout", "1"))

    assert "intake has not judged 1 event after 1 s: check that it runs (`noonmark lag`)" in done.stderr
    assert done.stdout.splitlines()[1].split()[-1] == "pending"


def test_without_the_wait_it_says_that_nothing_is_accepted_yet(submit):
    told = submit(WRONG).stdout.splitlines()[-1]

    assert told.startswith(
        "1 published, but not accepted yet: intake checks each. `noonmark rejection list` shows"
    )


def test_a_dry_run_has_nothing_to_wait_for(submit):
    assert "--dry-run publishes nothing" in submit(GOOD, code=2, options=("--wait", "--dry-run")).stderr
