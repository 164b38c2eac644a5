"""Why has it not run? The codes of the answers, their remedies, and their order: the real cause is first.

`facts` holds what must be known; `jobs`, `runs` and `path` turn it into answers. All of it is pure.
docs/why.md explains every answer.
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
    """What an answer is about. Among answers of the same weight, the code that is earlier here is first."""

    JOB_CANCELLED = "job_cancelled"
    JOB_BROKEN = "job_broken"
    JOB_PAUSED_ITSELF = "job_paused_itself"
    JOB_PAUSED = "job_paused"
    NAMESPACE_PAUSED = "namespace_paused"
    HELD = "held"
    TIMER_MISSING = "timer_missing"
    TIMER_WRONG = "timer_wrong"
    RUN_STRANDED = "run_stranded"
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
    WORKER_LOST = "worker_lost"
    CANCELLING = "cancelling"
    CALLBACK = "callback"
    WAITS_FOR_TASKS = "waits_for_tasks"
    SKIPPED_OVERLAP = "skipped_overlap"
    MISFIRED = "misfired"
    COALESCED = "coalesced"
    LOOK_BACK = "look_back"
    SKIPPED_PAUSED = "skipped_paused"
    SKIPPED_CANCELLED = "skipped_cancelled"
    UPSTREAM_FAILED = "upstream_failed"
    UPSTREAM_SKIPPED = "upstream_skipped"
    NOT_NEEDED = "not_needed"
    CONDITION = "condition"
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
"""Facts of an answer, by name."""


class Weight(IntEnum):
    """How important an answer is."""

    BLOCKS = 0
    """It does not run until this changes."""
    STATES = 1
    """The state or the outcome; this alone needs no action."""
    ADDS = 2
    """It will matter later, or explains another answer."""


REMEDIES: Final[Mapping[Blocker, str]] = MappingProxyType(
    {
        Blocker.JOB_CANCELLED: "Submit the job again if it must run.",
        Blocker.JOB_BROKEN: "Fix what the reason names, then update the job: it is planned again.",
        Blocker.JOB_PAUSED_ITSELF: "`noonmark dead list --job {job} --namespace {namespace}` shows"
        " why its runs died; fix that, then `noonmark job resume {job} --namespace {namespace}`.",
        Blocker.JOB_PAUSED: "`noonmark job resume {job} --namespace {namespace}`;"
        " `--missed` says what happens to the instants of the pause.",
        Blocker.NAMESPACE_PAUSED: "`noonmark namespace resume {namespace}` resumes all its jobs.",
        Blocker.HELD: "`noonmark run release {run}` lets the workflow run go on.",
        Blocker.TIMER_MISSING: "Submit the job's document again, for example with `noonmark job apply`: the"
        " job is then planned again. `noonmark db check` lists all such jobs.",
        Blocker.TIMER_WRONG: "Send the job's document again (`PUT` of the API), or apply it with another"
        " description: the job is then planned again. `noonmark db check` lists all such jobs.",
        Blocker.RUN_STRANDED: "`noonmark run cancel {run}`, then `noonmark job trigger` runs the job again."
        " `noonmark db check` lists all such runs.",
        Blocker.START_DEADLINE: "If late is better than never, raise the job's start_deadline_seconds.",
        Blocker.UNDELIVERABLE: "Fix what Kafka reports: create the topic, raise its max.message.bytes,"
        " or allow the dispatcher to write to it; the message is retried automatically.",
        Blocker.OVERLAP: "`noonmark why {holder}` shows what that run is doing,"
        " `noonmark run cancel {holder}` stops it. `overlap: allow` lets runs of the job overlap.",
        Blocker.LIMIT: "Wait for one of these runs to finish, or stop one with `noonmark run cancel`;"
        " `noonmark limit set {limit} --namespace {namespace} --max-running N` raises the limit.",
        Blocker.RATE_LIMIT: "Wait;"
        " `noonmark limit set {limit} --namespace {namespace} --rate N/TIME` raises the rate.",
        Blocker.NAMESPACE_CAP: "Wait for runs of the namespace to finish, or raise its cap:"
        " `noonmark namespace set {namespace} --max-in-flight N`.",
        Blocker.TRIGGER_STOPPED: "Start one: `noonmark trigger`."
        " If it does not stay up, its log and /readyz say why.",
        Blocker.DISPATCHER_STOPPED: "Start one: `noonmark dispatcher`."
        " If it does not stay up, its log and /readyz say why.",
        Blocker.DISPATCHER_BEHIND: "Check the dispatcher's log: Kafka may not answer, or be too slow;"
        " more dispatchers share the slices.",
        Blocker.CLAIMS_HELD_BACK: "Nothing to do here: claims resume when the dispatcher has caught up.",
        Blocker.ZONE_DATA: "Start triggers with the active version of the zone data,"
        " or activate theirs: `noonmark zones activate`.",
        Blocker.TRIGGER_BEHIND: "Check the trigger's log and its claim metrics;"
        " more triggers share the shards.",
        Blocker.NO_SUCH_POOL: "`noonmark pool create {pool}`, then start workers with `--pool {pool}`;"
        " or give the job another pool.",
        Blocker.NO_WORKER: "Start one: `noonmark worker --pool {pool}`;"
        " for Python jobs, add `--handlers MODULE` and `--path FOLDER`, where the module is.",
        Blocker.NO_WORKER_FOR_KIND: "Start workers of pool {pool} that run this kind,"
        " or give the job another pool.",
        Blocker.NO_WORKER_FOR_HANDLER: "Start workers of pool {pool} with `--handlers MODULE`, the module"
        " that registers {handler}; or correct the job's handler or pool.",
        Blocker.MESSAGE_LOST: "Nothing to do: the trigger sends it again within a few minutes.",
        Blocker.KAFKA_AWAY: "Restore Kafka; `noonmark lag` shows when the lane can be measured again.",
        Blocker.LANE_BACKLOG: "Add workers or slots to pool {pool}; put urgent jobs in a higher lane.",
        Blocker.WORKERS_BUSY: "Add workers or slots to pool {pool}; `noonmark run list --state running` shows"
        " what they are doing.",
        Blocker.RETRYING: "Wait, or fix what the error names; `noonmark run show {run}` has every attempt.",
        Blocker.WORKER_LOST: "Nothing to do: the attempt is repeated, and its retry budget does not change."
        " If the run loses its worker again, check whether it is the cause, for example by using all memory:"
        " `noonmark run logs {run}` has what it wrote.",
        Blocker.CANCELLING: "Wait for the worker; a plain function on a thread stops only when it checks"
        " `ctx.cancelled`, or at its timeout.",
        Blocker.CALLBACK: "Have the target report with its token, or wait for the deadline;"
        " `noonmark run cancel {run}` cancels the run.",
        Blocker.WAITS_FOR_TASKS: "Nothing to do; `noonmark run tasks {run}` lists the tasks with their runs,"
        " and `noonmark why` explains each of these runs.",
        Blocker.SKIPPED_OVERLAP: "Shorten the runs, lengthen the schedule, or choose another overlap rule:"
        " `queue_one`, `cancel_running` or `allow`. A skipped trigger is not made up for: trigger it again.",
        Blocker.MISFIRED: "If late is better than never, raise misfire.grace_seconds or choose another"
        " misfire policy; `noonmark backfill` runs the skipped instants.",
        Blocker.COALESCED: "Choose the misfire policy `fire_all` if each instant must run;"
        " `noonmark backfill` runs the skipped instants.",
        Blocker.LOOK_BACK: "Raise misfire.look_back_seconds; `noonmark backfill` runs the skipped instants.",
        Blocker.SKIPPED_PAUSED: "Resume with `--missed latest` or `all` next time;"
        " `noonmark backfill` runs the skipped instants.",
        Blocker.SKIPPED_CANCELLED: "Submit the job again if it must run.",
        Blocker.UPSTREAM_FAILED: "Fix why the task before it failed, then redrive the workflow run:"
        " it continues with the tasks that failed.",
        Blocker.UPSTREAM_SKIPPED: "Nothing to do; with `rule: none_failed` a task runs if one of its parents"
        " succeeded, with `rule: all_done` in any case.",
        Blocker.NOT_NEEDED: "Nothing to do: with `rule: one_failed` a task runs only after a failure.",
        Blocker.CONDITION: "Nothing to do; `when` of the task says under which condition it runs.",
        Blocker.DEAD: "`noonmark dead show {run}` has every attempt; fix the cause, then"
        " `noonmark dead redrive {run}`. It keeps the version of the job that it had: if you fix the job by"
        " editing it, `noonmark job trigger` runs the edited job.",
        Blocker.UNKNOWN: "Check at the target whether it took effect; it is never repeated automatically:"
        " `noonmark job trigger` runs the job again.",
        Blocker.NO_NEXT_INSTANT: "Change the calendars or the schedule:"
        " the next instant is then found automatically.",
        Blocker.SCHEDULE_ENDED: "Give the schedule a later end, or none, if the job must continue.",
        Blocker.MAX_RUNS: "Raise max_runs of its schedule if the job must continue.",
        Blocker.ON_ITS_WAY: "Nothing to do: check again in a few seconds.",
        Blocker.RUNNING: "Nothing to do; `noonmark run logs {run}` has what it wrote.",
        Blocker.JITTER: "Nothing to do; a smaller jitter_seconds brings it closer to its instant.",
        Blocker.CALENDAR: "Change the calendar, or the job's calendars, if it must run on such days.",
        Blocker.CLOCK_CHANGE: "dst_gap and dst_overlap of the schedule say what happens to such times.",
        Blocker.NOT_DUE: "Nothing to do;"
        " `noonmark job trigger {job} --namespace {namespace}` runs it now as well.",
        Blocker.CANCELLED: "`noonmark job trigger` runs the job again.",
        Blocker.DISCARDED: "`noonmark job trigger` runs the job again.",
        Blocker.SUCCEEDED: "Nothing to do.",
        Blocker.NOTHING_LEFT: "Submit the job again if it must run.",
    }
)
"""What to do about each; names in braces are replaced by the answer's facts."""

WITHOUT_WORKER: Final[Mapping[Blocker, str]] = MappingProxyType(
    {
        Blocker.RUN_STRANDED: "`noonmark run cancel {run}`. Before the job can run again, start a worker that"
        " can run it.",
        Blocker.DEAD: "`noonmark dead show {run}` has every attempt; fix the cause, start a worker that can"
        " run the job, then `noonmark dead redrive {run}`.",
        Blocker.UNKNOWN: "Check at the target whether it took effect; it is never repeated automatically,"
        " and no worker could run it now.",
        Blocker.NOT_DUE: "Nothing to do about its time; no worker could run it now.",
        Blocker.CANCELLED: "Before the job can run again, start a worker that can run it.",
        Blocker.DISCARDED: "Before the job can run again, start a worker that can run it.",
    }
)
"""The same if no worker can run the job: a triggered run would only wait."""

_BLOCKS: Final = frozenset(
    {
        Blocker.JOB_CANCELLED, Blocker.JOB_BROKEN, Blocker.JOB_PAUSED_ITSELF, Blocker.JOB_PAUSED,
        Blocker.NAMESPACE_PAUSED, Blocker.HELD, Blocker.TIMER_MISSING, Blocker.TIMER_WRONG,
        Blocker.RUN_STRANDED, Blocker.START_DEADLINE, Blocker.UNDELIVERABLE, Blocker.OVERLAP,
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
        weight: how important it is.
        sentence: what blocks, who or what causes it, and since or until when.
        remedy: what to do.
        facts: ids, instants and figures that the sentence is made of, for programs: UUIDs, datetimes,
            numbers, texts.
    """

    code: Blocker
    weight: Weight
    sentence: str
    remedy: str
    facts: Mapping[str, Any]


def answer(code: Blocker, sentence: str, *, weight: Weight | None = None, **facts: Any) -> Answer:
    """Make an answer; facts that are None are left out and appear in the remedy as `-`.

    Values in the remedy are quoted for a shell: users choose the names of jobs, and people copy commands.
    """
    if weight is None:
        weight = Weight.BLOCKS if code in _BLOCKS else Weight.STATES
    known = {name: value for name, value in facts.items() if value is not None}
    return Answer(code, weight, sentence, _filled(REMEDIES[code], facts), known)


def without_worker(given: Answer) -> Answer:
    """Return an answer about a job that no worker can run, with the remedy that works in this case."""
    remedy = WITHOUT_WORKER.get(given.code)
    return given if remedy is None else replace(given, remedy=_filled(remedy, given.facts))


def _filled(remedy: str, facts: Mapping[str, Any]) -> str:
    shown = {name: "-" if value is None else quote(str(value)) for name, value in facts.items()}
    return remedy.format_map(shown)


def ranked(answers: Iterable[Answer]) -> list[Answer]:
    """Order answers, the real cause first; of several with one code, the first one is kept."""
    firsts: dict[Blocker, Answer] = {}
    for one in answers:
        kept = firsts.setdefault(one.code, one)
        if one.weight < kept.weight:
            firsts[one.code] = one
    return sorted(firsts.values(), key=lambda one: (one.weight, _ORDER[one.code]))


def at(moment: datetime) -> str:
    """Format an instant for sentences: UTC, to the second."""
    return as_utc(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def lasting(seconds: float) -> str:
    """Format a duration for sentences."""
    if seconds < 120:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"


def counted(number: int, what: str) -> str:
    """Return a number with its noun: `1 run`, `2 runs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def ahead(number: int) -> str:
    """Return how many runs come before one."""
    return f"{counted(number, 'run') if number else 'no run'} ahead of it"
