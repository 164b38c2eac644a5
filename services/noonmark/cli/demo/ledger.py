"""Compare the demo's submissions in the database with what is expected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from noonmark.cli.connections.context import reading
from noonmark.cli.demo.plan import Submission
from noonmark.cli.demo.target import Target
from noonmark.cli.runs.rejections import reasons
from noonmark.core.transitions import VERDICTS

if TYPE_CHECKING:
    from noonmark.settings import Settings

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """A published submission.

    Attributes:
        submission: the submission.
        event_id: the event's id; a duplicate has the same id.
        name: the job's name.
        position: topic/partition/offset of its record.
    """

    submission: Submission
    event_id: str
    name: str
    position: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The demo's rows in the database at one moment."""

    received: frozenset[str] = frozenset()
    rejected: Mapping[str, Row] = field(default_factory=dict)
    jobs: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    runs: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    attempts: Mapping[Any, Sequence[Row]] = field(default_factory=dict)


@dataclass(slots=True)
class RunAccount:
    """One run in the final table. The delay is the seconds from the due instant to the first start."""

    lane: str
    state: str
    attempts: int
    delay_seconds: float | None
    note: str


@dataclass(slots=True)
class Account:
    """The outcome of one submission.

    Attributes:
        verdict: verdict of intake; empty until there is one.
        problems: problems of a rejection.
        runs: oldest due instant first.
        run_ids: their ids.
        is_settled: its outcome is final.
        faults: differences from what is expected; final once it is settled.
    """

    sent: Sent
    verdict: str = ""
    problems: list[str] = field(default_factory=list)
    runs: list[RunAccount] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    is_settled: bool = False
    faults: list[str] = field(default_factory=list)


def read(settings: Settings, source: str, namespace: str) -> Snapshot:
    """Read everything about the demo's events and jobs in one transaction."""
    from noonmark.store.views import paging  # noqa: PLC0415

    with reading(settings) as connection:
        received = frozenset(paging.received_events(connection, source))
        rejected = {row["event_id"]: row for row in paging.list_rejections(connection, source=source).rows}
        jobs = paging.list_jobs(connection, namespace, limit=200)
        runs = paging.list_runs(connection, namespace, limit=1000)
        attempts = paging.list_attempts(connection, [row["id"] for row in runs])
    by_name: dict[str, list[Row]] = defaultdict(list)
    for row in jobs:
        by_name[row["name"]].append(row)
    by_job: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(runs, key=lambda run: run["scheduled_for"]):
        by_job[row["job_name"]].append(row)
    by_run: dict[Any, list[Row]] = defaultdict(list)
    for row in attempts:
        by_run[row["run_id"]].append(row)
    return Snapshot(received, rejected, by_name, by_job, by_run)


def assess(
    sent: Sent, snapshot: Snapshot, *, passed: bool, target: Target, redriven: Collection[str] = ()
) -> Account:
    """Compare one submission with its expectation.

    Args:
        sent: the submission.
        snapshot: the demo's rows in the database.
        passed: whether intake has committed an offset after its record.
        target: the HTTP service that was called.
        redriven: ids of the runs that were redriven before the snapshot.
    """
    account = Account(sent)
    wanted = sent.submission
    if rejection := snapshot.rejected.get(sent.event_id):
        account.verdict, account.problems = "rejected", reasons(rejection)
    elif sent.event_id in snapshot.received:
        if wanted.repeats is None:
            account.verdict = "accepted"
        elif passed:
            # Accepted once, and intake has passed the second record: it created nothing.
            account.verdict = "duplicate"
    rows = [] if wanted.repeats else snapshot.runs.get(sent.name, [])
    account.run_ids = [str(row["id"]) for row in rows]
    account.runs = [_run(row, snapshot.attempts.get(row["id"], ())) for row in rows]
    ended = [row for row in rows if row["state"] in VERDICTS]
    if wanted.tasks:
        # Its start is that of the redrive.
        for run in account.runs:
            run.delay_seconds = None
    account.is_settled = bool(account.verdict) and (
        account.verdict != "accepted" or len(ended) == len(rows) >= wanted.runs
    )
    if wanted.tasks and not set(account.run_ids) <= set(redriven):
        # It dies once, and is then redriven.
        account.is_settled = False
    account.faults = list(_faults(account, snapshot, rows, target))
    return account


def _run(row: Row, failed: Sequence[Row]) -> RunAccount:
    starts = [start for start in (row["started_at"], *(one["started_at"] for one in failed)) if start]
    delay = (min(starts) - row["scheduled_for"]).total_seconds() if starts else None
    note = row["error"] or row["reason"] or (failed[-1]["error"] if failed else "") or ""
    return RunAccount(row["lane"], row["state"], row["attempt"], delay, note)


def _faults(account: Account, snapshot: Snapshot, rows: Sequence[Row], target: Target) -> list[str]:
    wanted = account.sent.submission
    faults = []
    if account.verdict != wanted.verdict:
        return [f"expected to be {wanted.verdict}, is {account.verdict or 'not seen by intake'}"]
    faults += [
        f"the rejection does not name {pointer}"
        for pointer in wanted.pointers
        if not any(problem.startswith(f"{pointer}: ") for problem in account.problems)
    ]
    jobs = len(snapshot.jobs.get(account.sent.name, ()))
    expected_jobs = 0 if wanted.verdict == "rejected" else 1
    if jobs != expected_jobs:
        faults.append(f"expected {expected_jobs} job of this name, found {jobs}")
    if len(account.runs) != wanted.runs:
        faults.append(f"expected {wanted.runs} runs, found {len(account.runs)}")
    for number, run in enumerate(account.runs, start=1):
        if (run.state, run.attempts) != (wanted.state, wanted.attempts):
            faults.append(
                f"run {number} expected to be {wanted.state} after {wanted.attempts} attempts,"
                f" is {run.state} after {run.attempts}"
            )
    if wanted.calls_target:
        faults += [
            f"run {row['id']} is in the target's log {len(calls)} times instead of once"
            for row in rows
            if len(calls := target.calls_of(str(row["id"]))) != 1
        ]
    return faults
