"""Measures the lag of intake and workers in Kafka on request, in bounded time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException

from noonmark.core.access.topic_bindings import read_bindings
from noonmark.core.states import Lane
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.lag.backlog import summed
from noonmark.kafka.lag.lag import LagProbe, LagReport, PartitionLag
from noonmark.kafka.topics import Topics

WAIT_SECONDS: Final = 3.0
_REQUEST_SECONDS: Final = 2.0
_FRESH_SECONDS: Final = 2.0


class LagsUnavailable(Exception):  # noqa: N818 - the name says what happened
    """No lag could be measured in time."""


class Lags(NamedTuple):
    """One measurement: a row per subscription, and the subscriptions that could not be measured."""

    lanes: list[dict[str, Any]]
    failed: list[str]


class LaneLags:
    """Measures all subscriptions, one measurement at a time for all callers. Thread-safe."""

    def __init__(self, config: KafkaConfig, topics: Topics, bound_topics: Sequence[str]) -> None:
        """Create it; it connects on first use.

        Args:
            config: connection to the cluster.
            topics: names of the topics.
            bound_topics: the setting `bound_topics`: further submission topics.
        """
        self._config = config
        self._topics = topics
        further = topics.further_submissions(read_bindings(bound_topics))
        self._submissions = (topics.submissions, *further, topics.submissions_bulk)
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._running: Future[Lags] | None = None
        self._at = 0.0

    def measure(self, pools: Sequence[str]) -> Lags:
        """Return the lag of every pool's lanes and of the intake.

        Raises:
            LagsUnavailable: if Kafka does not respond within 3 s.
        """
        with self._lock:
            running = self._running
            stale = running is None or (running.done() and time.monotonic() - self._at > _FRESH_SECONDS)
            if running is None or stale:
                self._thread = self._thread or ThreadPoolExecutor(1, "api-lags")
                running = self._running = self._thread.submit(self._ask, tuple(pools))
                self._at = time.monotonic()
        try:
            found = running.result(WAIT_SECONDS)
        except NotInTime:
            raise LagsUnavailable(f"no response within {WAIT_SECONDS:g} s") from None
        except KafkaException as error:
            raise LagsUnavailable(str(error)) from error
        if found.failed and not found.lanes:
            raise LagsUnavailable(found.failed[0])
        return found

    def close(self) -> None:
        """Stop the thread without waiting for a running measurement."""
        with self._lock:
            if self._thread is not None:
                self._thread.shutdown(wait=False, cancel_futures=True)
                self._thread = None

    def _ask(self, pools: Sequence[str]) -> Lags:
        topics = self._topics
        wanted: dict[tuple[str, str], tuple[str | None, Lane | None]] = {
            (topics.group_intake, topic): (None, None) for topic in self._submissions
        }
        for pool in pools:
            for lane in Lane:
                wanted[topics.group_worker(pool, lane), topics.runs(pool, lane)] = (pool, lane)
        # Not reused: an idle client keeps connections and threads.
        probe = LagProbe(self._config, timeout_seconds=_REQUEST_SECONDS)
        try:
            report: LagReport = probe.measure_all(wanted)
        finally:
            probe.close()
        rows = [_row(*wanted[pair], partitions) for pair, partitions in report.lags.items() if partitions]
        return Lags(rows, [f"{topic} for {group}: {why}" for (group, topic), why in report.failed.items()])


def _row(pool: str | None, lane: Lane | None, partitions: Sequence[PartitionLag]) -> dict[str, Any]:
    backlog = summed(partitions)
    return {
        "pool": pool,
        "priority": lane.label if lane is not None else None,
        "topic": partitions[0].topic,
        "group": partitions[0].group,
        "start_backlog": backlog.messages,
        "start_backlog_seconds": backlog.oldest_seconds if backlog.messages else 0.0,
        "commit_lag": sum(one.commit_lag for one in partitions),
    }
