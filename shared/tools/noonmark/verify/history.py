"""What happened, as it was written down by those who were there: the ledger, Kafka, the targets, the machine.

Ids are text, instants aware UTC. What nobody gathered stays at its default; a rule that cannot judge without
it says so instead of passing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple


class Job(NamedTuple):
    """A row of `jobs`. `changed_at`: of its newest order, such as the cancel of a cancelled one."""

    id: str
    namespace: str
    name: str
    state: str
    version: int
    created_at: datetime
    changed_at: datetime


class Version(NamedTuple):
    """A job as it was from one edit to the next.

    Attributes:
        job: its id.
        version: its number, which runs note.
        schedule: the stored form; None: due on arrival.
        since: from when it held.
        until: until when; None: it holds.
        max_attempts: what the retry budget allows; None: not known.
        delivery: `at_least_once`, `at_most_once` or `exactly_once`.
        overlap: what an instant does while the one before it is under way.
        limits: (name, key) of the limits that its runs keep to.
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


class Run(NamedTuple):
    """A row of the ledger. `losses`: of workers, since the last redrive; `result`: as JSON."""

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


class Attempt(NamedTuple):
    """What an attempt that did not succeed left."""

    run: str
    fence: int
    attempt: int
    outcome: str
    started_at: datetime | None
    finished_at: datetime
    error: str | None = None


class DeadLetter(NamedTuple):
    """A row of `dead_letters`. `attempts` None: only its run was gathered."""

    run: str
    namespace: str
    attempts: int | None = None
    reason: str | None = None
    error: str | None = None


class Rejection(NamedTuple):
    """A submission that was refused: where it lay, its event, and why."""

    topic: str
    partition: int
    offset: int
    event: str | None
    reason: str


class Message(NamedTuple):
    """A run message: in the outbox (`topic` is then "outbox") or in Kafka."""

    topic: str
    offset: int
    run: str
    fence: int
    namespace: str


class Passed(NamedTuple):
    """A record below its group's committed offset: a run message, a submission, or neither."""

    topic: str
    partition: int
    offset: int
    run: str | None = None
    fence: int | None = None
    event: str | None = None


class Unpassed(NamedTuple):
    """A partition whose group has not committed up to its end."""

    topic: str
    partition: int
    committed: int
    end: int


class Call(NamedTuple):
    """A call that a target saw, in the order of its log.

    Attributes:
        run: as it was told, as are fence, attempt, key, instant and namespace.
        fence: of this attempt.
        attempt: its number.
        key: the idempotency key.
        scheduled_for: the instant.
        namespace: of the job.
        at: when, by the target's clock.
        pid: the process that noted it: the worker or its child for handlers, the target for HTTP.
        accepted: what a target that keeps fences answered; None: it keeps none.
        returns: as JSON, what it returns if it succeeds; None: it does not say.
    """

    run: str
    fence: int
    attempt: int
    key: str
    scheduled_for: datetime
    namespace: str
    at: datetime
    pid: int = 0
    accepted: bool | None = None
    returns: str | None = None


class Write(NamedTuple):
    """A row that a handler wrote in the transaction of its run's outcome."""

    run: str
    fence: int


class LifecycleRecord(NamedTuple):
    """An outcome on the lifecycle topic; `event` is the id of the event that carried it. None: not in it."""

    event: str
    run: str
    state: str
    fence: int
    namespace: str
    attempt: int | None = None
    reason: str | None = None
    finished_at: datetime | None = None
    error: str | None = None


class Sighting(NamedTuple):
    """A run as somebody saw it in passing. Sightings are in the order in which they were made."""

    run: str
    state: str
    fence: int


class Child(NamedTuple):
    """A process that lives now and says which run it belongs to; `worker_lives`: whose child it is."""

    pid: int
    run: str
    fence: int
    worker_lives: bool


class Pause(NamedTuple):
    """A time in which nothing of a job may begin; `until` None: it lasts."""

    job: str
    since: datetime
    until: datetime | None


class Span(NamedTuple):
    """A time with a name, such as that of a fault."""

    what: str
    since: datetime
    until: datetime


class Owners(NamedTuple):
    """How many shards of a role have an owner, how many there are, and changes of owner without a fault."""

    role: str
    owned: int
    shards: int
    idle_changes: int = 0


class Drain(NamedTuple):
    """How fast a backlog of due work went, beside the steady rate: runs per second."""

    what: str
    rate: float
    steady: float


class Exit(NamedTuple):
    """A process of a service that ended or hung without being made to."""

    name: str
    how: str


@dataclass(slots=True)
class Expected:
    """What was asked for, and what must become of it. Jobs are named by (namespace, name).

    Attributes:
        instants: of each job; None: one run, at a time that the database chose.
        ends: states that the runs of a job may end in.
        unseen: jobs whose target keeps no log.
        acknowledged: ids of events that the broker has acknowledged.
        rejected: those of them that must be refused.
        refusable: those that may be: orders that can come too late.
        bad: jobs that are meant to be in the way of others.
    """

    instants: dict[tuple[str, str], list[datetime] | None] = field(default_factory=dict)
    ends: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    unseen: set[tuple[str, str]] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    refusable: set[str] = field(default_factory=set)
    bad: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class History:
    """Everything that is judged by. None: not gathered.

    Attributes:
        judged_at: the database's time when the ledger was read.
        known_events: ids of events in the inbox.
        left_over: rows of tables that are empty when all is done.
        outbox_seconds: age of the oldest row of the outbox.
        timers: when runs that wait for a retry are queued again.
        unreachable: ids of processes that were stopped for a while: what they do late, nobody could prevent.
        faults: when something was broken on purpose, and L after it; what lanes do then is not judged.
        poisoned: when nothing was broken, but something bad was sent.
        limits: how many runs of a (namespace, limit) may be under way.
        claim_p99_ms: measured with a session idle in its transaction.
    """

    judged_at: datetime
    jobs: list[Job] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    known_events: set[str] = field(default_factory=set)
    messages: list[Message] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    unpassed: list[Unpassed] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    writes: list[Write] | None = None
    told: list[LifecycleRecord] = field(default_factory=list)
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
