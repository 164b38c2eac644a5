"""The list of invariants: id, title, rule, and what a history must contain to be judged by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from noonmark.verify import copies, instants, liveness, recorded, safety, times, workflows
from noonmark.verify.case import Case, Violation


class Invariant(NamedTuple):
    """One invariant.

    Attributes:
        id: S and W (workflows): must always hold; V: must be reached; T: what a test expects.
        title: what it demands.
        rule: yields its violations; None: this version cannot break it.
        missing: returns why a history cannot be judged by it; None: it can.
        lasting: it must hold at every moment, also while the system is running.
        at_rest: it demands that the system comes to rest, so it is judged if the system did not.
    """

    id: str
    title: str
    rule: Callable[[Case], Iterator[Violation]] | None
    missing: Callable[[Case], str | None]
    lasting: bool = True
    at_rest: bool = False


def _nothing(_case: Case) -> str | None:
    return None


def _without(why: str, has: Callable[[Case], bool]) -> Callable[[Case], str | None]:
    return lambda case: None if has(case) else why


_NO_GRAPHS: Final = "tasks of workflows were not collected"
_NO_STATES: Final = "states of workflow runs were not collected"


def _has_graphs(case: Case) -> bool:
    return case.history.graphs is not None


def _has_states(case: Case) -> bool:
    return _has_graphs(case) and case.history.open_states is not None


INVARIANTS: Final[tuple[Invariant, ...]] = (
    Invariant("S1", "one run per job, instant, origin and request", safety.one_run_per_instant, _nothing),
    Invariant(
        "S2",
        "what was acknowledged is stored, or refused with a reason",
        safety.submissions_are_kept,
        _nothing,
    ),
    Invariant("S3", "one live token per run; fences rise", safety.one_live_token, _nothing),
    Invariant("S4", "one verdict, by the newest token, never changed", safety.one_verdict, _nothing),
    Invariant(
        "S5", "no offset is committed past an unhandled record", safety.offsets_leave_no_hole, _nothing
    ),
    Invariant("S6", "every queueing has its message", safety.messages_are_written_with_runs, _nothing),
    Invariant(
        "S7", "no start before its time, after cancel or during a pause", safety.starts_when_it_may, _nothing
    ),
    Invariant(
        "S8", "overlap rules and limits are kept, counted by lease", safety.overlap_and_limits_hold, _nothing
    ),
    Invariant("S9", "nothing of a cancelled run keeps running", safety.cancelled_is_over, _nothing),
    Invariant(
        "S10",
        "a job that depends on another starts once, after it",
        None,
        lambda _case: "this version has no dependencies between jobs",
    ),
    Invariant(
        "S11",
        "attempts within the budget; a dead letter for each dead run",
        safety.attempts_are_bounded,
        _nothing,
    ),
    Invariant(
        "S12",
        "one namespace in run, message, dead letter, event and call (API answers are not collected)",
        safety.tenants_stay_apart,
        _nothing,
    ),
    Invariant("S13", "instants equal the oracle", instants.instants_equal_the_oracle, _nothing),
    Invariant(
        "S14",
        "higher lanes go first",
        safety.higher_lanes_go_first,
        _without("the times of faults were not recorded", lambda case: case.history.faults is not None),
    ),
    Invariant("S15", "attempts are recorded without a gap", recorded.attempts_are_whole, _nothing),
    Invariant("S16", "times are in order, and have passed", times.times_go_forwards, _nothing),
    Invariant("S17", "outcomes stay as recorded", recorded.outcomes_stay_as_recorded, _nothing),
    Invariant("S18", "what is written twice agrees", copies.copies_agree, _nothing),
    Invariant(
        "S19",
        "attempts name the worker that made them",
        copies.attempts_have_their_worker,
        _without("workers were not collected", lambda case: case.history.workers is not None),
    ),
    Invariant(
        "V1",
        "every planned instant ran or was skipped with a reason",
        liveness.no_instant_is_silent,
        _nothing,
        lasting=False,
    ),
    Invariant("V2", "nothing is stuck", liveness.nothing_is_stuck, _nothing, lasting=False, at_rest=True),
    Invariant(
        "V3",
        "outbox and lag return to zero",
        liveness.queues_are_empty,
        _nothing,
        lasting=False,
        at_rest=True,
    ),
    Invariant(
        "V4",
        "every shard has an owner",
        liveness.shards_have_owners,
        _without("owners were not checked", lambda case: case.history.owners is not None),
        lasting=False,
    ),
    Invariant(
        "V5",
        "bad input delays nothing else by over 5 s",
        liveness.poison_is_isolated,
        _without(
            "no period with bad input as the only fault", lambda case: case.history.poisoned is not None
        ),
        lasting=False,
    ),
    Invariant(
        "V6",
        "a backlog drains at 80 % of the steady rate",
        liveness.backlogs_drain,
        _without("no drain was measured", lambda case: case.history.drains is not None),
        lasting=False,
    ),
    Invariant(
        "V7",
        "processes recover without help",
        liveness.processes_recover,
        _without("processes were not watched", lambda case: case.history.exits is not None),
        lasting=False,
    ),
    Invariant(
        "V8",
        "claim p99 below 100 ms next to an idle transaction",
        liveness.claims_stay_fast,
        _without("not measured", lambda case: case.history.claim_p99_ms is not None),
        lasting=False,
    ),
    Invariant(
        "W2",
        "a task starts once in a generation, when its rule is met",
        workflows.tasks_start_by_their_rule,
        _without(_NO_GRAPHS, _has_graphs),
    ),
    Invariant(
        "W3",
        "the reason of every skipped task follows from its rule",
        workflows.skips_follow_from_rules,
        _without(_NO_GRAPHS, _has_graphs),
    ),
    Invariant(
        "W5",
        "nothing is left of a workflow run that is not open",
        workflows.closed_runs_leave_nothing,
        _without(_NO_STATES, _has_states),
    ),
    Invariant(
        "W6",
        "the state of an open workflow run equals its ledger",
        workflows.states_equal_the_ledger,
        _without(_NO_STATES, _has_states),
    ),
    Invariant(
        "W7",
        "the verdict of a workflow run follows from those of its tasks",
        workflows.verdicts_follow_from_tasks,
        _without(_NO_GRAPHS, _has_graphs),
    ),
    Invariant(
        "W8",
        "tasks of finally end once in a generation, after all others",
        workflows.final_tasks_come_last,
        _without(_NO_GRAPHS, _has_graphs),
    ),
    Invariant(
        "W9",
        "tasks belong to a workflow run, and have its version",
        workflows.tasks_have_their_version,
        _nothing,
    ),
    Invariant(
        "T1",
        "runs end in a state that their submission allows",
        liveness.runs_end_as_asked,
        _nothing,
        lasting=False,
    ),
    Invariant("T2", "target and ledger agree", liveness.targets_and_ledger_agree, _nothing),
    Invariant("T3", "at_most_once and exactly_once are kept", liveness.delivery_is_kept, _nothing),
)
