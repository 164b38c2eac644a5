"""People, workers and triggers at a few workflows, all at once and at random: nothing is lost, nothing stays open."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.integration.store.room import promote
from tests.integration.store.workflow_checks import assert_consistent
from tests.integration.store.workflow_room import Flows, hand_over
from tests.integration.store.world import ENDED, EVERY_SHARD, SHARDS, TOPICS, World, outcome

from noonmark.core.states import Lane, ResumeChoice, RunState
from noonmark.schemas.events.submissions import (
    CancelJob,
    JobRef,
    PauseJob,
    ResumeJob,
    Submission,
    TriggerJob,
    UpdateJob,
)
from noonmark.store.claims import claims
from noonmark.store.jobs.requests import FactCache, Request
from noonmark.store.jobs.submit import accept
from noonmark.store.namespaces import batches, pauses
from noonmark.store.namespaces.namespaces import NamespaceError
from noonmark.store.runs import cancel, dead_letters, finish, leases, starts, worker_lease
from noonmark.store.runs.cancel import RunKey
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.runs.starts import StartRequest
from noonmark.store.schedules.time_facts import read_time_facts, share_time_facts
from noonmark.store.workflows import holds
from noonmark.store.workflows.advance import WorkflowPass

TASKS: dict[str, Any] = {
    "a": {},
    "b": {"depends_on": ["a"], "priority": "high"},
    "c": {"depends_on": [{"task": "a", "if": {"at": "/x", "gt": 3}}], "priority": "low"},
    "d": {"depends_on": ["b", "c"], "rule": "none_failed"},
    "e": {"depends_on": ["b", "c"], "rule": "one_failed"},
    "f": {"depends_on": ["d", "e"], "rule": "all_done", "when": {"result": "a", "at": "/x", "lt": 9}},
    "late": {"depends_on": ["a"], "start_deadline_seconds": 0.5, "may_fail": True},
}
FINALLY = {"tidy": {}, "tell": {"depends_on": ["tidy"]}}
RETRIED = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.SerializationFailure,
)
"""What a service or a command tries again."""


class Storm:
    """Threads with a session each; each does at random what it may do at any time."""

    def __init__(self, flows: Flows, seed: int) -> None:
        self.flows, self.world, self.seed = flows, flows.world, seed
        self.stop = threading.Event()
        self.failed: list[BaseException] = []
        self.counts: Counter[str] = Counter()

    def blow(self, seconds: float, people: list[Callable[..., None]]) -> None:
        """Let two triggers, two workers and these people do what they do for so long."""
        roles = [self.trigger, self.trigger, self.worker, self.worker, self.starter, *people]
        threads = [threading.Thread(target=self._go, args=(role, n)) for n, role in enumerate(roles)]
        for thread in threads:
            thread.start()
        self.stop.wait(seconds)
        self.stop.set()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), "it waits for ever"
        assert self.failed == [], f"seed {self.seed}"

    def _go(self, role: Callable[..., None], number: int) -> None:
        dice = random.Random(f"{self.seed} {number}")
        connection = self.world.another()
        try:
            if role == self.worker:
                self.worker(connection, dice)
            while not self.stop.is_set() and role != self.worker:
                with self.retried(role.__name__):
                    role(connection, dice)
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.failed.append(error)

    @contextmanager
    def retried(self, what: str) -> Iterator[None]:
        """A deadlock ends a try: whoever it hits comes again."""
        try:
            yield
        except RETRIED as error:
            self.counts[f"{what} {type(error).__name__}"] += 1

    def trigger(self, connection: psycopg.Connection, dice: random.Random) -> None:
        one = WorkflowPass(TOPICS, shards=SHARDS)
        hand_over(connection)
        for lane in Lane:
            claims.claim_retries(connection, lane, EVERY_SHARD, 100)
            done = one.run(
                connection, lane, EVERY_SHARD, dice.choice([4, 40, 400]), arrays=dice.random() < 0.5
            )
            assert not done.broken, done.broken
        promote(self.world, connection)
        leases.run_pass(connection, TOPICS, shards=SHARDS, gap_seconds=5)

    def worker(self, connection: psycopg.Connection, dice: random.Random) -> None:
        identity = worker_lease.register(connection, pool="default", host="h", pid=1, lease_seconds=60)
        while not self.stop.is_set():
            with self.retried("worker"):
                work(connection, identity, dice)

    def submit(self, connection: psycopg.Connection, submission: Submission) -> None:
        with connection.transaction():
            share_time_facts(connection, wait=True)
            facts = read_time_facts(connection)
            accept(
                connection,
                [Request(submission, None)],
                topics=TOPICS,
                known=FactCache(),
                shards=SHARDS,
                facts=facts,
            )

    def owner(self, connection: psycopg.Connection, dice: random.Random) -> None:
        """Pause, resume or edit a job."""
        row = connection.execute("select id, name from jobs order by random() limit 1").fetchone()
        assert row is not None
        ref = JobRef(row[0], "tests", None)
        act = dice.choice([PauseJob(ref, None), ResumeJob(ref), ResumeJob(ref), None])
        if act is None:
            changed = {**TASKS, "g": {"depends_on": [dice.choice(["a", "b", "f"])]}}
            act = UpdateJob(ref, self.flows.document(changed, name=row[1], **{"finally": FINALLY}))
        self.submit(connection, act)

    def starter(self, connection: psycopg.Connection, _: random.Random) -> None:
        """Run a job once more, if few are open."""
        self.stop.wait(0.02)
        row = connection.execute("select id from jobs order by random() limit 1").fetchone()
        assert row is not None
        if connection.execute("select count(*) < 60 from workflows").fetchone() == (True,):
            self.submit(connection, TriggerJob(JobRef(row[0], "tests", None)))

    def operator(self, connection: psycopg.Connection, dice: random.Random) -> None:
        """Cancel some runs, whatever they are."""
        rows = connection.execute(
            "select id, scheduled_for from runs where state <> all (%s) order by random() limit %s",
            [list(ENDED), dice.choice([1, 8])],
        ).fetchall()
        self.stop.wait(dice.random() / 5)
        cancel.cancel(connection, TOPICS, [RunKey(*row) for row in rows], reason="x", shards=SHARDS)

    def redriver(self, connection: psycopg.Connection, dice: random.Random) -> None:
        """Redrive what is dead."""
        dead = dead_letters.find(connection, DeadSelection(namespace="tests"))
        if dead:
            dead_letters.redrive(connection, TOPICS, dead, shards=SHARDS)
        self.stop.wait(dice.random() / 10)

    def landlord(self, connection: psycopg.Connection, dice: random.Random) -> None:
        """Pause or resume the namespace."""
        with suppress(NamespaceError):
            dice.choice([pause_namespace, resume_namespace])(connection)

    def holder(self, connection: psycopg.Connection, dice: random.Random) -> None:
        """Hold or release runs."""
        ids = [row[0] for row in connection.execute("select run_id from workflows order by random() limit 3")]
        dice.choice([holds.hold, holds.release])(connection, ids)

    def quitter(self, connection: psycopg.Connection, dice: random.Random) -> None:
        """Cancel a job now and then."""
        self.stop.wait(0.3)
        row = connection.execute("select id from jobs order by random() limit 1").fetchone()
        assert row is not None
        self.submit(
            connection, CancelJob(JobRef(row[0], "tests", None), None, stops_running=dice.random() < 0.5)
        )

    def calm(self) -> None:
        """Let go all that somebody holds, and work until nothing is left to do."""
        world, dice = self.world, random.Random(self.seed)
        resume_namespace(world.db)
        for job_id in world.column("select id from jobs where state = 'paused'"):
            self.submit(world.db, ResumeJob(JobRef(job_id, "tests", None)))
        holds.release(world.db, world.column("select run_id from workflows"))
        identity = world.worker(lease_seconds=600)
        self.stop.clear()
        for _ in range(60):
            world.db.execute("update timers set fire_at = noonmark_now() where kind = 2")
            self.trigger(world.db, dice)
            work(world.db, identity, dice)
            if not world.count("runs", f"state not in {ENDED}"):
                return
        assert_consistent(world)
        left = world.rows(f"select id, state, reason, origin, job_id from runs where state not in {ENDED}")
        raise AssertionError(f"seed {self.seed}: {left}")


def work(connection: psycopg.Connection, identity: worker_lease.Identity, dice: random.Random) -> None:
    """Start and end some queued runs, and what was asked to stop."""
    rows = connection.execute(
        "select id, scheduled_for, fence from runs where state = 'queued' and pool = 'default'"
        " order by random() limit 20"
    ).fetchall()
    if not rows:
        return
    requests = [StartRequest(*row) for row in rows]
    started, refused = starts.start(connection, identity, "default", requests)
    starts.expire(connection, TOPICS, refused, shards=SHARDS)
    fences = {row[0]: row[2] for row in rows}
    done = []
    for run in started:
        state = dice.choices([RunState.SUCCEEDED, RunState.DEAD, RunState.RETRYING], [8, 1, 1])[0]
        more: dict[str, Any] = {}
        if state is RunState.DEAD:
            more = {"reason": "attempts_used_up", "error": "boom"}
        elif state is RunState.SUCCEEDED and dice.random() < 0.7:
            more = {"result": f'{{"x": {dice.randrange(10)}}}'}
        done.append(outcome(run, state, fence=fences[run.id], **more))
    for _ in range(5):
        try:
            with connection.transaction():
                finish.record(
                    connection, identity, TOPICS, done, [run.batch_id for run in started], shards=SHARDS
                )
        except RETRIED:
            continue
        return
    raise AssertionError("its outcomes cannot be recorded")


def pause_namespace(connection: psycopg.Connection) -> None:
    pauses.mark_paused(connection, "tests", None)
    for ids in batches.batches(connection, batches.TO_PAUSE, "tests"):
        pauses.pause_some(connection, "tests", ids)


def resume_namespace(connection: psycopg.Connection) -> None:
    pauses.mark_resumed(connection, "tests")
    for ids in batches.batches(connection, batches.TO_RESUME, "tests"):
        pauses.resume_some(connection, "tests", ids, ResumeChoice.LATEST)


PEOPLE = {
    "owners": ["owner", "owner"],
    "operators": ["operator", "redriver"],
    "namespaces": ["landlord", "landlord"],
    "holders": ["holder", "holder", "operator"],
    "all": ["owner", "operator", "redriver", "landlord", "holder"],
    "the end": ["owner", "landlord", "quitter", "redriver"],
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("people", PEOPLE)
def test_a_storm_leaves_every_workflow_with_its_verdict(
    world: World, people: str, seed: int, request: pytest.FixtureRequest
) -> None:
    flows = Flows(world)
    policies = [{}, {"overlap": "queue_one"}, {"deadline_seconds": 2}, {}, {}, {}]
    if seed % 2:
        world.db.execute("insert into namespaces (name, max_in_flight) values ('tests', 5)")
    for n, policy in enumerate(policies):
        flows.create(TASKS, name=f"flow {n}", **{"finally": FINALLY}, **policy)
    flows.claim()
    storm = Storm(flows, seed)
    storm.blow(2.5, [getattr(storm, name) for name in PEOPLE[people]])
    assert_consistent(world, stopped=False)
    world.turn_clock(timedelta(seconds=3))
    storm.calm()
    assert_consistent(world)
    assert world.count("timers", "kind in (2, 5)") == 0
    assert world.count("runs", f"state not in {ENDED}") == 0
    runs = world.value("select count(*) from runs where origin <> 'task'")
    print(f"seed {seed}: {runs} workflow runs, {world.count('runs') - runs} tasks, {dict(storm.counts)}")
