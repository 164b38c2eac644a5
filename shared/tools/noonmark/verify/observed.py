"""What a history contains beside rows of the ledger: messages, events, calls, what was seen and measured."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class Message(NamedTuple):
    """A run message: in the outbox (`topic` is then "outbox") or in Kafka."""

    topic: str
    offset: int
    run: str
    fence: int
    namespace: str
    job_version: int | None = None
    scheduled_for: datetime | None = None


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
        run: as the call named it, as are fence, attempt, key, instant and namespace.
        fence: of this attempt.
        attempt: its number; None: the call does not name it.
        key: the idempotency key.
        scheduled_for: the instant.
        namespace: of the job.
        at: when, by the target's clock.
        pid: the process that logged it: the worker or its child for handlers, the target for HTTP.
        accepted: the answer of a target that stores fences; None: it does not store them.
        returns: as JSON, what it returns if it succeeds; None: unknown.
    """

    run: str
    fence: int
    attempt: int | None
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
    """An outcome on the lifecycle topic; `event` is the id of the event that carried it. None: not in it.

    The digests are "" if the event says that there is no result, or no error.
    """

    event: str
    run: str
    state: str
    fence: int
    namespace: str
    attempt: int | None = None
    reason: str | None = None
    finished_at: datetime | None = None
    error: str | None = None
    result_digest: str | None = None
    error_digest: str | None = None
    started_at: datetime | None = None
    job: str | None = None
    scheduled_for: datetime | None = None
    origin: str | None = None
    lane: str | None = None
    pool: str | None = None


class Sighting(NamedTuple):
    """A run as the test's observer saw it. Sightings are in the order in which they were made."""

    run: str
    state: str
    fence: int


class Child(NamedTuple):
    """A live process that names the run it belongs to; `worker_lives`: whether its worker is live."""

    pid: int
    run: str
    fence: int
    worker_lives: bool


class Pause(NamedTuple):
    """A time in which no run of a job may start; `until` None: it has not ended."""

    job: str
    since: datetime
    until: datetime | None


class Span(NamedTuple):
    """A named period, such as that of a fault."""

    what: str
    since: datetime
    until: datetime


class Owners(NamedTuple):
    """The number of shards of a role with an owner, of all shards, and of owner changes without a fault."""

    role: str
    owned: int
    shards: int
    idle_changes: int = 0


class Drain(NamedTuple):
    """How fast a backlog of due work was drained, and the steady rate: runs per second."""

    what: str
    rate: float
    steady: float


class Exit(NamedTuple):
    """A process of a service that exited or hung although the test did not cause it."""

    name: str
    how: str
