"""Measures lag, also without any live consumer, and which messages the groups have provably passed."""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import datetime

import psycopg

from noonmark.core.access.topic_bindings import read_bindings
from noonmark.core.states import Lane
from noonmark.kafka.lag.lag import LagProbe, LagReport, PartitionLag
from noonmark.kafka.lag.marks import TopicMarks
from noonmark.kafka.topics import Topics
from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.runner import Service
from noonmark.service.startup import kafka_config
from noonmark.store.cluster.members import Membership
from noonmark.store.outbox import progress, relay
from noonmark.telemetry.declared.instruments import show_nothing
from noonmark.telemetry.metrics import (
    COMMIT_LAG,
    EVENTS_REFUSED,
    OUTBOX_OLDEST,
    OUTBOX_ROWS,
    RUNS_IN_STATE,
    START_BACKLOG,
    START_BACKLOG_PARTITION_SECONDS,
    START_BACKLOG_SECONDS,
    SUBMISSIONS_LAG,
    SUBMISSIONS_OLDEST,
)

_MEASURE_SECONDS = 5.0
_OF_THE_LEADER = (
    START_BACKLOG,
    START_BACKLOG_SECONDS,
    START_BACKLOG_PARTITION_SECONDS,
    COMMIT_LAG,
    SUBMISSIONS_LAG,
    SUBMISSIONS_OLDEST,
    RUNS_IN_STATE,
)
_OF_OWNERS = (OUTBOX_OLDEST, OUTBOX_ROWS, EVENTS_REFUSED)
Labels = tuple[str | int, ...]


class LagLoop(DatabaseLoop):
    """Each dispatcher measures its outbox slices; the leading one measures topics and groups for all."""

    def __init__(self, service: Service, membership: Membership, topics: Topics) -> None:
        """Create the loop and its probe."""
        super().__init__(service, "lag", max_age_seconds=60.0)
        self._membership = membership
        self._topics = topics
        further = topics.further_submissions(read_bindings(service.settings.bound_topics))
        self._submissions = (topics.submissions, *further, topics.submissions_bulk)
        self._probe = LagProbe(kafka_config(service.settings))
        self._marks: dict[str, TopicMarks] = {}
        self._measure_at = 0.0

    def run_once(self, connection: psycopg.Connection) -> float:
        """Measure what is due."""
        if time.monotonic() < self._measure_at:
            return 1.0
        self._measure_at = time.monotonic() + _MEASURE_SECONDS
        try:
            self._outbox(connection)
            if self._membership.leads:
                self._groups(connection)
            else:
                self._probe.close()
                show_nothing(_OF_THE_LEADER)
        except psycopg.Error:
            # The last measurements are outdated, and another dispatcher may measure.
            show_nothing((*_OF_THE_LEADER, *_OF_OWNERS))
            raise
        return 1.0

    def ending(self, connection: psycopg.Connection) -> None:
        """Release the clients."""
        del connection
        self._probe.close()

    def _outbox(self, connection: psycopg.Connection) -> None:
        cap = self._service.settings.outbox_depth_limit
        measured = relay.pressure(connection, self._membership.owned, cap=cap)
        oldest: dict[Labels, float] = defaultdict(float)
        rows: dict[Labels, float] = defaultdict(float)
        for p in measured:
            oldest[p.slice,] = max(oldest[p.slice,], p.age_seconds or 0.0)
            rows[p.slice,] += p.rows
        OUTBOX_OLDEST.replace(oldest)
        OUTBOX_ROWS.replace(rows)
        refused = relay.count_refused(connection, self._membership.owned, cap=cap)
        EVENTS_REFUSED.replace({(topic,): float(count) for topic, count in refused.items()})

    def _groups(self, connection: psycopg.Connection) -> None:
        lanes = [(pool, lane) for pool in progress.pools(connection) for lane in Lane]
        # Before the offsets: what was acknowledged until then is below the ends that are read next.
        until = progress.acknowledged_until(connection, lanes)
        now = time.time()
        report = self._probe.measure_all(
            [
                *(
                    (self._topics.group_worker(pool, lane), self._topics.runs(pool, lane))
                    for pool, lane in lanes
                ),
                *((self._topics.group_intake, topic) for topic in self._submissions),
            ]
        )
        for (_, topic), reason in report.failed.items():
            self._log.warning("lag_not_measured", topic=topic, reason=reason)
        self._show(report, now, progress.unfinished(connection))
        for pool, lane in lanes:
            lags = report.lags.get((self._topics.group_worker(pool, lane), self._topics.runs(pool, lane)))
            if lags:
                self._note_passed(connection, self._topics.runs(pool, lane), list(lags), until[pool, lane])

    def _show(self, report: LagReport, now: float, unfinished: progress.Unfinished) -> None:
        backlog: dict[Labels, float] = {}
        commit: dict[Labels, float] = {}
        submissions: dict[Labels, float] = {}
        oldest: dict[Labels, float] = defaultdict(float)
        oldest_by_partition: dict[Labels, float] = {}
        oldest_submissions: dict[Labels, float] = defaultdict(float)
        for (_, topic), lags in report.lags.items():
            parsed = self._topics.parse_runs(topic)
            for lag in lags:
                stamp = lag.oldest_unstarted_timestamp_ms
                age = max(0.0, now - stamp / 1000) if stamp else 0.0
                if parsed is None:
                    submissions[topic, lag.partition] = lag.commit_lag
                    oldest_submissions[topic,] = max(oldest_submissions[topic,], age)
                    continue
                pool, lane = parsed
                backlog[pool, lane.label, lag.partition] = lag.start_backlog
                commit[pool, lane.label, lag.partition] = lag.commit_lag
                oldest_by_partition[pool, lane.label, lag.partition] = age
                oldest[pool, lane.label] = max(oldest[pool, lane.label], age)
        START_BACKLOG.replace(backlog)
        COMMIT_LAG.replace(commit)
        START_BACKLOG_SECONDS.replace(oldest)
        START_BACKLOG_PARTITION_SECONDS.replace(oldest_by_partition)
        SUBMISSIONS_LAG.replace(submissions)
        SUBMISSIONS_OLDEST.replace(oldest_submissions)
        RUNS_IN_STATE.replace(
            {
                ("waiting",): unfinished.waiting,
                ("running",): unfinished.running,
                ("queued",): unfinished.unsent + sum(backlog.values()),
            }
        )

    def _note_passed(
        self, connection: psycopg.Connection, topic: str, lags: list[PartitionLag], until: datetime
    ) -> None:
        """Store what the group has passed: the trigger resends queued runs older than that."""
        marks = self._marks.setdefault(topic, TopicMarks())
        lost = marks.observe(until, {lag.partition: lag.end for lag in lags}, lags[0].topic_id)
        lost = lost or any(lag.has_lost_records for lag in lags)
        if lost:
            self._log.error("topic_lost_records", topic=topic)
        passage = marks.passed({lag.partition: lag.position for lag in lags})
        if passage.until is not None:
            progress.note_passed(connection, topic, passage.until, lost=lost)
