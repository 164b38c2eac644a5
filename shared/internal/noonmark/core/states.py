"""The states of jobs and runs, their reasons, and lanes. docs/glossary.md explains each word."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class Lane(IntEnum):
    """Priority class of a run. Lower numbers are claimed, relayed and started first."""

    HIGH = 0
    NORMAL = 1
    LOW = 2

    @property
    def label(self) -> str:
        """The name used in topics, metrics, documents and output."""
        return self.name.lower()

    @classmethod
    def from_priority(cls, priority: str | int) -> Lane:
        """Map a document's `priority`: a lane name, or 1 (most urgent) to 10.

        Raises:
            ValueError: neither a lane name nor an integer from 1 to 10.
        """
        if isinstance(priority, str):
            try:
                return cls[priority.upper()]
            except KeyError:
                raise ValueError(f"{priority!r} is not a lane; use high, normal, low, or 1 to 10") from None
        if not 1 <= priority <= 10:
            raise ValueError(f"{priority} is out of range; use 1 to 10, or high, normal, low")
        if priority <= 3:
            return cls.HIGH
        return cls.NORMAL if priority <= 7 else cls.LOW


class JobState(StrEnum):
    """The states of a job. `completed` is derived for one-time jobs (decision 0008)."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    BROKEN = "broken"


NO_NEXT_INSTANT: Final = "no next instant: its calendars leave none"
"""State reason of an active job whose timer waits for other calendars; it is never written to its row."""


class RunState(StrEnum):
    """The states of a run. `noonmark.core.transitions` has the transitions."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    DEAD = "dead"
    DISCARDED = "discarded"


class WaitReason(StrEnum):
    """Why a run is `waiting`."""

    PAUSED = "paused"
    UNDELIVERABLE = "undeliverable"
    OVERLAP = "overlap"
    LIMIT = "limit"
    FAIRNESS = "fairness"


class SkipReason(StrEnum):
    """Why an instant, or a task of a workflow, ended as `skipped` instead of running."""

    MISFIRED = "misfired"
    COALESCED = "coalesced"
    LOOK_BACK = "look_back"
    PAUSED = "paused"
    START_DEADLINE = "start_deadline"
    OVERLAP = "overlap"
    CANCELLED = "cancelled"
    UPSTREAM_FAILED = "upstream_failed"
    """A task that it depends on failed."""
    UPSTREAM_SKIPPED = "upstream_skipped"
    """The tasks that it depends on were skipped, or the conditions of its edges did not hold."""
    NOT_NEEDED = "not_needed"
    """It runs after a failure, and nothing that it depends on failed."""
    CONDITION = "condition"
    """Its `when` did not hold."""


class AttemptOutcome(StrEnum):
    """How one attempt of a run ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    CANCELLED = "cancelled"
    REJECTED = "rejected"
    HANDED_BACK = "handed_back"
    SNOOZED = "snoozed"


BY_HANDLER: Final = "by_handler"
"""Reason of a run that its handler ended as `cancelled` or `discarded`."""


class Origin(StrEnum):
    """What created a run. It is part of the run's key."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    BACKFILL = "backfill"
    EVENT = "event"
    TASK = "task"
    """It is the run of a task, and a workflow run created it: both have one job and one instant."""


BY_TARGET: Final = 0
"""Owner of a run whose target reports the outcome later."""

BY_TASKS: Final = -1
"""Owner of an open workflow run: its tasks do the work. It is no worker, and has no lease."""


class TimerKind(IntEnum):
    """What a row of `timers` is for, and therefore which statement claims it."""

    ONCE = 0
    """A one-time instant without any rule: moved to `runs` in SQL alone."""
    PLANNED = 1
    """An instant whose verdict needs the job's schedule and policies: planned in Python."""
    RETRY = 2
    """A run that is queued again at `fire_at`."""
    ZONED = 3
    """Like `PLANNED`, for a schedule that needs zone data: claimed only with the active version."""
    DEADLINE = 4
    """The deadline of a target's callback."""
    ADVANCE = 5
    """The run of a task has ended, so that its workflow can go on. Or, with the id of the workflow run: it is
    to be opened, to be stopped, or its deadline has come."""


class Overlap(StrEnum):
    """What a due instant does while the job's previous run is unfinished."""

    ALLOW = "allow"
    SKIP = "skip"
    """It is skipped."""
    QUEUE_ONE = "queue_one"
    """One waits for the current run to finish; those that come due while it waits are skipped."""
    CANCEL_RUNNING = "cancel_running"
    """The current run is cancelled, and the newest instant runs when it has ended."""


class DeliverySemantics(StrEnum):
    """The delivery guarantee for the attempts of a run."""

    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"
    """An attempt whose outcome cannot be determined ends the run as `unknown`; it is never run again."""
    EXACTLY_ONCE = "exactly_once"
    """The handler's rows in noonmark's database and its events commit with the outcome, or not at all."""


class DstGap(StrEnum):
    """What happens to a local time that a clock change skips."""

    AUTO = "auto"
    RUN_AFTER = "run_after"
    SKIP = "skip"
    SHIFT = "shift"


class DstOverlap(StrEnum):
    """When a local time fires that occurs twice because of a clock change."""

    AUTO = "auto"
    FIRST = "first"
    LAST = "last"
    BOTH = "both"


class ResumeChoice(StrEnum):
    """What a resume does with the instants of the pause."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


class BackfillMode(StrEnum):
    """Which instants of the range run."""

    MISSING = "missing"
    """Those without any run: nothing in the ledger, or only what was skipped."""
    MISSING_AND_FAILED = "missing_and_failed"
    """Also those whose newest run ended `dead`, `unknown` or `cancelled`."""
    ALL = "all"
    """Every instant, with any outcome."""


class BackfillState(StrEnum):
    """The states of a backfill."""

    RUNNING = "running"
    """It is in progress, or waits for the reason that it shows."""
    DONE = "done"
    """Every instant was checked, and each one to run is queued or has run."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    """It cannot continue; the reason says why, and the place how far it got."""
