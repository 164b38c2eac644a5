"""The worker's executors with handlers of a test's own, and the outcomes they gave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from tests.unit.worker.hands import UNWATCHED, hand, services

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.states import DeliverySemantics
from noonmark.handlers import Registry
from noonmark.store.runs.finish import Outcome
from noonmark.worker.handlers.executors import Executors, Kind
from noonmark.worker.in_flight import RunsInFlight
from noonmark.worker.processes.executor import Processes
from noonmark.worker.processes.spawning import ChildLauncher

PATIENCE = 60
LOOK_SECONDS = 0.005


class Bench:
    """Executors of the test's process; children load `modules`."""

    def __init__(
        self,
        *,
        modules: Sequence[str] = (),
        kinds: Callable[[ChildLauncher], Mapping[str, Kind]] = lambda _: {},
        registry: Registry | None = None,
        processes: int = 2,
        suspects: int = 8,
        grace_seconds: float = 5.0,
        environment: Mapping[str, str] | None = None,
        is_lease_live: Callable[[], bool] = lambda: True,
    ) -> None:
        self.registry = Registry() if registry is None else registry
        self.outcomes: list[Outcome] = []
        self.in_flight = RunsInFlight()
        self._all = threading.Condition()
        keeper = ChildLauncher()
        self.processes = Processes(
            keeper, modules, None, limit=processes, suspects=suspects, grace_seconds=grace_seconds
        )
        self.executors = Executors(
            self.registry,
            kinds(keeper),
            self.processes,
            self._take,
            services(environment),
            threads=4,
            in_flight=self.in_flight,
            is_lease_live=is_lease_live,
            watched=UNWATCHED,
        )

    def _take(self, outcomes: Sequence[Outcome]) -> None:
        with self._all:
            self.outcomes += outcomes
            self._all.notify_all()

    def begin(self, handler: str | None = None, **more: object) -> RunningAttempt:
        """Submit a run of a handler; it is not retried."""
        payload = more.pop("payload", None)
        delivery = more.pop("delivery", DeliverySemantics.AT_LEAST_ONCE)
        held = hand(handler=handler, retry={"max_retries": 0}, **more)
        held.payload, held.delivery = payload, delivery
        self.in_flight.add([held])
        self.executors.submit([held])
        return held

    def end(self, held: RunningAttempt) -> Outcome:
        """Wait for the outcome of a run."""
        with self._all:
            assert self._all.wait_for(lambda: self.of(held) is not None, PATIENCE), held.run.handler
        outcome = self.of(held)
        assert outcome is not None
        return outcome

    def run(self, *names: str) -> dict[str, Outcome]:
        """Run handlers one after the other, each awaited."""
        return {name: self.end(self.begin(name)) for name in names}

    def of(self, held: RunningAttempt) -> Outcome | None:
        """The outcome of a run, if there is one."""
        return next((o for o in self.outcomes if o.key == held.key), None)

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something that tells nobody."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until, f"waited for {what}"
            time.sleep(LOOK_SECONDS)
