"""What `noonmark run show` and `run logs` say about the attempts of a run."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from tests.integration.test_cli_reads import NOW, add_job, add_runs
from tests.support.cli import call

DUE = NOW - timedelta(seconds=1)
"""When the one run of `add_runs` is due; what is kept of its attempts has it too."""


@pytest.fixture
def database(command_line, emptied_database):
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def run(database):
    """A run that failed once and then succeeded."""
    (run,) = add_runs(database, add_job(database))
    database.execute(
        "update runs set fence = 2, attempt = 2, owner = 7, result = '{\"rows\": 3}' where id = %s", [run]
    )
    database.execute(
        "insert into attempts (run_id, scheduled_for, fence, attempt, worker, outcome, error, started_at, finished_at)"
        " values (%s, %s, 1, 1, 6, 'failed', 'ValueError: no', %s, %s)",
        [run, DUE, NOW, NOW],
    )
    return run


def add_log(database, run, fence, *, stdout="", stderr="", log="", dropped=0):
    database.execute(
        "insert into attempt_logs values (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        [run, DUE, fence, fence, stdout, stderr, log, dropped, NOW],
    )


def test_every_attempt_is_shown_the_successful_one_too(database, run):
    add_log(database, run, 2, stdout="é" * 700, log="x" * 100)

    shown = json.loads(call("run", "show", str(run), "--json").stdout)
    text = call("run", "show", str(run)).stdout

    told = [(a["attempt"], a["fence"], a["outcome"], a["worker"], a["log_bytes"]) for a in shown["attempts"]]
    assert told == [
        (1, 1, "failed", 6, None),
        (2, 2, "succeeded", 7, {"stdout": 1400, "stderr": 0, "log": 100}),
    ]
    assert shown["result"] == {"rows": 3}
    lines = [line.split() for line in text.splitlines()]
    assert any(line[:2] == ["2", "succeeded"] and "1.5" in line for line in lines)
    assert text.endswith(f"output: noonmark run logs {run}\n")


def test_without_output_no_column_speaks_of_it(database, run):
    assert "OUTPUT" not in call("run", "show", str(run)).stdout


def test_a_running_attempt_is_shown_without_an_outcome(database):
    (run,) = add_runs(database, add_job(database))
    database.execute(
        "update runs set state = 'running', finished_at = null, owner = 3, epoch = 1 where id = %s", [run]
    )
    (attempt,) = json.loads(call("run", "show", str(run), "--json").stdout)["attempts"]
    assert (attempt["outcome"], attempt["worker"]) == (None, 3)
    assert "the run is running; follow it" in call("run", "logs", str(run)).stdout


def test_progress_and_checkpoint_are_shown(database, run):
    database.execute(
        "insert into run_notes values (%s, %s, 2, 0.4, 'page 40 of 100', '{\"page\": 40}', '2026-06-01T09:00:00Z')",
        [run, DUE],
    )
    text = call("run", "show", str(run)).stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "progress 40% page 40 of 100 (reported at 2026-06-01T09:00:00.000Z)" in lines
    shown = json.loads(call("run", "show", str(run), "--json").stdout)
    assert (shown["progress"]["share"], shown["progress"]["message"]) == (0.4, "page 40 of 100")
    assert shown["checkpoint"] == {"page": 40}


def test_logs_are_shown_by_attempt_and_stream(database, run):
    add_log(database, run, 1, stderr="Traceback\n", dropped=12)
    add_log(database, run, 2, stdout="a\tb\n\x1b[31mred\n", log="half way n=5\n")
    assert call("run", "logs", str(run)).stdout == (
        "== attempt 1, fence 1: stderr\nTraceback\n== 12 earlier bytes were dropped\n"
        "== attempt 2, fence 2: log\nhalf way n=5\n== attempt 2, fence 2: stdout\na\tb\n [31mred\n"
    )
    assert call("run", "logs", str(run), "--stream", "log").stdout == "half way n=5\n"
    assert call("run", "logs", str(run), "--attempt", "1", "--stream", "stderr").stdout == "Traceback\n"
    shown = json.loads(call("run", "logs", str(run), "--attempt", "2", "--json").stdout)
    assert [(a["attempt"], a["stdout"]) for a in shown["attempts"]] == [(2, "a\tb\n\x1b[31mred\n")]


def test_no_logs_and_no_run_are_told_apart(database, run):
    assert call("run", "logs", str(run)).stdout == "its attempts stored no output\n"
    assert call("run", "logs", str(run), "--attempt", "2").stdout == "attempt 2 stored no output\n"
    assert call("run", "logs", str(run), "-f").stdout == "== run is succeeded; no output was stored\n"
    nobody = uuid4()
    told = call("run", "logs", str(nobody), code=1).stderr
    assert told == f"run {nobody} does not exist; run `noonmark run list`\n"


@pytest.fixture
def meanwhile():
    """Play what happens while a command runs, on a thread of its own."""
    with ThreadPoolExecutor(1) as other:
        played = []
        yield lambda *words: played.append(other.submit(call, *words)) or played[-1]


def test_logs_are_followed_while_attempts_write_until_the_run_has_ended(database, run, meanwhile):
    database.execute("update runs set state = 'running', finished_at = null where id = %s", [run])
    add_log(database, run, 1, stderr="first\n", log="kept")
    following = meanwhile("run", "logs", str(run), "--follow")
    add_log(database, run, 2, stdout="second\nwith")
    with pytest.raises(TimeoutError):
        following.result(1.5)
    database.execute("update attempt_logs set stdout = 'second\nwithout end' where fence = 2")
    database.execute("update runs set state = 'succeeded', finished_at = now() where id = %s", [run])
    assert following.result(20).stdout == (
        "== attempt 1, fence 1: log\nkept\n== attempt 1, fence 1: stderr\nfirst\n"
        "== attempt 2, fence 2: stdout\nsecond\nwithout end\n== run is succeeded\n"
    )
    lines = call("run", "logs", str(run), "-f", "--json").stdout.splitlines()
    assert [(line["event"], line.get("attempt"), line.get("text")) for line in map(json.loads, lines)] == [
        ("output", 1, "kept"),
        ("output", 1, "first\n"),
        ("output", 2, "second\nwithout end"),
        ("end", None, None),
    ]
    assert json.loads(lines[-1]) == {
        "run_id": str(run),
        "event": "end",
        "reason": "finished",
        "state": "succeeded",
    }
    assert call("run", "logs", str(run), "-f", "--stream", "stdout").stdout == "second\nwithout end\n"
    assert call("run", "logs", str(run), "-f", "--attempt", "1", "--stream", "log").stdout == "kept\n"
    assert "does not exist" in call("run", "logs", str(uuid4()), "-f", code=1).stderr


def test_dropped_output_is_shown_where_it_is_missing(database, run):
    add_log(database, run, 1, stdout="end\r\n", dropped=100)
    database.execute("update attempt_logs set stdout_end = 105, stderr_end = 0, log_end = 0")
    shown = call("run", "logs", str(run), "-f").stdout
    assert shown == (
        "== 100 bytes of stdout were dropped\n== attempt 1, fence 1: stdout\nend\n== run is succeeded\n"
    )
    assert call("run", "logs", str(run), "-f", "--stream", "stdout").stdout == "end\n"
