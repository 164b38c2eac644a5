"""Why has it not run? The vocabulary of the answers, and their order: what has to go first stands first.

`why_facts` has what must be known, `why_jobs`, `why_runs` and `why_path` make the answers of it. All of it is
pure. docs/why.md explains every answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum, StrEnum
from shlex import quote
from types import MappingProxyType
from typing import Any, Final

from noonmark.core.instants import as_utc


class Blocker(StrEnum):
    """What an answer is about. Of those that weigh the same, the earlier one stands first."""

    JOB_CANCELLED = "job_cancelled"
    JOB_BROKEN = "job_broken"
    JOB_PAUSED_ITSELF = "job_paused_itself"
    JOB_PAUSED = "job_paused"
    NAMESPACE_PAUSED = "namespace_paused"
    START_DEADLINE = "start_deadline"
    UNDELIVERABLE = "undeliverable"
    OVERLAP = "overlap"
    LIMIT = "limit"
    RATE_LIMIT = "rate_limit"
    NAMESPACE_CAP = "namespace_cap"
    TRIGGER_STOPPED = "trigger_stopped"
    DISPATCHER_STOPPED = "dispatcher_stopped"
    DISPATCHER_BEHIND = "dispatcher_behind"
    CLAIMS_HELD_BACK = "claims_held_back"
    ZONE_DATA = "zone_data"
    TRIGGER_BEHIND = "trigger_behind"
    NO_SUCH_POOL = "no_such_pool"
    NO_WORKER = "no_worker"
    NO_WORKER_FOR_KIND = "no_worker_for_kind"
    NO_WORKER_FOR_HANDLER = "no_worker_for_handler"
    MESSAGE_LOST = "message_lost"
    KAFKA_AWAY = "kafka_away"
    LANE_BACKLOG = "lane_backlog"
    WORKERS_BUSY = "workers_busy"
    RETRYING = "retrying"
    CANCELLING = "cancelling"
    CALLBACK = "callback"
    SKIPPED_OVERLAP = "skipped_overlap"
    MISFIRED = "misfired"
    COALESCED = "coalesced"
    LOOK_BACK = "look_back"
    SKIPPED_PAUSED = "skipped_paused"
    SKIPPED_CANCELLED = "skipped_cancelled"
    DEAD = "dead"
    UNKNOWN = "unknown"
    NO_NEXT_INSTANT = "no_next_instant"
    SCHEDULE_ENDED = "schedule_ended"
    MAX_RUNS = "max_runs"
    ON_ITS_WAY = "on_its_way"
    RUNNING = "running"
    JITTER = "jitter"
    CALENDAR = "calendar"
    CLOCK_CHANGE = "clock_change"
    NOT_DUE = "not_due"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    SUCCEEDED = "succeeded"
    NOTHING_LEFT = "nothing_left"


About = dict[str, Any]
"""Facts of an answer by their names."""


class Weight(IntEnum):
    """How an answer is to be read."""

    BLOCKS = 0
    """It does not run before this has changed."""
    STATES = 1
    """Where it stands, or what became of it; nothing need be done about it by itself."""
    ADDS = 2
    """What will matter later, or explains another answer."""


REMEDIES: Final[Mapping[Blocker, str]] = MappingProxyType(
    {
        Blocker.JOB_CANCELLED: "Submit the job again if it is to run.",
        Blocker.JOB_BROKEN: "Mend what the reason names and update the job: it is planned again.",
        Blocker.JOB_PAUSED_ITSELF: "`noonmark dead list --job {job} --namespace {namespace}` shows"
        " what it died of; mend that, then `noonmark job resume {job} --namespace {namespace}`.",
        Blocker.JOB_PAUSED: "`noonmark job resume {job} --namespace {namespace}`;"
        " `--missed` says what becomes of the instants held.",
        Blocker.NAMESPACE_PAUSED: "`noonmark namespace resume {namespace}` lets all its jobs go on.",
        Blocker.START_DEADLINE: "If late is better than never, raise the job's start_deadline_seconds.",
        Blocker.UNDELIVERABLE: "Mend what Kafka says: make the topic, raise its max.message.bytes,"
        " or allow the dispatcher to write there; the message is tried again by itself.",
        Blocker.OVERLAP: "`noonmark why {holder}` says what that run is at, `noonmark run cancel {holder}`"
        " ends it. `overlap: allow` lets runs of the job overlap.",
        Blocker.LIMIT: "Wait for a holder to end, or end one with `noonmark run cancel`;"
        " `noonmark limit set {limit} --namespace {namespace} --max-running N` makes room for more.",
        Blocker.RATE_LIMIT: "Wait;"
        " `noonmark limit set {limit} --namespace {namespace} --rate N/TIME` lets more begin.",
        Blocker.NAMESPACE_CAP: "Wait for runs of the namespace to end, or raise its cap:"
        " `noonmark namespace set {namespace} --max-in-flight N`.",
        Blocker.TRIGGER_STOPPED: "Start one: `noonmark trigger`."
        " Its log and /readyz say why it does not stay up.",
        Blocker.DISPATCHER_STOPPED: "Start one: `noonmark dispatcher`."
        " Its log and /readyz say why it does not stay up.",
        Blocker.DISPATCHER_BEHIND: "Look at the dispatcher's log: Kafka may not answer, or be too slow;"
        " more dispatchers share the slices.",
        Blocker.CLAIMS_HELD_BACK: "Nothing to do here: claims go on when the dispatcher has caught up.",
        Blocker.ZONE_DATA: "Start triggers with the active version of the zone data,"
        " or make theirs the active one: `noonmark zones activate`.",
        Blocker.TRIGGER_BEHIND: "Look at the trigger's log and its metrics of claims;"
        " more triggers share the shards.",
        Blocker.NO_SUCH_POOL: "`noonmark pool create {pool}`, then start workers with `--pool {pool}`;"
        " or give the job another pool.",
        Blocker.NO_WORKER: "Start one: `noonmark worker --pool {pool}`.",
        Blocker.NO_WORKER_FOR_KIND: "Start workers of pool {pool} that run this kind,"
        " or give the job another pool.",
        Blocker.NO_WORKER_FOR_HANDLER: "Start workers of pool {pool} with `--handlers MODULE`, the module"
        " that registers {handler}; or correct the job's handler or pool.",
        Blocker.MESSAGE_LOST: "Nothing to do: the trigger sends it again, within some minutes.",
        Blocker.KAFKA_AWAY: "Bring Kafka back; `noonmark lag` says when it can be measured again.",
        Blocker.LANE_BACKLOG: "Add workers or slots to pool {pool}; what is urgent goes in a higher lane.",
        Blocker.WORKERS_BUSY: "Add workers or slots to pool {pool}; `noonmark run list --state running` shows"
        " what they are at.",
        Blocker.RETRYING: "Wait, or mend what the error names; `noonmark run show {run}` has every attempt.",
        Blocker.CANCELLING: "Wait for the worker; a plain function on a thread ends only when it looks at"
        " `ctx.cancelled`, or at its timeout.",
        Blocker.CALLBACK: "Have the target report with its token, or wait for the deadline;"
        " `noonmark run cancel {run}` gives it up.",
        Blocker.SKIPPED_OVERLAP: "Shorten the runs, lengthen the schedule, or choose another overlap rule:"
        " `queue_one`, `cancel_running` or `allow`.",
        Blocker.MISFIRED: "If late is better than never, raise misfire.grace_seconds or choose another"
        " misfire policy; `noonmark backfill` runs them after all.",
        Blocker.COALESCED: "Choose the misfire policy `fire_all` if each instant is to run;"
        " `noonmark backfill` runs them after all.",
        Blocker.LOOK_BACK: "Raise misfire.look_back_seconds; `noonmark backfill` runs them after all.",
        Blocker.SKIPPED_PAUSED: "Resume with `--missed latest` or `all` next time;"
        " `noonmark backfill` runs them after all.",
        Blocker.SKIPPED_CANCELLED: "Submit the job again if it is to run.",
        Blocker.DEAD: "`noonmark dead show {run}` has every attempt; mend the cause, then"
        " `noonmark dead redrive {run}`. It keeps the version of its job that it had: if you mend the job by"
        " an edit, `noonmark job trigger` runs it as it is then.",
        Blocker.UNKNOWN: "Find out at the target whether it took effect; it is never repeated by itself:"
        " `noonmark job trigger` runs the job again.",
        Blocker.NO_NEXT_INSTANT: "Change calendars or schedule: the next instant is found by itself.",
        Blocker.SCHEDULE_ENDED: "Give the schedule a later end, or none, if the job is to go on.",
        Blocker.MAX_RUNS: "Raise max_runs of its schedule if the job is to go on.",
        Blocker.ON_ITS_WAY: "Nothing to do: look again in some seconds.",
        Blocker.RUNNING: "Nothing to do; `noonmark run logs {run}` has what it wrote.",
        Blocker.JITTER: "Nothing to do; a smaller jitter_seconds brings it closer to its instant.",
        Blocker.CALENDAR: "Change the calendar, or the job's calendars, if it is to run on such days.",
        Blocker.CLOCK_CHANGE: "dst_gap and dst_overlap of the schedule say what becomes of such times.",
        Blocker.NOT_DUE: "Nothing to do;"
        " `noonmark job trigger {job} --namespace {namespace}` runs it now as well.",
        Blocker.CANCELLED: "`noonmark job trigger` runs the job again.",
        Blocker.DISCARDED: "`noonmark job trigger` runs the job again.",
        Blocker.SUCCEEDED: "Nothing to do.",
        Blocker.NOTHING_LEFT: "Submit the job again if it is to run.",
    }
)
"""What to do about each; what stands in braces is taken from the answer's facts."""

WITHOUT_WORKER: Final[Mapping[Blocker, str]] = MappingProxyType(
    {
        Blocker.DEAD: "`noonmark dead show {run}` has every attempt; mend the cause, start a worker that can"
        " run the job, then `noonmark dead redrive {run}`.",
        Blocker.UNKNOWN: "Find out at the target whether it took effect; it is never repeated by itself,"
        " and no worker could run it now.",
        Blocker.NOT_DUE: "Nothing to do about its time; no worker could run it now.",
        Blocker.CANCELLED: "Before the job can run again, start a worker that can run it.",
        Blocker.DISCARDED: "Before the job can run again, start a worker that can run it.",
    }
)
"""The same where no worker can run the job: what is triggered then only waits."""

_BLOCKS: Final = frozenset(
    {
        Blocker.JOB_CANCELLED, Blocker.JOB_BROKEN, Blocker.JOB_PAUSED_ITSELF, Blocker.JOB_PAUSED,
        Blocker.NAMESPACE_PAUSED, Blocker.START_DEADLINE, Blocker.UNDELIVERABLE, Blocker.OVERLAP,
        Blocker.LIMIT, Blocker.RATE_LIMIT, Blocker.NAMESPACE_CAP, Blocker.TRIGGER_STOPPED,
        Blocker.DISPATCHER_STOPPED,
        Blocker.DISPATCHER_BEHIND, Blocker.CLAIMS_HELD_BACK, Blocker.ZONE_DATA, Blocker.TRIGGER_BEHIND,
        Blocker.NO_SUCH_POOL, Blocker.NO_WORKER, Blocker.NO_WORKER_FOR_KIND, Blocker.NO_WORKER_FOR_HANDLER,
        Blocker.MESSAGE_LOST, Blocker.KAFKA_AWAY, Blocker.LANE_BACKLOG, Blocker.WORKERS_BUSY,
        Blocker.RETRYING, Blocker.NO_NEXT_INSTANT, Blocker.SCHEDULE_ENDED, Blocker.MAX_RUNS,
        Blocker.NOTHING_LEFT,
    }
)  # fmt: skip
_ORDER: Final = {blocker: place for place, blocker in enumerate(Blocker)}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        code: what it is about.
        weight: how it is to be read.
        sentence: what blocks, by whom or what, since or until when.
        remedy: what to do.
        facts: ids, instants and figures behind the sentence, for programs: UUIDs, datetimes, numbers, texts.
    """

    code: Blocker
    weight: Weight
    sentence: str
    remedy: str
    facts: Mapping[str, Any]


def answer(code: Blocker, sentence: str, *, weight: Weight | None = None, **facts: Any) -> Answer:
    """Make an answer; facts that are None are left out, and stand in the remedy as `-`.

    What the remedy names is quoted for a shell: names of jobs come from outside, and commands are copied.
    """
    if weight is None:
        weight = Weight.BLOCKS if code in _BLOCKS else Weight.STATES
    known = {name: value for name, value in facts.items() if value is not None}
    return Answer(code, weight, sentence, _filled(REMEDIES[code], facts), known)


def without_worker(given: Answer) -> Answer:
    """Return an answer about a job that no worker can run, with what can be done about it then."""
    remedy = WITHOUT_WORKER.get(given.code)
    return given if remedy is None else replace(given, remedy=_filled(remedy, given.facts))


def _filled(remedy: str, facts: Mapping[str, Any]) -> str:
    shown = {name: "-" if value is None else quote(str(value)) for name, value in facts.items()}
    return remedy.format_map(shown)


def ranked(answers: Iterable[Answer]) -> list[Answer]:
    """Order answers: what really blocks first; of one code, the first that was given is kept."""
    firsts: dict[Blocker, Answer] = {}
    for one in answers:
        kept = firsts.setdefault(one.code, one)
        if one.weight < kept.weight:
            firsts[one.code] = one
    return sorted(firsts.values(), key=lambda one: (one.weight, _ORDER[one.code]))


def at(moment: datetime) -> str:
    """Return an instant as sentences show it: UTC, to the second."""
    return as_utc(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def lasting(seconds: float) -> str:
    """Return a duration as sentences show it."""
    if seconds < 120:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"


def counted(number: int, what: str) -> str:
    """Return a number with its noun: `1 run`, `2 runs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
