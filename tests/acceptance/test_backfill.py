"""A backfill, ordered on the command line and worked off by real processes, one of which is killed at it."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.support.cli import Called
from tests.support.cluster import Cluster
from tests.support.publish import Load, soon

HOURS = 12


@pytest.mark.slow
def test_missed_instants_run_once_each_though_a_trigger_is_killed_between_two_steps(
    noonmark: Cluster, command: Callable[..., Called]
) -> None:
    def backfill(*arguments: str, code: int = 0) -> Any:
        called = command("backfill", *arguments, code=code)
        return json.loads(called.stdout) if "--json" in arguments else called.stderr

    begin = soon(-HOURS * 3600 - 1800)
    load = Load()
    (job,) = load.interval(1, begin, HOURS * 2, 3600)
    noonmark.start("intake")
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.rows("select from jobs"), "the job to be made")

    asked = [
        *(job.name, "--namespace", load.namespace),
        *("--from", begin.isoformat(), "--until", (begin + timedelta(hours=HOURS)).isoformat()),
    ]
    planned = backfill("plan", *asked, "--limit", "5", "--json")
    assert (planned["instants"], planned["to_run"], len(planned["items"])) == (HOURS, HOURS, 5)
    told = backfill("start", *asked, code=2)
    assert "start with --yes" in told
    started = backfill("start", *asked, "--yes", "--json")
    assert "is running in a part of this range" in backfill("start", *asked, "--yes", code=1)

    # Two runs a step: the first step commits, the second one dies with its trigger before it does.
    (doomed,) = noonmark.start("trigger", fault="trigger.before_commit=2", backfill_runs_per_second="10")
    noonmark.wait(lambda: not doomed.alive, "the trigger to die of its fault")
    assert noonmark.value("select count(*) from runs") == 2
    assert noonmark.value("select queued from backfills") == 2

    noonmark.start("trigger", "dispatcher", "worker")
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": HOURS}, "every run to end")

    shown = backfill("show", started["id"], "--json")
    assert (shown["state"], shown["percent"], shown["queued"]) == ("done", 100.0, HOURS)
    assert shown["runs"] == {"succeeded": HOURS}
    calls = noonmark.calls(load.namespace)
    assert sorted(call["scheduled_for"] for call in calls) == [
        (begin + timedelta(hours=n)).isoformat() for n in range(HOURS)
    ]
    assert len({call["key"] for call in calls}) == HOURS
    assert set(noonmark.rows("select lane, origin, request_id from runs")) == {
        (2, "backfill", started["id"].replace("-", ""))
    }
    listed = backfill("list", "--namespace", load.namespace, "--json")
    assert [one["id"] for one in listed["items"]] == [started["id"]]
