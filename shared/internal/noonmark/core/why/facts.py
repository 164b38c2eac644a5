"""The facts about a job or run from which the answers are derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from noonmark.core.planning.promotion import GateLimit
from noonmark.core.states import Origin, RunState
from noonmark.core.workflows.definition import Definition

UNFINISHED: Final = frozenset(
    {RunState.WAITING, RunState.QUEUED, RunState.RUNNING, RunState.RETRYING, RunState.CANCELLING}
)

UNDECIDED: Final = "undecided"
"""State of a task that has no run yet."""


class JobFacts(NamedTuple):
    """A job, the state of its namespace, and what it needs from the installation.

    Attributes:
        paused_by: `job` or `namespace`.
        pauses_itself: it has `pause_after_failures`.
        paused_actor: who paused it, if the audit log has it.
        pool_known: its pool is registered.
        zone_data: the active version of the zone data; None: no version is active.
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
    """A run, with what other tables say about it.

    Attributes:
        waiting_since, key, limit_name, limit_key: of its row in the wait queue.
        retry_at: when it is queued again.
        report_until: until when its target may report.
        unsent_since: since when its message has been waiting in the outbox.
        host, pid, beat_at, lease_seconds: of the worker that runs it.
        losses: the number of workers that it has lost.
        lost_at, lost_worker, lost_attempt: of its last recorded attempt, if that lost its worker; release 0.2
            did not record which worker it was.
        fault: which row that must continue it is missing, a key of `stranded.RUN_FAULTS`; None: none is.
        origin: what created it, an `Origin`.
        pool_known: its pool is registered.
        task_kind, task_handler: of its task, if it is the run of one.
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
    lease_seconds: float | None = None
    losses: int = 0
    lost_at: datetime | None = None
    lost_worker: int | None = None
    lost_attempt: int | None = None
    fault: str | None = None
    origin: str = Origin.SCHEDULE.value
    pool_known: bool = True
    task_kind: str | None = None
    task_handler: str | None = None

    @property
    def unfinished(self) -> bool:
        """Whether it has no verdict yet."""
        return self.state in UNFINISHED


class TaskFacts(NamedTuple):
    """A task of a workflow run.

    Attributes:
        key: its name.
        state: of its run, a `RunState`, or `UNDECIDED`.
        since: when it started, was queued, or ended; None if it is undecided.
        run_id: its run, if it has one.
    """

    key: str
    state: str
    reason: str | None = None
    since: datetime | None = None
    run_id: UUID | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class WorkflowFacts:
    """A workflow run: that of the question, or that of the task's run.

    Attributes:
        id: of the workflow run.
        state: of the workflow run.
        definition: its graph.
        tasks: by number.
        progress: a byte for each task, see `noonmark.core.workflows.progress`.
        choices: a byte for each edge with a condition.
        held_at: since when it has been held; None: nothing holds it back, also because it stops.
        task: number of the task that is asked about; None: the question is about the workflow run.
    """

    id: UUID
    state: str
    definition: Definition
    tasks: Sequence[TaskFacts]
    progress: bytes
    choices: bytes
    held_at: datetime | None = None
    task: int | None = None


class GateFacts(NamedTuple):
    """The limit or slot that a run waits for.

    Attributes:
        rule: what it admits; None: the limit no longer exists.
        held: slots in use.
        tokens: in its bucket now.
        before: runs ahead of this run in the wait queue.
        holders: the first few runs that hold slots.
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
        fires_at: when it may start, including jitter; None: it waits for a resume or for other calendars.
        place: `at` has its verdict, and the instant after it has not been found yet.
        zoned: only a trigger with the active zone data claims it.
        fault: why it never fires, or fires at an instant that the schedule does not have, as a clause.
    """

    at: datetime
    fires_at: datetime | None
    place: bool
    zoned: bool
    fault: str | None = None


class RoleFacts(NamedTuple):
    """Triggers or dispatchers: the number of live ones, and the last heartbeat of any."""

    alive: int
    last_beat_at: datetime | None


class PoolFacts(NamedTuple):
    """Workers of a pool.

    Attributes:
        alive: the number of workers with a valid lease.
        last_beat_at: the last heartbeat of any worker, including those that are gone.
        in_flight: the number of their unfinished runs.
        misfit: why none of them can run the job, with what they can run; None if one can, or if no worker
            has said what it runs.
        lacks: `kind` or `handler`, if `misfit` is set.
    """

    alive: int
    last_beat_at: datetime | None
    in_flight: int
    misfit: str | None = None
    lacks: str | None = None


class PathFacts(NamedTuple):
    """The path of a run from its timer to a worker.

    Attributes:
        unsent: the number of messages of the run's slice and lane in the outbox, counted up to a cap.
        oldest_unsent_at: since when the oldest of them has been waiting.
        passed_until: workers have read every message of the lane that was acknowledged before this instant.
    """

    trigger: RoleFacts
    dispatcher: RoleFacts
    pool: PoolFacts
    unsent: int = 0
    oldest_unsent_at: datetime | None = None
    passed_until: datetime | None = None


class LaneBacklog(NamedTuple):
    """The run's lane in Kafka: messages that no worker has read, and the age of the oldest one."""

    messages: int
    oldest_seconds: float | None


class KafkaAway(NamedTuple):
    """The lane could not be measured."""

    reason: str


class SkippedInstant(NamedTuple):
    """A naive local time of the schedule that does not fire; `calendar`: because a day is closed."""

    local: datetime
    note: str
    calendar: bool


@dataclass(frozen=True, slots=True)
class ScheduleFacts:
    """What the schedule of a recurring job says.

    Attributes:
        over: it has no further instants.
        max_runs: of the job.
        end: of the schedule.
        jitter_seconds: of the schedule.
        calendars: the names of its calendars.
        cut_off: times between the last instant with a verdict and the next one that do not fire.
        held: the number of instants deferred by a pause.
    """

    over: bool = False
    max_runs: int | None = None
    end: datetime | None = None
    jitter_seconds: float = 0.0
    calendars: Sequence[str] = ()
    cut_off: Sequence[SkippedInstant] = ()
    held: int | None = None


class Bounds(NamedTuple):
    """The limits above which something counts as late.

    Attributes:
        outbox_age_seconds, outbox_rows: above these, triggers claim nothing for the slice's lane.
    """

    outbox_age_seconds: float = 10.0
    outbox_rows: int = 20_000


DEFAULT_BOUNDS: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything an answer may need.

    Attributes:
        now: by the database's clock.
        job: the job that is asked about, or that the run belongs to; None: it was deleted, and only its run
            is left.
        run: the run that is asked about; None: the question is about the job.
        runs: if a job is asked about: its latest runs and all that wait for something, the latest first.
        gates: of waiting runs, by the run's id.
        slot: the run that holds the job's overlap slot.
        zone_data: the version of this process.
        timer_missing: the job must have a timer, and has none.
        workflow: of the run that is asked about, if it is of a workflow or of a task; if a job is asked
            about, of the run that its answers are about first.
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
    timer_missing: bool = False
    workflow: WorkflowFacts | None = None
