"""The checker: planned instants against ledger, lifecycle topic and the target's own log.

`python -m tests.support.checker --dsn … --bootstrap … --prefix … --target-log … --plan plan.json --json`
prints what it found and ends with 0 only if that is nothing. Definitions:

- lost: a planned instant without a ledger row, or a run that succeeded without a call at the target;
- second verdict: a run with two terminal lifecycle events, or two calls with the same (run, fence);
- duplicate: a further call for an attempt that was lost or handed back. Allowed, listed, its fence rises.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.evidence import Call, Evidence, Job, Run, Verdict, gather, instant

TERMINAL = frozenset({"succeeded", "skipped", "cancelled", "unknown", "dead", "discarded"})
LOST = "lost"
SECOND_VERDICT = "second_verdict"


class Finding(NamedTuple):
    """Something that must not be."""

    kind: str
    what: str


@dataclass(slots=True)
class Plan:
    """What was submitted, and what must become of it."""

    namespace: str
    source: str
    jobs: dict[str, list[datetime] | None]
    """Instants by job name; None: one run, at a time that the database chose."""
    ends: dict[str, frozenset[str]]
    """States that the runs of a job may end in."""
    rejected: frozenset[str]

    @classmethod
    def read(cls, document: dict[str, Any]) -> Plan:
        """Read a plan as `Load.write_plan` writes it."""
        jobs = document["jobs"]
        return cls(
            document["namespace"],
            document["source"],
            {
                job["name"]: None if job["instants"] is None else [instant(at) for at in job["instants"]]
                for job in jobs
            },
            {job["name"]: frozenset(job["ends"]) for job in jobs},
            frozenset(document["rejected"]),
        )


@dataclass(slots=True)
class Report:
    """The verdict on a system."""

    findings: list[Finding] = field(default_factory=list)
    duplicates: dict[str, list[int]] = field(default_factory=dict)
    """Fences of the calls of each run that was called more often than its attempts explain."""
    runs: int = 0
    calls: int = 0

    def count(self, kind: str) -> int:
        """How many findings of a kind there are."""
        return sum(finding.kind == kind for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The report for other programs."""
        return {
            "clean": not self.findings,
            "runs": self.runs,
            "calls": self.calls,
            "lost": self.count(LOST),
            "second_verdicts": self.count(SECOND_VERDICT),
            "kinds": Counter(finding.kind for finding in self.findings),
            "findings": [finding._asdict() for finding in self.findings[:50]],
            "duplicates": self.duplicates,
        }


class _Case:
    """Evidence sorted by what the rules ask for."""

    def __init__(self, plan: Plan, evidence: Evidence) -> None:
        self.plan = plan
        self.evidence = evidence
        self.jobs_by_name: dict[str, list[Job]] = defaultdict(list)
        for job in evidence.jobs:
            self.jobs_by_name[job.name].append(job)
        self.names = {job.id: job.name for job in evidence.jobs}
        self.runs = {run.id: run for run in evidence.runs}
        self.runs_of: dict[str, list[Run]] = defaultdict(list)
        for run in evidence.runs:
            self.runs_of[run.job].append(run)
        self.calls: dict[str, list[Call]] = defaultdict(list)
        for call in evidence.calls:
            self.calls[call.run].append(call)
        self.verdicts: dict[str, dict[str, Verdict]] = defaultdict(dict)
        for verdict in evidence.verdicts:
            if verdict.state in TERMINAL:
                # The relay may send an event twice after a crash: the same event is not a second verdict.
                self.verdicts[verdict.run][verdict.event] = verdict


def check(plan: Plan, evidence: Evidence, *, partway: bool = False) -> Report:
    """Judge. With `partway` only by what must hold at every moment, not by what must hold in the end."""
    case = _Case(plan, evidence)
    rules = [_extras, _second_verdicts, _fences, _early, _mistaken, _offsets]
    if not partway:
        rules += [_lost, _unfinished, _announced, _refusals, _left_over]
    report = Report(runs=len(evidence.runs), calls=len(evidence.calls))
    for rule in rules:
        report.findings += rule(case)
    report.duplicates = _duplicates(case)
    return report


def _lost(case: _Case) -> Iterator[Finding]:
    for name, instants in case.plan.jobs.items():
        jobs = case.jobs_by_name.get(name)
        if not jobs:
            yield Finding(LOST, f"{name}: submitted, but there is no such job")
            continue
        runs = case.runs_of[jobs[0].id]
        if instants is None:
            if not runs:
                yield Finding(LOST, f"{name}: due on arrival, but the ledger has no row")
            continue
        for at in instants:
            # Nothing recurring is due before its job exists.
            due = len(instants) == 1 or at >= jobs[0].created_at
            if due and not any(_covers(run, at) for run in runs):
                yield Finding(LOST, f"{name}: the ledger has no row for {at.isoformat()}")
    for run in case.evidence.runs:
        if run.state == "succeeded" and not any(c.fence == run.fence for c in case.calls[run.id]):
            yield Finding(
                LOST, f"{_title(case, run)} succeeded, but the target saw no call of fence {run.fence}"
            )


def _covers(run: Run, at: datetime) -> bool:
    return run.scheduled_for <= at <= (run.last_scheduled_for or run.scheduled_for)


def _extras(case: _Case) -> Iterator[Finding]:
    for name, jobs in case.jobs_by_name.items():
        if name not in case.plan.jobs:
            yield Finding("extra", f"job {name!r} was not submitted")
        elif len(jobs) > 1:
            yield Finding("extra", f"{name}: {len(jobs)} jobs of one submission")
    keys = Counter((run.job, run.scheduled_for, run.origin, run.request) for run in case.evidence.runs)
    for (job, at, *_), count in keys.items():
        if count > 1:
            yield Finding("extra", f"{case.names.get(job, job)}: {count} runs of {at.isoformat()}")
    for job_id, runs in case.runs_of.items():
        name = case.names.get(job_id, "")
        instants = case.plan.jobs.get(name, [])
        if instants is None:
            if len(runs) > 1:
                yield Finding("extra", f"{name}: {len(runs)} runs of a job that is due once")
            continue
        for run in runs:
            if run.last_scheduled_for is None and run.scheduled_for not in instants:
                yield Finding("extra", f"{_title(case, run)} has no planned instant")
    for run_id in case.calls.keys() - case.runs.keys():
        yield Finding("extra", f"the target was called for run {run_id}, which the ledger does not know")


def _second_verdicts(case: _Case) -> Iterator[Finding]:
    for run_id, verdicts in case.verdicts.items():
        if len(verdicts) > 1:
            told = ", ".join(f"{v.state} under fence {v.fence}" for v in verdicts.values())
            yield Finding(SECOND_VERDICT, f"run {run_id} has {len(verdicts)} terminal events: {told}")
    for run_id, calls in case.calls.items():
        for fence, count in Counter(call.fence for call in calls).items():
            if count > 1:
                yield Finding(SECOND_VERDICT, f"run {run_id} was called {count} times under fence {fence}")


def _fences(case: _Case) -> Iterator[Finding]:
    for run_id, calls in case.calls.items():
        fences = [call.fence for call in calls]
        if any(later < earlier for earlier, later in pairwise(fences)):
            yield Finding("fence_fell", f"run {run_id} was called with fences {fences}")
        run = case.runs.get(run_id)
        if run is not None and max(fences) > run.fence:
            yield Finding(
                "fence_fell", f"run {run_id} was called under {max(fences)}, the ledger says {run.fence}"
            )


def _early(case: _Case) -> Iterator[Finding]:
    for run in case.evidence.runs:
        if run.started_at is not None and run.started_at < run.scheduled_for:
            yield Finding("early", f"{_title(case, run)} started at {run.started_at.isoformat()}")
    for call in case.evidence.calls:
        run = case.runs.get(call.run)
        if run is not None and call.at < run.scheduled_for:
            yield Finding("early", f"{_title(case, run)} was called at {call.at.isoformat()}")


def _mistaken(case: _Case) -> Iterator[Finding]:
    for call in case.evidence.calls:
        run = case.runs.get(call.run)
        if run is None:
            continue
        if call.scheduled_for != run.scheduled_for:
            yield Finding("mistaken", f"{_title(case, run)} was told {call.scheduled_for.isoformat()}")
        if not call.key.startswith(f"{run.job}/"):
            yield Finding("mistaken", f"{_title(case, run)} was called with another run's key {call.key}")


def _offsets(case: _Case) -> Iterator[Finding]:
    for topic, offset, run_id, fence in case.evidence.passed:
        run = case.runs.get(run_id)
        if run is None:
            yield Finding("offset", f"{topic}@{offset} names run {run_id}, which the ledger does not know")
        elif run.state == "queued" and run.fence == fence:
            yield Finding("offset", f"{topic}@{offset} was passed, but run {run_id} is still queued for it")
    for topic, offset, event in case.evidence.passed_events:
        if event not in case.evidence.known_events and event not in case.evidence.refused:
            yield Finding("offset", f"{topic}@{offset} was passed, but event {event} is nowhere")


def _unfinished(case: _Case) -> Iterator[Finding]:
    for run in case.evidence.runs:
        name = case.names.get(run.job, "")
        if run.state not in TERMINAL:
            yield Finding("unfinished", f"{_title(case, run)} is {run.state} ({run.reason})")
        elif run.state not in case.plan.ends.get(name, TERMINAL):
            yield Finding("wrong_end", f"{_title(case, run)} ended as {run.state} ({run.reason})")


def _announced(case: _Case) -> Iterator[Finding]:
    for run in case.evidence.runs:
        told = case.verdicts.get(run.id)
        if run.state not in TERMINAL:
            continue
        if not told:
            yield Finding("unannounced", f"{_title(case, run)} is {run.state}, and no event says so")
        elif run.state not in {verdict.state for verdict in told.values()}:
            yield Finding("unannounced", f"{_title(case, run)} is {run.state}, events say otherwise")


def _refusals(case: _Case) -> Iterator[Finding]:
    for event in case.plan.rejected - case.evidence.refused:
        yield Finding("not_refused", f"event {event} should have been refused with a reason")
    for event in case.evidence.refused - case.plan.rejected:
        yield Finding("refused", f"event {event} was refused")


def _left_over(case: _Case) -> Iterator[Finding]:
    for table, rows in case.evidence.left_over.items():
        if rows:
            yield Finding("left_over", f"{rows} rows in {table}")
    for lag in case.evidence.unpassed:
        yield Finding("left_over", f"{lag.topic}[{lag.partition}]: committed {lag.committed} of {lag.end}")


def _duplicates(case: _Case) -> dict[str, list[int]]:
    """Runs that were called again although no attempt of theirs had failed before."""
    explained = {"failed", "timed_out"}
    found = {}
    for run_id, calls in case.calls.items():
        run = case.runs.get(run_id)
        again = [
            call.fence
            for call in calls
            if run is not None
            and call.fence != run.fence
            and case.evidence.attempts.get((run_id, call.fence)) not in explained
        ]
        if again:
            found[run_id] = [call.fence for call in calls]
    return found


def _title(case: _Case, run: Run) -> str:
    return f"{case.names.get(run.job, run.job)} of {run.scheduled_for.isoformat()} (run {run.id})"


def main() -> int:
    """Run as a program; 0: nothing found, 1: something found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--target-log", required=True, type=Path)
    parser.add_argument("--plan", required=True, type=Path)
    parser.add_argument("--partway", action="store_true", help="only what must hold at every moment")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    plan = Plan.read(json.loads(options.plan.read_text(encoding="utf-8")))
    evidence = gather(
        options.dsn,
        options.bootstrap,
        options.prefix,
        options.target_log,
        namespace=plan.namespace,
        source=plan.source,
    )
    report = check(plan, evidence, partway=options.partway)
    if options.json:
        print(json.dumps(report.as_json()))
    else:
        print(f"{report.runs} runs, {report.calls} calls, {len(report.duplicates)} duplicates")
        for finding in report.findings:
            print(f"{finding.kind}: {finding.what}")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
