"""Answers about the path of a run: triggers that claim, dispatchers that relay, workers that start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from noonmark.core.states import Lane
from noonmark.core.why.answers import About, Answer, Blocker, Weight, answer, at, counted, lasting
from noonmark.core.why.facts import Facts, KafkaAway, LaneBacklog, RoleFacts, RunFacts
from noonmark.core.workflows import WORKFLOW_POOL

SLOW_SECONDS: Final = 5.0
"""A step that takes longer than this although its service is live is reported as a problem."""


def of_overdue(
    facts: Facts, due: datetime, shard: int, lane: int, *, zoned: bool = False
) -> Iterator[Answer]:
    """Say why something that is due has not been claimed."""
    late = (facts.now - due).total_seconds()
    about: About = {"shard": shard, "lane": Lane(lane).label, "due_since": due, "seconds": late}
    trigger, path = facts.path.trigger, facts.path
    unsent = (facts.now - path.oldest_unsent_at).total_seconds() if path.oldest_unsent_at else 0.0
    if not trigger.alive:
        sentence = "no live triggers, so nothing that comes due is claimed"
        yield stopped(Blocker.TRIGGER_STOPPED, trigger, sentence, **about)
    elif unsent > facts.bounds.outbox_age_seconds or path.unsent >= facts.bounds.outbox_rows:
        yield from _behind_relay(facts, unsent, about)
    elif zoned and facts.job is not None and facts.zone_data not in (None, facts.job.zone_data):
        yield _of_zone_data(facts.job.zone_data, facts.zone_data, about)
    elif late > SLOW_SECONDS:
        sentence = (
            f"it came due {lasting(late)} ago and has not been claimed, although"
            f" {counted(trigger.alive, 'trigger')} {_are(trigger.alive)} live: claims do not keep up"
        )
        yield answer(Blocker.TRIGGER_BEHIND, sentence, triggers=trigger.alive, **about)
    else:
        sentence = f"it came due {lasting(late)} ago; the trigger is about to claim it"
        yield answer(Blocker.ON_ITS_WAY, sentence, **about)


def _of_zone_data(active: str | None, here: str | None, about: About) -> Answer:
    sentence = (
        f"it has been due since {at(about['due_since'])}, and only triggers with the active zone data"
        f" ({active or 'none'}) claim jobs with a time zone; this process has {here}"
    )
    return answer(Blocker.ZONE_DATA, sentence, active=active, here=here, **about)


def _behind_relay(facts: Facts, unsent: float, about: About) -> Iterator[Answer]:
    path = facts.path
    if path.dispatcher.alive:
        yield _dispatcher_behind(facts, unsent)
    else:
        yield stopped(
            Blocker.DISPATCHER_STOPPED, path.dispatcher, "no live dispatchers, so no message reaches Kafka"
        )
    yield answer(
        Blocker.CLAIMS_HELD_BACK,
        f"nothing in lane {about['lane']} of its shard is claimed, because the relay is {lasting(unsent)}"
        f" and {counted(path.unsent, 'run')} behind",
        unsent=path.unsent,
        oldest_unsent_at=path.oldest_unsent_at,
        **about,
    )


def of_unsent(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    """Say why the message of a queued run has not been sent to Kafka."""
    assert run.unsent_since is not None
    dispatcher = facts.path.dispatcher
    waits = (facts.now - run.unsent_since).total_seconds()
    about: About = {
        "run": run.id,
        "unsent_since": run.unsent_since,
        "seconds": waits,
        "unsent": facts.path.unsent,
    }
    if not dispatcher.alive:
        yield stopped(
            Blocker.DISPATCHER_STOPPED,
            dispatcher,
            f"no live dispatchers; the run's message has been in the outbox since {at(run.unsent_since)}",
            **about,
        )
    elif waits > SLOW_SECONDS:
        yield _dispatcher_behind(facts, waits, run=run.id, unsent_since=run.unsent_since)
    else:
        yield answer(
            Blocker.ON_ITS_WAY,
            f"it was queued {lasting(waits)} ago; its message is about to be sent",
            **about,
        )


def _dispatcher_behind(facts: Facts, seconds: float, **about: Any) -> Answer:
    path = facts.path
    return answer(
        Blocker.DISPATCHER_BEHIND,
        f"{counted(path.unsent, 'run')} of its lane and slice {_wait(path.unsent)} in the outbox,"
        f" the oldest for {lasting(seconds)}, although {counted(path.dispatcher.alive, 'dispatcher')}"
        f" {_are(path.dispatcher.alive)} live: they make no progress, or Kafka does not answer",
        unsent=path.unsent,
        seconds=seconds,
        dispatchers=path.dispatcher.alive,
        **about,
    )


def of_workers(facts: Facts, *, weight: Weight | None = None) -> Iterator[Answer]:
    """Say why no worker can run the job, whether or not it is due. Triggers, not workers, run a workflow."""
    job = facts.job
    if job is None or job.pool == WORKFLOW_POOL:
        return
    pool = facts.path.pool
    about: About = {"pool": job.pool, "job": job.name or job.id, "kind": job.kind, "handler": job.handler}
    if not job.pool_known:
        yield answer(Blocker.NO_SUCH_POOL, f"its pool {job.pool!r} is not registered", weight=weight, **about)
    elif not pool.alive:
        seen = f"; the last heartbeat was at {at(pool.last_beat_at)}" if pool.last_beat_at else ""
        yield answer(
            Blocker.NO_WORKER,
            f"no live workers in pool {job.pool}{seen}",
            weight=weight,
            last_beat_at=pool.last_beat_at,
            **about,
        )
    elif pool.misfit is not None:
        code = Blocker.NO_WORKER_FOR_KIND if pool.lacks == "kind" else Blocker.NO_WORKER_FOR_HANDLER
        yield answer(code, pool.misfit, weight=weight, workers=pool.alive, **about)


def of_opening(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    """Say why a queued workflow run is not under way although a trigger knows of it: it needs no worker."""
    trigger, queued = facts.path.trigger, run.queued_at or run.scheduled_for
    waits = (facts.now - queued).total_seconds()
    about: About = {"run": run.id, "queued_at": queued, "seconds": waits}
    if not trigger.alive:
        yield stopped(
            Blocker.TRIGGER_STOPPED, trigger, "no live triggers, so nothing starts its tasks", **about
        )
    elif waits > SLOW_SECONDS:
        sentence = (
            f"it was queued {lasting(waits)} ago, and its first tasks have not been started, although"
            f" {counted(trigger.alive, 'trigger')} {_are(trigger.alive)} live: they do not keep up"
        )
        yield answer(Blocker.TRIGGER_BEHIND, sentence, triggers=trigger.alive, **about)
    else:
        sentence = f"it was queued {lasting(waits)} ago; a trigger is about to start its first tasks"
        yield answer(Blocker.ON_ITS_WAY, sentence, **about)


def of_message(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    """Say why a run has not started although its message is in Kafka."""
    path, queued = facts.path, run.queued_at or run.scheduled_for
    lane = Lane(run.lane).label
    about: About = {"run": run.id, "pool": run.pool, "lane": lane, "queued_at": queued}
    if path.passed_until is not None and queued < path.passed_until:
        sentence = (
            f"its message is gone: workers have read everything in lane {lane} up to"
            f" {at(path.passed_until)}, and it was queued at {at(queued)}"
        )
        yield answer(Blocker.MESSAGE_LOST, sentence, passed_until=path.passed_until, **about)
    elif isinstance(facts.backlog, KafkaAway):
        sentence = f"its message is in Kafka, but its lane cannot be measured now: {facts.backlog.reason}"
        yield answer(Blocker.KAFKA_AWAY, sentence, reason=facts.backlog.reason, **about)
    else:
        yield _in_lane(facts, facts.backlog, about)


def _in_lane(facts: Facts, backlog: LaneBacklog | None, about: About) -> Answer:
    pool, queued = facts.path.pool, about["queued_at"]
    waits = (facts.now - queued).total_seconds()
    workers: About = {"workers": pool.alive, "in_flight": pool.in_flight}
    busy = (
        f"{counted(pool.alive, 'worker')} of pool {about['pool']} {_are(pool.alive)} live,"
        f" with {counted(pool.in_flight, 'run')} in flight"
    )
    if backlog is not None and backlog.messages:
        age = (
            f", the oldest for {lasting(backlog.oldest_seconds)}"
            if backlog.oldest_seconds is not None
            else ""
        )
        sentence = (
            f"{counted(backlog.messages, 'run')} {_wait(backlog.messages)} in lane {about['lane']} of"
            f" pool {about['pool']}{age}; {busy}"
        )
        return answer(Blocker.LANE_BACKLOG, sentence, **backlog._asdict(), **workers, **about)
    if waits > SLOW_SECONDS:
        sentence = f"it has been queued since {at(queued)}, and its message was sent; {busy}"
        return answer(Blocker.WORKERS_BUSY, sentence, **workers, **about)
    sentence = f"it was queued {lasting(waits)} ago; a worker is about to start it"
    return answer(Blocker.ON_ITS_WAY, sentence, **about)


def stopped(
    code: Blocker, role: RoleFacts, sentence: str, *, weight: Weight | None = None, **about: Any
) -> Answer:
    """Say that no service with this role is live, and since when."""
    seen = f"; the last heartbeat was at {at(role.last_beat_at)}" if role.last_beat_at else ""
    return answer(code, sentence + seen, weight=weight, last_beat_at=role.last_beat_at, **about)


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"
