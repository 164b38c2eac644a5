"""The parts of a worker that execute and record, without Kafka: real threads, a real recorder, real Postgres."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from tests.integration.store.world import SHARDS, TOPICS, World
from tests.unit.worker.hands import UNWATCHED, record

from noonmark.attempts.context import Services
from noonmark.attempts.emitter import Emitter
from noonmark.attempts.notes import NoteWriter
from noonmark.attempts.running_attempt import Delivery, RunningAttempt
from noonmark.attempts.secrets import SecretResolver
from noonmark.core.states import Lane
from noonmark.handlers import Registry
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.database.hints import HintSender
from noonmark.store.database.row_types import StartedRun
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.logs import get_logger
from noonmark.worker.engine.recorder import RecorderLoop
from noonmark.worker.handlers.executors import Executors
from noonmark.worker.handlers.transactions import Transactions
from noonmark.worker.in_flight import RunsInFlight
from noonmark.worker.processes.executor import Processes
from noonmark.worker.processes.spawning import ChildLauncher

PATIENCE = 60


class Desk:
    """Executes runs that were started for it; `settled` collects what the recorder says of each."""

    def __init__(self, world: World, *, handlers_url: str | None = None) -> None:
        self.world = world
        self.identity: Identity = world.worker()
        self.settled: list[Outcome] = []
        self._all = threading.Condition()
        settings = Settings(database_url=world.url)
        service = Service("worker", settings, Health(), threading.Event(), get_logger())
        self.registry = Registry()
        in_flight = RunsInFlight()
        self.batches = in_flight.batches
        self.hints = HintSender(world.url)
        self.recorder = RecorderLoop(
            service,
            TOPICS,
            self.hints,
            self.batches,
            shards=SHARDS,
            identity=lambda: self.identity,
            settled=self._settled,
        )
        self.executors = Executors(
            self.registry,
            {},
            Processes(ChildLauncher(), (), None, limit=1, suspects=1, grace_seconds=1),
            self.recorder.put,
            Services(
                SecretResolver(None, {}), NoteWriter(service, lambda: self.identity), Emitter(["paid"], "t")
            ),
            threads=4,
            in_flight=in_flight,
            is_lease_live=lambda: True,
            watched=UNWATCHED,
            transactions=Transactions(handlers_url or world.url, self.recorder, lambda: self.identity),
        )
        self._thread = threading.Thread(target=self.recorder.run, args=(threading.Event(),), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.executors.close()
        self.recorder.close()
        self._thread.join(PATIENCE)
        self.hints.close()

    def hand(self, handler: str, work: Mapping[str, Any] | None = None, **columns: Any) -> RunningAttempt:
        """A run of a job with such work, started for this worker."""
        job_id = self.world.job(handler=handler)
        text = orjson.dumps({"timeout_seconds": 60, "retry": {"max_retries": 0}, **(work or {})}).decode()
        self.world.db.execute("update jobs set work = %s where id = %s", [text, job_id])
        run_id = self.world.put_run(job_id=job_id, **columns)
        (run,) = self.world.start(self.identity, [run_id])
        self.batches.started([run])
        return self.attempt(run)

    def run(
        self, function: Callable[..., Any], work: Mapping[str, Any] | None = None, **columns: Any
    ) -> Outcome:
        """Execute a handler for a run of its own, and wait for what is recorded."""
        name = f"h.n{len(self.registry)}"
        self.registry.add(function, name=name)
        hand = self.hand(name, work, **columns)
        self.executors.submit([hand])
        return self.wait_for(hand)

    def wait_for(self, hand: RunningAttempt) -> Outcome:
        """Wait until the recorder has told the end of a run."""
        with self._all:
            assert self._all.wait_for(lambda: self.told(hand), PATIENCE)
            return self.told(hand)[0]

    def told(self, hand: RunningAttempt) -> list[Outcome]:
        return [outcome for outcome in self.settled if outcome.key == hand.key]

    def _settled(self, outcomes: Sequence[Outcome]) -> None:
        with self._all:
            self.settled += outcomes
            self._all.notify_all()

    def attempt(self, run: StartedRun) -> RunningAttempt:
        """The attempt of a run that was started for it."""
        return RunningAttempt.of(
            run, Delivery(self.world.ticket(run.id), record(), Lane(run.lane)), "default"
        )
