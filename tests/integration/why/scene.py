"""An installation whose clock stands still at noon, as tests plant reasons why something does not run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
from tests.integration.intake.world import SHARDS, TOPICS, World, event

from noonmark.core.states import AttemptOutcome, Lane, RunState, TimerKind
from noonmark.core.why.answers import Answer
from noonmark.core.why.facts import Facts, KafkaAway, LaneBacklog
from noonmark.core.why.jobs import explain
from noonmark.schemas.events.envelope import parse_event, render_structured
from noonmark.schemas.events.submissions import parse_submission
from noonmark.store.claims import claims
from noonmark.store.claims.planner import Planner
from noonmark.store.cluster.catalogues import catalogue_text
from noonmark.store.cluster.members import Membership
from noonmark.store.database.row_types import StartedRun
from noonmark.store.jobs.submit import EventRef, Request
from noonmark.store.limits import promotion
from noonmark.store.outbox import relay
from noonmark.store.runs import finish, leases, starts, worker_lease
from noonmark.store.schedules.time_facts import read_time_facts
from noonmark.store.views.why import Setup, facts_of_job, facts_of_run

SHARD_LIST = list(range(SHARDS))
SETUP = Setup(topic_of=lambda pool, lane: f"t.runs.{pool}.{lane.label}")
KINDS = ("python", "http")
HANDLERS = {"tests.noop": "thread"}


class Scene:
    """One database with the product's own code in front of it: everything is done as a service does it."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.folder = folder
        self.db: psycopg.Connection = world.connection
        real: datetime = world.row("select now() as now")["now"]
        self.noon = real.astimezone(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
        self._members = {
            role: Membership(role, shards=SHARDS, timeout_seconds=3) for role in ("trigger", "dispatcher")
        }
        self._worker: worker_lease.Identity | None = None
        self.clock(0)

    # -- the clock -------------------------------------------------------------------------------------

    def at(self, seconds: float) -> datetime:
        """Return the instant so many seconds after noon."""
        return self.noon + timedelta(seconds=seconds)

    def told(self, seconds: float) -> str:
        """Return it as sentences show it."""
        return self.at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")

    def clock(self, seconds: float, *alive: str) -> None:
        """Put the clock so many seconds after noon, keep it there, and let these beat: members, `worker`."""
        self.db.execute(
            "create or replace function noonmark_now() returns timestamptz language sql stable parallel safe"
            f" as 'select timestamptz ''{self.at(seconds).isoformat()}'''"
        )
        for role in alive:
            if role == "worker":
                assert worker_lease.beat(self.db, self.worker)
            else:
                self._members[role].beat(self.db)

    def everybody(self, *, but: str = "") -> None:
        """Let all services be there but one."""
        self.clock(0, *(role for role in ("trigger", "dispatcher", "worker") if role != but))

    @property
    def worker(self) -> worker_lease.Identity:
        """A worker of the pool with a lease of a minute."""
        if self._worker is None:
            self._worker = self.hire()
        return self._worker

    def hire(
        self, *, kinds: tuple[str, ...] = KINDS, handlers: dict[str, str] | None = None
    ) -> worker_lease.Identity:
        """Register a worker that runs these."""
        catalogue = catalogue_text(kinds, HANDLERS if handlers is None else handlers)
        return worker_lease.register(
            self.db, pool="default", host="here", pid=7, lease_seconds=60, catalogue=catalogue
        )

    # -- what people do --------------------------------------------------------------------------------

    def submit(self, **document: Any) -> UUID:
        """Submit a job: one that is due at once, unless the document says otherwise."""
        data = {"type": "python", "handler": "tests.noop", **document}
        value = render_structured(id=str(uuid4()), source="/tests", type="noonmark.job.create.v1", data=data)
        parsed = parse_event(value, None)
        submission = parse_submission(
            parsed,
            now=self.world.row("select noonmark_now() as now")["now"],
            ledger_floor=self.noon - timedelta(days=30),
            facts=read_time_facts(self.db),
        )
        return self.world.job_id(Request(submission, EventRef(parsed.source, parsed.id, parsed.sequence)))

    def minutely(self, name: str = "tick", **document: Any) -> UUID:
        """Submit a job of every minute."""
        return self.submit(name=name, schedule={"cron": "* * * * *", "timezone": "UTC"}, **document)

    def minutely_under(self, calendar: str) -> UUID:
        """Submit a job of every minute of the days that a calendar leaves open."""
        schedule = {"cron": "* * * * *", "timezone": "UTC", "calendars": {"exclude": [calendar]}}
        return self.submit(name="tick", schedule=schedule)

    def order(self, kind: str, job_id: UUID, **data: Any) -> None:
        """Give an order about a job."""
        result = self.world.one(event(kind, job_id=str(job_id), **data))
        assert result.job_id == job_id, result

    # -- what services do ------------------------------------------------------------------------------

    def claim(self) -> None:
        """Claim what is due, as the trigger does."""
        plan = Planner(catch_up_cap=100, ledger_cap=1000)
        for lane in Lane:
            claims.claim_once(self.db, lane, SHARD_LIST, 400)
            claims.claim_retries(self.db, lane, SHARD_LIST, 400)
            for kind in (TimerKind.PLANNED, TimerKind.ZONED):
                claims.claim_planned(
                    self.db, lane, SHARD_LIST, 400, kind=kind, plan=plan, topics=TOPICS, install_shards=SHARDS
                )

    def promote(self) -> None:
        """Queue what has room, as the trigger does."""
        while promotion.promote(self.db, TOPICS, install_shards=SHARDS).more:
            pass

    def relay(self) -> None:
        """Have Kafka acknowledge what is in the outbox, as the dispatcher does."""
        relay.delete(self.db, relay.read(self.db, SHARD_LIST, 1000))

    def runs(self, job_id: UUID) -> list[UUID]:
        """Return the runs of a job, in the order of their instants."""
        rows = self.world.rows("select id from runs where job_id = %s order by scheduled_for", job_id)
        return [row["id"] for row in rows]

    def run(self, job_id: UUID) -> UUID:
        """Return the only run of a job."""
        (run,) = self.runs(job_id)
        return run

    def start(self, run_id: UUID) -> StartedRun:
        """Let the worker start a run that is queued."""
        row = self.world.row("select * from runs where id = %s", run_id)
        ticket = starts.StartRequest(run_id, row["scheduled_for"], row["fence"])
        (started,), refused = starts.start(self.db, self.worker, "default", [ticket])
        assert not refused
        return started

    def end(self, run: StartedRun, state: RunState, **more: Any) -> None:
        """Let the worker record how a run ended."""
        fence = self.world.row("select fence from runs where id = %s", run.id)["fence"]
        how = (
            AttemptOutcome.SUCCEEDED
            if state in (RunState.SUCCEEDED, RunState.RUNNING)
            else AttemptOutcome.FAILED
        )
        outcome = finish.Outcome(run, fence, state, how, pool="default", **more)
        with self.db.transaction():
            finish.record(self.db, self.worker, TOPICS, [outcome], [], shards=SHARDS)

    def lose_worker(self, seconds: float) -> None:
        """Let the worker's lease end so many seconds after noon, in spite of a trigger that watches all the time."""
        for moment in (0, seconds):
            self.clock(moment, "trigger", "dispatcher")
            leases.run_pass(self.db, TOPICS, shards=SHARDS, gap_seconds=1000)

    def start_and_end(self, job_id: UUID) -> None:
        """Let the only run of a job succeed."""
        self.end(self.start(self.run(job_id)), RunState.SUCCEEDED)

    # -- what is asked ---------------------------------------------------------------------------------

    def facts(self, target: UUID) -> Facts:
        """Gather what is known about a job or a run."""
        with self.db.transaction():
            found = facts_of_job(self.db, target, SETUP) or facts_of_run(self.db, target, SETUP)
        assert found is not None
        return found

    def why(self, target: UUID, backlog: LaneBacklog | KafkaAway | None = None) -> list[Answer]:
        """Ask why a job or a run has not run."""
        facts = self.facts(target)
        return explain(facts if backlog is None else replace(facts, backlog=backlog))
