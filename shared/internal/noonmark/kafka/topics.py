"""The only place that defines topic and group names, and the settings that topics are created with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from noonmark.core.states import Lane

POOL_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
"""A pool's name. It has no dots, so that the name of a runs topic can be parsed."""

_LANES: Final = {lane.label: lane for lane in Lane}
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it should be created; `replication` -1 means the broker's default."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """Partitions per kind of topic. You can add partitions later, but not remove them."""

    submissions: int = 6
    submissions_bulk: int = 6
    runs: int = 6
    lifecycle: int = 6
    rejections: int = 1
    dead: int = 1
    alerts: int = 1


class Topics:
    """Every topic and consumer group name with one prefix."""

    __slots__ = (
        "alerts",
        "dead",
        "lifecycle",
        "prefix",
        "rejections",
        "runs_prefix",
        "submissions",
        "submissions_bulk",
    )

    def __init__(self, prefix: str = "noonmark") -> None:
        self.prefix = prefix
        self.submissions = f"{prefix}.submissions"
        self.submissions_bulk = f"{prefix}.submissions.bulk"
        self.lifecycle = f"{prefix}.lifecycle"
        self.rejections = f"{prefix}.rejections"
        self.dead = f"{prefix}.dead"
        self.alerts = f"{prefix}.alerts"
        self.runs_prefix = f"{prefix}.runs."

    def runs(self, pool: str, lane: Lane) -> str:
        """Return the topic of a pool's lane.

        Raises:
            ValueError: the pool's name does not match `POOL_PATTERN`.
        """
        return f"{self.runs_prefix}{_checked(pool)}.{lane.label}"

    def parse_runs(self, topic: str) -> tuple[str, Lane] | None:
        """Return pool and lane of a runs topic; None for any other name."""
        if not topic.startswith(self.runs_prefix):
            return None
        pool, dot, label = topic[len(self.runs_prefix) :].partition(".")
        lane = _LANES.get(label)
        if not dot or lane is None or not POOL_PATTERN.fullmatch(pool):
            return None
        return pool, lane

    def further_submissions(self, bound: Iterable[str]) -> list[str]:
        """Return those of the bound topics, by full name, that are not one of the two standard topics.

        Raises:
            ValueError: noonmark itself writes to one of them: its events would come back as submissions.
        """
        further = [name for name in bound if name not in {self.submissions, self.submissions_bulk}]
        for name in further:
            if name in {self.lifecycle, self.rejections, self.dead, self.alerts} or name.startswith(
                self.runs_prefix
            ):
                raise ValueError(f"topic {name!r} is written by noonmark itself and cannot carry submissions")
        return further

    def submission_specs(
        self, names: Iterable[str], *, counts: PartitionCounts | None = None, replication: int = 1
    ) -> list[TopicSpec]:
        """Return the specs of additional submission topics."""
        partitions = (counts or PartitionCounts()).submissions
        return [_spec(name, partitions, replication, days=7) for name in names]

    @property
    def group_intake(self) -> str:
        """The consumer group of all submission topics."""
        return f"{self.prefix}.intake"

    @property
    def group_observer(self) -> str:
        """The consumer group of the observers."""
        return f"{self.prefix}.observer"

    @property
    def group_worker_prefix(self) -> str:
        """What the names of the workers' groups begin with."""
        return f"{self.prefix}.worker."

    def group_worker(self, pool: str, lane: Lane) -> str:
        """Return the consumer group of a pool's lane.

        Raises:
            ValueError: the pool's name does not match `POOL_PATTERN`.
        """
        return f"{self.group_worker_prefix}{_checked(pool)}.{lane.label}"

    def base_specs(self, *, counts: PartitionCounts | None = None, replication: int = 1) -> list[TopicSpec]:
        """Return the specs of the topics that exist once per installation."""
        counts = counts or PartitionCounts()
        return [
            _spec(self.submissions, counts.submissions, replication, days=7),
            _spec(self.submissions_bulk, counts.submissions_bulk, replication, days=7),
            _spec(self.lifecycle, counts.lifecycle, replication, days=7),
            _spec(self.rejections, counts.rejections, replication, days=30),
            _spec(self.dead, counts.dead, replication, days=30),
            _spec(self.alerts, counts.alerts, replication, days=30),
        ]

    def pool_specs(
        self, pool: str, *, counts: PartitionCounts | None = None, replication: int = 1
    ) -> list[TopicSpec]:
        """Return the specs of the runs topics of one pool, one per lane."""
        partitions = (counts or PartitionCounts()).runs
        return [_spec(self.runs(pool, lane), partitions, replication, days=7) for lane in Lane]

    def topic_specs(
        self, pools: Iterable[str], *, counts: PartitionCounts | None = None, replication: int = 1
    ) -> list[TopicSpec]:
        """Return the specs of all topics that an installation with these pools needs."""
        specs = self.base_specs(counts=counts, replication=replication)
        for pool in pools:
            specs += self.pool_specs(pool, counts=counts, replication=replication)
        return specs


def _checked(pool: str) -> str:
    if not POOL_PATTERN.fullmatch(pool):
        raise ValueError(
            f"{pool!r} is not a valid pool name; use 1 to 48 of a-z, 0-9, '-' and '_',"
            " the first a letter or digit"
        )
    return pool


def _spec(name: str, partitions: int, replication: int, *, days: int) -> TopicSpec:
    # The brokers date records: they measure ages and retention by one clock, and refuse no record of a client
    # whose clock is more than an hour ahead, as they do with CreateTime.
    config = {"retention.ms": str(days * _DAY_MS), "message.timestamp.type": "LogAppendTime"}
    return TopicSpec(name, partitions, replication, config)
