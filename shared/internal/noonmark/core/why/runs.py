"""Answers about one run: what it waits for and what it is doing. For how it ended see `endings.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from noonmark.core.states import RunState, WaitReason
from noonmark.core.why.answers import About, Answer, Blocker, Weight, ahead, answer, at, counted
from noonmark.core.why.endings import of_ended
from noonmark.core.why.facts import Facts, GateFacts, RunFacts
from noonmark.core.why.path import of_message, of_opening, of_overdue, of_unsent, of_workers, stopped
from noonmark.core.why.progress import about_holder, doing, loss, worker_of
from noonmark.core.why.stranded import RUN_FAULTS
from noonmark.core.why.workflows import is_workflow, of_open_workflow

_ROUNDING: Final = 1e-9
_MOST_NAMED: Final = 3


def of_run(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    """Say why a run has not run, or how it ended."""
    if run.unfinished and run.fault is None and run.lost_at is not None and run.state != RunState.RETRYING:
        yield _lost(run, run.lost_at)
    if run.fault is not None:
        sentence = RUN_FAULTS[run.fault].format(state=run.state)
        yield answer(Blocker.RUN_STRANDED, sentence, run=run.id, state=run.state, missing=run.fault)
    elif run.state == RunState.WAITING:
        yield from _deadline(facts, run)
        yield from _waiting(facts, run)
    elif run.state == RunState.QUEUED:
        yield from _deadline(facts, run)
        yield from of_workers(facts)
        if run.unsent_since:
            yield from of_unsent(facts, run)
        else:
            yield from (of_opening if is_workflow(run) else of_message)(facts, run)
    elif run.state == RunState.RETRYING:
        yield from _retrying(facts, run)
    elif run.state in (RunState.RUNNING, RunState.CANCELLING):
        if is_workflow(run):
            yield from of_open_workflow(facts, run)
        else:
            yield _under_way(facts, run)
    else:
        yield from of_ended(facts, [run])


def _deadline(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    if run.start_by is None or run.started_at is not None:
        return
    about: About = {"run": run.id, "start_by": run.start_by}
    if run.start_by < facts.now:
        yield answer(
            Blocker.START_DEADLINE,
            f"its start deadline passed at {at(run.start_by)}: the trigger or a worker will skip it",
            **about,
        )
    else:
        yield answer(
            Blocker.START_DEADLINE,
            f"it is skipped if it has not started by {at(run.start_by)}",
            weight=Weight.ADDS,
            **about,
        )


# what it waits for


def _waiting(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    if run.reason == WaitReason.UNDELIVERABLE:
        yield _undeliverable(run)
        if run.retry_at is not None and run.retry_at <= facts.now:
            yield from of_overdue(facts, run.retry_at, run.shard, run.lane)
    elif run.reason != WaitReason.PAUSED:
        # The answer about the job explains a pause.
        yield from _in_wait_queue(facts, run)


def _undeliverable(run: RunFacts) -> Answer:
    again = f"; it is retried at {at(run.retry_at)}" if run.retry_at else ""
    return answer(
        Blocker.UNDELIVERABLE,
        f"Kafka refuses its message: {run.error or 'unknown reason'}{again}",
        run=run.id,
        pool=run.pool,
        reason=run.error,
        since=run.waiting_since,
        retry_at=run.retry_at,
    )


def _in_wait_queue(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    gate = facts.gates.get(run.id)
    about: About = {"run": run.id, "namespace": run.namespace, "since": run.waiting_since}
    if gate is not None:
        about["before"] = gate.before
        found = _at_gate(facts, run, gate, about)
        if found is not None:
            yield found
    if gate is None or found is None:
        # There is capacity: the trigger's next pass queues it.
        since = run.waiting_since or run.scheduled_for
        if facts.path.trigger.alive:
            yield answer(
                Blocker.ON_ITS_WAY,
                f"it has been waiting since {at(since)} and has capacity now;"
                " the trigger is about to queue it",
                **about,
            )
        else:
            yield stopped(
                Blocker.TRIGGER_STOPPED,
                facts.path.trigger,
                "no live triggers: the run has capacity, but nothing queues it",
                **about,
            )
    elif not facts.path.trigger.alive:
        yield stopped(
            Blocker.TRIGGER_STOPPED,
            facts.path.trigger,
            "no live triggers to queue it when there is capacity",
            **about,
        )
    yield from of_workers(facts, weight=Weight.ADDS)


def _at_gate(facts: Facts, run: RunFacts, gate: GateFacts, about: About) -> Answer | None:
    """Say why the run waits for its limit or slot; None: it no longer has to wait."""
    if run.reason == WaitReason.OVERLAP:
        return _overlap(facts, run, gate.holders, about)
    if gate.rule is None:
        return None
    since, most = at(run.waiting_since or run.scheduled_for), gate.rule.max_running
    name = f"{run.limit_name}/{run.limit_key}" if run.limit_key is not None else str(run.limit_name)
    of_limit: About = {"limit": run.limit_name, "limit_key": run.limit_key}
    if most is not None and gate.held >= most:
        about |= {"holders": [one.id for one in gate.holders], "held": gate.held, "max": most}
        before = f"{ahead(gate.before)} in the queue"
        if run.reason == WaitReason.FAIRNESS:
            sentence = (
                f"it has been waiting since {since} for capacity in namespace {run.namespace}: {gate.held} of"
                f" {most} runs of its lane are in flight; {before}"
            )
            return _with_pauses(answer(Blocker.NAMESPACE_CAP, sentence, **about), gate.holders)
        sentence = (
            f"it has been waiting since {since} for limit {name}: {gate.held} of {most}"
            f" {'slot is' if most == 1 else 'slots are'} in use by"
            f" {_named(gate.holders, gate.held)}; {before}"
        )
        return _with_pauses(answer(Blocker.LIMIT, sentence, **of_limit, **about), gate.holders)
    rate = gate.rule.rate_per_second
    if rate is None or gate.tokens - gate.before + _ROUNDING >= 1.0:
        return None
    until = facts.now + timedelta(seconds=(gate.before + 1 - gate.tokens) / rate)
    sentence = (
        f"it has been waiting since {since} for the rate of limit {name}: with"
        f" {ahead(gate.before)}, its turn comes at about {at(until)}"
    )
    return answer(Blocker.RATE_LIMIT, sentence, until=until, rate_per_second=rate, **of_limit, **about)


def _overlap(facts: Facts, run: RunFacts, holders: Sequence[RunFacts], about: About) -> Answer | None:
    holder = next((one for one in holders if one.id != run.id), None)
    if holder is None:
        return None
    return answer(
        Blocker.OVERLAP,
        f"it has been waiting since {at(run.waiting_since or run.scheduled_for)} for run {holder.id}"
        f" of the same job, {doing(facts, holder)}",
        **about_holder(holder),
        **about,
    )


def _named(holders: Sequence[RunFacts], held: int) -> str:
    if not holders:
        return counted(held, "run")
    names = ", ".join(
        f"{one.id} ({'paused' if _paused(one) else one.state})" for one in holders[:_MOST_NAMED]
    )
    more = held - min(len(holders), _MOST_NAMED)
    return f"{'run' if held == 1 else 'runs'} {names}{f' and {more} more' if more > 0 else ''}"


def _paused(run: RunFacts) -> bool:
    return run.state == RunState.WAITING and run.reason == WaitReason.PAUSED


def _with_pauses(given: Answer, holders: Sequence[RunFacts]) -> Answer:
    """Add what to do about holders that wait for the resume of their job: they keep their slots."""
    paused = [one.id for one in holders if _paused(one)]
    if not paused:
        return given
    remedy = f"Runs of paused jobs keep their slots: `noonmark why {paused[0]}` says what to resume. "
    return replace(given, remedy=remedy + given.remedy, facts={**given.facts, "paused": paused})


# what it is doing


def _under_way(facts: Facts, run: RunFacts) -> Answer:
    about: About = {"run": run.id, "attempt": run.attempt, "started_at": run.started_at}
    if run.report_until is not None:
        return answer(
            Blocker.CALLBACK,
            f"its target accepted it and has until {at(run.report_until)} to report the outcome",
            until=run.report_until,
            **about,
        )
    assert run.started_at is not None
    about |= {"worker": run.owner, "host": run.host, "pid": run.pid, "beat_at": run.beat_at}
    if run.state == RunState.CANCELLING:
        sentence = f"it was asked to stop, and {worker_of(run)} has not confirmed yet that it stopped"
        return answer(Blocker.CANCELLING, sentence, **about)
    sentence = f"it has been running on {worker_of(run)} since {at(run.started_at)}, attempt {run.attempt}"
    return answer(Blocker.RUNNING, sentence + _silence(facts, run), **about)


def _silence(facts: Facts, run: RunFacts) -> str:
    """Return what happens to a run whose worker sends no heartbeats, as a clause; empty if it does."""
    if run.beat_at is None or run.lease_seconds is None:
        return ""
    if (facts.now - run.beat_at).total_seconds() <= run.lease_seconds / 2:
        return ""
    return (
        f"; that worker sent its last heartbeat at {at(run.beat_at)}, and counts as lost if it sends none"
        f" until {at(run.beat_at + timedelta(seconds=run.lease_seconds))}: the attempt is then repeated"
        " (an at_most_once run ends as unknown)"
    )


_REPEATED: Final = {
    RunState.QUEUED: "that attempt is queued again",
    RunState.WAITING: "that attempt is repeated when the run no longer waits",
    RunState.RUNNING: "that attempt is running again",
    RunState.CANCELLING: "that attempt was repeated",
}


def _lost(run: RunFacts, lost_at: datetime) -> Answer:
    sentence = f"{loss(run, lost_at)}; {_REPEATED[RunState(run.state)]}"
    weight = Weight.STATES if run.state == RunState.QUEUED else Weight.ADDS
    return answer(Blocker.WORKER_LOST, sentence, weight=weight, **_of_loss(run))


def _of_loss(run: RunFacts) -> About:
    return {
        "run": run.id,
        "attempt": run.lost_attempt,
        "lost_at": run.lost_at,
        "worker": run.lost_worker,
        "losses": run.losses,
    }


def _retrying(facts: Facts, run: RunFacts) -> Iterator[Answer]:
    why = f": {run.error}" if run.error else ""
    if run.retry_at is not None and run.retry_at <= facts.now:
        yield from of_overdue(facts, run.retry_at, run.shard, run.lane)
    if run.lost_at is not None:
        again = f"at {at(run.retry_at)}" if run.retry_at else "later"
        sentence = f"{loss(run, run.lost_at)}; that attempt is repeated {again}"
        about = _of_loss(run) | {"until": run.retry_at}
        yield answer(Blocker.WORKER_LOST, sentence, weight=Weight.BLOCKS, **about)
        yield from of_workers(facts)
        return
    following = f"the next one is due at {at(run.retry_at)}" if run.retry_at else "it waits for the next one"
    yield answer(
        Blocker.RETRYING,
        f"{_last_attempt(run)}{why}; {following}",
        run=run.id,
        attempt=run.attempt,
        until=run.retry_at,
        error=run.error,
    )
    yield from of_workers(facts)


def _last_attempt(run: RunFacts) -> str:
    """Name the last attempt; only one that counts has a number (a lost or rejected one gives it back)."""
    return f"attempt {run.attempt} failed" if run.attempt else "it has to be tried again"
