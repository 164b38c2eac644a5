"""A backfill, ordered on the command line and worked off by real processes, one of which is killed at it."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from typing import Any

from tests.support.cluster import Cluster
from tests.support.publish import Load, soon

HOURS = 12


def command(noonmark: Cluster, *arguments: str, code: int = 0) -> Any:
    """Run `noonmark backfill … --json` as a user would; return what it printed."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("NOONMARK_")}
    env |= {
        "NOONMARK_DATABASE_URL": noonmark.dsn,
        "NOONMARK_KAFKA_BOOTSTRAP": noonmark.bootstrap,
        "NOONMARK_TOPIC_PREFIX": noonmark.prefix,
    }
    done = subprocess.run(
        [sys.executable, "-m", "noonmark.cli.main", "backfill", *arguments],
        cwd=noonmark.folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout) if "--json" in arguments and code == 0 else done.stderr


def test_missed_instants_run_once_each_though_a_trigger_is_killed_between_two_steps(
    noonmark: Cluster,
) -> None:
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
    planned = command(noonmark, "plan", *asked, "--limit", "5", "--json")
    assert (planned["instants"], planned["to_run"], len(planned["items"])) == (HOURS, HOURS, 5)
    told = command(noonmark, "start", *asked, code=2)
    assert "start with --yes" in told
    started = command(noonmark, "start", *asked, "--yes", "--json")
    assert "is under way" in command(noonmark, "start", *asked, "--yes", code=1)

    # Two runs a step: the first step commits, the second one dies with its trigger before it does.
    (doomed,) = noonmark.start("trigger", fault="trigger.before_commit=2", backfill_runs_per_second="10")
    noonmark.wait(lambda: not doomed.alive, "the trigger to die of its fault")
    assert noonmark.value("select count(*) from runs") == 2
    assert noonmark.value("select queued from backfills") == 2

    noonmark.start("trigger", "dispatcher", "worker")
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": HOURS}, "every run to end")

    shown = command(noonmark, "show", started["id"], "--json")
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
    listed = command(noonmark, "list", "--namespace", load.namespace, "--json")
    assert [one["id"] for one in listed["items"]] == [started["id"]]
