"""`noonmark namespace …` as operators run it, and what `noonmark job show` says of a pause."""

import json
import os
import subprocess
import sys

import psycopg
import pytest
from tests.integration.intake.world import LATER, create, nightly, open_world


@pytest.fixture
def noonmark(database_url, tmp_path):
    """Runs the command in an empty folder against this test's database."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("NOONMARK_")}

    def run(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "noonmark.cli.main", *arguments],
            cwd=tmp_path,
            env={**env, "NOONMARK_DATABASE_URL": database_url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr

    return run


@pytest.fixture
def jobs(database_url):
    """A namespace with two recurring jobs and a one-time one."""
    with open_world(database_url) as world:
        world.take(
            nightly("a", namespace="shop", schedule={"every": 60}),
            nightly("b", namespace="shop"),
            create(namespace="shop", run_at=LATER),
        )
        yield world


def test_a_namespace_is_set_listed_paused_shown_and_resumed(noonmark, jobs):
    assert noonmark("namespace", "set", "shop", "--timezone", "Europe/Berlin") == (
        "namespace shop has the zone Europe/Berlin\n"
    )
    assert "had the zone Europe/Berlin already" in noonmark(
        "namespace", "set", "shop", "--timezone", "Europe/Berlin"
    )
    assert noonmark("namespace", "pause", "shop", "--reason", "moving") == (
        "namespace shop is paused: 3 jobs held, 0 runs wait\n"
    )
    assert "was paused before: 0 jobs held" in noonmark("namespace", "pause", "shop")
    (listed,) = json.loads(noonmark("namespace", "list", "--json"))["items"]
    assert (listed["name"], listed["timezone"], listed["pause_reason"]) == ("shop", "Europe/Berlin", "moving")
    assert "paused" in noonmark("namespace", "list")
    shown = json.loads(noonmark("namespace", "show", "shop", "--json"))
    assert shown["recurring_jobs"] == {"paused_by_namespace": 2}
    assert shown["paused_at"] is not None

    done = json.loads(noonmark("namespace", "resume", "shop", "--missed", "latest", "--json"))
    assert done == {"name": "shop", "state": "active", "changed": True, "jobs": 3, "runs": 0}
    assert (
        noonmark("namespace", "resume", "shop")
        == "namespace shop was not paused: 0 jobs go on, 0 runs queued\n"
    )
    assert {row["resume_choice"] for row in jobs.rows("select resume_choice from jobs")} == {"latest"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set", "shop", "--timezone", "Europe/Berln"), "did you mean 'Europe/Berlin'"),
        (("set", "Shop", "--timezone", "UTC"), "'Shop' is no name for a namespace: use 1 to 63 of"),
        (("pause", "a.b"), "'a.b' is no name for a namespace"),
        (("resume", "shop", "--missed", "some"), "some"),
        (("set", "shop"), "--timezone"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(noonmark, arguments, told):
    assert told in noonmark("namespace", *arguments, code=2)


def test_a_namespace_that_nobody_knows_is_not_shown(noonmark):
    told = noonmark("namespace", "show", "nowhere", code=1)
    assert told == "there is no namespace 'nowhere': `noonmark namespace list` shows those there are\n"


def test_a_paused_job_is_shown_with_who_paused_it_and_how_much_is_held(noonmark, jobs, database_url):
    noonmark("namespace", "pause", "shop")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("update timers set scheduled_for = scheduled_for - interval '600 s'")
        connection.execute(
            "update jobs set schedule = jsonb_set(schedule, '{anchor}', '\"2026-01-01T00:00:00Z\"') where name = 'a'"
        )
    shown = json.loads(noonmark("job", "show", "a", "--json"))
    assert (shown["state"], shown["paused_by"], shown["next_due_at"]) == ("paused", "namespace", None)
    assert shown["paused_at"] is not None
    assert shown["held_instants"] in (9, 10)
    noonmark("namespace", "resume", "shop")
    shown = json.loads(noonmark("job", "show", "a", "--json"))
    assert (shown["state"], shown["paused_by"], shown["paused_at"]) == ("active", None, None)
    assert "held_instants" not in shown
