"""The steps of the model of the claim on a real Postgres, a session for each process, on a clock that the test sets."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import psycopg
from tests.integration.store.room import PLANNER
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World, minute
from tests.model.checker import Action
from tests.model.conformance import empty
from tests.model.shards.model import MEMBERS, MINUTE, Shards, State

from noonmark.core.states import Lane, TimerKind
from noonmark.store.claims import claims
from noonmark.store.cluster.members import Membership

_TIMEOUT_SECONDS = 3600.0

_READ = """
select (select json_agg(extract(epoch from scheduled_for)) from runs),
       (select json_agg(extract(epoch from scheduled_for)) from outbox where run_id is not null),
       (select extract(epoch from scheduled_for) from timers),
       (select json_agg(id order by id) from members where beat_at > noonmark_now() - interval '1 hour')"""


class ShardsInPostgres:
    """A database in which the steps of a walk are done; an open claim is a transaction that is not committed yet."""

    def __init__(self, world: World, model: Shards) -> None:
        self._world, self._model = world, model
        self._triggers, self._beats = (world.another(), world.another()), (world.another(), world.another())
        self._open = [ExitStack(), ExitStack()]
        self._first = minute(world.now())
        world.db.execute("create table if not exists model_clock as select now() as now")
        world.db.execute(
            "create or replace function noonmark_now() returns timestamptz language sql stable parallel safe"
            " as 'select now from model_clock'"
        )
        anchor = self._first.isoformat().replace("+00:00", "Z")
        policy = {"misfire": {"grace_seconds": 3600.0}}
        self._job = world.job(schedule={"every": "PT1M", "anchor": anchor}, policy=policy, recurring=True)

    def begin(self) -> None:
        for number in (0, 1):
            self._rollback(number)
        empty(self._world.db)
        self._minutes = -1
        self._tick()
        self._world.timer(self._job, self._first, kind=TimerKind.PLANNED)
        self._members = [self._member(number) for number in (0, 1)]
        for number in (0, 1, 0):
            self._beat(number)

    def _member(self, number: int) -> Membership:
        member = Membership("trigger", shards=1, timeout_seconds=_TIMEOUT_SECONDS)
        member.id = MEMBERS[number]
        return member

    def do(self, action: Action, before: State) -> None:
        del before
        getattr(self, f"_{action[0]}")(*action[1:])

    def rows(self) -> Any:
        runs, messages, timer, live = self._world.db.execute(_READ).fetchone() or ((), (), 0, ())
        return (
            sorted(self._number(at) for at in runs or ()),
            sorted(self._number(at) for at in messages or ()),
            self._number(timer),
            live or [],
            [bool(member.owned) for member in self._members],
        )

    def expected(self, state: State) -> Any:
        return (
            list(state.runs),
            list(state.messages),
            state.timer,
            [str(MEMBERS[number]) for number, one in enumerate(state.triggers) if one.beats],
            [one.owns for one in state.triggers],
        )

    def _number(self, seconds: float) -> int:
        return round((float(seconds) - self._first.timestamp()) / 60)

    def _tick(self) -> None:
        self._minutes += 1
        self._world.db.execute("update model_clock set now = %s", [self._first + self._minutes * MINUTE])

    def _silent(self, number: int) -> None:
        old = timedelta(seconds=2 * _TIMEOUT_SECONDS)
        self._world.db.execute(
            "update members set beat_at = beat_at - %s where id = %s", [old, MEMBERS[number]]
        )

    def _beat(self, number: int) -> None:
        self._members[number].beat(self._beats[number])

    def _crash(self, number: int) -> None:
        self._rollback(number)
        self._members[number] = self._member(number)

    def _restart(self, number: int) -> None:
        self._members[number] = self._member(number)

    def _claim(self, number: int) -> None:
        connection = self._triggers[number]
        self._open[number].enter_context(connection.transaction())
        claimed = claims.claim_planned(
            connection,
            Lane.NORMAL,
            EVERY_SHARD,
            100,
            kind=TimerKind.PLANNED,
            plan=PLANNER,
            topics=TOPICS,
            install_shards=SHARDS,
        )
        if not claimed.claimed:
            self._rollback(number)

    def _commit(self, number: int) -> None:
        self._open[number].close()

    def _rollback(self, number: int) -> None:
        if self._triggers[number].info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self._open[number].__exit__(psycopg.Rollback, psycopg.Rollback(), None)
