"""Lag of consumer groups in runs or messages and in age, measured from outside, also without consumers."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.consumers.commits import Progress, decode_progress
from noonmark.kafka.lag.backlog_reader import BacklogReader, Waiting
from noonmark.kafka.lag.group_offsets import Committed, GroupOffsets
from noonmark.kafka.lag.marks import Passage, TopicMarks
from noonmark.kafka.refusals import refusal
from noonmark.kafka.rights import Operation
from noonmark.kafka.topics import Topics

__all__ = ["LagProbe", "LagReport", "LagUnavailable", "PartitionLag", "Passage", "TopicMarks"]

_log = logging.getLogger(__name__)

Subscription = tuple[str, str]
"""A (group, topic) pair."""


class LagUnavailable(Exception):  # noqa: N818 - the name says what happened
    """A lag could not be measured; the message says which one, and why."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The lag of one group in one partition.

    Attributes:
        topic: the topic.
        topic_id: its id; a topic that was deleted and created again has another.
        group: the consumer group.
        partition: the partition.
        begin: first offset still stored.
        end: one past the last readable offset.
        committed: the group's committed offset; None if it never committed.
        next: first offset not yet started, from the consumer's commit metadata, within what is stored.
        read: first offset that the consumer has not read, from the same.
        waiting: messages, or their runs, before `read` that the consumer has not started.
        start_backlog: messages not yet started; on a topic of runs, the runs of these messages: exact up to
            some hundred messages, and beyond that as many per message as in those.
        commit_lag: messages not yet committed; one long run can block the commit.
        oldest_unstarted_timestamp_ms: when the record at `next` was appended, milliseconds since 1970;
            None if nothing waits or it could not be read in time.
    """

    topic: str
    topic_id: str
    group: str
    partition: int
    begin: int
    end: int
    committed: int | None
    next: int
    read: int
    waiting: int
    start_backlog: int
    commit_lag: int
    oldest_unstarted_timestamp_ms: int | None = None

    @property
    def is_reset(self) -> bool:
        """Whether the commit is past the end: it belongs to an earlier topic of this name."""
        return self.committed is not None and self.committed > self.end

    @property
    def position(self) -> int:
        """The group's position: nothing below is still to be delivered to it."""
        if self.committed is None or self.is_reset:
            return self.begin
        return max(self.committed, self.begin)

    @property
    def has_lost_records(self) -> bool:
        """Whether retention removed records that the group had not passed."""
        return self.committed is not None and self.committed < self.begin


@dataclass(frozen=True, slots=True)
class LagReport:
    """One measurement of several subscriptions.

    Attributes:
        lags: (group, topic) to its partitions, in order.
        failed: (group, topic) to the reason why it could not be measured.
    """

    lags: Mapping[Subscription, Sequence[PartitionLag]]
    failed: Mapping[Subscription, str]


class LagProbe:
    """Reads from the brokers the offsets of groups and partitions. One thread owns it.

    It joins no group and commits nothing. Clients are created when something is measured, so an idle probe
    has none. The age of a backlog is read from the record at `next`, and its runs from all its records.

    Args:
        config: the cluster.
        timeout_seconds: the timeout of each of the few requests of a measurement.
    """

    def __init__(self, config: KafkaConfig, *, timeout_seconds: float = 5.0) -> None:
        self._config = config
        self._timeout = timeout_seconds
        self._client: AdminClient | None = None
        self._groups = GroupOffsets(config, timeout_seconds=timeout_seconds)
        self._topics = Topics(config.topic_prefix)
        self._reader = BacklogReader(config)

    def measure(self, group: str, topic: str) -> list[PartitionLag]:
        """Return the lag of each partition of a topic for a group.

        Raises:
            LagUnavailable: no broker answered in time, or the topic does not exist.
        """
        report = self.measure_all([(group, topic)])
        if reason := report.failed.get((group, topic)):
            raise LagUnavailable(reason)
        return list(report.lags[group, topic])

    def measure_all(self, subscriptions: Iterable[Subscription]) -> LagReport:
        """Measure several (group, topic) pairs with a few requests. A pair that fails stops no other."""
        wanted = list(dict.fromkeys(subscriptions))
        failed: dict[Subscription, str] = {}
        topics, topic_errors = self._describe({topic for _, topic in wanted})
        committed = self._committed(wanted, topics)
        begins, ends, offset_errors = self._bounds(topics)
        lags: dict[Subscription, list[PartitionLag]] = {}
        for group, topic in wanted:
            reason = topic_errors.get(topic) or committed.errors.get(group) or offset_errors.get(topic)
            if reason:
                failed[group, topic] = reason
                continue
            topic_id, count = topics[topic]
            lags[group, topic] = [
                lag_of(
                    topic=topic,
                    topic_id=topic_id,
                    group=group,
                    partition=p,
                    begin=begins[topic, p],
                    end=ends[topic, p],
                    commit=committed.offsets.get((group, topic, p)),
                )
                for p in range(count)
            ]
        self._add_backlogs(lags)
        # Log lines stay in a client until it is polled.
        self._admin.poll(0)
        if failed:
            # A client that lost its broker may keep the broken connection: create a new one next time.
            self._client = None
        return LagReport(lags, failed)

    def close(self) -> None:
        """Release the clients; a later measurement creates new ones."""
        self._client = None
        self._groups.close()
        self._reader.close()

    # -- requests ------------------------------------------------------------------------------------

    @property
    def _admin(self) -> AdminClient:
        # None of its requests may go to a group's coordinator: see `GroupOffsets`.
        if self._client is None:
            self._client = AdminClient(self._config.client(client_id="noonmark-lag"))
        return self._client

    def _describe(self, names: set[str]) -> tuple[dict[str, tuple[str, int]], dict[str, str]]:
        """Return (topic id, number of partitions) per topic, and the reasons for topics that failed."""
        found: dict[str, tuple[str, int]] = {}
        errors: dict[str, str] = {}
        if not names:
            return found, errors
        futures = self._admin.describe_topics(TopicCollection(sorted(names)), request_timeout=self._timeout)
        for name, future in futures.items():
            answer = _result(future, f"topic {name}", errors, name)
            if answer is not None:
                found[name] = (str(answer.topic_id), len(answer.partitions))
        return found, errors

    def _committed(self, wanted: Sequence[Subscription], topics: Mapping[str, tuple[str, int]]) -> Committed:
        by_group: defaultdict[str, list[TopicPartition]] = defaultdict(list)
        for group, topic in wanted:
            if topic in topics:
                by_group[group] += [TopicPartition(topic, p) for p in range(topics[topic][1])]
        return self._groups.read(by_group)

    def _bounds(
        self, topics: Mapping[str, tuple[str, int]]
    ) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int], dict[str, str]]:
        partitions = [TopicPartition(t, p) for t, (_, count) in topics.items() for p in range(count)]
        errors: dict[str, str] = {}
        if not partitions:
            return {}, {}, errors
        # Ends last: a commit read before them cannot be past them unless the topic was created again.
        requests = [
            self._admin.list_offsets(dict.fromkeys(partitions, spec), request_timeout=self._timeout)
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())  # type: ignore[no-untyped-call]
        ]
        begins, ends = (
            {
                (tp.topic, tp.partition): answer.offset
                for tp, future in futures.items()
                if (answer := _result(future, f"topic {tp.topic}", errors, tp.topic)) is not None
            }
            for futures in requests
        )
        return begins, ends, errors

    # -- what waits ------------------------------------------------------------------------------------

    def _add_backlogs(self, lags: dict[Subscription, list[PartitionLag]]) -> None:
        """Add the age of each backlog, and count runs instead of messages where one can have several."""
        waiting = [lag for partitions in lags.values() for lag in partitions if lag.start_backlog]
        backlogs = self._reader.read([_waiting(lag, self._topics) for lag in waiting]) if waiting else []
        known = {id(lag): backlog for lag, backlog in zip(waiting, backlogs, strict=True)}
        for subscription, partitions in lags.items():
            lags[subscription] = [
                replace(
                    lag,
                    start_backlog=lag.waiting + known[id(lag)].runs,
                    oldest_unstarted_timestamp_ms=known[id(lag)].stamp,
                )
                if id(lag) in known
                else lag
                for lag in partitions
            ]


def _waiting(lag: PartitionLag, topics: Topics) -> Waiting:
    has_runs = topics.parse_runs(lag.topic) is not None
    return Waiting(lag.topic, lag.topic_id, lag.partition, lag.next, lag.read, lag.end, has_runs)


def _result(future: Future[Any], what: str, errors: dict[str, str], key: str) -> Any:
    """Return a future's result; None, and the reason under `key`, if the request failed."""
    try:
        return future.result()
    except KafkaException as error:
        missing = refusal(error.args[0], Operation.DESCRIBE, topic=key)
        errors[key] = f"{what}: {missing or error.args[0].str()}"
        _log.debug("cannot measure the lag of %s: %s", what, error)
        return None


def lag_of(
    *,
    topic: str,
    topic_id: str,
    group: str,
    partition: int,
    begin: int,
    end: int,
    commit: TopicPartition | None,
) -> PartitionLag:
    """Compute a partition's lag from the brokers' answers; `commit` is the group's commit, if any."""
    committed = None if commit is None else commit.offset
    position = begin if committed is None or committed > end else max(committed, begin)
    said = decode_progress(commit.metadata) if commit is not None and position == committed else None
    # The consumer's metadata cannot be behind its commit, nor beyond what is stored.
    start = min(max(said.next if said else position, position), end)
    read, waiting = _read_of(said, start, end)
    return PartitionLag(
        topic=topic,
        topic_id=topic_id,
        group=group,
        partition=partition,
        begin=begin,
        end=end,
        committed=committed,
        next=start,
        read=read,
        waiting=waiting,
        start_backlog=waiting + end - read,
        commit_lag=end - position,
    )


def _read_of(said: Progress | None, start: int, end: int) -> tuple[int, int]:
    """Return what the consumer has read, and what of it is not started; without knowledge: nothing is."""
    if said is None or said.read is None or not start <= said.read <= end or not said.waiting:
        return start, 0
    return said.read, said.waiting
