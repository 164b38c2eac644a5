"""Runs the Faust application in its own thread and event loop, and restarts it after a crash."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError

from noonmark.kafka.refusals import WHERE_RIGHTS_ARE, refusal
from noonmark.kafka.rights import Operation
from noonmark.kafka.topics import Topics
from noonmark.observer.outcome_store import OutcomeStore
from noonmark.observer.records import Record
from noonmark.service.backoff import Backoff, StoppedError
from noonmark.service.runner import Service, StartError
from noonmark.service.startup import kafka_config
from noonmark.store.alerts.statistics import Place
from noonmark.telemetry.metrics import OBSERVER_LAG

if TYPE_CHECKING:
    import faust

_POLL_SECONDS: Final = 0.1
_STUCK_SECONDS: Final = 60.0
_REMIND_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 5.0


class StreamLoop:
    """Consumes outcomes. When Faust crashes, a new application resumes from the offsets in Postgres."""

    name = "outcomes"

    def __init__(self, service: Service, topics: Topics) -> None:
        """Create the loop; it connects to nothing before it runs.

        Raises:
            StartError: Faust's client does not support the Kafka settings.
        """
        self._service = service
        self._topics = topics
        self._config = kafka_config(service.settings)
        self._log = service.log.bind(loop=self.name)
        self._progress = service.health.progress(self.name, _STUCK_SECONDS)
        # An outage of the database is not a failure of this process.
        self._store = OutcomeStore(service, topics.lifecycle, waits=self._progress.beat)
        self._failure: BaseException | None = None
        self._busy_since = 0.0
        self._placed, self._lost_at = False, time.monotonic()
        self._reminded_at = self._lost_at
        service.health.require("outcomes_kafka", "no partition is assigned yet")
        service.health.require("outcomes_database", "the database has not answered yet")
        from noonmark.observer.credentials import (  # noqa: PLC0415 - only this thread imports Faust
            CredentialsError,
            credentials,
        )

        try:
            credentials(self._config)
        except CredentialsError as error:
            raise StartError(str(error)) from error

    def run(self, stop: threading.Event) -> None:
        """Consume until `stop` is set."""
        backoff = Backoff(first_seconds=0.2, cap_seconds=5.0)
        try:
            while not stop.is_set():
                began = time.monotonic()
                self._consume(stop)
                if self._placed:
                    self._placed, self._lost_at = False, time.monotonic()
                if self._failure is not None:
                    raise self._failure
                if not stop.is_set():
                    self._service.health.set_ready("outcomes_kafka", ready=False, missing="unreachable")
                    if time.monotonic() - began > _STUCK_SECONDS:
                        backoff.reset()
                    # Retrying counts as progress.
                    self._progress.beat()
                    backoff.wait(stop)
        finally:
            self._store.close()

    def _consume(self, stop: threading.Event) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._stream(stop))

    async def _stream(self, stop: threading.Event) -> None:
        from noonmark.observer.faust_app import make_app  # noqa: PLC0415 - only this thread imports Faust

        app = make_app(self._config, self._topics, self._places, self._take)
        try:
            starting = asyncio.ensure_future(app.start())
            while not stop.is_set() and self._failure is None and not _over(app, starting):
                if not self._hangs():
                    self._progress.beat()
                # While nothing can be read, all outcomes wait.
                OBSERVER_LAG.set(self._store.lag if self._placed else time.monotonic() - self._lost_at)
                self._remind()
                await asyncio.sleep(_POLL_SECONDS)
            await _settle(starting)
        except Exception as error:  # noqa: BLE001 - whatever the error, a new application starts
            self._log.warning("stream_broke", error=f"{type(error).__name__}: {error}", **self._remedy(error))
        finally:
            await self._end(app)

    def _remind(self) -> None:
        """Log what to check while no partition is assigned: Faust waits silently for a missing right."""
        now = time.monotonic()
        if self._placed or now - max(self._lost_at, self._reminded_at) < _REMIND_SECONDS:
            return
        self._reminded_at = now
        topic, group = self._topics.lifecycle, self._topics.group_observer
        self._log.warning(
            "no_partition_assigned",
            hint=f"check that this client may READ topic {topic} and READ group {group}; if not, grant its"
            f" principal that right, {WHERE_RIGHTS_ARE}",
        )

    def _hangs(self) -> bool:
        return bool(self._busy_since) and time.monotonic() - self._busy_since > _STUCK_SECONDS

    async def _end(self, app: faust.App) -> None:
        if app.crashed:
            self._log.warning(
                "stream_crashed", error=repr(app.crash_reason), **self._remedy(app.crash_reason)
            )
        try:
            await asyncio.wait_for(app.stop(), _STOP_SECONDS)
        except Exception as error:  # noqa: BLE001 - nothing depends on how the application stops
            self._log.warning("stream_ended_badly", error=f"{type(error).__name__}: {error}")

    def _remedy(self, error: BaseException | None) -> dict[str, str]:
        """Return what to do about an error of Faust's client, if it reports a missing right."""
        from aiokafka.errors import BrokerResponseError  # noqa: PLC0415 - only this thread imports Faust

        if not isinstance(error, BrokerResponseError):
            return {}
        topic, group = self._topics.lifecycle, self._topics.group_observer
        missing = refusal(KafkaError(error.errno), Operation.READ, topic=topic, group=group)
        return {"hint": missing} if missing is not None else {}

    async def _places(self, places: Sequence[Place]) -> Mapping[int, int]:
        try:
            found = await asyncio.to_thread(self._store.places, places)
        except StoppedError:
            return {}
        except Exception as error:
            self._failure = error
            raise
        self._placed = True
        self._service.health.set_ready("outcomes_kafka", ready=True)
        self._log.info("partitions_placed", places=found)
        return found

    async def _take(self, records: Sequence[Record]) -> Sequence[int]:
        self._busy_since = time.monotonic()
        try:
            return await asyncio.to_thread(self._store.take, records)
        except StoppedError:
            return ()
        except Exception as error:
            self._failure = error
            raise
        finally:
            self._busy_since = 0.0


def _over(app: faust.App, starting: asyncio.Future[Any]) -> bool:
    return app.crashed or app.should_stop or (starting.done() and starting.exception() is not None)


async def _settle(starting: asyncio.Future[Any]) -> None:
    """Cancel a start that is in flight; re-raise the error of one that failed."""
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting], timeout=_STOP_SECONDS)
    elif not starting.cancelled():
        await starting
