"""Intake, trigger and dispatcher: the product's loops and store functions, one pass a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from tests.simulation.actors import Actor, World
from tests.simulation.broker import PARTITIONS, places_of
from tests.simulation.virtual_time import NoHints, NoPace

from noonmark.dispatcher import event_relay, run_relay
from noonmark.intake.batch_checks import rejected_record
from noonmark.kafka.consumers.records import Record
from noonmark.kafka.producers.delivery import DeliveryFailure, FailureKind, OutboundMessage
from noonmark.kafka.producers.producer import BatchResult
from noonmark.kafka.topics import Topics
from noonmark.schemas.events.envelope import parse_event
from noonmark.schemas.events.submissions import parse_submission
from noonmark.store.cluster.members import Membership
from noonmark.store.jobs.rejections import record_rejections
from noonmark.store.jobs.submit import EventRef, FactCache, Request, Status, accept
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.schedules.time_facts import read_time_facts, share_time_facts
from noonmark.trigger.claim_loop import ClaimLoop
from noonmark.trigger.promote_loop import PromoteLoop
from noonmark.trigger.sweep_loop import LeaseLoop

TOPICS = Topics("sim")
EVENTS = EventTopics(lifecycle=TOPICS.lifecycle, dead=TOPICS.dead)
FLOOR = datetime(2000, 1, 1, tzinfo=UTC)
_BEAT_SECONDS = 240.0
_MEMBER_SECONDS = 600.0
_SWEEP_SECONDS = 120.0


class Intake(Actor):
    """Reads submissions, accepts a batch in one transaction, then commits the offsets, as the write loop does."""

    def start(self) -> None:
        """Forget the cached pools and days."""
        self._known = FactCache()

    def step(self, connection: psycopg.Connection) -> float:
        """Accept what is visible of each partition."""
        world, group = self.world, TOPICS.group_intake
        for place in places_of(TOPICS.submissions):
            offset = world.broker.position(group, place)
            records = world.broker.read(place, offset, world.seconds, 200)
            if records:
                self._accept(connection, records)
                world.hit("intake.after_commit")
                world.broker.commit(group, place, offset + len(records), world.seconds)
                self.has_news = True
        ahead = [
            at
            for place in places_of(TOPICS.submissions)
            if (at := world.broker.next_visible(place, world.broker.position(group, place))) is not None
        ]
        return max(0.05, min(ahead) - world.seconds) if ahead else 3600.0

    def _accept(self, connection: psycopg.Connection, records: Sequence[Record]) -> None:
        with connection.transaction():
            share_time_facts(connection, wait=True)
            facts = read_time_facts(connection)
            requests = []
            for record in records:
                event = parse_event(record.value, None)
                submission = parse_submission(event, now=self.world.time.now, ledger_floor=FLOOR, facts=facts)
                requests.append(Request(submission, EventRef(event.source, event.id, event.sequence)))
            taken = accept(
                connection,
                requests,
                shards=self.world.shards,
                topics=EVENTS,
                known=self._known,
                facts=facts,
            )
            refused = [
                rejected_record(record, result.reason.value, result.refused.below("/data"), request.event)
                for record, request, result in zip(records, requests, taken.results, strict=True)
                if result.reason is not None and result.refused is not None
            ]
            if refused:
                record_rejections(
                    connection,
                    refused,
                    topic=TOPICS.rejections,
                    cap_bytes=1_000_000,
                    shards=self.world.shards,
                )
            self.world.hit("intake.before_commit")
        for result in taken.results:
            self.world.counts[f"submissions {result.status.value}"] += 1
            if result.status is Status.REJECTED:
                self.world.counts[f"refused: {result.reason}"] += 1


class Trigger(Actor):
    """The claim, promote and lease loops, with a membership that owns shards."""

    def start(self) -> None:
        """Start as a new member, which owns nothing before its first heartbeat."""
        service = self.world.service("trigger")
        self.membership = Membership("trigger", shards=self.world.shards, timeout_seconds=_MEMBER_SECONDS)
        hints: Any = NoHints()
        shards = self.world.shards
        self._claims = ClaimLoop(service, self.membership, EVENTS, hints, shards=shards)
        self._promotions = PromoteLoop(service, self.membership, EVENTS, hints, shards=shards)
        self._promotions._pace = NoPace()  # type: ignore[assignment]
        self._leases = LeaseLoop(service, self.membership, EVENTS, hints, shards=shards)
        self._beats_at = self._sweeps_at = 0.0

    def step(self, connection: psycopg.Connection) -> float:
        """Send a heartbeat if it is due, then claim, promote and sweep until nothing is left to do."""
        now = self.world.seconds
        if now >= self._beats_at:
            self.membership.beat(connection)
            self._beats_at = now + _BEAT_SECONDS
        if now >= self._sweeps_at:
            self._sweeps_at = now + _SWEEP_SECONDS
            while self._leases.run_once(connection) == 0.0:
                self.has_news = True
        pause = self._until_idle(self._claims.run_once, connection)
        self._until_idle(self._promotions.run_once, connection)
        due = self._next_timer(connection)
        # What is due and was not claimed belongs to another trigger, or waits for the relay.
        pause = max(pause, 15.0) if due is None or due <= 0 else due
        return min(pause, self._beats_at - now, self._sweeps_at - now)

    def _until_idle(self, run_once: Callable[[psycopg.Connection], float], connection: Any) -> float:
        while (pause := run_once(connection)) == 0.0:
            self.has_news = True
        return pause

    def _next_timer(self, connection: psycopg.Connection) -> float | None:
        row = connection.execute(
            "select extract(epoch from min(fire_at) - noonmark_now())::float8 from timers where shard = any (%s)",
            [list(self.membership.owned)],
        ).fetchone()
        return None if row is None or row[0] is None else float(row[0]) + 0.001


class _Producer:
    """Sends to the broker in memory; a broker that is away acknowledges nothing."""

    def __init__(self, world: World, dispatcher: Actor) -> None:
        self._world = world
        self._dispatcher = dispatcher

    def send_batch(self, messages: Sequence[OutboundMessage]) -> BatchResult:
        """Append messages in order."""
        world = self._world
        if world.broker.is_away(world.seconds):
            failure = DeliveryFailure(FailureKind.TRANSIENT, "timed_out", "the broker is away")
            failed: Mapping[int, DeliveryFailure] = dict.fromkeys(range(len(messages)), failure)
            return BatchResult(len(messages), failed)
        self._dispatcher.has_news = True
        for message in messages:
            if "drops messages" in world.flaws and ".runs." in message.topic and world.dice.random() < 0.02:
                continue
            world.broker.append(
                message.topic, message.key, message.value, world.seconds, partition=message.partition
            )
        return BatchResult(len(messages), {})

    def partitions(self, _topic: str) -> int:
        """Every topic has as many."""
        return PARTITIONS

    def close(self) -> None:
        """Nothing is open."""


class Dispatcher(Actor):
    """The relay loops, with producers that send to the broker in memory."""

    def start(self) -> None:
        """Start as a new member."""
        self.membership = Membership("dispatcher", shards=self.world.shards, timeout_seconds=_MEMBER_SECONDS)
        with pytest.MonkeyPatch.context() as patch:
            for module in (run_relay, event_relay):
                patch.setattr(module, "RelayProducer", lambda *_, **__: _Producer(self.world, self))
            service = self.world.service("dispatcher")
            hints: Any = NoHints()
            self._loops = (
                run_relay.RunRelay(service, self.membership, TOPICS, hints, shards=self.world.shards),
                event_relay.EventRelay(service, self.membership),
            )
        self._beats_at = 0.0

    def step(self, connection: psycopg.Connection) -> float:
        """Relay what the outbox holds."""
        now = self.world.seconds
        if now >= self._beats_at:
            self.membership.beat(connection)
            self._beats_at = now + _BEAT_SECONDS
        for loop in self._loops:
            while loop.run_once(connection) == 0.0:
                pass
        if self.world.broker.is_away(now):
            return 15.0
        # The loop polls for events five times a second; here a step that writes one wakes the dispatcher.
        return self._beats_at - now
