"""What a starved minute did to a cluster, read from the ledger, the handlers' notes and the logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.cluster import Cluster
from tests.support.publish import Load
from tests.support.starver import Starver


@dataclass(frozen=True, slots=True)
class Suffered:
    """What happened to the runs of a load and to the workers.

    Attributes:
        runs: number of runs.
        dead_of_loss: runs that ended because their worker was lost.
        lost: attempts that were lost with their worker.
        timed_out: attempts that timed out, each with its run, its job's timeout and the seconds between the
            first line of its handler and the verdict; None without a line.
        lapses: leases that lapsed.
        registrations: number of leases taken.
        killed: workers that their heartbeat process killed.
        late: largest and median seconds between an instant and its first start.
        latest: what the run with the largest executes.
        waited: hand-backs of runs for which no child process was free in time; each starts once more.
    """

    runs: int
    dead_of_loss: int
    lost: int
    timed_out: list[tuple[str, float, float | None]]
    lapses: int
    registrations: int
    killed: list[str]
    late: tuple[float, float]
    latest: str
    waited: int

    def lines(self, title: str, starver: Starver, workers: int) -> Iterator[str]:
        """The figures for people."""
        yield (
            f"{title}: {len(starver.rations)} processes at {starver.share:.1%} of the time each for"
            f" {starver.seconds:.0f} s"
        )
        yield (
            f"  {self.runs} runs, {self.lost} attempts lost, {self.dead_of_loss} dead of it,"
            f" {len(self.timed_out)} timed out"
        )
        yield (
            f"  {self.lapses} leases lapsed, {self.registrations - workers} re-registrations,"
            f" {len(self.killed)} workers killed"
        )
        yield (
            f"  late p50 {self.late[1]:.1f} s, max {self.late[0]:.1f} s ({self.latest});"
            f" {self.waited} times handed back because no process was free"
        )


def suffered(noonmark: Cluster, load: Load) -> Suffered:
    """Read what happened."""
    ns = load.namespace
    of_load = "from attempts a join runs r on r.id = a.run_id where r.namespace = %s"
    dead = "state in ('dead', 'unknown') and losses > 0"
    late = "extract(epoch from started_at - scheduled_for)::float8"
    ((most, middle),) = noonmark.rows(
        f"select coalesce(max({late}), 0), coalesce(percentile_cont(0.5) within group (order by {late}), 0)"
        " from runs where namespace = %s and started_at is not null and attempt = 1 and losses = 0",
        ns,
    )
    first = "r.started_at is not null and r.attempt = 1 and r.losses = 0"
    latest = noonmark.rows(
        "select coalesce(j.handler, j.kind)"
        f" from runs r join jobs j on j.id = r.job_id where r.namespace = %s and {first}"
        f" order by r.started_at - r.scheduled_for desc limit 1",
        ns,
    )
    handed_back = [
        line for node in noonmark.nodes for line in node.lines() if line.get("event") == "runs_handed_back"
    ]
    return Suffered(
        runs=noonmark.value("select count(*) from runs where namespace = %s", ns),
        dead_of_loss=noonmark.value(f"select count(*) from runs where namespace = %s and {dead}", ns),
        lost=noonmark.value(f"select count(*) {of_load} and a.outcome = 'lost'", ns),
        timed_out=list(_timed_out(noonmark, load)),
        lapses=noonmark.value("select count(*) from workers where lapsed_at is not null"),
        registrations=noonmark.value("select count(*) from workers"),
        killed=[node.name for node in noonmark.nodes if node.logged("worker_killed")],
        late=(most, middle),
        latest=str(latest[0][0]) if latest else "none",
        waited=sum(line["count"] for line in handed_back if line["why"] == "no process was free"),
    )


def _timed_out(noonmark: Cluster, load: Load) -> Iterator[tuple[str, float, float | None]]:
    """Attempts that timed out, with how long their handlers had run by then."""
    began: dict[tuple[str, int], dict[str, Any]] = {
        (call["run"], call["fence"]): call for call in noonmark.calls(load.namespace)
    }
    rows = noonmark.rows(
        "select r.id::text, a.fence, (j.work ->> 'timeout_seconds')::float8, extract(epoch from a.finished_at)::float8"
        " from attempts a join runs r on r.id = a.run_id join jobs j on j.id = r.job_id"
        " where r.namespace = %s and a.outcome = 'timed_out'",
        load.namespace,
    )
    for run, fence, timeout, finished_at in rows:
        call = began.get((run, fence))
        yield run, timeout, None if call is None else finished_at - call["at"]


def ran_seconds(noonmark: Cluster, load: Load) -> dict[tuple[str, int], float]:
    """How long handlers ran by their own clocks, by run and fence."""
    ends = noonmark.calls(load.namespace, "end")
    return {(call["run"], call["fence"]): float(call["ran"]) for call in ends if "ran" in call}
