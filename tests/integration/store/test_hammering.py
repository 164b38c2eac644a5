"""Many sessions do everything at once to the same few runs, in an order that a seed decides; then the ledger must add up.

What is done is what the services do, by the same functions. Each order is a transaction of its own, so that nearly
everybody locks in one order: who starts or ends several runs at once takes them as they come.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from uuid import UUID

import psycopg
import pytest
from tests.integration.intake.world import create, event
from tests.integration.store.ledger import adds_up, verdicts_add_up
from tests.integration.store.room import limit
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, World
from tests.integration.verify.ledgers import check

from noonmark.core.states import AttemptOutcome, Lane, ResumeChoice, RunState, TimerKind
from noonmark.schemas.events.submissions import (
    CancelRuns,
    CompleteRun,
    JobRef,
    PauseJob,
    ResumeJob,
    TriggerJob,
)
from noonmark.store.claims import claims
from noonmark.store.claims.planner import Planner
from noonmark.store.database.row_types import StartedRun
from noonmark.store.jobs.submit import FactCache, Request, accept
from noonmark.store.limits import promotion
from noonmark.store.limits.limits import Figures, set_limit
from noonmark.store.outbox import relay
from noonmark.store.outbox.relay import Parked
from noonmark.store.outcomes.callback_rows import Expected, NewCallback, open_callbacks
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import cancel as run_cancel
from noonmark.store.runs import dead_letters, finish, held_runs, leases, starts
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.starts import StartRequest
from noonmark.store.schedules.time_facts import read_time_facts

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

SESSIONS = 12
STEPS = 600
TOKEN = "a token of the test's own"

EVERY_SECOND = {"every": 1}
JOBS = {
    "plain": {"retry": {"max_retries": 2, "delay_seconds": 0}, "overlap": "allow"},
    "skips": {"schedule": EVERY_SECOND, "overlap": "skip", "limits": ["api"]},
    "lines-up": {"schedule": EVERY_SECOND, "overlap": "queue_one", "limits": ["api", "tight"]},
    "newest": {"schedule": EVERY_SECOND, "overlap": "cancel_running", "limits": ["tight"]},
    "newest-free": {"schedule": EVERY_SECOND, "overlap": "cancel_running"},
    "keyed": {
        "overlap": "allow",
        "limits": [{"name": "api", "key": "customer 1"}, "rated"],
        "priority": "high",
    },
    "once": {"schedule": EVERY_SECOND, "overlap": "skip", "delivery": "at_most_once", "priority": "low"},
}
MOST = {"api": 2, "tight": 1}


class Fleet:
    """What the sessions share: messages on their way, as a broker would hold them, and jobs."""

    def __init__(self, jobs: dict[str, UUID]) -> None:
        self.jobs = jobs
        self.messages: list[StartRequest] = []
        self.lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def send(self, tickets: list[StartRequest]) -> None:
        with self.lock:
            self.messages += tickets

    def receive(self, rng: Random) -> list[StartRequest]:
        """Take some messages; one in four is delivered again later."""
        with self.lock:
            rng.shuffle(self.messages)
            taken, self.messages = self.messages[:4], self.messages[4:]
            self.messages += [ticket for ticket in taken if rng.random() < 0.25]
        return taken


class Session:
    """One connection that takes turns at being each of the services."""

    def __init__(self, url: str, fleet: Fleet, seed: int) -> None:
        self.rng = Random(seed)
        self.fleet = fleet
        self.world = World(url)
        self.db = self.world.db
        self.known = FactCache()
        self.planner = Planner(catch_up_cap=3, ledger_cap=20)
        self.worker = self.world.worker(lease_seconds=1000)
        self.held: dict[UUID, tuple[StartedRun, int]] = {}
        self.acts: list[Callable[[], object]] = (
            [self.claim] * 3
            + [self.promote] * 5
            + [self.relay] * 5
            + [self.start] * 8
            + [self.finish] * 9
            + [self.retries, self.deadlines, self.redrive, self.discard, self.park, self.cancel_runs]
            + [self.hand_back, self.reconcile, self.lose, self.vanish, self.expire, self.report]
            + [self.pause, self.resume, self.resume, self.trigger, self.trigger, self.edit, self.resize]
        )

    def run(self, steps: int) -> None:
        for _ in range(steps):
            act = self.rng.choice(self.acts)
            try:
                act()
            except psycopg.errors.DeadlockDetected:  # as a service would: it is tried again
                self.fleet.counts["deadlock"] += 1
            self.fleet.counts[act.__name__] += 1

    # the trigger

    def claim(self) -> None:
        for lane in Lane:
            claims.claim_planned(
                self.db, lane, EVERY_SHARD, 100, kind=TimerKind.PLANNED, plan=self.planner, topics=TOPICS,
                install_shards=SHARDS,
            )  # fmt: skip

    def promote(self) -> None:
        promotion.promote(self.db, TOPICS, install_shards=SHARDS)

    def retries(self) -> None:
        for lane in Lane:
            claims.claim_retries(self.db, lane, EVERY_SHARD, 100)

    def deadlines(self) -> None:
        for lane in Lane:
            claims.claim_deadlines(self.db, lane, EVERY_SHARD, 100, topics=TOPICS, install_shards=SHARDS)

    def lose(self) -> None:
        leases.run_pass(self.db, TOPICS, shards=SHARDS, gap_seconds=1000)

    # the dispatcher

    def relay(self) -> None:
        rows = relay.read(self.db, EVERY_SHARD, 20, [*Lane])
        self.fleet.send([StartRequest(row.run_id, row.scheduled_for, row.fence) for row in rows])
        relay.delete(self.db, rows)

    def park(self) -> None:
        rows = relay.read(self.db, EVERY_SHARD, 4, [*Lane])[:1]
        refused = [Parked(row.run_id, row.scheduled_for, row.fence, "too large") for row in rows]
        if refused:
            relay.park(self.db, rows, refused, retry_seconds=0.0)

    # the worker

    def start(self) -> None:
        tickets = [t for t in self.fleet.receive(self.rng) if t.run_id not in self.held]
        if tickets:
            fences = {ticket.run_id: ticket.fence for ticket in tickets}
            started, _ = starts.start(self.db, self.worker, "default", tickets)
            for run in started:
                # Of two messages of a run in one batch, only that of the fence it has was taken.
                self.held[run.id] = run, self.fence_of(run.id) or fences[run.id]

    def fence_of(self, run_id: UUID) -> int:
        return self.world.value("select fence from runs where id = %s", run_id)

    def some_held(self) -> list[tuple[StartedRun, int]]:
        ids = self.rng.sample(sorted(self.held), min(len(self.held), self.rng.randint(1, 4)))
        return [self.held[run_id] for run_id in ids]

    def let_go(self, runs: list[tuple[StartedRun, int]]) -> None:
        for run, _ in runs:
            del self.held[run.id]

    def finish(self) -> None:
        runs = self.some_held()
        if runs:
            with self.db.transaction():
                outcomes = [self.outcome(run, fence) for run, fence in runs]
                finish.record(self.db, self.worker, TOPICS, outcomes, [], shards=SHARDS)
            self.let_go(runs)

    def outcome(self, run: StartedRun, fence: int) -> Outcome:
        state, how, reason = self.rng.choice(
            [(RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED, None)] * 4
            + [(RunState.RETRYING, AttemptOutcome.FAILED, None)] * 3
            + [(RunState.RETRYING, AttemptOutcome.SNOOZED, None)]
            + [(RunState.DEAD, AttemptOutcome.FAILED, "retries_exhausted")] * 3
            + [(RunState.CANCELLED, AttemptOutcome.CANCELLED, "by_handler")]
            + [(RunState.DISCARDED, AttemptOutcome.FAILED, "by_handler")]
            + [(RunState.UNKNOWN, AttemptOutcome.TIMED_OUT, "timed_out")]
            + [(RunState.RUNNING, AttemptOutcome.SUCCEEDED, None)] * 2
        )
        ended = Outcome(run, fence, state, how, reason, pool="default")
        if state is RunState.RUNNING:
            open_callbacks(self.db, *self.worker, [NewCallback(run.id, run.scheduled_for, fence, TOKEN)])
            ended.extras = OutcomeExtras(callback=Expected(self.rng.choice([0.0, 1000.0])))
        elif how is not AttemptOutcome.SUCCEEDED:
            ended.error = f"failed at {self.rng.random()}"
        elif self.rng.random() < 0.5:
            ended.result = '{"n": 1}'
        return ended

    def hand_back(self) -> None:
        runs = self.some_held()
        held_runs.requeue_unfinished(
            self.db, self.worker, [(run.id, run.scheduled_for, fence) for run, fence in runs]
        )
        self.let_go(runs)

    def reconcile(self) -> None:
        """Compare with Postgres: forget what is not ours, end what was cancelled, give back what is not known."""
        live = held_runs.read_worker_runs(self.db, self.worker).live
        self.held = {run_id: run for run_id, run in self.held.items() if run_id in live}
        unknown = [
            (run_id, one.scheduled_for, one.fence) for run_id, one in live.items() if run_id not in self.held
        ]
        cancelled = [
            (i, one.scheduled_for, one.fence) for i, one in live.items() if one.state == RunState.CANCELLING
        ]
        if cancelled:
            held_runs.cancel_unowned(self.db, self.worker, TOPICS, cancelled, shards=SHARDS)
        held_runs.requeue_unfinished(self.db, self.worker, unknown)

    def vanish(self) -> None:
        """Lapse, and come back as another worker; what was held may still report."""
        self.db.execute(
            "update workers set lapsed_at = now(), epoch = epoch + 1 where id = %s", [self.worker.worker]
        )
        if self.rng.random() < 0.5:
            self.finish()
        self.worker = self.world.worker(lease_seconds=1000)
        self.held = {}

    def expire(self) -> None:
        with self.fleet.lock:
            tickets = self.fleet.messages[:3]
        starts.expire(self.db, TOPICS, tickets, shards=SHARDS)

    # people and their events

    def order(self, *submissions: object) -> None:
        self.take([Request(one, None) for one in submissions])

    def take(self, requests: list[Request]) -> None:
        with self.db.transaction():
            facts = read_time_facts(self.db)
            accept(self.db, requests, shards=SHARDS, topics=TOPICS, known=self.known, facts=facts)

    def some_job(self) -> JobRef:
        return JobRef(self.rng.choice(sorted(self.fleet.jobs.values())), "default", None)

    def pause(self) -> None:
        self.order(PauseJob(self.some_job(), None))

    def resume(self) -> None:
        for job_id in self.fleet.jobs.values():
            if self.rng.random() < 0.5:
                self.order(ResumeJob(JobRef(job_id, "default", None), ResumeChoice.SKIP))

    def trigger(self) -> None:
        self.order(TriggerJob(self.some_job()))

    def edit(self) -> None:
        name = self.rng.choice(["skips", "lines-up", "newest"])
        document = JOBS[name] | {"overlap": self.rng.choice(["skip", "queue_one", "cancel_running"])}
        self.take([event("update", type="python", handler="tests.noop", name=name, **document)])

    def resize(self) -> None:
        name = self.rng.choice(sorted(MOST))
        set_limit(self.db, "default", name, Figures(max_running=self.rng.randint(1, MOST[name])))

    def cancel_runs(self) -> None:
        ids = self.world.column("select id from runs where finished_at is null order by random() limit 2")
        if self.rng.random() < 0.5:
            found = [run for run, _ in run_cancel.locate(self.db, ids)]
            run_cancel.cancel(self.db, TOPICS, found, shards=SHARDS)
        elif ids:
            self.order(CancelRuns(tuple(ids)))

    def redrive(self) -> None:
        found = dead_letters.find(self.db, DeadSelection())
        if found:
            some = self.rng.sample(found, min(3, len(found)))
            dead_letters.redrive(self.db, TOPICS, some, shards=SHARDS)

    def discard(self) -> None:
        found = dead_letters.find(self.db, DeadSelection(), limit=1)
        if found:
            dead_letters.discard(self.db, TOPICS, found, reason=None, shards=SHARDS)

    def report(self) -> None:
        ids = self.world.column("select run_id from callbacks where deadline_at is not null limit 2")
        reports = [
            CompleteRun(run_id, TOKEN, self.rng.random() < 0.5, None, None, self.rng.random() < 0.5)
            for run_id in ids
        ]
        if reports:
            self.order(*reports)


@pytest.fixture
def fleet(world: World) -> Fleet:
    limit(world, "api", "default", max_running=MOST["api"])
    limit(world, "tight", "default", max_running=MOST["tight"])
    limit(world, "rated", "default", rate_count=20, rate_seconds=1.0)
    with world.db.transaction():
        facts = read_time_facts(world.db)
        requests = [
            create(name=name, **({"schedule": "0 3 1 1 *"} | document)) for name, document in JOBS.items()
        ]
        taken = accept(world.db, requests, shards=SHARDS, topics=TOPICS, known=FactCache(), facts=facts)
    jobs = {name: one.job_id for name, one in zip(JOBS, taken.results, strict=True) if one.job_id}
    assert len(jobs) == len(JOBS), taken.results
    return Fleet(jobs)


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_at_once_to_the_same_runs_the_ledger_adds_up(world: World, fleet: Fleet, seed: int):
    sessions = [Session(world.url, fleet, seed * 1000 + n) for n in range(SESSIONS)]
    try:
        with ThreadPoolExecutor(SESSIONS) as threads:
            for ended in [threads.submit(session.run, STEPS) for session in sessions]:
                ended.result()
        adds_up(world, MOST)
        assert fleet.counts["deadlock"] < SESSIONS * STEPS / 500
        come_to_rest(world, sessions[0])
    finally:
        for session in sessions:
            session.world.close()
    print(sorted(fleet.counts.items()))  # shown where it fails
    adds_up(world, MOST)
    for table in ("waits", "slots", "limit_slots", "callbacks"):
        assert world.rows(f"select * from {table}") == [], f"{table} of ended runs"
    assert world.rows("select * from timers where run_id is not null") == []
    assert world.rows("select * from runs where finished_at is null") == []
    verdicts_add_up(world)
    world.db.execute("delete from outbox")  # relayed
    world.turn_clock(timedelta(minutes=10))
    # These sessions retry and leave runs to targets at random, whatever the job allows.
    assert [
        one.sentence
        for one in check(world).findings
        if one.kind != "attempts" and "its target, which does not report outcomes" not in one.sentence
    ] == []


def come_to_rest(world: World, session: Session) -> None:
    """Whatever is unfinished ends: workers vanish, jobs go on, and every attempt succeeds."""
    world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1 where lapsed_at is null")
    session.worker, session.held = world.worker(), {}
    world.db.execute("delete from timers where run_id is null")
    set_limit(world.db, "default", "rated", Figures(max_running=100))
    for job_id in session.fleet.jobs.values():
        session.order(ResumeJob(JobRef(job_id, "default", None), ResumeChoice.SKIP))
    # Messages on their way may be lost, where they are sent again; here all of them arrive.
    session.outcome = lambda run, fence: Outcome(  # type: ignore[method-assign]
        run, fence, RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED, pool="default"
    )
    for _ in range(2000):
        world.db.execute("update timers set fire_at = now() where kind in (2, 4)")
        world.db.execute("update callbacks set deadline_at = now() where deadline_at is not null")
        for act in (session.lose, session.deadlines, session.retries, session.promote, session.relay):
            act()
        while session.fleet.messages:
            session.start()
        while session.held:
            session.finish()
        if not world.count("runs", "finished_at is null"):
            world.db.execute("delete from callbacks where deadline_at is null")  # of attempts that were lost
            return
    unfinished = world.rows(
        "select runs.*, waits.* from runs left join waits on run_id = id where finished_at is null"
    )
    raise AssertionError(f"runs are stuck: {unfinished}")
