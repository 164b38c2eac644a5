"""Workers of two releases of handlers in one pool, during a rollout: runs wait for one that has their handler."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.support.cluster import ROOT, Cluster

pytestmark = pytest.mark.slow

JOBS = 40
ONCE = {"type": "python", "handler": "shop.new", "delivery": "at_most_once"}
HANDLERS = "from noonmark.handlers import handler\n\n@handler('shop.{name}')\ndef {name}(ctx):\n    return ctx.attempt\n"


def test_no_run_that_may_begin_only_once_ends_because_a_worker_does_not_have_its_handler(
    noonmark: Cluster, command, tmp_path: Path
) -> None:
    for name in ("old", "new"):
        (tmp_path / f"release_{name}.py").write_text(HANDLERS.format(name=name), encoding="utf-8")
    path = {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    noonmark.start("intake", "trigger", "dispatcher")
    old, new = (
        noonmark.launch("worker", environment=path, handlers=f"release_{name}") for name in ("old", "new")
    )
    noonmark.await_ready(old)
    noonmark.await_ready(new)
    jobs = tmp_path / "jobs.json"
    jobs.write_text(json.dumps([{"name": f"j{n}", **ONCE} for n in range(JOBS)]), encoding="utf-8")

    command("submit", str(jobs))
    unsettled = "select count(*) from runs where state in ('queued', 'running')"
    noonmark.wait(lambda: noonmark.value("select count(*) from runs") == JOBS, "the runs to be made")
    noonmark.wait(lambda: noonmark.value(unsettled) == 0, "all runs to be offered to a worker")
    rejected = noonmark.value("select count(distinct run_id) from attempts where outcome = 'rejected'")
    assert rejected, "the worker without the handler got no run"
    old.expected_alive = False
    old.process.send_signal(signal.SIGTERM)

    noonmark.wait(
        lambda: noonmark.value("select count(*) from runs where state = 'succeeded'") == JOBS, "all"
    )

    assert set(noonmark.rows("select attempt, result::text from runs")) == {(1, "1")}
    assert noonmark.rows("select distinct outcome, attempt from attempts") == [("rejected", 1)]
