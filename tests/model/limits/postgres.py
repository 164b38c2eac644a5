"""The steps of the model of promotion on a real Postgres, a session for each process."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import psycopg
from tests.integration.store.room import limit
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World, outcome
from tests.model.checker import Action
from tests.model.conformance import empty
from tests.model.limits.model import GATE, LIMIT, Limits, State

from noonmark.core.states import Lane, RunState
from noonmark.store.claims import claims
from noonmark.store.limits import promotion
from noonmark.store.limits.wait_queue import WaitingRun, enqueue_waiting
from noonmark.store.runs import cancel, finish, starts
from noonmark.store.runs.starts import StartRequest

_READ = """
select json_agg(json_build_array(
    id, state, fence, (select json_agg(slot_no) from limit_slots where run_id = runs.id),
    exists(select from outbox where outbox.run_id = runs.id and outbox.fence = runs.fence)
        and state = 'queued'))
from runs"""


class LimitsInPostgres:
    """A database in which the steps of a walk are done; an open pass is a transaction that is not committed yet."""

    def __init__(self, world: World, model: Limits) -> None:
        self._world = world
        self._count = len(model.initial().runs)
        self._triggers = (world.another(), world.another())
        self._claimer, self._user, self._consumer = world.another(), world.another(), world.another()
        self._open = [ExitStack(), ExitStack()]
        limit(world, "api", max_running=LIMIT)
        self._job = world.job(policy={"limits": [["api", None]]})

    def begin(self) -> None:
        for number in (0, 1):
            self._rollback(number)
        empty(self._world.db)
        self._worker = self._world.worker()
        self._started: dict[int, Any] = {}
        self._runs = [self._put(number) for number in range(self._count)]

    def _put(self, number: int) -> dict[str, Any]:
        run_id = self._world.put_run("waiting", reason="limit", job_id=self._job, request_id=str(number))
        row = self._world.run(run_id)
        self._world.db.execute("delete from waits where run_id = %s", [run_id])
        since = row["scheduled_for"] + timedelta(seconds=number)
        enqueue_waiting(
            self._world.db,
            [WaitingRun(run_id, row["scheduled_for"], self._job, Lane.NORMAL, GATE, None, since)],
        )
        return row

    def do(self, action: Action, before: State) -> None:
        del before
        getattr(self, f"_{action[0]}")(*action[1:])

    def rows(self) -> Any:
        (runs,) = self._world.db.execute(_READ).fetchone() or ((),)
        numbers = {str(run["id"]): number for number, run in enumerate(self._runs)}
        found = {
            numbers[run]: (state, fence, sorted(slots or ()), sent) for run, state, fence, slots, sent in runs
        }
        return [found[number] for number in sorted(found)]

    def expected(self, state: State) -> Any:
        return [(run.state, run.fence, sorted(run.slots), run.message) for run in state.runs]

    def _promote(self, number: int) -> None:
        connection = self._triggers[number]
        self._open[number].enter_context(connection.transaction())
        done = promotion.promote(connection, TOPICS, install_shards=SHARDS)
        if not done.queued:
            self._rollback(number)

    def _commit(self, number: int) -> None:
        self._open[number].close()

    def _crash(self, number: int) -> None:
        self._rollback(number)

    def _rollback(self, number: int) -> None:
        if self._triggers[number].info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self._open[number].__exit__(psycopg.Rollback, psycopg.Rollback(), None)

    def _start(self, number: int) -> None:
        run = self._world.run(self._runs[number]["id"])
        request = StartRequest(run["id"], run["scheduled_for"], run["fence"])
        ((started,), _) = starts.start(self._consumer, self._worker, "default", [request])
        self._started[number] = started, run["fence"]

    def _succeed(self, number: int, state: RunState = RunState.SUCCEEDED, error: str | None = None) -> None:
        run, fence = self._started[number]
        with self._consumer.transaction():
            reported = outcome(run, state, fence=fence, error=error)
            finish.record(self._consumer, self._worker, TOPICS, [reported], [run.batch_id], shards=SHARDS)

    def _fail(self, number: int) -> None:
        self._succeed(number, RunState.RETRYING, "boom")

    def _retry(self, _number: int) -> None:
        claims.claim_retries(self._claimer, Lane.NORMAL, EVERY_SHARD, 100)

    def _cancel(self, number: int) -> None:
        run = self._runs[number]
        cancel.cancel(self._user, TOPICS, [cancel.RunKey(run["id"], run["scheduled_for"])], shards=SHARDS)
