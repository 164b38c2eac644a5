"""What `noonmark backfill` says, run as users run it."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb
from tests.support.cli import call

NOW = datetime.now(UTC).replace(microsecond=0)
TODAY = NOW.replace(hour=0, minute=0, second=0)
WEEK_AGO = TODAY - timedelta(days=7)


@pytest.fixture
def noonmark(command_line):
    """Runs `noonmark backfill` in an empty folder against an empty database."""

    def run(*arguments, code=0):
        return call("backfill", *arguments, code=code)

    return run


@pytest.fixture
def database(emptied_database):
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


def add_job(database, *, name="billing", schedule=None, namespace="default", unique=True, state="active"):
    job = uuid4()
    database.execute(
        """insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, schedule, work,
        unique_name, state,
                             version, created_at, updated_at)
           values (%s, %s, %s, 'python', 'bills.send', 1, 'default', 0, %s, '{}', %s, %s, 1, now(), now())""",
        [job, namespace, name, Jsonb(schedule or NIGHTLY), unique, state],
    )
    return job


NIGHTLY = {"cron": "30 2 * * *", "timezone": "Asia/Kolkata"}
DAYS = ("--from", f"{WEEK_AGO:%Y-%m-%d}", "--until", f"{TODAY:%Y-%m-%d}")


def test_a_plan_shows_each_instant_in_utc_and_on_the_wall_clock_and_writes_nothing(noonmark, database):
    add_job(database)

    head, first, *rest = noonmark("plan", "billing", *DAYS, "--limit", "3").stdout.splitlines()

    assert head.split() == ["UTC", "LOCAL", "NOTE"]
    at = WEEK_AGO + timedelta(hours=21)
    assert first.split() == [
        f"{at:%Y-%m-%dT%H:%M:%SZ}",
        *f"{at + timedelta(hours=5.5):%Y-%m-%d %H:%M:%S} +05:30".split(),
    ]
    assert rest[2].startswith("7 of the 7 instants from ")
    assert rest[2].endswith(" would run (missing)")
    assert rest[3] == f"more: --after {at + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}"
    assert database.execute("select count(*) from backfills").fetchone() == (0,)


def test_pages_of_a_plan_follow_each_other(noonmark, database):
    add_job(database)

    first = json.loads(noonmark("plan", "billing", *DAYS, "-n", "4", "--json").stdout)
    rest = json.loads(noonmark("plan", "billing", *DAYS, "--after", first["next"], "--json").stdout)

    found = [one["at"] for one in first["items"] + rest["items"]]
    assert found == [f"{WEEK_AGO + timedelta(days=n, hours=21):%Y-%m-%dT%H:%M:%SZ}" for n in range(7)]
    assert rest["next"] is None
    assert (first["to_run"], first["instants"]) == (7, 7)


def test_a_backfill_is_started_shown_listed_and_cancelled(noonmark, database):
    job = add_job(database)

    started = json.loads(noonmark("start", str(job), *DAYS, "--mode", "all", "--yes", "--json").stdout)
    told = noonmark("show", started["id"]).stdout
    _, line = noonmark("list", "--job", "billing").stdout.splitlines()
    ended = noonmark("cancel", started["id"], "--runs", "--reason", "not meant").stdout

    assert started["to_run"] == 7
    assert "0 of 7 instants (0 %)" in told
    assert line.split()[:3] == [started["id"], "billing", "all"]
    assert "is cancelled" in ended
    assert "0 runs cancelled" in ended
    shown = json.loads(noonmark("show", started["id"], "--json").stdout)
    assert (shown["state"], shown["state_reason"], shown["runs"]) == ("cancelled", "not meant", {})
    assert shown["requested_by"]
    assert "had already finished" in noonmark("cancel", started["id"]).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("plan", "billing", "--from", "2020-01-01"), "(the ledger's floor) are no longer stored"),
        (("plan", "billing", *DAYS[:2], "--until", "2999-01-01"), "in the future"),
        (("plan", "billing", "--from", DAYS[3], "--until", DAYS[1]), "the period is empty"),
        (("plan", "billing", "--from", "soon"), "--from 'soon' is not a time; write"),
        (("plan", "billing", "--from", "15"), "--from 15 has no unit"),
        (("plan", "once", *DAYS), "has one instant only"),
        (("start", "billing", *DAYS), "start with --yes"),
    ],
)
def test_what_is_refused_ends_in_one_sentence_and_exit_code_two(noonmark, database, arguments, told):
    add_job(database)
    add_job(database, name="once", schedule={"run_at": "2026-01-01T00:00:00Z"}, unique=False)

    done = noonmark(*arguments, code=2)

    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_not_there_is_said_with_where_to_look(noonmark, database):
    assert "job 'nothing' does not exist" in noonmark("plan", "nothing", *DAYS, code=1).stderr
    assert "noonmark job list" in noonmark("plan", str(uuid4()), *DAYS, code=1).stderr
    assert "noonmark backfill list" in noonmark("show", str(uuid4()), code=1).stderr
    assert "noonmark backfill list" in noonmark("cancel", str(uuid4()), code=1).stderr


def test_a_named_job_is_that_of_the_namespace(noonmark, database):
    here = add_job(database, name="twice")
    there = add_job(database, name="twice", namespace="other")

    for namespace, job in (((), here), (("--namespace", "other"), there)):
        planned = json.loads(noonmark("plan", "twice", *DAYS, *namespace, "--json").stdout)
        assert planned["job_id"] == str(job)
        noonmark("start", "twice", *DAYS, *namespace, "--yes")
        (listed,) = json.loads(noonmark("list", *namespace, "--json").stdout)["items"]
        assert listed["job_id"] == str(job)


def test_a_plan_longer_than_an_answer_of_the_api_is_listed_whole(noonmark, database):
    add_job(database, schedule={"cron": "0 * * * *"})

    whole = json.loads(noonmark("plan", "billing", *DAYS, "-n", "500", "--json").stdout)
    head = json.loads(noonmark("plan", "billing", *DAYS, "-n", "150", "--json").stdout)
    tail = json.loads(
        noonmark("plan", "billing", *DAYS, "--after", head["next"], "-n", "500", "--json").stdout
    )
    behind = json.loads(noonmark("plan", "billing", *DAYS, "--after", f"{TODAY:%Y-%m-%d}", "--json").stdout)

    assert len(whole["items"]) == 7 * 24
    assert (whole["next"], tail["next"], behind["next"]) == (None, None, None)
    assert len(head["items"]) == 150
    assert head["items"] + tail["items"] == whole["items"]
    assert behind["items"] == []
    assert tail["to_run"] == 7 * 24


def test_pages_of_the_list_follow_each_other(noonmark, database):
    for name in ("one", "two", "three"):
        add_job(database, name=name)
        noonmark("start", name, *DAYS, "--yes")

    first = json.loads(noonmark("list", "-n", "2", "--json").stdout)
    rest = json.loads(noonmark("list", "--after", first["next"], "--json").stdout)

    assert [one["job_name"] for one in first["items"] + rest["items"]] == ["three", "two", "one"]
    assert rest["next"] is None
    assert json.loads(noonmark("list", "--state", "cancelled", "--json").stdout)["items"] == []


def test_a_plan_of_a_job_that_its_max_runs_completed_says_what_counts_as_missing(noonmark, database):
    add_job(database, schedule={**NIGHTLY, "max_runs": 3}, state="completed")
    add_job(database, name="ended", schedule=NIGHTLY, state="completed")
    note = "the job is completed by its max_runs of 3: instants after its last run count as missing"
    lines = noonmark("plan", "billing", *DAYS).stdout.splitlines()
    assert lines[-1].startswith(f"note: {note}")
    assert json.loads(noonmark("plan", "billing", *DAYS, "--json").stdout)["note"].startswith(note)
    assert json.loads(noonmark("plan", "ended", *DAYS, "--json").stdout)["note"] is None
