"""The steps of the model of the relay on a real Postgres, a session for each process."""

from __future__ import annotations

from typing import Any

from tests.integration.store.world import EVERY_SHARD, SHARDS, World
from tests.model.checker import Action
from tests.model.conformance import empty
from tests.model.outbox.model import Message, Outbox, State

from noonmark.core.ids import shard_of
from noonmark.core.states import Lane
from noonmark.store.claims import claims
from noonmark.store.outbox import relay
from noonmark.store.outbox.relay import Parked
from noonmark.store.runs import starts
from noonmark.store.runs.starts import StartRequest

_QUEUE = """
insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool from runs where id = %s"""

_READ = """
select (select json_agg(json_build_array(id, state, fence, exists(
            select from timers where run_id = runs.id and kind = 2))) from runs),
       (select json_agg(json_build_array(run_id, fence)) from outbox)"""


class OutboxInPostgres:
    """A database in which the steps of a walk are done."""

    def __init__(self, world: World, model: Outbox) -> None:
        del model
        self._world = world
        self._trigger, self._consumer = world.another(), world.another()
        self._dispatchers = (world.another(), world.another())
        self._job = world.job()
        assert shard_of(self._job, SHARDS) in EVERY_SHARD

    def begin(self) -> None:
        empty(self._world.db)
        self._runs: list[Any] = []
        self._worker = self._world.worker()
        self._rows: tuple[dict[Message, Any], ...] = ({}, {})
        self._sent: tuple[list[Any], ...] = ([], [])
        self._commit()

    def do(self, action: Action, before: State) -> None:
        del before
        getattr(self, f"_{action[0]}")(*action[1:])

    def rows(self) -> Any:
        runs, outbox = self._world.db.execute(_READ).fetchone() or ((), ())
        numbers = {str(run["id"]): number for number, run in enumerate(self._runs)}
        found = {numbers[run]: (state, fence, timer) for run, state, fence, timer in runs}
        return [found[n] for n in sorted(found)], sorted((numbers[run], fence) for run, fence in outbox or ())

    def expected(self, state: State) -> Any:
        return [(run.state, run.fence, run.timer) for run in state.runs], sorted(state.outbox)

    def _commit(self) -> None:
        run_id = self._world.put_run(job_id=self._job, request_id=str(len(self._runs)))
        self._trigger.execute(_QUEUE, [run_id])
        self._runs.append(self._world.run(run_id))

    def _read(self, number: int) -> None:
        numbers = {run["id"]: n for n, run in enumerate(self._runs)}
        for row in relay.read(self._dispatchers[number], EVERY_SHARD, 100, [*Lane]):
            self._rows[number][numbers[row.run_id], row.fence] = row

    def _send(self, number: int, message: Message) -> None:
        self._sent[number].append(self._rows[number].pop(message))

    def _delete(self, number: int) -> None:
        relay.delete(self._dispatchers[number], self._sent[number])
        self._sent[number].clear()

    def _refuse(self, number: int, message: Message) -> None:
        row = self._rows[number].pop(message)
        parked = Parked(row.run_id, row.scheduled_for, row.fence, "too large")
        relay.park(self._dispatchers[number], [row], [parked], retry_seconds=0)

    def _crash(self, number: int) -> None:
        self._rows[number].clear()
        self._sent[number].clear()

    def _retry(self, number: int) -> None:
        self._world.db.execute(
            "update timers set fire_at = noonmark_now() + (run_id <> %s)::int * interval '1 hour'",
            [self._runs[number]["id"]],
        )
        claims.claim_retries(self._trigger, Lane.NORMAL, EVERY_SHARD, 1)

    def _start(self, message: Message) -> None:
        run = self._runs[message[0]]
        request = StartRequest(run["id"], run["scheduled_for"], message[1])
        # Each start is by a worker of its own: one that has the run already would get it again.
        starts.start(self._consumer, self._world.worker(), "default", [request])
