"""What must hold at every moment: S1 to S14, without S13. Each rule yields what breaks it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from noonmark.core.instants import format_instant
from noonmark.core.states import RunState
from noonmark.core.transitions import TERMINAL, VERDICTS
from noonmark.verify.case import EDGE, Case, Violation, Window, offence
from noonmark.verify.history import Call, DeadLetter, Death, LifecycleRecord, Message, Run

_SHARE: Final = 0.35
"""Share of starts that lower lanes may have while a higher one waits: their guaranteed minimum, and what
workers had read before."""
_PATIENCE: Final = timedelta(seconds=2)
"""How long a run of a higher lane may be on its way to a worker before it counts as waiting."""
_RESTART: Final = timedelta(seconds=60)
_LONGEST_DEADLINE: Final = timedelta(days=400)
"""More than the longest start deadline of a job with the most jitter: a year and a month."""
_Slot = tuple[str, str, str | None]
_ENOUGH: Final = 20
"""The fewest starts from which a share is meaningful."""


def one_run_per_instant(case: Case) -> Iterator[Violation]:
    """S1: at most one run per key, and one job per submission."""
    keys: dict[tuple[object, ...], list[Run]] = defaultdict(list)
    for run in case.history.runs:
        keys[run.job, run.scheduled_for, run.origin, run.request].append(run)
    for runs in keys.values():
        if len(runs) > 1:
            yield offence("S1", "extra", f"{case.title(runs[0])}: {len(runs)} runs of one key", *runs)
    names = Counter((job.namespace, job.name) for job in case.history.jobs)
    for job in case.history.jobs:
        if (job.namespace, job.name) in case.expected.instants and names[job.namespace, job.name] > 1:
            yield offence("S1", "extra", f"{job.name}: more than one job of one submission", job)


def submissions_are_kept(case: Case) -> Iterator[Violation]:
    """S2: what was acknowledged is in Postgres, or refused with its reason."""
    refused = {r.event for r in case.history.rejections if r.event is not None}
    taken = case.history.known_events
    for event in sorted(refused - case.expected.rejected - case.expected.refusable):
        if event in case.expected.acknowledged:
            yield Violation("S2", "refused", f"event {event} was refused", [])
    for rejection in case.history.rejections:
        if not rejection.reason:
            yield offence("S2", "refused", "a submission was refused without a reason", rejection)
    if case.partway:
        return
    for event in sorted(case.expected.acknowledged - taken - refused):
        yield Violation("S2", "lost", f"event {event} was acknowledged, but is not stored", [])
    for event in sorted(case.expected.rejected - refused):
        yield Violation("S2", "not_refused", f"event {event} should have been refused with a reason", [])
    names = {(job.namespace, job.name) for job in case.history.jobs}
    for namespace, name in case.expected.instants.keys() - names:
        yield Violation("S2", "lost", f"{namespace}/{name}: submitted, but the job does not exist", [])


def one_live_token(case: Case) -> Iterator[Violation]:
    """S3: the attempts of a run follow one another, and their fences rise."""
    for run_id, windows in case.windows.items():
        run = case.runs[run_id]
        for earlier, later in pairwise(windows):
            if later.since < earlier.until or later.fence == earlier.fence:
                what = f"{case.title(run)}: fences {earlier.fence} and {later.fence} were live at once"
                yield offence("S3", "two_live", what, run, earlier, later)
        if windows and windows[-1].fence > run.fence:
            what = f"{case.title(run)} was owned under {windows[-1].fence}, the ledger says {run.fence}"
            yield offence("S3", "fence_fell", what, run)
    for run_id, calls in case.calls.items():
        for earlier_call, later_call in pairwise(calls):
            # Nothing can prevent a process that was stopped from making its call when it continues.
            excused = case.history.unreachable and case.outcome(run_id, later_call.fence) == "lost"
            if later_call.fence < earlier_call.fence and not excused:
                what = f"run {run_id} was called under {later_call.fence} after {earlier_call.fence}"
                yield offence("S3", "fence_fell", what, earlier_call, later_call)
        if (held := case.runs.get(run_id)) and max(c.fence for c in calls) > held.fence:
            yield offence(
                "S3", "fence_fell", f"{case.title(held)} was called under a fence that no attempt had", held
            )


def one_verdict(case: Case) -> Iterator[Violation]:
    """S4: a verdict is written once, by the newest token, and nothing changes it."""
    for run_id, events in case.lifecycle.items():
        run = case.runs.get(run_id)
        final = [t for t in events.values() if t.state != RunState.DEAD]
        # A dead run may be redriven, under a higher fence, or discarded; nothing else comes after a verdict.
        fences = Counter(t.fence for t in events.values())
        if run is not None and run.state == RunState.DISCARDED and len(final) == 1:
            # A person discards under the fence of the death, a handler without one.
            fences[run.fence] -= any(
                t.state == RunState.DEAD and t.fence == run.fence for t in events.values()
            )
        if len(final) > 1 or max(fences.values()) > 1:
            said = ", ".join(f"{t.state} under fence {t.fence}" for t in events.values())
            yield offence(
                "S4", "second_verdict", f"{case.subject(run_id)} has verdicts: {said}", *events.values()
            )
        elif run is not None and max(fences) > run.fence:
            yield offence(
                "S4", "stale_write", f"{case.title(run)} was announced under a fence that no attempt had", run
            )
    yield from _announced_runs_exist(case)
    yield from _repeated_calls(case)
    yield from _changed_verdicts(case)
    for write in case.history.writes or ():
        run = case.runs.get(write.run)
        if run is None or (run.state == RunState.SUCCEEDED and run.fence != write.fence):
            yield offence(
                "S4", "stale_write", f"run {write.run} has a row of fence {write.fence}", write, run
            )


def _announced_runs_exist(case: Case) -> Iterator[Violation]:
    """While the system is running, an event may be newer than the rows that were collected."""
    if case.partway:
        return
    for run_id, events in case.lifecycle.items():
        if run_id not in case.runs:
            newest = max(events.values(), key=lambda event: event.fence)
            name = case.name(newest.job)[1] if newest.job is not None else "a job"
            at = f" of {format_instant(newest.scheduled_for)}" if newest.scheduled_for is not None else ""
            what = f"{name}{at} (run {run_id}) is {newest.state} by its event, but not in the ledger"
            yield offence("S4", "run_gone", what, newest)


def _repeated_calls(case: Case) -> Iterator[Violation]:
    for run_id, calls in case.calls.items():
        for fence, count in Counter(call.fence for call in calls).items():
            if count > 1:
                what = f"run {run_id} was called {count} times under fence {fence}"
                yield offence("S4", "second_verdict", what, *(c for c in calls if c.fence == fence))
        accepted = [call for call in calls if call.accepted]
        for earlier, later in pairwise(accepted):
            if later.fence < earlier.fence:
                what = f"run {run_id}: fence {later.fence} was accepted after {earlier.fence}"
                yield offence("S4", "stale_write", what, earlier, later)


def _changed_verdicts(case: Case) -> Iterator[Violation]:
    last: dict[str, tuple[str, int]] = {}
    ends = [(run.id, run.state, run.fence) for run in case.history.runs]
    for run_id, state, fence in [*(case.history.sightings or ()), *ends]:
        seen, held = last.get(run_id, (state, fence))
        if state != seen and RunState(seen) in TERMINAL:
            what = f"{case.subject(run_id)} was {seen}, and {state} later"
            yield offence("S4", "second_verdict", what, case.runs.get(run_id))
        if fence < held:
            what = f"{case.subject(run_id)}: its fence fell from {held} to {fence}"
            yield offence("S3", "fence_fell", what, case.runs.get(run_id))
        last[run_id] = state, fence


def offsets_leave_no_hole(case: Case) -> Iterator[Violation]:
    """S5: every record below a committed offset has its outcome in Postgres."""
    places = {(r.topic, r.partition, r.offset) for r in case.history.rejections}
    refused = {r.event for r in case.history.rejections if r.event is not None}
    for passed in case.history.passed:
        place = f"{passed.topic}[{passed.partition}]@{passed.offset}"
        if passed.run is not None:
            run = case.runs.get(passed.run)
            if run is None:
                yield offence("S5", "offset", f"{place} names run {passed.run}, which does not exist", passed)
            elif run.state == RunState.QUEUED and run.fence == passed.fence:
                what = f"{place} was passed, but {case.title(run)} is still queued for it"
                yield offence("S5", "offset", what, passed, run)
        elif (
            passed.event not in case.history.known_events
            and passed.event not in refused
            and (passed.topic, passed.partition, passed.offset) not in places
        ):
            yield offence(
                "S5", "offset", f"{place} was passed, but event {passed.event} is not stored", passed
            )


def messages_are_written_with_runs(case: Case) -> Iterator[Violation]:
    """S6: a queued run has its message in the outbox or in Kafka, and so had a run that was started."""
    yield from _queued_runs_have_messages(case)
    yield from _verdicts_are_announced(case)


def _queued_runs_have_messages(case: Case) -> Iterator[Violation]:
    if case.history.messages is None:
        return
    there = {(m.run, m.fence) for m in case.history.messages}
    for run in case.history.runs:
        if run.is_workflow:
            continue  # triggers open it, no worker starts it
        fences = {window.fence for window in case.windows[run.id]}
        fences |= {run.fence} if run.state == RunState.QUEUED else set()
        if run.state == RunState.CANCELLED and (run.id, run.fence - 1) in there:
            # The cancel of a run that waits for a callback raises the fence of its start, without a message.
            fences.discard(run.fence)
        for fence in sorted(fences):
            if (run.id, fence) not in there:
                what = f"{case.title(run)}: no message of fence {fence} in the outbox or in Kafka"
                yield offence("S6", "no_message", what, run)


def _verdicts_are_announced(case: Case) -> Iterator[Violation]:
    if case.partway:
        return
    for run in case.history.runs:
        if RunState(run.state) not in VERDICTS:
            continue
        # A death before a redrive was announced under a lower fence.
        announced = {t.state for t in case.lifecycle.get(run.id, {}).values() if t.fence == run.fence}
        if run.state not in announced:
            said = ", ".join(sorted(announced)) or "nothing"
            what = f"{case.title(run)} is {run.state}, and events of fence {run.fence} say {said}"
            yield offence("S6", "announced_otherwise" if announced else "unannounced", what, run)
        letters = case.history.deaths is None or {death.fence for death in case.deaths.get(run.id, ())}
        # The death of a task is part of that of its workflow run.
        lettered = run.state == RunState.DEAD and not run.is_task
        if lettered and letters is not True and run.fence not in letters:
            what = f"{case.title(run)} is dead, and no dead letter event says so"
            yield offence("S6", "death_unannounced", what, run)


def starts_when_it_may(case: Case) -> Iterator[Violation]:
    """S7: nothing starts before its instant, after its job's cancel, or while its job is paused."""
    pauses = defaultdict(list)
    for pause in case.history.pauses or ():
        pauses[pause.job].append(pause)
    for run in case.history.runs:
        job = case.jobs.get(run.job)
        for window in case.windows[run.id]:
            if window.since < run.due:
                yield offence(
                    "S7", "early", f"{case.title(run)} started at {format_instant(window.since)}", run, window
                )
            # A workflow that is told to stop runs its final tasks.
            over = job is not None and job.state == "cancelled" and not run.is_task
            if job and over and window.since - job.changed_at > EDGE:
                yield offence(
                    "S7", "cancelled", f"{case.title(run)} started after its job's cancel", run, job
                )
            for pause in pauses[run.job]:
                if window.since - pause.since > EDGE and (pause.until is None or window.since < pause.until):
                    yield offence(
                        "S7", "paused", f"{case.title(run)} started during a pause", run, window, pause
                    )
        yield from _deadline_holds(case, run)
    for call in case.history.calls:
        if (called := case.runs.get(call.run)) is not None and call.at < called.due:
            yield offence("S7", "early", f"{case.title(called)} was called at {call.at}", called, call)


def _deadline_holds(case: Case, run: Run) -> Iterator[Violation]:
    """The first start is in time. After a lost reply it may be dated again, within a lease."""
    if run.start_by is None:
        return
    if not -EDGE <= run.start_by - run.due <= _LONGEST_DEADLINE:
        what = f"{case.title(run)} has a start deadline that no job can have: {format_instant(run.start_by)}"
        yield offence("S7", "deadline", what, run)
        return
    windows = case.windows[run.id]
    if windows and windows[0].since - run.start_by > _RESTART:
        yield offence(
            "S7", "late", f"{case.title(run)} started after its deadline {format_instant(run.start_by)}", run
        )


def overlap_and_limits_hold(case: Case) -> Iterator[Violation]:
    """S8: no more leases at once than the job's overlap rule and its limits allow, counted by lease.

    A workflow run has the slot of its job while its tasks run, so they are not counted.
    """
    windows: dict[_Slot, list[tuple[Window, Run]]] = defaultdict(list)
    capacities: dict[_Slot, int] = {}
    for run in case.history.runs:
        version = case.version(run)
        if version is None or run.is_task:
            continue
        keys: list[_Slot] = [("overlap", run.job, None)] if version.overlap != "allow" else []
        capacities.update(dict.fromkeys(keys, 1))
        for name, key in version.limits:
            if (most := case.history.limits.get((run.namespace, name))) is not None:
                capacities[run.namespace, name, key] = most
                keys.append((run.namespace, name, key))
        for slot in keys:
            windows[slot] += [(window, run) for window in case.windows[run.id]]
    for slot, owned in windows.items():
        live: list[tuple[Window, Run]] = []
        for window, run in sorted(owned, key=lambda pair: pair[0].since):
            live = [pair for pair in live if pair[0].until > window.since]
            live.append((window, run))
            if len(live) > capacities[slot]:
                what = f"{case.title(run)}: {len(live)} at once, {capacities[slot]} allowed ({slot[0]})"
                yield offence("S8", "overlap", what, *(pair[1] for pair in live))


def cancelled_is_over(case: Case) -> Iterator[Violation]:
    """S9: nothing of a run keeps running or starts once it is shown as cancelled."""
    for run in case.history.runs:
        if run.state != RunState.CANCELLED or run.finished_at is None:
            continue
        for call in case.calls.get(run.id, ()):
            excused = case.history.unreachable and case.outcome(run.id, call.fence) in {"lost", "cancelled"}
            if call.at > run.finished_at + EDGE and not excused:
                what = f"{case.title(run)} was cancelled at {run.finished_at}, but called at {call.at}"
                yield offence("S9", "cancelled", what, run, call)
    for child in case.history.children or ():
        over = case.runs.get(child.run)
        if child.worker_lives and (over is None or over.finished_at is not None or over.fence > child.fence):
            what = f"process {child.pid} still works for run {child.run} under fence {child.fence}"
            yield offence("S9", "orphan", what, child, over)


def attempts_are_bounded(case: Case) -> Iterator[Violation]:
    """S11: no more attempts than allowed; a dead letter exactly if a run is dead that is not of a task.

    How often a task is tried is not in the version of its workflow.
    """
    letters = {letter.run for letter in case.history.dead_letters}
    for run in case.history.runs:
        if run.is_task:
            continue
        version = case.version(run)
        if version is not None and version.max_attempts is not None and run.attempt > version.max_attempts:
            what = f"{case.title(run)}: attempt {run.attempt} of {version.max_attempts}"
            yield offence("S11", "attempts", what, run)
        if run.state == RunState.DEAD and run.id not in letters:
            yield offence("S11", "no_letter", f"{case.title(run)} is dead without a dead letter", run)
    for letter in case.history.dead_letters:
        run_of = case.runs.get(letter.run)
        if run_of is None or run_of.state != RunState.DEAD:
            what = f"{case.subject(letter.run)} has a dead letter, but is not dead"
            yield offence("S11", "letter", what, run_of, letter)
        elif run_of.is_task:
            yield offence(
                "S11", "letter", f"{case.title(run_of)} is of a task, and has a dead letter", run_of
            )


def tenants_stay_apart(case: Case) -> Iterator[Violation]:
    """S12: job, run, message, dead letter, event and call name one namespace."""
    for run in case.history.runs:
        job = case.jobs.get(run.job)
        if job is not None and job.namespace != run.namespace:
            yield offence("S12", "namespace", f"{case.title(run)}: its job is in {job.namespace}", run, job)
    announced = [t for events in case.lifecycle.values() for t in events.values()]
    rows: tuple[Message | DeadLetter | LifecycleRecord | Call | Death, ...] = (
        *(case.history.messages or ()),
        *case.history.dead_letters,
        *announced,
        *case.history.calls,
        *(case.history.deaths or ()),
    )
    for row in rows:
        run_of = case.runs.get(row.run)
        if run_of is not None and row.namespace != run_of.namespace:
            what = f"{case.title(run_of)} is in {run_of.namespace}, but a row names {row.namespace}"
            yield offence("S12", "namespace", what, run_of, row)


def higher_lanes_go_first(case: Case) -> Iterator[Violation]:
    """S14: while a higher lane waits for long, lower ones start no more than their share.

    Workflow runs are left out: they are opened by triggers, and wait in no queue of workers.
    """
    starts: dict[int, list[datetime]] = defaultdict(list)
    by_workers = [run for run in case.history.runs if not run.is_workflow]
    for run in by_workers:
        starts[run.lane] += [window.since for window in case.windows[run.id][:1]]
    for begun in starts.values():
        begun.sort()
    for run in by_workers:
        windows = case.windows[run.id]
        if run.lane > 1 or run.queued_at is None or len(windows) != 1 or windows[0].fence != 1:
            continue
        since, until = run.queued_at + _PATIENCE, windows[0].since
        if until <= since or any(
            f.since <= until and since <= f.until + case.bound for f in case.history.faults or ()
        ):
            continue
        between = {
            lane: bisect_left(begun, until) - bisect_left(begun, since) for lane, begun in starts.items()
        }
        lower = sum(count for lane, count in between.items() if lane > run.lane)
        if (among := sum(between.values())) >= _ENOUGH and lower > _SHARE * among:
            what = (
                f"{case.title(run)} waited {until - run.queued_at} while {lower} runs of lower lanes started"
            )
            yield offence("S14", "inversion", what, run)
