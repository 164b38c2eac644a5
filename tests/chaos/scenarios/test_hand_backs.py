"""Runs that no process of a worker is free for are handed back, even if Postgres refuses that at first."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cluster import Cluster
from tests.support.publish import Load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

REFUSE = """
create function refuse_hand_backs() returns trigger language plpgsql as $$
begin raise exception 'refused by a test' using errcode = '40001'; end $$;
create trigger refuse_hand_backs before insert on attempts for each row
when (new.outcome = 'handed_back') execute function refuse_hand_backs()
"""


def test_runs_that_wait_for_a_process_are_handed_back_and_leave_no_start_batch(
    noonmark: Cluster, tmp_path: Path
) -> None:
    noonmark.start("intake", "trigger", "dispatcher")
    handlers = "tests.support.child_handlers"
    # A long grace of processes is a short wait for one.
    (worker,) = noonmark.start("worker", handlers=handlers, worker_processes="1", kill_grace_seconds="30")
    noonmark.database.execute(REFUSE)
    load = Load()
    load.now(3, "child.waits", payload={"folder": str(tmp_path)})
    noonmark.publish(load)
    noonmark.wait(lambda: list(tmp_path.glob("began-*")), "a run to get the process")

    noonmark.wait(lambda: worker.logged("database_unavailable"), "a hand-back to be refused", 90)
    noonmark.database.execute("drop trigger refuse_hand_backs on attempts")
    handed_back = "select count(*) from attempts where outcome = 'handed_back'"
    noonmark.wait(lambda: noonmark.value(handed_back) >= 2, "the hand-back to be tried again", 60)
    (tmp_path / "go").touch()

    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": 3}, "every run to succeed", 60)
    noonmark.wait(lambda: not noonmark.value("select count(*) from start_batches"), "no batch to be left", 30)
    assert worker.alive
    assert noonmark.value("select sum(losses) from runs") == 0
