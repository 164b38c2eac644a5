"""The steps of the model of runs on a real Postgres: the statements that services execute, a session for each process."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import psycopg
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World, outcome
from tests.model.checker import Action
from tests.model.conformance import empty
from tests.model.runs.model import Runs
from tests.model.runs.rows import ENDS, LIVE, Batch, State
from tests.model.runs.rules import after_attempt

from noonmark.core.states import Lane, RunState
from noonmark.store.claims import claims
from noonmark.store.database.row_types import StartedRun
from noonmark.store.database.statements import statement
from noonmark.store.outbox import relay
from noonmark.store.runs import cancel, finish, held_runs, leases, starts, worker_lease
from noonmark.store.runs.starts import StartRequest
from noonmark.store.runs.worker_lease import Identity

LEASE_SECONDS = 3600.0
"""Longer than any test: a lease lapses when the test makes its heartbeat old."""

_READ = """
select json_build_object(
    'runs', (select json_agg(json_build_array(id, state, fence, attempt, losses, owner, exists(
                select from timers where run_id = runs.id and kind = 2))) from runs),
    'outbox', (select json_agg(json_build_array(run_id, fence)) from outbox where run_id is not null),
    'told', (select json_agg(convert_from(value, 'utf8')) from outbox where topic = %(lifecycle)s),
    'workers', (select json_agg(json_build_array(id, lapsed_at is null)) from workers),
    'batches', (select json_agg(json_build_array(worker, run_ids[1], started_at = (
                   select started_at from runs where id = run_ids[1]))) from start_batches))
"""


class RunsInPostgres:
    """A database in which the steps of a walk are done."""

    def __init__(self, world: World, model: Runs) -> None:
        self._model = model
        self._world = world
        self._trigger, self._dispatcher, self._user = world.another(), world.another(), world.another()
        self._workers = (world.another(), world.another())
        self._job = world.job()
        world.db.execute(
            "update jobs set work = (work::jsonb || jsonb_build_object('delivery', %s::text))::json where id = %s",
            [model.delivery.value, self._job],
        )

    def begin(self) -> None:
        """Bring the database into the first state of the model."""
        empty(self._world.db)
        self._runs = [
            self._world.put_run(job_id=self._job, request_id=str(number))
            for number in range(len(self._model.initial().runs))
        ]
        rows = self._world.rows("select * from runs")
        self._at = {row["id"]: row["scheduled_for"] for row in rows}
        self._world.db.execute(
            """insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
               select shard, lane, noonmark_now(), id, job_id, scheduled_for, fence, job_version, namespace, pool from runs"""
        )
        self._leases: list[list[Identity]] = [[], []]
        self._memory: dict[tuple[int, UUID, int], StartedRun] = {}
        self._released: set[tuple[int, UUID, int]] = set()
        for number in (0, 1):
            self._register(number)

    def do(self, action: Action, before: State) -> None:
        """Do a step."""
        kind, *arguments = action
        unheard = kind.endswith("_unheard")
        kind = kind.removesuffix("_unheard")
        if kind in ("succeed", "fail"):
            self._finish(*arguments, how=kind, heard=not unheard)
        elif kind == "start":
            self._start(*arguments, before=before, heard=not unheard)
        elif kind not in ("assign", "poll", "commit", "drop"):  # these are between a worker and Kafka
            getattr(self, f"_{kind}")(*arguments)

    def rows(self) -> Any:
        """Return what Postgres contains, in the form of `expected`."""
        (read,) = self._world.db.execute(_READ, {"lifecycle": TOPICS.lifecycle}).fetchone() or ({},)
        owners = {one.worker: (w, n) for w, all_ in enumerate(self._leases) for n, one in enumerate(all_, 1)}
        numbers = {str(run_id): number for number, run_id in enumerate(self._runs)}
        verdicts = dict.fromkeys(numbers, 0)
        for value in read["told"] or ():
            data = json.loads(value)["data"]
            for told in data.get("outcomes", [data]):
                verdicts[told["run_id"]] += told["state"] in ENDS
        runs = {
            numbers[run]: (
                state,
                fence,
                attempt,
                losses,
                owners[owner] if state in LIVE else None,
                timer,
                verdicts[run],
            )
            for run, state, fence, attempt, losses, owner, timer in read["runs"] or ()
        }
        live = dict(read["workers"] or ())
        return (
            [runs[number] for number in sorted(runs)],
            sorted((numbers[run], fence) for run, fence in read["outbox"] or ()),
            [[live[one.worker] for one in mine] for mine in self._leases],
            sorted(
                {
                    Batch(owners[worker], numbers[run], current)
                    for worker, run, current in read["batches"] or ()
                }
            ),
        )

    def expected(self, state: State) -> Any:
        """Return the part of a state that Postgres contains."""
        return (
            [(r.state, r.fence, r.attempt, r.losses, r.owner, r.timer, r.verdicts) for r in state.runs],
            sorted(state.outbox),
            [list(worker.live) for worker in state.workers],
            sorted(state.batches),
        )

    # dispatcher, trigger, user

    def _send(self, message: tuple[int, int]) -> relay.OutboxRow:
        rows = relay.read(self._dispatcher, EVERY_SHARD, 100, [*Lane])
        (row,) = [row for row in rows if (row.run_id, row.fence) == (self._runs[message[0]], message[1])]
        return row

    def _relay(self, message: tuple[int, int]) -> None:
        assert relay.delete(self._dispatcher, [self._send(message)]) == 1

    def _retry(self, _number: int) -> None:
        claims.claim_retries(self._trigger, Lane.NORMAL, EVERY_SHARD, 100)

    def _requeue_lost(self) -> None:
        with self._trigger.transaction():
            leases._requeue_lost(self._trigger, TOPICS, shards=SHARDS, batches=20)

    def _cancel(self, number: int) -> None:
        cancel.cancel(self._user, TOPICS, [cancel.RunKey(*self._key(number))], shards=SHARDS)

    # leases

    def _lapse(self, number: int, lease: int) -> None:
        silent = self._leases[number][lease - 1]
        self._world.db.execute(
            "update workers set beat_at = beat_at - interval '2 hours' where id = %s", [silent.worker]
        )
        self._trigger.execute(statement("lapse_workers"), {"watched_seconds": LEASE_SECONDS})

    def _crash(self, number: int) -> None:
        self._memory = {key: run for key, run in self._memory.items() if key[0] != number}

    def _restart(self, number: int) -> None:
        self._register(number)

    def _renew(self, number: int) -> None:
        assert not worker_lease.beat(self._workers[number], self._leases[number][-1])
        self._crash(number)
        self._register(number)

    def _register(self, number: int) -> None:
        self._leases[number].append(
            worker_lease.register(
                self._workers[number], pool="default", host="here", pid=number, lease_seconds=LEASE_SECONDS
            )
        )

    # workers

    def _start(self, number: int, offset: int, *, before: State, heard: bool) -> None:
        which, fence = before.log[offset]
        request = StartRequest(*self._key(which), fence)
        started, _ = starts.start(self._workers[number], self._leases[number][-1], "default", [request])
        if heard:
            self._memory.update({(number, run.id, fence): run for run in started})

    def _finish(self, number: int, which: int, fence: int, *, how: str, heard: bool) -> None:
        key = (number, self._runs[which], fence)
        run = self._memory[key]
        state = (
            RunState.SUCCEEDED
            if how == "succeed"
            else RunState(after_attempt(self._model.delivery, run.attempt))
        )
        reported = outcome(run, state, fence=fence, error=None if how == "succeed" else "boom")
        connection: psycopg.Connection = self._workers[number]
        # A worker that has handed a run back no longer counts it in a batch.
        batches = [] if key in self._released else [run.batch_id]
        with connection.transaction():
            finish.record(connection, self._leases[number][-1], TOPICS, [reported], batches, shards=SHARDS)
        if heard:
            del self._memory[key]

    def _hand_back(self, number: int, which: int, fence: int) -> None:
        held_runs.requeue_unfinished(
            self._workers[number], self._leases[number][-1], [(*self._key(which), fence)]
        )
        self._released.add((number, self._runs[which], fence))

    def _reconcile(self, number: int) -> None:
        """Do as the engine of a worker does."""
        connection, identity = self._workers[number], self._leases[number][-1]
        held = held_runs.read_worker_runs(connection, identity)
        mine = {
            key[1:]: run.batch_id
            for key, run in self._memory.items()
            if key[0] == number and key not in self._released
        }
        for state in LIVE:
            keys = [
                (i, one.scheduled_for, one.fence)
                for i, one in held.live.items()
                if (i, one.fence) not in mine and one.state == state
            ]
            if keys and state == "running":
                held_runs.requeue_unfinished(connection, identity, keys)
            elif keys:
                held_runs.cancel_unowned(connection, identity, TOPICS, keys, shards=SHARDS)
        known = set(mine.values())
        done = [
            b for b, ids in held.batches.items() if b not in known and not any(i in held.live for i in ids)
        ]
        finish.delete_batches(connection, done)

    def _key(self, which: int) -> tuple[UUID, Any]:
        return self._runs[which], self._at[self._runs[which]]
