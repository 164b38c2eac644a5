"""Runs of every kind are cancelled while they run, and nothing of them runs once that is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cli import Called
from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load


def running(noonmark: Cluster, load: Load, count: int) -> list[str]:
    """Ids of the runs of a load, when all of them have begun."""
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"running": count}, "all to run")
    query = "select id::text from runs where namespace = %s order by 1"
    return [row[0] for row in noonmark.rows(query, load.namespace)]


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def test_runs_of_every_kind_stop_when_they_are_cancelled(
    noonmark: Cluster, command: Callable[..., Called], tmp_path: Path
) -> None:
    noonmark.settings["NOONMARK_SCRIPTS"] = "/bin/sh"
    # On a loaded machine the worker may miss the short lease of the other tests, and its runs would wait for a retry.
    noonmark.settings["NOONMARK_LEASE_SECONDS"] = "30"
    noonmark.start(*SERVICES)
    pid_file = tmp_path / "pids"
    load = Load()
    load.now(1, "chaos.slow", payload={"seconds": 600})
    load.now(1, "chaos.patient", payload={"seconds": 0.2})
    load._job(
        {
            "type": "script",
            "payload": {"argv": ["/bin/sh", "-c", f"sleep 600 & echo $$ $! > {pid_file}; wait"]},
        },
        0,
    )
    noonmark.publish(load)
    runs = running(noonmark, load, 3)
    noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == 2, "the handlers to begin")
    noonmark.wait(lambda: pid_file.exists() and len(pid_file.read_text().split()) == 2, "the script to begin")
    pids = [int(word) for word in pid_file.read_text().split()]
    assert all(lives(pid) for pid in pids)

    shown = json.loads(command("run", "cancel", *runs, "--wait", "--timeout", "20", "--json").stdout)

    assert (shown["ended"], shown["stopping"], shown["not_confirmed"]) == (0, 3, [])
    assert noonmark.states(load.namespace) == {"cancelled": 3}
    # The thread was told and has returned; the coroutine was stopped, and so were the script and its child.
    assert len(noonmark.calls(load.namespace, "end")) == 1
    assert not any(lives(pid) for pid in pids)


@pytest.mark.slow
def test_a_worker_that_dies_while_it_is_to_stop_ends_the_run_with_its_lease(
    noonmark: Cluster, command: Callable[..., Called]
) -> None:
    noonmark.start(*SERVICES)
    load = Load()
    load.now(1, "chaos.blocking_gate", payload={"gate": str(noonmark.folder / "never")})
    noonmark.publish(load)
    (run,) = running(noonmark, load, 1)

    stopping = json.loads(command("run", "cancel", run, "--json").stdout)
    assert stopping["stopping"] == 1
    assert noonmark.states(load.namespace) == {"cancelling": 1}
    noonmark.node("worker").kill()

    noonmark.wait(lambda: noonmark.states(load.namespace) == {"cancelled": 1}, "the lease to end")


def test_runs_are_cancelled_by_their_job_and_a_dry_run_changes_nothing(
    noonmark: Cluster, command: Callable[..., Called]
) -> None:
    noonmark.start("intake", "trigger")
    load = Load()
    load.now(5)
    noonmark.take_in(load)

    words = ("run", "cancel", "--namespace", load.namespace, "--state", "queued", "--json")
    planned = json.loads(command(*words, "--dry-run").stdout)
    assert (planned["matched"], planned["ended"]) == (5, 0)
    assert noonmark.states(load.namespace) == {"queued": 5}
    done = json.loads(command(*words, "--yes").stdout)

    assert (done["matched"], done["ended"], done["stopping"]) == (5, 5, 0)
    assert noonmark.states(load.namespace) == {"cancelled": 5}
