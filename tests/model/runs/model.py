"""The model of a run's way through workers: start, outcome, hand-back, loss, retry, cancel; messages and offsets.

Two workers read one partition. Each has a lease in Postgres, a memory that a crash erases, and handlers that go on although
the lease is over. Postgres is changed by one transaction at a time; everything between two of them may be interleaved. The
rules of the statements are written once more here; those that are pure functions of the code are called (`rules`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.checker import Action, Broken, Step
from tests.model.runs.rows import (
    ENDS,
    LIVE,
    Batch,
    Handler,
    Owner,
    Run,
    State,
    Worker,
    cancelled,
    ended,
    queued_as,
    run_name,
    worker_name,
)
from tests.model.runs.rules import ALLOWED, after_attempt, commit_position

from noonmark.core.states import DeliverySemantics


class Runs:
    """The model, for a number of runs and a budget of faults."""

    def __init__(
        self,
        runs: int = 1,
        *,
        faults: int = 2,
        cancels: int = 1,
        once: bool = False,
        broken: Broken = frozenset(),
    ) -> None:
        delivery = DeliverySemantics.AT_MOST_ONCE if once else DeliverySemantics.AT_LEAST_ONCE
        self.name = f"runs: {runs}, {delivery.value}, {faults} faults"
        self.delivery = delivery
        self._first = State(
            tuple(Run() for _ in range(runs)),
            tuple((number, 1) for number in range(runs)),
            faults=faults,
            failures=1,
            cancels=cancels,
        )
        self._broken = broken

    def initial(self) -> State:
        return self._first

    def steps(self, state: State) -> Iterator[Step[State]]:
        for one in self._every(state):
            if not one.fault or one.action[0] == "cancel":
                yield one
            elif state.faults:
                yield one._replace(after=one.after._replace(faults=state.faults - 1))

    def _every(self, state: State) -> Iterator[Step[State]]:
        yield from self._trigger(state)
        for number, worker in enumerate(state.workers):
            yield from self._lease(state, number, worker)
            if worker.alive:
                yield from self._partition(state, number, worker)
                yield from self._starts(state, number, worker)
                yield from self._handlers(state, number, worker)
                yield from self._reconcile(state, number, worker)

    # dispatcher, trigger, users

    def _trigger(self, state: State) -> Iterator[Step[State]]:
        for message in state.outbox:
            sent = state._replace(log=(*state.log, message))
            named = f"the message of {run_name(message[0])} with fence {message[1]}"
            rest = tuple(other for other in state.outbox if other != message)
            yield Step(("relay", message), f"The dispatcher sends {named}", sent._replace(outbox=rest))
            yield Step(
                ("send", message),
                f"The dispatcher sends {named} and dies before it deletes the row",
                sent,
                True,
            )
        for number, run in enumerate(state.runs):
            if run.timer:
                queued = self._queue(state, number, run._replace(timer=False), "retry")
                yield Step(
                    ("retry", number),
                    f"The retry of {run_name(number)} is due: {queued_as(queued, number)}",
                    queued,
                )
            if state.cancels and run.state in ("queued", "retrying", "running"):
                told = f"A user cancels {run_name(number)}"
                yield Step(("cancel", number), told, cancelled(state, number, run), True)
        if any(not state.is_live(batch.owner) for batch in state.batches):
            yield self._requeue_lost(state)

    def _queue(self, state: State, number: int, run: Run, why: str) -> State:
        fence = run.fence + (f"{why} keeps the fence" not in self._broken)
        queued = state.with_run(number, run._replace(state="queued", fence=fence, owner=None))
        if why == "loss" and "requeue without outbox" in self._broken:
            return queued
        return queued._replace(outbox=tuple(sorted({*queued.outbox, (number, fence)})))

    def _requeue_lost(self, state: State) -> Step[State]:
        after, told = state, []
        for number, run in enumerate(state.runs):
            held = run.owner is not None and Batch(run.owner, number) in state.batches
            if run.owner is None or not held or run.state not in LIVE or state.is_live(run.owner):
                continue
            once = self.delivery is DeliverySemantics.AT_MOST_ONCE and "lost is repeated" not in self._broken
            counts = once and run.state == "running"
            lost = run._replace(losses=run.losses + 1, attempt=max(run.attempt - (not counts), 0))
            if run.state == "cancelling" or once:
                end = "cancelled" if run.state == "cancelling" else "unknown"
                after = after.with_run(number, ended(lost, end, fence=run.fence + 1))
                told.append(f"{run_name(number)} is {end}")
            else:
                after = self._queue(after, number, lost, "loss")
                told.append(f"{run_name(number)} is lost: {queued_as(after, number)}")
        after = after.without_batches(lambda batch: not state.is_live(batch.owner))
        said = ", ".join(told) or "their runs have gone on"
        return Step(
            ("requeue_lost",), f"The trigger takes up the start batches of lapsed workers; {said}", after
        )

    # processes and leases

    def _lease(self, state: State, number: int, worker: Worker) -> Iterator[Step[State]]:
        name = worker_name(number)
        for lease, is_live in enumerate(worker.live, 1):
            if is_live and (worker.alive or any(batch.owner == (number, lease) for batch in state.batches)):
                live = (*worker.live[: lease - 1], False, *worker.live[lease:])
                zombie = worker.alive and lease == worker.lease
                told = (
                    f"{name} is silent, goes on, and its lease lapses"
                    if zombie
                    else f"The old lease of {name} lapses"
                )
                if zombie or lease < worker.lease or not worker.alive:
                    yield Step(
                        ("lapse", number, lease),
                        told,
                        state.with_worker(number, worker._replace(live=live)),
                        zombie,
                    )
        if not worker.alive:
            new = Worker(live=(*worker.live, True))
            yield Step(("restart", number), f"{name} is started again", state.with_worker(number, new))
            return
        dead = Worker(alive=False, live=worker.live)
        yield Step(("crash", number), f"{name} crashes", state.with_worker(number, dead), True)
        if not worker.live[-1]:
            for handler in worker.handlers:
                worker = worker.settle(handler.offset)
            new = worker._replace(handlers=(), live=(*worker.live, True))
            told = f"{name} learns that its lease is over, drops its runs and takes a new lease"
            yield Step(("renew", number), told, state.with_worker(number, new))

    def _partition(self, state: State, number: int, worker: Worker) -> Iterator[Step[State]]:
        name, other = worker_name(number), state.workers[1 - number]
        if not worker.holds and (other.holds or state.committed < len(state.log)):
            moved = state.with_worker(
                1 - number, other._replace(holds=False, base=0, position=0, unsettled=())
            )
            mine = worker._replace(holds=True, base=state.committed, position=state.committed, unsettled=())
            told = f"{name} is assigned the partition from offset {state.committed}"
            yield Step(("assign", number), told, moved.with_worker(number, mine), other.holds)
        if not worker.holds:
            return
        if worker.position < len(state.log):
            offset = worker.position
            polled = worker._replace(
                position=offset + 1,
                unsettled=(*worker.unsettled, offset),
                buffer=tuple(sorted({*worker.buffer, offset})),
            )
            run, fence = state.log[offset]
            told = f"{name} polls offset {offset}: {run_name(run)} with fence {fence}"
            yield Step(("poll", number), told, state.with_worker(number, polled))
        mark = self._mark(worker)
        if mark > state.committed:
            yield Step(("commit", number), f"{name} commits offset {mark}", state._replace(committed=mark))

    def _mark(self, worker: Worker) -> int:
        if "offset before record" in self._broken:
            return worker.position
        if "highest offset" in self._broken:
            settled = set(range(worker.base, worker.position)) - set(worker.unsettled)
            return max(settled, default=worker.base - 1) + 1
        return commit_position(worker.base, worker.position, worker.unsettled)

    # starts and outcomes

    def _starts(self, state: State, number: int, worker: Worker) -> Iterator[Step[State]]:
        name = worker_name(number)
        for offset in worker.buffer:
            which, fence = state.log[offset]
            message = f"the message of {run_name(which)} with fence {fence}"
            settled = worker.unbuffer(offset).settle(offset)
            if any((h.run, h.fence, h.released) == (which, fence, False) for h in worker.handlers):
                told = f"{name} drops {message}, which it runs already"
                yield Step(("drop", number, offset), told, state.with_worker(number, settled))
                continue
            run, owner = state.runs[which], (number, worker.lease)
            if self._may_start(run, fence, owner, is_live=worker.live[-1]):
                began = self._started(state, which, owner)
                told = f"{name} starts {run_name(which)} from its message with fence {fence}"
                handler = Handler(which, fence, offset)
                known = began.with_run(which, began.runs[which]._replace(begun=self._begun(run)))
                mine = worker.unbuffer(offset)._replace(handlers=tuple(sorted((*worker.handlers, handler))))
                yield Step(("start", number, offset), told, known.with_worker(number, mine))
                yield Step(("start_unheard", number, offset), f"{told}, but the reply is lost", began, True)
            elif worker.live[-1] or "lapsed start is settled" in self._broken:
                refused = state.with_worker(number, settled)
                yield Step(("start", number, offset), f"{name} is refused {message}", refused)
            else:
                told = f"{name} is refused {message}, for its lease is over"
                yield Step(("start", number, offset), told, state)

    def _begun(self, run: Run) -> int:
        return min(run.begun + 1, 2) if self.delivery is DeliverySemantics.AT_MOST_ONCE else 0

    def _may_start(self, run: Run, fence: int, owner: Owner, *, is_live: bool) -> bool:
        return (
            (is_live or "lease without epoch" in self._broken)
            and (run.fence == fence or "no fence at the start" in self._broken)
            and (run.state == "queued" or (run.state == "running" and run.owner == owner))
        )

    def _started(self, state: State, which: int, owner: Owner) -> State:
        run = state.runs[which]
        attempt = run.attempt + (run.state == "queued")
        began = state.with_run(which, run._replace(state="running", owner=owner, attempt=attempt))
        if "no start batch" in self._broken:
            return began
        old = {batch._replace(current=batch.current and batch.run != which) for batch in state.batches}
        return began._replace(batches=tuple(sorted({*old, Batch(owner, which)})))

    def _handlers(self, state: State, number: int, worker: Worker) -> Iterator[Step[State]]:
        name, owner = worker_name(number), (number, worker.lease)
        for handler in worker.handlers:
            which = handler.run
            key = (number, which, handler.fence)
            done = worker.without(handler).settle(handler.offset)
            for how in ("succeed", "fail") if state.failures else ("succeed",):
                written = self._outcome(state, owner, handler, how)
                told = f"{name} records that {run_name(which)} {how}s under fence {handler.fence}"
                if written is None:
                    yield Step((how, *key), f"{told}, and is refused", state.with_worker(number, done))
                    continue
                told = f"{told}: it is {written.runs[which].state}"
                yield Step((how, *key), told, written.with_worker(number, done))
                yield Step((f"{how}_unheard", *key), f"{told}, but the reply is lost", written, True)
            run = state.runs[which]
            if handler.released or self.delivery is DeliverySemantics.AT_MOST_ONCE:
                continue
            kept = handler._replace(released=True)
            mine = done._replace(handlers=tuple(sorted((*done.handlers, kept))))
            if (run.owner, run.state, run.fence) == (owner, "running", handler.fence):
                back = self._queue(state, which, run._replace(attempt=max(run.attempt - 1, 0)), "hand-back")
                told = (
                    f"{name} hands {run_name(which)} back while its handler goes on: {queued_as(back, which)}"
                )
                yield Step(("hand_back", *key), told, back.with_worker(number, mine), True)

    def _outcome(self, state: State, owner: Owner, handler: Handler, how: str) -> State | None:
        """Return the state after an outcome that was written; None: its guard did not match."""
        which = handler.run
        run = state.runs[which]
        twice = "outcome twice" in self._broken and run.state == "succeeded"
        if not twice and (run.owner != owner or run.state not in LIVE):
            return None
        if run.fence != handler.fence and "no fence at the outcome" not in self._broken:
            return None
        if how == "succeed":
            result = "succeeded"
        else:
            state = state._replace(failures=state.failures - 1)
            result = after_attempt(self.delivery, run.attempt)
        if run.state == "cancelling" and "success beats cancel" not in self._broken:
            result = "cancelled"
        done = (
            run._replace(state="retrying", timer=True, owner=None)
            if result == "retrying"
            else ended(run, result)
        )
        return state.with_run(which, done).without_batches(lambda batch: batch == Batch(owner, which))

    def _reconcile(self, state: State, number: int, worker: Worker) -> Iterator[Step[State]]:
        owner = (number, worker.lease)
        mine = {handler.run for handler in worker.handlers if not handler.released}
        batches = [batch for batch in state.batches if batch.owner == owner]
        held = {
            batch.run
            for batch in batches
            if (run := state.runs[batch.run]).owner == owner and run.state in LIVE
        }
        after = state
        for which in held - mine:
            run = state.runs[which]
            if run.state == "running":
                after = self._queue(after, which, run._replace(attempt=max(run.attempt - 1, 0)), "hand-back")
            else:
                after = after.with_run(which, ended(run, "cancelled"))
        gone = {
            batch for batch in batches if batch.run not in held and not (batch.current and batch.run in mine)
        }
        after = after.without_batches(lambda batch: batch in gone)
        if after != state:
            told = (
                f"{worker_name(number)} compares its memory with Postgres and gives back what it does not run"
            )
            yield Step(("reconcile", number), told, after)

    # what must hold

    def wrong(self, state: State) -> str | None:
        for number, run in enumerate(state.runs):
            newest = [
                h
                for worker in state.workers
                for h in worker.handlers
                if (h.run, h.fence) == (number, run.fence)
            ]
            message = (number, run.fence)
            if len(newest) > 1:
                return f"two handlers run {run_name(number)} under its newest fence"
            if run.state == "queued" and message not in (*state.outbox, *state.log[state.committed :]):
                return f"{run_name(number)} is queued, and no message of its fence can arrive any more"
            if run.state in LIVE and run.owner and Batch(run.owner, number) not in state.batches:
                return f"{run_name(number)} is {run.state}, and no start batch leads to it"
            if (run.state == "retrying") != run.timer:
                return f"{run_name(number)} is {run.state}, and its retry timer says otherwise"
            if run.verdicts > 1:
                return f"{run_name(number)} has two verdicts"
            if run.begun > 1:
                return f"a handler of {run_name(number)} began twice, although its job asks for at most one attempt"
        return None

    def wrong_step(self, before: State, step: Step[State]) -> str | None:
        for number, (old, new) in enumerate(zip(before.runs, step.after.runs, strict=True)):
            if old == new:
                continue
            if old.state != new.state and new.state not in ALLOWED[old.state]:
                return f"{run_name(number)} moves from {old.state} to {new.state}, which no transition allows"
            if new.fence < old.fence:
                return f"the fence of {run_name(number)} falls"
            if problem := _stale(before, step.action, number, old):
                return problem
        return None

    def settled(self, state: State) -> bool:
        over = all(run.state in ENDS for run in state.runs)
        return over and not state.outbox and not state.batches and state.committed == len(state.log)


def _stale(before: State, action: Action, number: int, old: Run) -> str | None:
    """Return what is wrong with a step that changed a run: it was not the newest token that did it."""
    kind = action[0].removesuffix("_unheard")
    if kind == "start":
        worker = before.workers[action[1]]
        if not worker.live[-1]:
            return f"{worker_name(action[1])} starts {run_name(number)} without a lease"
        if before.log[action[2]][1] != old.fence:
            return f"{run_name(number)} is started by a message of fence {before.log[action[2]][1]}; its fence is {old.fence}"
    if kind in ("succeed", "fail") and action[3] != old.fence:
        return f"an outcome of fence {action[3]} is written to {run_name(number)}; its fence is {old.fence}"
    return None


SCOPES = (
    lambda broken: Runs(1, faults=2, broken=broken),
    lambda broken: Runs(1, faults=2, once=True, broken=broken),
    lambda broken: Runs(2, faults=1, cancels=0, broken=broken),
)
"""What is explored, smallest bounds that show every race: two faults for one run, one fault for two runs."""
