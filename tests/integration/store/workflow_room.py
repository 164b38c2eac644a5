"""Workflow runs, as tests of the store create, advance and end them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from tests.integration.store.room import claim
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World, outcome

from noonmark.core.ids import shard_of
from noonmark.core.states import AttemptOutcome, Lane, RunState
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.ids import TaskKey
from noonmark.dispatcher.run_messages import unsent_runs
from noonmark.schemas.events.submissions import CreateJob, Submission
from noonmark.schemas.jobs.job import JobSpec, parse_job
from noonmark.store.claims import claims
from noonmark.store.jobs.requests import FactCache, Request, Status
from noonmark.store.jobs.submit import accept
from noonmark.store.outbox import relay
from noonmark.store.schedules.time_facts import read_time_facts
from noonmark.store.workflows.advance import WorkflowPass
from noonmark.store.workflows.advanced import Advanced
from noonmark.store.workflows.facts import WorkflowTimer, insert_workflow_timers

_FLOOR = datetime(2020, 1, 1, tzinfo=UTC)


class Flows:
    """A database with workflows, and a trigger that advances them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.passes = WorkflowPass(TOPICS, shards=SHARDS)
        world.db.execute("insert into pools (name) values ('default') on conflict do nothing")

    def create(self, tasks: Mapping[str, Any], **document: Any) -> UUID:
        """Create a workflow that is due now; tasks without a type are Python handlers. Returns the job."""
        return self.submit(CreateJob(self.document(tasks, **document)))

    def document(self, tasks: Mapping[str, Any], **document: Any) -> JobSpec:
        """The document of a workflow, checked."""
        return parse_job(
            {
                "name": "flow",
                "type": "workflow",
                "namespace": "tests",
                "tasks": {key: _task(task) for key, task in tasks.items()},
                **{name: _part(name, value) for name, value in document.items()},
            },
            now=self.world.now(),
            ledger_floor=_FLOOR,
        )

    def submit(self, submission: Submission) -> UUID:
        """Submit what must be accepted; return the job."""
        with self.world.db.transaction():
            taken = accept(
                self.world.db,
                [Request(submission, None)],
                topics=TOPICS,
                known=FactCache(),
                shards=SHARDS,
                facts=read_time_facts(self.world.db),
            )
        (result,) = taken.results
        assert result.status is Status.ACCEPTED, result
        assert result.job_id is not None
        return result.job_id

    def run_of(self, job_id: UUID) -> UUID:
        """Return the newest workflow run of a job."""
        return self.world.value(
            "select id from runs where job_id = %s and origin <> 'task' order by id desc limit 1", job_id
        )

    def claim(self) -> None:
        """Do what a trigger does with due instants."""
        for lane in Lane:
            claims.claim_once(self.world.db, lane, EVERY_SHARD, 100, arrays=True)
        claim(self.world)

    def hand_over(self) -> int:
        """Do what a dispatcher does with queued workflow runs."""
        return hand_over(self.world.db)

    def advance(self, *, limit: int = 5000) -> list[Advanced]:
        """Run passes until nothing is due; return those that took something."""
        done = []
        while True:
            some = [self.passes.run(self.world.db, lane, EVERY_SHARD, limit, arrays=True) for lane in Lane]
            some = [one for one in some if one.facts]
            if not some:
                return done
            done += some

    def open(self, tasks: Mapping[str, Any], **document: Any) -> UUID:
        """Create a workflow that is due now and open its run; return the run."""
        job_id = self.create(tasks, **document)
        self.claim()
        self.hand_over()
        self.advance()
        return self.run_of(job_id)

    def tasks(self, run_id: UUID) -> dict[str, str]:
        """Return the newest state of each decided task of a workflow run by key, with the reason of a skip."""
        return {
            key: state if state != "skipped" else f"skipped {reason}"
            for key, state, reason in self.world.db.execute(
                "select task.key, run.state, run.reason from runs as run"
                " join workflow_tasks as task on task.job_id = run.job_id and task.version = run.job_version"
                " and task.task_no::text = split_part(run.request_id, '/', 2)"
                " where origin = 'task' and request_id ~ %s"
                " order by split_part(request_id, '/', 4)::int",
                [f"^{run_id}/[0-9]+/0/[0-9]+$"],
            )
        }

    def run_id(self, workflow_id: UUID, key: str) -> UUID:
        """Return the newest run of a task."""
        rows = self.world.db.execute(
            "select run.id, run.request_id from runs as run join workflow_tasks as task"
            " on task.job_id = run.job_id and task.version = run.job_version"
            " and task.task_no::text = split_part(run.request_id, '/', 2)"
            " where origin = 'task' and request_id ~ %s and task.key = %s",
            [f"^{workflow_id}/[0-9]+/0/[0-9]+$", key],
        ).fetchall()
        return max(rows, key=lambda row: TaskKey.parse(row[1]).generation)[0]

    def end(
        self,
        workflow_id: UUID,
        keys: Collection[str],
        state: RunState = RunState.SUCCEEDED,
        *,
        advance: bool = True,
        **more: Any,
    ) -> None:
        """Let a worker execute the queued runs of tasks, with one outcome; then let the trigger go on."""
        world = self.world
        worker = world.worker()
        ids = [self.run_id(workflow_id, key) for key in keys]
        runs = world.start(worker, ids)
        if state is RunState.DEAD:
            more = {"reason": "attempts_used_up", "error": "boom", **more}
        if state is RunState.UNKNOWN:
            more = {"reason": "lost", "attempt_outcome": AttemptOutcome.LOST, **more}
        fences = {run_id: world.run(run_id)["fence"] for run_id in ids}
        recorded = world.record(worker, [outcome(run, state, fence=fences[run.id], **more) for run in runs])
        assert recorded.tasks_ended
        if advance:
            self.advance()

    def nothing_is_left(self, workflow_id: UUID) -> None:
        """Check that an ended workflow run has left no state, timer or wait, and that all runs are sound."""
        world = self.world
        assert_consistent(world)
        assert world.count("workflows", f"run_id = '{workflow_id}'") == 0
        assert world.count("timers", "kind = 5") == 0
        assert world.count("waits") == 0


def hand_over(db: psycopg.Connection) -> int:
    """Do what a dispatcher does with queued workflow runs; return how many there were."""
    rows = relay.read_runs(db, EVERY_SHARD, 10_000, runs_per_row=1.0)
    mine = [row for row in rows if row.pool == WORKFLOW_POOL]
    with db.transaction():
        insert_workflow_timers(
            db,
            [
                WorkflowTimer(
                    *(run.run_id, run.scheduled_for, run.job_id, run.job_version),
                    shard_of(run.run_id, SHARDS),
                    *(unsent.lane, run.namespace, unsent.pool),
                )
                for unsent in unsent_runs(mine)
                for run in (unsent.run,)
            ],
        )
        relay.delete(db, mine)
    return len(mine)


def _task(task: Any) -> dict[str, Any]:
    return {"type": "python", "handler": "tests.noop", **task}


def _part(name: str, value: Any) -> Any:
    return {key: _task(task) for key, task in value.items()} if name == "finally" else value
