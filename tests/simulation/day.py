"""A simulated day: the event loop over actors, submissions and faults, in one thread, in the order of a seed."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from tests.simulation import faults
from tests.simulation.actors import Actor, World
from tests.simulation.broker import Broker, places_of
from tests.simulation.jobs import LIMITS, NAMESPACE, documents, requests
from tests.simulation.services import TOPICS, Dispatcher, Intake, Trigger
from tests.simulation.virtual_time import VirtualTime, seeded
from tests.simulation.worker import POOL, Target, Worker
from tests.support.virtual_clock import install_clock, tell_time

from noonmark.core.states import Lane
from noonmark.schemas.events.envelope import render_structured
from noonmark.store.database.connect import connect
from noonmark.store.limits.limits import Figures, set_limit

SOURCE = "/simulated"
DAY = timedelta(days=1)
REST_HOURS = 12
MOST_STEPS = 40_000
_STARTS = (
    datetime(2026, 3, 8, tzinfo=UTC),
    datetime(2026, 6, 17, tzinfo=UTC),
    datetime(2026, 11, 1, tzinfo=UTC),
)
_SETTLED = """
select (select count(*) from runs where finished_at is null)
     + (select count(*) from timers) + (select count(*) from outbox) + (select count(*) from start_batches)
"""
# The ids that statements create: by a sequence, so that they do not depend on the machine.
_IDS = """
create sequence simulated_ids;
create or replace function noonmark_uuid7() returns uuid language sql volatile
as $$ select md5('{seed}/' || nextval('simulated_ids'))::uuid $$
"""


# When jobs were paused and resumed, for the checker.
_STATES = """
create table simulated_states (job uuid, state text, at timestamptz);
create function note_state() returns trigger language plpgsql as $$
begin
    insert into simulated_states values (new.id, new.state, noonmark_now());
    return null;
end $$;
create trigger note_state after update of state on jobs for each row when (old.state is distinct from new.state)
execute function note_state()
"""


class NotAtRest(AssertionError):  # noqa: N818 - the name says what happened
    """The system did not finish its work within hours after the last fault."""


class Day:
    """One day of one seed on an empty database.

    Args:
        url: of a migrated database that nothing else uses.
        seed: decides everything.
        flaws: mistakes that actors make on purpose.
        schedule: the faults and their seconds of the day; None: as the seed draws them.
    """

    def __init__(
        self,
        url: str,
        seed: int,
        flaws: frozenset[str] = frozenset(),
        *,
        schedule: Sequence[tuple[float, faults.Fault]] | None = None,
    ) -> None:
        self.seed = seed
        self.begin = _STARTS[seed % len(_STARTS)]
        self.end = self.begin + DAY
        self._dice = Random(f"day {seed}")
        self._schedule = schedule
        self.faults: list[tuple[datetime, str]] = []
        self.acknowledged: set[str] = set()
        self.refusable: set[str] = set()
        self.steps = 0
        self.actors: list[Actor] = []
        self.db = connect(url, application="simulation", autocommit=True)
        self._prepare(seed)
        shards = self.db.execute("select shards from install").fetchone()
        assert shards is not None
        self.world = World(
            url,
            self.db,
            shards[0],
            VirtualTime(self.begin),
            Broker(Random(f"broker {seed}")),
            Random(f"delays {seed}"),
            Target(),
            flaws,
        )
        self._order = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def _prepare(self, seed: int) -> None:
        install_clock(self.db)
        tell_time(self.db, self.begin)
        self.db.execute(_IDS.format(seed=seed))
        tables = self.db.execute(
            "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = relnamespace"
            " where relkind = 'r' and nspname = 'public'"
        ).fetchall()
        # Statistics that arrive at some moment of the machine's would change plans, and with them orders.
        self.db.execute(
            "; ".join(f"alter table {name} set (autovacuum_enabled = false)" for (name,) in tables)
        )
        self.db.execute(_STATES)
        self.db.execute("insert into namespaces (name) values (%s)", [NAMESPACE])
        for name, most in LIMITS.items():
            set_limit(self.db, NAMESPACE, name, Figures(max_running=most))

    def run(self) -> None:
        """Let the day pass, and then time without faults until everything is at rest.

        Raises:
            NotAtRest: something was still unfinished hours later.
        """
        with seeded(self.world.time, self.seed, self.world.hit):
            self._start_actors()
            self._plan()
            self._pass_until(self.world.seconds + DAY.total_seconds())
            self._end_faults()
            self._come_to_rest()

    def close(self) -> None:
        """Close every connection."""
        for actor in self.actors:
            actor.disconnect()
        self.db.close()

    def _start_actors(self) -> None:
        world = self.world
        self.intake = Intake(world, "intake")
        self.triggers = [Trigger(world, f"trigger-{n}") for n in range(2)]
        self.dispatchers = [Dispatcher(world, f"dispatcher-{n}") for n in range(2)]
        self.workers = [Worker(world, f"worker-{n}") for n in range(3)]
        self.actors = [self.intake, *self.triggers, *self.dispatchers, *self.workers]
        self.rebalance(self._dice)

    def _plan(self) -> None:
        dice, base = Random(f"plan {self.seed}"), self.world.seconds
        number = count()
        for at, document in documents(dice, self.begin, self.end):
            self._at(base + at, self._submit(next(number), "create", document))
        for at, kind, document in requests(dice, self.begin, self.end):
            self._at(base + at, self._submit(next(number), kind, document))
        drawn = faults.planned(dice, DAY.total_seconds()) if self._schedule is None else self._schedule
        for at, fault in drawn:
            self._at(base + at, lambda fault=fault: self._break(fault))  # type: ignore[misc]

    def _at(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (seconds, next(self._order), do))

    def _submit(self, number: int, kind: str, document: dict[str, Any]) -> Callable[[], None]:
        event = f"event-{number}"
        value = render_structured(
            id=event, source=SOURCE, type=f"noonmark.job.{kind}.v1", sequence=None, data=document
        )

        def publish() -> None:
            self.acknowledged.add(event)
            if kind != "create":
                # It can come too late, when its job has ended; a job itself is always accepted.
                self.refusable.add(event)
            key = document["name"].encode()
            self.world.broker.append(TOPICS.submissions, key, value, self.world.seconds)
            self.intake.wake(0.05)

        return publish

    def _break(self, fault: faults.Fault) -> None:
        self.faults.append((self.world.time.now, fault.__name__))
        fault(self, self._dice)

    def when(
        self, strike: Callable[[Worker], None], amount: Callable[[Worker], int], look_seconds: float
    ) -> None:
        """Do this to the worker with the largest amount, as soon as one has any."""
        worker = max(self.workers, key=amount)
        if not amount(worker):
            self._at(self.world.seconds + look_seconds, lambda: self.when(strike, amount, look_seconds))
            return
        strike(worker)
        self.rebalance(self._dice)

    def rebalance(self, dice: Random) -> None:
        """Divide the partitions of every lane among the workers that are not held."""
        live = [worker for worker in self.workers if worker.held_until <= self.world.seconds] or self.workers
        shares: dict[str, list[tuple[str, int]]] = {worker.name: [] for worker in self.workers}
        for lane in Lane:
            for place in places_of(TOPICS.runs(POOL, lane)):
                shares[dice.choice(live).name].append(place)
        for worker in self.workers:
            worker.assign(shares[worker.name])

    # time

    def _pass_until(self, until: float) -> None:
        while True:
            actor = min(self.actors, key=lambda one: one.due_at)
            planned = self._events[0][0] if self._events else until
            at = min(actor.due_at, planned)
            if at >= until:
                self._turn_to(until)
                return
            self._turn_to(at)
            if planned <= actor.due_at:
                heapq.heappop(self._events)[2]()
            else:
                self._act(actor)

    def _turn_to(self, seconds: float) -> None:
        ahead = seconds - self.world.seconds
        if ahead > 0:
            # Microseconds are what Postgres keeps: a fraction of one must not let an event stay due forever.
            self.world.time.now += timedelta(microseconds=int(ahead * 1_000_000) + 1)

    def _act(self, actor: Actor) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise NotAtRest(f"{MOST_STEPS} steps by {self.world.time.now}: {self.world.counts}")
        self.world.counts[f"steps of {actor.name}"] += 1
        was_held = actor.held_until
        actor.act()
        if isinstance(actor, Worker) and actor.held_until > was_held:
            self.rebalance(self._dice)
        if actor.has_news:
            self._wake_others(actor)

    def _wake_others(self, actor: Actor) -> None:
        dice = self._dice
        if isinstance(actor, Dispatcher):
            for worker in self.workers:
                worker.wake(dice.uniform(0.01, 1.0))
        else:
            for dispatcher in self.dispatchers:
                dispatcher.wake(dice.uniform(0.01, 0.5))
        if isinstance(actor, Intake | Worker):
            for trigger in self.triggers:
                trigger.wake(dice.uniform(0.05, 1.0))

    # the end

    def _end_faults(self) -> None:
        world = self.world
        world.armed.clear()
        world.broker.away_until = world.broker.twice = 0.0
        world.time.skew = timedelta(0)
        for actor in self.actors:
            actor.held_until = min(actor.held_until, world.seconds)
            actor.wake(0.1)
        self.rebalance(self._dice)

    def _come_to_rest(self) -> None:
        for _ in range(REST_HOURS * 4):
            self._pass_until(self.world.seconds + 900)
            tell_time(self.db, self.world.time.now)
            row = self.db.execute(_SETTLED).fetchone()
            assert row is not None
            if not row[0] and not self.unread():
                return
        raise NotAtRest(f"{row[0]} rows and {self.unread()} records are left after {REST_HOURS} h")

    def unread(self) -> int:
        """Return the number of records that their group has not committed."""
        broker = self.world.broker
        return sum(
            len(log) - broker.position(group, place)
            for place, log in broker.logs.items()
            if (group := group_of(place[0])) is not None
        )


def group_of(topic: str) -> str | None:
    """Return the group that reads a topic; None for events, which are not read here."""
    if topic == TOPICS.submissions:
        return TOPICS.group_intake
    parsed = TOPICS.parse_runs(topic)
    return TOPICS.group_worker(*parsed) if parsed is not None else None


@contextmanager
def day_of(
    url: str,
    seed: int,
    flaws: frozenset[str] = frozenset(),
    *,
    schedule: Sequence[tuple[float, faults.Fault]] | None = None,
) -> Iterator[Day]:
    """Prepare a day to be run; its connections are closed at the end."""
    day = Day(url, seed, flaws, schedule=schedule)
    try:
        yield day
    finally:
        day.close()
