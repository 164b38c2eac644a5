"""What the model of runs describes: rows of Postgres, a partition of Kafka, and the memory of two workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from noonmark.core.transitions import VERDICTS

NAMES = "AB"
LIVE = ("running", "cancelling")
ENDS = frozenset(state.value for state in VERDICTS)

Owner = tuple[int, int]
"""A worker process and the number of its lease."""


class Run(NamedTuple):
    """A row of `runs`, whether its retry has a timer, and how many verdicts and handlers it had."""

    state: str = "queued"
    fence: int = 1
    attempt: int = 0
    losses: int = 0
    owner: Owner | None = None
    timer: bool = False
    verdicts: int = 0
    begun: int = 0


class Handler(NamedTuple):
    """A handler in the memory of a worker; `released` once its run was handed back: its thread may go on."""

    run: int
    fence: int
    offset: int
    released: bool = False


class Worker(NamedTuple):
    """A process: which of its leases are live, and its memory. Offsets of the partition, if it holds it."""

    alive: bool = True
    live: tuple[bool, ...] = (True,)
    handlers: tuple[Handler, ...] = ()
    buffer: tuple[int, ...] = ()
    holds: bool = False
    base: int = 0
    position: int = 0
    unsettled: tuple[int, ...] = ()

    @property
    def lease(self) -> int:
        return len(self.live)

    def settle(self, offset: int) -> Worker:
        return self._replace(unsettled=tuple(o for o in self.unsettled if o != offset))

    def unbuffer(self, offset: int) -> Worker:
        return self._replace(buffer=tuple(o for o in self.buffer if o != offset))

    def without(self, handler: Handler) -> Worker:
        return self._replace(handlers=tuple(h for h in self.handlers if h != handler))


class Batch(NamedTuple):
    """A row of `start_batches` of one run; `current` if the run was not started again since."""

    owner: Owner
    run: int
    current: bool = True


Message = tuple[int, int]
"""A run and a fence."""


class State(NamedTuple):
    """Postgres, the partition with its committed offset, the workers, and how much may still go wrong."""

    runs: tuple[Run, ...]
    outbox: tuple[Message, ...]
    log: tuple[Message, ...] = ()
    committed: int = 0
    workers: tuple[Worker, Worker] = (Worker(), Worker())
    batches: tuple[Batch, ...] = ()
    faults: int = 0
    failures: int = 0
    cancels: int = 0

    def with_run(self, number: int, run: Run) -> State:
        return self._replace(runs=(*self.runs[:number], run, *self.runs[number + 1 :]))

    def with_worker(self, number: int, worker: Worker) -> State:
        other = self.workers[1 - number]
        return self._replace(workers=(worker, other) if number == 0 else (other, worker))

    def without_batches(self, gone: Callable[[Batch], bool]) -> State:
        return self._replace(batches=tuple(batch for batch in self.batches if not gone(batch)))

    def is_live(self, owner: Owner) -> bool:
        return self.workers[owner[0]].live[owner[1] - 1]


def cancelled(state: State, number: int, run: Run) -> State:
    """Cancel a run: its messages go; one that runs is asked to stop, any other ends at once under a higher fence."""
    outbox = tuple(message for message in state.outbox if message[0] != number)
    state = state._replace(cancels=state.cancels - 1, outbox=outbox)
    if run.state == "running":
        return state.with_run(number, run._replace(state="cancelling"))
    return state.with_run(number, ended(run, "cancelled", fence=run.fence + 1)._replace(timer=False))


def ended(run: Run, state: str, *, fence: int | None = None) -> Run:
    return run._replace(
        state=state, fence=fence or run.fence, owner=None, verdicts=run.verdicts + (state in ENDS)
    )


def run_name(number: int) -> str:
    return f"run {number + 1}"


def worker_name(number: int) -> str:
    return f"Worker {NAMES[number]}"


def queued_as(state: State, number: int) -> str:
    return f"it is queued under fence {state.runs[number].fence}"
