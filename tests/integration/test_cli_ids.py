"""Commands take the first characters of an id, and names where they are clear."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from tests.integration.test_cli_reads import NOW, add_job, add_runs
from tests.support.cli import call

from noonmark.cli.connections.ids import run_id
from noonmark.core.ids import uuid7

pytestmark = pytest.mark.postgres


@pytest.fixture
def database(command_line, emptied_database):
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


def rename(database, run, new):
    database.execute("update runs set id = %s where id = %s", [new, run])
    return new


def add_backfill(database, job, new):
    database.execute(
        """insert into backfills (id, job_id, namespace, pool, shard, job_version, schedule, mode, from_at, until_at,
                                  next_at, ended_to, state, total, instants, queued, created_at, updated_at)
           select %s, id, namespace, pool, shard, version, schedule, 'missing', now() - interval '2 days', now(),
                  now() - interval '2 days', '-infinity', 'running', 2, 0, 0, now(), now()
           from jobs where id = %s""",
        [new, job],
    )
    return new


def add_alert(database, job, new, *, resolved=False):
    """Add an alert about a job; None: about the installation, in no namespace."""
    database.execute(
        """insert into alerts (id, fingerprint, kind, severity, namespace, job_id, summary, details,
                               raised_at, seen_at, resolved_at)
           values (%(id)s::text::uuid, %(id)s::text, 'late', 'warning',
                   (select namespace from jobs where id = %(job)s), %(job)s, 'late', '{}',
                   now(), now(), case when %(resolved)s then now() end)""",
        {"id": new, "job": job, "resolved": resolved},
    )
    return new


def test_a_run_is_found_by_the_beginning_of_its_id(database):
    (run,) = add_runs(database, add_job(database), state="retrying")
    run = rename(database, run, "01a227be-5de9-7001-9066-803d29ef2a93")

    for given in ("01a227be", "01a227be-", "01A227BE-5de9-70", run):
        assert call("run", "show", given, "--json").stdout == call("run", "show", run, "--json").stdout
    assert run in call("why", "01a227be").stdout
    assert call("run", "cancel", "01a227be", "--json", code=0).stdout


def test_a_backfill_and_an_alert_are_found_by_the_beginning_of_their_ids(database):
    job = add_job(database, name="nightly", schedule={"cron": "0 9 * * *"})
    backfill = add_backfill(database, job, "01a227be-5de9-7001-9066-803d29ef2a93")
    alert = add_alert(database, job, "01a227be-6de9-7001-9066-803d29ef2a93")

    for given in ("01a227be", "01A227BE-", alert[:20]):
        assert call("alert", "show", given, "--json").stdout == call("alert", "show", alert, "--json").stdout
    whole = call("backfill", "show", backfill, "--json").stdout
    for given in ("01a227be", "01A227BE-", backfill[:20]):
        assert call("backfill", "show", given, "--json").stdout == whole
    assert f"backfill {backfill} is cancelled" in call("backfill", "cancel", "01a227be").stdout


@pytest.mark.parametrize("command", [("alert", "show"), ("backfill", "show"), ("backfill", "cancel")])
def test_what_is_no_id_of_a_backfill_or_alert_is_told_with_what_to_do(database, command):
    kind = command[0]
    told = call(*command, "ffffffff", code=1).stderr
    assert f"no {kind} has an id that begins with ffffffff; run `noonmark {kind} list`" in told
    for given in ("nightly", "01a227b", "01a227be5de9"):
        told = call(*command, given, code=2).stderr
        assert f"{kind} {given!r} is not an id, nor the first 8 or more characters of one" in told
        assert f"`noonmark {kind} list` shows the ids" in told


def test_several_alerts_with_one_beginning_are_named_with_their_states(database):
    job = add_job(database, name="nightly")
    add_alert(database, job, "01a227be-5de9-7001-9066-803d29ef2a93")
    add_alert(database, None, "01a227be-6de9-7001-9066-803d29ef2a93", resolved=True)

    told = call("alert", "show", "01a227be", code=1).stderr

    assert told.startswith("several alert ids begin with 01a227be; give more characters:\n")
    assert "01a227be-5de9-7001-9066-803d29ef2a93  nightly (open)" in told
    assert "01a227be-6de9-7001-9066-803d29ef2a93  - (resolved)" in told


def test_several_ids_with_one_beginning_are_named(database):
    job = add_job(database)
    first, second = add_runs(database, job, 2)
    rename(database, first, "01a227be-5de9-7001-9066-803d29ef2a93")
    rename(database, second, "01a227be-6de9-7001-9066-803d29ef2a93")

    told = call("run", "show", "01a227be", code=1).stderr

    assert told.startswith("several run ids begin with 01a227be; give more characters:\n")
    assert told.count("01a227be-") == 2


def test_several_jobs_with_one_beginning_are_named_with_the_state_that_listings_show(database):
    recurring = add_job(database, name="nightly", schedule={"cron": "0 9 * * *"})
    # A one-time job without a timer has run; its row still says active.
    ran = add_job(database, name="once")
    for job, digit in ((recurring, 5), (ran, 6)):
        new = f"01a22ddc-{digit}de9-7001-9066-803d29ef2a93"
        database.execute("update jobs set id = %s where id = %s", [new, job])

    told = call("job", "show", "01a22ddc", code=1).stderr

    assert "nightly (active)" in told
    assert "once (completed)" in told
    listed = {job["name"]: job["state"] for job in json.loads(call("job", "list", "--json").stdout)["items"]}
    assert listed == {"nightly": "active", "once": "completed"}


def test_the_beginning_of_the_id_of_a_dead_letter_names_the_dead_run(database):
    job = add_job(database)
    done, dead = add_runs(database, job, 2)
    database.execute("update runs set state = 'dead' where id = %s", [dead])
    rename(database, done, "01a227be-5de9-7001-9066-803d29ef2a93")
    dead = rename(database, dead, "01a227be-6de9-7001-9066-803d29ef2a93")

    assert run_id("01a227be", state="dead") == UUID(dead)
    assert "several run ids" in call("run", "show", "01a227be", code=1).stderr
    assert run_id("01a227be-5", state="dead") == UUID("01a227be-5de9-7001-9066-803d29ef2a93")
    told = call("dead", "show", "01a227be", code=1).stderr
    assert "several" not in told
    assert dead in told


def test_what_is_no_beginning_of_an_id_is_told_with_what_to_do(database):
    assert "no run has an id that begins with ffffffff" in call("run", "show", "ffffffff", code=1).stderr
    told = call("run", "show", "nightly", code=2).stderr
    assert "run 'nightly' is not an id, nor the first 8 or more characters of one" in told
    assert "`noonmark run list --job nightly` lists the runs of a job" in told
    call("run", "show", "01a227b", code=2)
    call("run", "show", "01a227be5de9", code=2)
    told = call("job", "show", "01a227b", code=1).stderr
    assert "(to give a job by its id, write at least its first 8 characters)" in told


def test_a_job_is_found_by_the_beginning_of_its_id_and_by_a_name_that_looks_like_one(database):
    job = str(add_job(database, name="nightly"))

    assert call("job", "show", job[:18], "--json").stdout == call("job", "show", job, "--json").stdout
    named = add_job(database, name=job[:8])
    assert str(named) in call("job", "show", job[:8], "--json").stdout


def test_logs_of_a_job_are_those_of_its_latest_run(database):
    job = add_job(database, name="nightly")
    assert "job 'nightly' has no run yet" in call("run", "logs", "nightly", code=1).stderr
    (older,) = add_runs(database, job)
    latest = uuid7()
    columns = "queued_at, started_at, finished_at, job_id, job_version, fence, attempt, lane, state, origin"
    database.execute(
        f"insert into runs (id, scheduled_for, namespace, pool, shard, {columns})"
        f" select %s, %s, namespace, pool, shard, {columns} from runs where id = %s",
        [latest, NOW + timedelta(minutes=1), older],
    )
    called = call("run", "logs", "nightly")
    assert called.stderr.startswith(f"run {latest}, the latest of job nightly, is ")
    assert "job 'nowhere' does not exist" in call("run", "logs", "nowhere", code=1).stderr
