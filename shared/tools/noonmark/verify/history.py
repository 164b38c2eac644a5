"""What happened, as the ledger, Kafka, the targets and the machine recorded it.

Ids are text, instants aware UTC. What was not collected keeps its default; a rule that cannot judge
without it says so instead of passing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from noonmark.core.states import Origin
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.core.workflows.definition import Definition
from noonmark.verify.observed import (
    Call,
    Child,
    Drain,
    Exit,
    LifecycleRecord,
    Message,
    Owners,
    Passed,
    Pause,
    Sighting,
    Span,
    Unpassed,
    Write,
)

__all__ = [
    "Attempt",
    "Call",
    "Child",
    "DeadLetter",
    "Death",
    "Drain",
    "Exit",
    "Graph",
    "History",
    "Job",
    "LifecycleRecord",
    "Message",
    "OpenState",
    "Owners",
    "Passed",
    "Pause",
    "Rejection",
    "Run",
    "Sighting",
    "Span",
    "Unpassed",
    "Version",
    "Worker",
    "Write",
]


class Job(NamedTuple):
    """A row of `jobs`. `changed_at`: when its newest change was made, such as its cancellation.

    `shard` None: not collected.
    """

    id: str
    namespace: str
    name: str
    state: str
    version: int
    created_at: datetime
    changed_at: datetime
    shard: int | None = None


class Version(NamedTuple):
    """A job as it was from one edit to the next.

    Attributes:
        job: its id.
        version: its number, which runs record.
        schedule: the stored form; None: due on arrival.
        since: from when it was valid.
        until: until when; None: it is still valid.
        max_attempts: the number of attempts that the retry budget allows; None: not known.
        delivery: `at_least_once`, `at_most_once` or `exactly_once`.
        overlap: what an instant does while the run of the previous one is unfinished.
        limits: (name, key) of the limits on its runs.
        reports_later: whether its target may report the outcome after the call; None: not known.
    """

    job: str
    version: int
    schedule: Mapping[str, Any] | None
    since: datetime
    until: datetime | None
    max_attempts: int | None
    delivery: str = "at_least_once"
    overlap: str = "allow"
    limits: tuple[tuple[str, str | None], ...] = ()
    reports_later: bool | None = None


class Run(NamedTuple):
    """A row of the ledger.

    Attributes:
        losses: of workers, since the last redrive.
        result: as JSON.
        owner: its last worker; 0: the target reports the outcome; -1: it is a workflow run, whose tasks work.
        epoch: of the lease of its worker.
        start_by: until when its first attempt may start.
        instants: the number of instants that it stands for.
        shard: of its job, or of its own if it is of a task; None: not collected, as for the next two.
        zone_data: the id of the release of the zone data that was active when it was planned.
        holds_slot: whether it holds the overlap slot of its job, or held it when it ended.
        result_digest: of the result, if `result` is not the whole; "" if there is none; None: of `result`.
        error_digest: of the error, likewise.
        due_at: when it became due, of the run of a task; None: at its instant.
    """

    id: str
    job: str
    version: int
    namespace: str
    scheduled_for: datetime
    last_scheduled_for: datetime | None
    origin: str
    request: str
    state: str
    reason: str | None
    attempt: int
    fence: int
    lane: int
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    losses: int = 0
    result: str | None = None
    error: str | None = None
    pool: str | None = None
    owner: int | None = None
    epoch: int | None = None
    start_by: datetime | None = None
    instants: int = 1
    shard: int | None = None
    zone_data: int | None = None
    holds_slot: bool | None = None
    result_digest: str | None = None
    error_digest: str | None = None
    due_at: datetime | None = None

    @property
    def is_task(self) -> bool:
        """Whether it executes a task of a workflow run, whose job, version and instant it has."""
        return self.origin == Origin.TASK

    @property
    def is_workflow(self) -> bool:
        """Whether it is a workflow run: its tasks do the work, so it has no messages and no attempts."""
        return self.pool == WORKFLOW_POOL

    @property
    def due(self) -> datetime:
        """From when it may start."""
        return self.due_at or self.scheduled_for


class Attempt(NamedTuple):
    """The row of an attempt that did not succeed.

    `scheduled_for`: of its run; None: not in it. `error_digest`: as for runs.
    """

    run: str
    fence: int
    attempt: int
    outcome: str
    started_at: datetime | None
    finished_at: datetime
    error: str | None = None
    worker: int | None = None
    scheduled_for: datetime | None = None
    error_digest: str | None = None


class DeadLetter(NamedTuple):
    """A row of `dead_letters`. `attempts` None: only its run was collected."""

    run: str
    namespace: str
    attempts: int | None = None
    reason: str | None = None
    error: str | None = None
    scheduled_for: datetime | None = None
    job: str | None = None
    kind: str | None = None
    name: str | None = None
    fingerprint: str | None = None
    died_at: datetime | None = None


class Death(NamedTuple):
    """An event of the topic of dead letters. `history`: attempts that did not succeed."""

    run: str
    namespace: str
    fence: int
    attempts: int
    reason: str | None
    error: str | None
    kind: str | None
    name: str | None
    fingerprint: str | None
    history: tuple[Attempt, ...] = ()
    scheduled_for: datetime | None = None


class Worker(NamedTuple):
    """A row of `workers`. `until`: when its lease lapsed or it left; None: it has its lease.

    `beat`: when its newest heartbeat came; None: not collected.
    """

    id: int
    pool: str
    pid: int
    epoch: int
    since: datetime
    until: datetime | None
    beat: datetime | None = None


class Rejection(NamedTuple):
    """A submission that was refused: its partition and offset, its event, and why."""

    topic: str
    partition: int
    offset: int
    event: str | None
    reason: str


class Graph(NamedTuple):
    """The compiled tasks of a version of a workflow, and the longest time that a run of it may take."""

    definition: Definition
    deadline_seconds: float | None = None

    def results_read(self) -> set[int]:
        """Return the numbers of the tasks whose results conditions read."""
        keys = {key for task in self.definition.tasks if task.when is not None for key in task.when.reads}
        parents = {no for no, edges in enumerate(self.definition.conditional_edges) if edges}
        return parents | {self.definition.numbers[key] for key in keys}


class OpenState(NamedTuple):
    """A row of `workflows`: what is kept of an open workflow run.

    `progress` has a byte for each task, `choices` one for each conditional edge. `stopping`: why nothing more
    starts, but for `finally`.
    """

    run: str
    generation: int
    progress: bytes
    choices: bytes
    stopping: str | None = None


@dataclass(slots=True)
class History:
    """The whole input of the checker. None: not collected.

    Attributes:
        judged_at: the database's time when the ledger was read.
        clocks_agree: the database's clock is that of the targets. A test may let the database's clock stand;
            times of one clock are then not compared with times of the other.
        known_events: ids of events in the inbox.
        left_over: rows of tables that must be empty when everything is done.
        outbox_seconds: age of the oldest row of the outbox.
        timers: when runs that wait for a retry are queued again.
        unreachable: ids of processes that were stopped for a while: nothing can prevent their late actions.
        faults: periods of planned faults, each with L after it; the order of lanes is not judged then.
        poisoned: periods without faults in which bad input was sent.
        messages: run messages in the outbox and in Kafka.
        limits: the number of runs of a (namespace, limit) that may be in flight.
        claim_p99_ms: measured next to a session that is idle in transaction.
        newest_worker: the highest id that was ever assigned to a worker; None: the highest of `workers`.
        shards: the number of shards of the installation.
        zone_releases: ids of the releases of the zone data that the installation has planned with.
        slot_holders: ids of the runs that overlap slots and slots of limits name.
        graphs: of the versions of workflows, by job and version.
        open_states: of open workflow runs.
        reported: ids of the runs that timers of workflows are about: of tasks that ended, or workflow runs.
        results: of runs, as JSON; None: each run has its own.
        restless: what had not come to rest within L after the last fault, with its number; empty if all had.
            If not empty, the parts of the history contradict each other, and only V2 and V3 are judged.
    """

    judged_at: datetime
    clocks_agree: bool = True
    jobs: list[Job] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    known_events: set[str] = field(default_factory=set)
    messages: list[Message] | None = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    unpassed: list[Unpassed] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    writes: list[Write] | None = None
    lifecycle: list[LifecycleRecord] = field(default_factory=list)
    deaths: list[Death] | None = None
    workers: list[Worker] | None = None
    newest_worker: int | None = None
    shards: int | None = None
    zone_releases: set[int] | None = None
    slot_holders: set[str] | None = None
    sightings: Sequence[Sighting] | None = None
    children: list[Child] | None = None
    pauses: list[Pause] | None = None
    left_over: dict[str, int] = field(default_factory=dict)
    outbox_seconds: float = 0.0
    timers: dict[str, datetime] = field(default_factory=dict)
    unreachable: set[int] = field(default_factory=set)
    faults: list[Span] | None = None
    poisoned: list[Span] | None = None
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    owners: list[Owners] | None = None
    drains: list[Drain] | None = None
    exits: list[Exit] | None = None
    claim_p99_ms: float | None = None
    graphs: dict[tuple[str, int], Graph] | None = None
    open_states: list[OpenState] | None = None
    reported: set[str] = field(default_factory=set)
    results: dict[str, str] | None = None
    restless: dict[str, int] = field(default_factory=dict)
