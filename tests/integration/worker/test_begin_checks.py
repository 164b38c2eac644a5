"""Runs whose worker may have lost its lease before they began: nothing of them is executed, and they go back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import child_handlers
from tests.unit.worker.bench import Bench

from noonmark.attempts.emitter import Emitter
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretResolver
from noonmark.core.states import RunState
from noonmark.handlers import REGISTRY, Context, Registry
from noonmark.schemas.jobs.script_payload import ScriptPayload
from noonmark.worker.kinds.kafka import KafkaKind
from noonmark.worker.kinds.script import ScriptKind
from noonmark.worker.processes.suspects import LOSSES_BEFORE_ISOLATION


class Lease:
    """A lease that is over from a check on that the test chooses."""

    def __init__(self) -> None:
        self.live_checks: float = float("inf")

    def is_live(self) -> bool:
        self.live_checks -= 1
        return self.live_checks >= 0


class Runs:
    """Begins a run of each kind, and knows whether it did anything."""

    def __init__(self, bench: Bench, lease: Lease, folder: Path) -> None:
        self.bench, self.lease, self.folder = bench, lease, folder
        self.called: list[str] = []
        bench.registry.add(self._note, name="here.thread")
        bench.registry.add(self._note_async, name="here.loop")

    def _note(self, ctx: Context) -> None:
        self.called.append(str(ctx.run_id))

    async def _note_async(self, ctx: Context) -> None:
        self.called.append(str(ctx.run_id))

    def begin(self, how: str) -> RunningAttempt:
        if how == "script":
            path = str(self.folder / "called")
            payload = ScriptPayload.model_validate({"argv": [sys.executable, "-c", f"open({path!r}, 'w')"]})
            return self.bench.begin(kind="script", payload=payload.request())
        if how == "kafka":
            return self.bench.begin(kind="kafka", payload={"topic": "paid", "value": {"n": 1}})
        losses = LOSSES_BEFORE_ISOLATION if how == "suspect" else 0
        name = "child.waits" if how in {"process", "suspect"} else f"here.{how}"
        return self.bench.begin(name, losses=losses, payload={"folder": str(self.folder)})

    def were_called(self) -> bool:
        return bool(self.called or list(self.folder.iterdir()))


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    lease = Lease()
    registry = Registry()
    for entry in REGISTRY:
        registry.add(entry.function, name=entry.name, run=entry.run)
    bench = Bench(
        modules=[child_handlers.__name__],
        registry=registry,
        processes=1,
        kinds=lambda launcher: {
            "script": ScriptKind(launcher, SecretResolver(None, {}), allowed=["*"], grace_seconds=1),
            "kafka": KafkaKind(Emitter(["paid"], "t")),
        },
        is_lease_live=lease.is_live,
    )
    yield Runs(bench, lease, tmp_path)
    bench.executors.close()


def await_unbegun(runs: Runs, held: RunningAttempt) -> None:
    runs.bench.wait(lambda: runs.bench.executors.unbegun() == [held], "the run to be withheld")
    runs.bench.wait(lambda: not runs.bench.executors.are_ending([held.key]), "its task to end")
    # With `at_most_once` it would otherwise end as unknown: that it has not begun is certain.
    assert held.began_at == 0.0
    assert runs.bench.of(held) is None
    assert runs.bench.executors.withdraw() == [held]


@pytest.mark.parametrize("how", ["thread", "loop", "process", "suspect", "script", "kafka"])
def test_no_run_begins_while_the_lease_may_be_over(runs: Runs, how: str) -> None:
    runs.lease.live_checks = 0

    held = runs.begin(how)

    await_unbegun(runs, held)
    assert not runs.were_called()


@pytest.mark.parametrize("how", ["process", "suspect", "script"])
def test_the_last_check_is_made_when_everything_else_is_ready(runs: Runs, how: str) -> None:
    # The first check is that of the loop, before the process is started or waited for.
    runs.lease.live_checks = 1

    held = runs.begin(how)

    await_unbegun(runs, held)
    assert not runs.were_called()


def test_a_child_that_was_ready_for_a_run_that_may_not_begin_serves_the_next(runs: Runs) -> None:
    first = runs.begin("process")
    began = runs.folder / f"began-{first.run.id}"
    runs.bench.wait(began.exists, "the first to begin")
    second = runs.begin("process")
    runs.bench.wait(lambda: second.key in runs.bench.processes.waiting, "the second to wait")
    runs.lease.live_checks = 0
    (runs.folder / "go").touch()
    assert runs.bench.end(first).state is RunState.SUCCEEDED
    await_unbegun(runs, second)
    runs.lease.live_checks = float("inf")

    third = runs.begin("process")

    assert runs.bench.end(third).result == runs.bench.end(first).result
    assert not (runs.folder / f"began-{second.run.id}").exists()


def test_a_run_that_goes_back_is_kept_until_the_engine_has_removed_it(runs: Runs) -> None:
    runs.lease.live_checks = 0
    held = runs.begin("thread")
    await_unbegun(runs, held)

    runs.bench.executors.release([held.key])
    # The database may be away: the next pass tries again.
    assert runs.bench.executors.unbegun() == [held]
    runs.bench.in_flight.remove([held.key])

    assert runs.bench.executors.unbegun() == []


def test_runs_of_a_lost_lease_are_not_begun_under_the_next_one(runs: Runs) -> None:
    release = add_blocking_handlers(runs)
    held = runs.begin("thread")
    assert runs.bench.executors.threads.waiting == 1
    kept = runs.bench.executors.threads.withdraw()
    runs.bench.executors.abandon()

    # As a thread does that took the run from the queue before, and goes on only now.
    runs.bench.executors.threads.submit(kept)
    release()

    later = runs.begin("thread")
    runs.bench.end(later)
    assert runs.called == [str(later.run.id)]
    assert runs.bench.of(held) is None
    assert runs.bench.executors.unbegun() == []


def add_blocking_handlers(runs: Runs) -> Callable[[], None]:
    """Occupy every thread; the function that is returned lets them go."""
    gate = runs.folder / "threads"
    runs.bench.registry.add(lambda _: runs.bench.wait(gate.exists, "the gate"), name="here.blocks")
    for _ in range(runs.bench.executors.threads.limit):
        runs.bench.begin("here.blocks")
    runs.bench.wait(lambda: tend(runs) == runs.bench.executors.threads.limit, "all threads to be taken")
    return gate.touch


def tend(runs: Runs) -> int:
    runs.bench.executors.threads.tend()
    return len(runs.bench.executors.threads.running)
