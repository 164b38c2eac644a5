"""`noonmark dead` and `noonmark run cancel`, run as users run them against a database with dead and live runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from tests.integration.store.world import TOPICS, World, open_world, outcome
from tests.support.cli import Called, call

from noonmark.core.states import RunState
from noonmark.store.runs import finish

HERE = ("--namespace", "tests")
LIVE = ("waiting", "queued", "retrying")


@pytest.fixture
def world(emptied_database: str, command_line: None) -> Iterator[World]:
    """A database, and an environment in which the command finds it."""
    with open_world(emptied_database) as made:
        yield made


def died(world: World, *errors: str, name: str = "invoices"):
    """Runs of a job of this name, each dead of an error."""
    job_id = world.job()
    world.db.execute("update jobs set name = %s where id = %s", [name, job_id])
    worker = world.worker()
    runs = []
    for number, error in enumerate(errors):
        run = world.put_run(job_id=job_id, request_id=str(number))
        (started,) = world.start(worker, [run])
        done = outcome(started, RunState.DEAD, reason="retries_exhausted", error=error)
        with world.db.transaction():
            finish.record(world.db, worker, TOPICS, [done], [], shards=4)
        runs.append(run)
    return runs


def shown(*words: str, code: int = 0):
    return json.loads(call(*words, "--json", code=code).stdout)


def test_letters_are_listed_grouped_and_shown_with_their_history(world):
    runs = died(world, "order 1 has no lines", "order 2 has no lines", "KeyError: 'x'")

    groups = shown("dead", "groups", *HERE)["items"]
    assert [(group["runs"], group["type"]) for group in groups] == [(2, "python"), (1, "python")]
    assert groups[0]["error"] == "order 1 has no lines"
    listed = shown("dead", "list", *HERE, "--fingerprint", groups[0]["fingerprint"])["items"]
    assert {item["run_id"] for item in listed} == {str(run) for run in runs[:2]}
    assert shown("dead", "list", *HERE, "--job", "invoices", "--reason", "lost")["items"] == []
    one = shown("dead", "show", str(runs[2]))
    assert (one["job_name"], one["reason"], one["error"]) == (
        "invoices",
        "retries_exhausted",
        "KeyError: 'x'",
    )
    assert [(made["attempt"], made["outcome"]) for made in one["history"]] == [(1, "failed")]
    assert one["logs"] == []
    text = call("dead", "show", str(runs[2])).stdout
    assert "failed attempts" in text
    assert "KeyError" in text


def test_a_redrive_by_cause_asks_first_and_tells_what_it_did(world):
    runs = died(world, "order 1 has no lines", "order 2 has no lines", "KeyError: 'x'")
    cause = shown("dead", "groups", *HERE)["items"][0]["fingerprint"]

    planned = shown("dead", "redrive", *HERE, "--fingerprint", cause, "--dry-run")
    assert (planned["dry_run"], planned["matched"], planned["runs"]) == (True, 2, {})
    refused = call("dead", "redrive", *HERE, "--fingerprint", cause, code=2)
    assert "--dry-run" in refused.stderr
    done = shown("dead", "redrive", *HERE, "--fingerprint", cause, "--yes")

    assert (done["matched"], done["runs"], done["refused"]) == (2, {"queued": 2}, {})
    assert [world.run(run)["state"] for run in runs] == ["queued", "queued", "dead"]
    assert "redrive of 1 dead run: 1 queued" in call("dead", "redrive", *HERE, "--all", "--yes").stdout


def test_letters_are_chosen_by_the_period_of_their_death(world):
    runs = died(world, "boom", "boom", "boom")
    for run, at in zip(runs, ("09:00", "10:00", "11:00"), strict=True):
        world.db.execute(
            "update dead_letters set died_at = %s where run_id = %s", [f"2026-11-27T{at}:00Z", run]
        )
    period = ("--since", "2026-11-27T11:00", "--until", "2026-11-27T12:00", "--zone", "Europe/Berlin")

    assert [one["run_id"] for one in shown("dead", "list", *HERE, *period)["items"]] == [str(runs[1])]
    assert [one["runs"] for one in shown("dead", "groups", *HERE, *period)["items"]] == [1]
    # What the API asks for: dead at 10:00, not at 11:00.
    assert shown("dead", "discard", *HERE, *period, "--dry-run")["matched"] == 1
    assert shown("dead", "redrive", *HERE, *period, "--yes")["runs"] == {"queued": 1}
    assert [world.run(run)["state"] for run in runs] == ["dead", "queued", "dead"]
    first = call(
        "dead", "list", *HERE, "--since", "2026-11-27", "--until", "2026-11-28", "--limit", "1", "--json"
    )
    assert json.loads(first.stdout)["next"] is not None


def test_runs_are_cancelled_by_the_period_of_their_instants(world):
    job_id = world.job()
    runs = [world.put_run("queued", job_id=job_id, request_id=str(hour)) for hour in range(3)]
    due = [
        world.db.execute(
            "update runs set scheduled_for = scheduled_for + %s * interval '1 minute' where id = %s"
            " returning scheduled_for",
            [minutes, run],
        ).fetchone()[0]
        for minutes, run in enumerate(runs)
    ]
    since, until = due[1].isoformat(), due[2].isoformat()
    assert shown("run", "cancel", *HERE, "--since", since, "--until", until, "--dry-run")["matched"] == 1
    assert shown("run", "cancel", *HERE, "--after", since, "--before", until, "--dry-run")["matched"] == 1
    listed = shown("run", "list", *HERE, "--since", since, "--until", until)["items"]
    assert [one["id"] for one in listed] == [str(runs[1])]


def test_a_run_that_is_named_and_not_dead_is_a_problem(world):
    (run,) = died(world, "boom")
    call("dead", "redrive", str(run), "--yes")

    done = shown("dead", "redrive", str(run), "--yes", code=1)

    assert done["refused_runs"] == [{"run_id": str(run), "reason": "not_dead"}]
    assert "is not an id" in call("dead", "redrive", "x", "--yes", code=2).stderr


def test_at_most_so_many_and_so_many_a_second(world, monkeypatch):
    died(world, *["boom"] * 5)
    naps = []
    monkeypatch.setattr("noonmark.cli.runs.dead_letter_requests.time.sleep", naps.append)

    done = shown("dead", "redrive", *HERE, "--all", "--max", "3", "--rate", "1", "--yes")

    assert (done["matched"], done["runs"]) == (3, {"queued": 3})
    assert naps == [1, 1]
    assert world.count("dead_letters") == 2


def test_discarded_ones_say_why(world):
    runs = died(world, "boom", "boom")

    done = shown("dead", "discard", *HERE, "--job", "invoices", "--reason", "known outage", "--yes")

    assert done["runs"] == {"discarded": 2}
    assert {world.run(run)["reason"] for run in runs} == {"known outage"}
    assert "1 to 500" in call("dead", "discard", "--all", "--reason", "x" * 501, "--yes", code=2).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list", "--fingerprint", "xyz"), "is not a fingerprint"),
        (
            ("list", "--reason", "rejectd"),
            "'rejectd' is not a reason; use one of retries_exhausted",
        ),
        (("redrive", "--died-of", "lots", "--yes"), "'lots' is not a reason"),
        (("discard", "--job", "invoices", "--reason", "rejected", "--yes"), "use --died-of rejected"),
    ],
)
def test_a_filter_that_is_misspelt_is_told_and_changes_nothing(world, words, told):
    died(world, "boom")

    assert told in call("dead", *words, code=2).stderr
    assert world.count("dead_letters") == 1


@pytest.mark.parametrize(
    "words", [("dead", "redrive"), ("dead", "discard"), ("dead", "groups"), ("run", "cancel")]
)
def test_a_job_that_is_not_there_is_told(world, words):
    died(world, "boom")
    consent = () if words[-1] == "groups" else ("--yes",)

    assert "job 'invoice' does not exist" in call(*words, "--job", "invoice", *consent, code=1).stderr


def test_the_help_says_that_an_edit_of_the_job_does_not_reach_a_redriven_run():
    told = " ".join(call("dead", "redrive", "--help").stdout.split())
    assert "keeps the job version" in told
    assert "noonmark job trigger" in told


@pytest.mark.parametrize("verb", ["redrive", "discard"])
def test_nothing_is_meant_by_nothing(world, verb):
    died(world, "boom")

    assert "--all" in call("dead", verb, "--yes", code=2).stderr
    assert world.count("dead_letters") == 1


def test_live_runs_are_cancelled_by_filter_and_by_id(world):
    job_id = world.job()
    world.db.execute("""update jobs set name = 'x', labels = '{"team": "a"}' where id = %s""", [job_id])
    runs = [
        world.put_run(state, job_id=job_id, reason="paused" if state == "waiting" else None, request_id=state)
        for state in LIVE
    ]
    (running,) = world.started(world.worker(), job_id=job_id, request_id="r")

    planned = shown("run", "cancel", *HERE, "--label", "team=a", "--dry-run")
    assert planned["matched"] == 4
    assert "--dry-run" in call("run", "cancel", *HERE, "--job", "x", code=2).stderr
    done = shown("run", "cancel", *HERE, "--job", "x", "--state", "queued", "--state", "retrying", "--yes")
    assert (done["ended"], done["stopping"]) == (2, 0)
    done = shown("run", "cancel", str(runs[0]), str(running.id), "--reason", "enough")

    assert (done["matched"], done["ended"], done["not_confirmed"]) == (2, 1, [str(running.id)])
    for run in (runs[0], running.id):
        assert re.fullmatch(r"by local:\S+ \(\S+\): enough", world.run(run)["reason"])
    assert world.run(running.id)["state"] == "cancelling"
    assert "500 characters" in call("run", "cancel", str(running.id), "--reason", " ", code=2).stderr


def test_waiting_for_a_worker_that_does_not_confirm_ends_with_a_problem(world):
    (run,) = world.started(world.worker())

    done: Called = call("run", "cancel", str(run.id), "--wait", "--timeout", "0", code=1)

    assert "1 has not stopped yet" in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no runs selected"),
        (("--label", "team"), "KEY:VALUE"),
        (("0190b6a0-1c2d-7000-8000-000000000001", "--job", "x"), "not both"),
        (("--job", "x", "--before", "soon"), "--until 'soon' is not a time"),
    ],
)
def test_wrong_usage_of_cancel_is_told(world, words, told):
    assert told in call("run", "cancel", *words, "--yes", code=2).stderr


def test_a_run_that_has_ended_is_left_alone_and_told(world):
    (run,) = died(world, "boom")

    assert call("run", "cancel", str(run)).stdout == f"run {run} is dead: not changed\n"
    assert shown("run", "cancel", str(run))["left_alone"] == [{"run_id": str(run), "state": "dead"}]


def test_a_filter_that_means_nothing_is_told(world):
    died(world, "boom")

    done = call("run", "cancel", *HERE, "--job", "invoices", "--yes")
    assert done.stdout == "no matching run can be cancelled; nothing changed\n"


def test_who_waits_for_a_run_that_is_being_stopped_already_waits(world):
    (run,) = world.started(world.worker())
    call("run", "cancel", str(run.id))

    done = call("run", "cancel", str(run.id), "--wait", "--timeout", "0", code=1)

    assert done.stdout == f"run {run.id} is cancelling: not changed\n1 has not stopped yet\n"


def test_an_unknown_run_is_told(world):
    unknown = "0190b6a0-1c2d-7000-8000-000000000001"
    assert f"run {unknown} does not exist" in call("run", "cancel", unknown, code=1).stderr


def test_a_dead_run_is_retried_by_its_id_and_a_live_one_is_not(world):
    (run,) = died(world, "KeyError: 'x'")
    assert shown("run", "retry", str(run))["state"] == "queued"
    assert world.run(run)["state"] == "queued"
    assert "is queued, not dead" in call("run", "retry", str(run), code=1).stderr
    assert call("dlq", "list").stdout == call("dead", "list").stdout
