"""Applies every rule to a history and counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.verify.case import Case, Judging, Violation
from noonmark.verify.expected import Expected
from noonmark.verify.history import History
from noonmark.verify.invariants import INVARIANTS
from noonmark.verify.liveness import latenesses

DEFAULT_BOUND: Final = timedelta(seconds=60)
_SHOWN: Final = 50
_EXPLAINED: Final = frozenset({AttemptOutcome.FAILED, AttemptOutcome.TIMED_OUT, AttemptOutcome.SNOOZED})


@dataclass(slots=True)
class Report:
    """The verdict on a history.

    Attributes:
        violations: all of them.
        unjudged: why an invariant was not judged, by its id.
        planned: instants that had to have a verdict.
        ran: the number of runs with at least one attempt.
        runs: rows of the ledger.
        calls: the number of calls that targets saw.
        skipped: skipped instants by reason.
        late: p50, p99 and maximum of seconds from instant to first start.
        duplicates: for each run that was called again although no attempt had failed, the fences of its
            calls.
        rising: the number of them whose fences rise from call to call.
    """

    violations: list[Violation] = field(default_factory=list)
    unjudged: dict[str, str] = field(default_factory=dict)
    planned: int = 0
    ran: int = 0
    runs: int = 0
    calls: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    late: tuple[float, float, float] = (0.0, 0.0, 0.0)
    duplicates: dict[str, list[int]] = field(default_factory=dict)
    rising: int = 0

    @property
    def clean(self) -> bool:
        """Whether there are no violations."""
        return not self.violations

    def count(self, kind: str) -> int:
        """Return the number of violations of a kind."""
        return sum(violation.kind == kind for violation in self.violations)

    def by_invariant(self) -> dict[str, int | str]:
        """Violations per invariant, or why it was not judged."""
        found = Counter(violation.invariant for violation in self.violations)
        return {item.id: self.unjudged.get(item.id, found[item.id]) for item in INVARIANTS}

    def as_json(self) -> dict[str, Any]:
        """The report for other programs."""
        return {
            "clean": self.clean,
            "planned": self.planned,
            "ran": self.ran,
            "runs": self.runs,
            "calls": self.calls,
            "extra": self.count("extra"),
            "lost": self.count("lost"),
            "second_verdicts": self.count("second_verdict"),
            "stale_writes": self.count("stale_write"),
            "late": dict(zip(("p50", "p99", "max"), self.late, strict=True)),
            "skipped": dict(self.skipped),
            "invariants": self.by_invariant(),
            "kinds": Counter(violation.kind for violation in self.violations),
            "findings": [violation._asdict() for violation in self.violations[:_SHOWN]],
            "duplicates": self.duplicates,
            "duplicates_with_rising_fence": self.rising,
        }


def judge(
    history: History,
    expected: Expected | None = None,
    *,
    bound: timedelta = DEFAULT_BOUND,
    partway: bool = False,
) -> Report:
    """Judge a history.

    Args:
        history: what happened.
        expected: what was requested; None: the ledger's own schedules are the only plan.
        bound: L: the time after the last fault within which liveness must be reached.
        partway: judge only what must hold at every moment.
    """
    case = Case(history, expected, Judging(bound, partway))
    report = Report(runs=len(history.runs), calls=len(history.calls))
    for invariant in INVARIANTS:
        why = invariant.missing(case)
        if why is None and partway and not invariant.lasting:
            why = "the system is still running"
        if why is None and history.restless and not invariant.at_rest:
            why = "the system did not come to rest"
        if why is not None:
            report.unjudged[invariant.id] = why if partway else f"not applicable: {why}"
        elif invariant.rule is not None:
            report.violations += invariant.rule(case)
    _count(case, report)
    return report


def _count(case: Case, report: Report) -> None:
    report.planned = sum(1 for job in case.history.jobs for _ in case.planned(job))
    scheduled = {version.job for version in case.history.versions if version.schedule is not None}
    named = {job.id for job in case.history.jobs if case.expected.instants.get((job.namespace, job.name))}
    report.planned += len(case.jobs.keys() - scheduled - named)
    for run in case.history.runs:
        report.ran += bool(case.windows[run.id]) and not run.is_workflow
        if run.state == RunState.SKIPPED and not run.is_task:
            report.skipped[run.reason or "no reason"] += 1
    if late := latenesses(case):
        report.late = late[len(late) // 2], late[min(len(late) - 1, len(late) * 99 // 100)], late[-1]
    for run_id, calls in case.calls.items():
        held = case.runs.get(run_id)
        again = [
            call
            for call in calls
            if held is not None
            and call.fence != held.fence
            and case.outcome(run_id, call.fence) not in _EXPLAINED
        ]
        if again and len(calls) > 1:
            fences = [call.fence for call in calls]
            report.duplicates[run_id] = fences
            report.rising += fences == sorted(set(fences))
