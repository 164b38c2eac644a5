"""Each change by the command line is in the audit log, once, with the user who made it."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.store.world import TOPICS, World, open_world, outcome

from noonmark.cli.terminal.problems import CliError
from noonmark.core.states import RunState
from noonmark.core.zones.zones import zone_data_version
from noonmark.store.access import audit
from noonmark.store.runs import finish

Noonmark = Callable[..., str]
Did = Callable[..., tuple[str, str, str]]

NAMESPACE = "tests"


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    with open_world(emptied_database) as made:
        yield made


@pytest.fixture
def did(world: World, noonmark: Noonmark) -> Did:
    """Runs a command in the namespace; returns action, object and outcome of the only entry that it leaves."""

    def run(*words: str) -> tuple[str, str, str]:
        before = world.count("audit_log")
        noonmark(*words)
        rows = world.db.execute(
            "select action, object, outcome, actor, namespace from audit_log order by id desc"
        ).fetchall()
        assert len(rows) == before + 1
        assert rows[0][3:] == (f"local:{getpass.getuser()}", NAMESPACE)
        action, target, outcome_of_it = rows[0][:3]
        return action, target, outcome_of_it

    return run


def dead_runs(world: World, count: int) -> list[str]:
    job_id, worker = world.job(), world.worker()
    runs = []
    for number in range(count):
        run = world.put_run(job_id=job_id, request_id=str(number))
        (started,) = world.start(worker, [run])
        with world.db.transaction():
            done = outcome(started, RunState.DEAD, reason="retries_exhausted", error="boom")
            finish.record(world.db, worker, TOPICS, [done], [], shards=4)
        runs.append(str(run))
    return runs


def test_orders_about_dead_runs(world: World, did: Did) -> None:
    first, second, *_ = dead_runs(world, 3)
    redriven, discarded = ("dead_letter.redrive", "dead-letters", "done"), ("dead_letter.discard",)
    assert did("dead", "redrive", first, "--yes") == redriven
    assert did("dead", "discard", second, "--yes")[:1] == discarded
    assert did("dead", "redrive", "--namespace", NAMESPACE, "--yes") == redriven


def test_the_cancel_of_a_run(world: World, did: Did) -> None:
    run = world.put_run("queued")
    assert did("run", "cancel", str(run), "--reason", "enough") == ("run.cancel", f"run:{run}", "done")
    world.put_run("queued", request_id="2")
    assert did("run", "cancel", "--namespace", NAMESPACE, "--yes")[0] == "run.cancel"
    world.put_run("queued", request_id="3")
    assert did("run", "cancel", "--namespace", NAMESPACE, "--state", "queued", "--yes")[0] == "run.cancel"


def test_changes_of_limits_namespaces_and_calendars(did: Did) -> None:
    here = ("--namespace", NAMESPACE)
    limit, calendar = ("limit:mail", "done"), ("calendar:days", "done")
    assert did("limit", "set", "mail", *here, "--max-running", "1") == ("limit.put", *limit)
    assert did("limit", "delete", "mail", *here) == ("limit.delete", *limit)
    assert did("calendar", "set", "days", *here, "--date", "2026-12-25") == ("calendar.put", *calendar)
    assert did("calendar", "set", "days", *here, "--add", "SAT") == ("calendar.put", *calendar)
    assert did("calendar", "delete", "days", *here) == ("calendar.delete", *calendar)
    of_it = (f"namespace:{NAMESPACE}", "done")
    assert did("namespace", "set", NAMESPACE, "--zone", "UTC", "--max-jobs", "9") == ("namespace.put", *of_it)
    assert did("namespace", "pause", NAMESPACE) == ("namespace.pause", *of_it)
    assert did("namespace", "resume", NAMESPACE) == ("namespace.resume", *of_it)
    assert did("namespace", "delete", NAMESPACE) == ("namespace.delete", *of_it)


def test_the_start_and_the_cancel_of_a_backfill(world: World, did: Did, noonmark: Noonmark) -> None:
    job_id = world.job()
    world.db.execute(
        """update jobs set name = 'nightly', unique_name = true, schedule = '{"cron": "0 0 * * *", "timezone": "UTC"}'
           where id = %s""",
        [job_id],
    )
    here = ("--namespace", NAMESPACE)
    two_days_ago = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    started = did("backfill", "start", "nightly", *here, "--from", two_days_ago, "--yes")
    assert started == ("backfill.create", f"job:{job_id}", "done")
    (listed,) = json.loads(noonmark("backfill", "list", *here, "--json"))["items"]
    assert did("backfill", "cancel", listed["id"]) == ("backfill.cancel", f"backfill:{listed['id']}", "done")


def test_what_looks_after_the_installation_is_kept_with_its_user(world: World, noonmark: Noonmark) -> None:
    world.db.execute("update zone_data set version = '1999a'")
    noonmark("pool", "create", "reports", "--skip-topics")
    noonmark("pool", "create", "reports", "--skip-topics")
    key = world.value("select key_id from pool_keys where pool = 'reports'")
    noonmark("pool", "rotate-key", "reports")
    noonmark("pool", "retire-key", "reports", key)
    for verb in ("show", "show", "rotate", "retire"):
        noonmark("signing-key", verb, NAMESPACE)
    noonmark("zones", "activate", "--dry-run")
    noonmark("zones", "activate", "--yes")
    noonmark("zones", "activate", "--yes")

    rows = world.db.execute("select actor, action, object, namespace from audit_log order by id").fetchall()
    assert {row[0] for row in rows} == {f"local:{getpass.getuser()}"}
    pool, signing = ("pool:reports", None), (f"signing-keys:{NAMESPACE}", NAMESPACE)
    assert [row[1:] for row in rows] == [
        ("pool.create", *pool),
        ("pool.rotate_key", *pool),
        ("pool.retire_key", *pool),
        ("signing_key.create", *signing),
        ("signing_key.rotate", *signing),
        ("signing_key.retire", *signing),
        ("zones.activate", f"zones:{zone_data_version()}", None),
    ]
    kept = str(world.db.execute("select before, after from audit_log").fetchall())
    for (secret,) in world.db.execute("select secret from signing_keys").fetchall():
        assert secret not in kept


def test_a_change_that_cannot_be_kept_is_not_made(
    world: World, noonmark: Noonmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise CliError("the log is full")

    monkeypatch.setattr(audit, "write_entries", fail)
    noonmark("pool", "create", "reports", "--skip-topics", code=1)
    noonmark("signing-key", "rotate", NAMESPACE, code=1)
    assert world.count("pools", "name = 'reports'") == world.count("signing_keys") == 0


def test_a_dry_run_and_what_is_only_looked_at_leave_no_entry(world: World, noonmark: Noonmark) -> None:
    (run,) = dead_runs(world, 1)
    for words in (
        ("dead", "list"),
        ("dead", "groups"),
        ("dead", "show", run),
        ("dead", "redrive", run, "--dry-run"),
        ("run", "cancel", "--namespace", NAMESPACE, "--dry-run"),
        ("limit", "list"),
        ("namespace", "list"),
        ("calendar", "set", "days", "--date", "2026-12-25", "--dry-run"),
    ):
        noonmark(*words)
    assert world.count("audit_log") == 0
