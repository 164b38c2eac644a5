"""What is known about a job or a run that somebody asks about: the facts that its answers are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from noonmark.core.planning.promotion import GateLimit
from noonmark.core.vocabulary import RunState

UNFINISHED: Final = frozenset(
    {RunState.WAITING, RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.CANCELLING}
)


class JobFacts(NamedTuple):
    """A job, what its namespace says, and what it needs of the installation.

    Attributes:
        paused_by: `job` or `namespace`.
        pauses_itself: it has `pause_after_failures`.
        paused_actor: who gave the order, where the audit log has it.
        pool_known: its pool is registered.
        zone_data: the version that the installation plans with; None: none is active.
    """

    id: UUID
    namespace: str
    name: str | None
    kind: str
    handler: str | None
    lane: int
    pool: str
    shard: int
    schedule: str | None
    overlap: str | None
    state: str
    state_reason: str | None
    paused_at: datetime | None
    paused_by: str | None
    pauses_itself: bool
    paused_actor: str | None
    updated_at: datetime
    namespace_paused_at: datetime | None
    namespace_pause_reason: str | None
    namespace_actor: str | None
    max_in_flight: int | None
    pool_known: bool
    zone_data: str | None


class RunFacts(NamedTuple):
    """A run with all that stands about it outside its own row.

    Attributes:
        waiting_since, key, limit_name, limit_key: of its place in a line.
        retry_at: when it is queued again.
        report_until: until when its target may report.
        unsent_since: its message waits in the outbox since then.
        host, pid, beat_at: of the worker that holds it.
    """

    id: UUID
    job_id: UUID
    scheduled_for: datetime
    last_scheduled_for: datetime | None
    state: str
    reason: str | None
    attempt: int
    instants: int
    lane: int
    pool: str
    shard: int
    namespace: str
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    start_by: datetime | None
    owner: int | None
    error: str | None
    waiting_since: datetime | None
    key: UUID | None
    limit_name: str | None
    limit_key: str | None
    retry_at: datetime | None
    report_until: datetime | None
    unsent_since: datetime | None
    host: str | None
    pid: int | None
    beat_at: datetime | None

    @property
    def unfinished(self) -> bool:
        """Whether it has no verdict yet."""
        return self.state in UNFINISHED


class GateFacts(NamedTuple):
    """The gate that a waiting run stands before.

    Attributes:
        rule: what it lets through; None: there is no such limit any more.
        held: slots that are taken.
        tokens: in its bucket now.
        before: runs that stand before the run in its line.
        holders: runs that hold slots, the first few of them.
    """

    rule: GateLimit | None
    held: int
    tokens: float
    before: int
    holders: Sequence[RunFacts] = ()


class TimerFacts(NamedTuple):
    """The next instant of a job.

    Attributes:
        at: the nominal instant.
        fires_at: when it may start, jitter included; None: it waits for a resume or for other calendars.
        place: `at` has its verdict, and the instant after it must be found first.
        zoned: only a trigger with the active zone data takes it.
    """

    at: datetime
    fires_at: datetime | None
    place: bool
    zoned: bool


class RoleFacts(NamedTuple):
    """Triggers or dispatchers: how many are alive, and the last beat of any."""

    alive: int
    last_beat_at: datetime | None


class PoolFacts(NamedTuple):
    """Workers of a pool.

    Attributes:
        alive: those whose lease holds.
        last_beat_at: of any, also of those that are gone.
        in_flight: runs that they have under way.
        misfit: why none of them can run the job, with what would do; None where one can, or none said.
        lacks: `kind` or `handler`, where `misfit` is set.
    """

    alive: int
    last_beat_at: datetime | None
    in_flight: int
    misfit: str | None = None
    lacks: str | None = None


class PathFacts(NamedTuple):
    """The way of a run from its timer to a worker.

    Attributes:
        unsent: messages of the run's slice and lane in the outbox, counted up to a cap.
        oldest_unsent_at: since when the oldest of them waits.
        passed_until: workers have passed every message of the lane that was acknowledged before.
    """

    trigger: RoleFacts
    dispatcher: RoleFacts
    pool: PoolFacts
    unsent: int = 0
    oldest_unsent_at: datetime | None = None
    passed_until: datetime | None = None


class LaneBacklog(NamedTuple):
    """What stands in the run's lane in Kafka: messages that no worker has taken, and the oldest one's age."""

    messages: int
    oldest_seconds: float | None


class KafkaAway(NamedTuple):
    """The lane could not be measured."""

    reason: str


class SkippedInstant(NamedTuple):
    """A time, naive, that the schedule names and that fires nothing; `calendar`: because a day is closed."""

    local: datetime
    note: str
    calendar: bool


@dataclass(frozen=True, slots=True)
class ScheduleFacts:
    """What the schedule of a recurring job says.

    Attributes:
        over: it names no further instant.
        max_runs: of the job.
        end: of the schedule.
        jitter_seconds: of the schedule.
        calendars: that it keeps to.
        cut_off: times between the last instant with a verdict and the next one that fire nothing.
        held: instants that a pause holds.
    """

    over: bool = False
    max_runs: int | None = None
    end: datetime | None = None
    jitter_seconds: float = 0.0
    calendars: Sequence[str] = ()
    cut_off: Sequence[SkippedInstant] = ()
    held: int | None = None


class Bounds(NamedTuple):
    """What the installation calls late.

    Attributes:
        outbox_age_seconds, outbox_rows: beyond these, triggers claim nothing for the slice's lane.
    """

    outbox_age_seconds: float = 10.0
    outbox_rows: int = 20_000


DEFAULT_BOUNDS: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything an answer may need.

    Attributes:
        now: by the database's clock.
        job: that is asked about, or that the run is of; None: it is gone, and only its run is left.
        run: that is asked about; None: the job as a whole is.
        runs: of a job that is asked about: the latest, and all that wait for something; the latest first.
        gates: of waiting runs, by the run's id.
        slot: the run that holds the overlap slot of the job.
        zone_data: the version that this process has.
    """

    now: datetime
    job: JobFacts | None
    path: PathFacts
    bounds: Bounds = DEFAULT_BOUNDS
    run: RunFacts | None = None
    runs: Sequence[RunFacts] = ()
    timer: TimerFacts | None = None
    schedule: ScheduleFacts | None = None
    gates: Mapping[UUID, GateFacts] = field(default_factory=dict)
    slot: RunFacts | None = None
    backlog: LaneBacklog | KafkaAway | None = None
    zone_data: str | None = None
