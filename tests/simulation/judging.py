"""The verdict on a simulated day: its history for the checker, and a digest of its ledger."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from uuid import uuid4

from tests.simulation.day import SOURCE, Day, NotAtRest, day_of, group_of
from tests.simulation.faults import Fault
from tests.simulation.jobs import NAMESPACE
from tests.simulation.services import TOPICS
from tests.support.evidence import read_told
from tests.support.ledger import read_ledger
from tests.support.run_messages import runs_of
from tests.support.stack import Postgres

from noonmark.verify import Expected, History, Report, judge
from noonmark.verify.history import Message, Passed, Pause, Unpassed

_ROWS = (
    (
        "select 'run', id::text, job_id::text, job_version::text, scheduled_for::text, last_scheduled_for::text, origin,"
        " request_id, state, reason, attempt::text, fence::text, lane::text, queued_at::text, started_at::text,"
        " finished_at::text, losses::text, error from runs order by scheduled_for, id"
    ),
    (
        "select 'attempt', run_id::text, fence::text, attempt::text, worker::text, outcome, started_at::text,"
        " finished_at::text, error from attempts order by run_id, fence"
    ),
    "select 'job', id::text, name, state, version::text, updated_at::text from jobs order by id",
)


@dataclass
class Judged:
    """The verdict on one day.

    Attributes:
        seed: of the day.
        problem: what is wrong, in one line; "" if nothing is.
        rows: the ledger in its canonical form.
        report: the checker's; None if the day did not come to rest.
        faults: when which fault came.
        counts: what happened.
        jobs: number of jobs.
        steps: number of steps that actors made.
    """

    seed: int
    problem: str = ""
    rows: list[str] = field(default_factory=list)
    report: Report | None = None
    faults: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    steps: int = 0

    def line(self) -> str:
        """Return the summary."""
        runs = self.report.runs if self.report is not None else 0
        return (
            f"seed {self.seed}: {self.jobs} jobs, {runs} runs, {len(self.faults)} faults, {self.steps} steps,"
            f" ledger {digest(self.rows)[:16]}, {self.problem or 'clean'}"
        )


def judge_day(
    postgres: Postgres,
    template: str,
    seed: int,
    flaws: frozenset[str] = frozenset(),
    *,
    schedule: Sequence[tuple[float, Fault]] | None = None,
) -> Judged:
    """Run a day of a seed on a database of its own, and judge it.

    Args:
        postgres: the server.
        template: name of a migrated database.
        seed: decides everything.
        flaws: mistakes that actors make on purpose.
        schedule: the faults and their seconds of the day; None: as the seed draws them.
    """
    name = f"simulated_{uuid4().hex[:12]}"
    postgres.copy(template, name)
    judged = Judged(seed)
    try:
        with day_of(postgres.url_of(name), seed, flaws, schedule=schedule) as day:
            try:
                day.run()
            except NotAtRest as late:
                judged.problem = str(late)
            _fill(judged, day)
    finally:
        postgres.drop(name)
    return judged


def _fill(judged: Judged, day: Day) -> None:
    judged.rows = ledger_rows(day)
    judged.report = report_on(day)
    judged.faults = [f"{at:%H:%M:%S} {what}" for at, what in day.faults]
    judged.counts, judged.steps = day.world.counts, day.steps
    judged.jobs = sum(row.startswith('["job"') for row in judged.rows)
    broken = sorted({violation.invariant for violation in judged.report.violations})
    if broken:
        judged.problem += f"{len(judged.report.violations)} violations of {', '.join(broken)}"


def first_difference(one: Sequence[str], other: Sequence[str]) -> str:
    """Return the first rows in which two ledgers differ; "" if they are equal."""
    for here, there in zip(one, other, strict=False):
        if here != there:
            return f"{here}\n{there}"
    return "" if len(one) == len(other) else f"{len(one)} and {len(other)} rows"


def ledger_rows(day: Day) -> list[str]:
    """Return the ledger in its canonical form: a line of JSON per run, attempt and job."""
    day.db.execute("set timezone = 'UTC'")
    return [json.dumps(row) for query in _ROWS for row in day.db.execute(query)]


def digest(rows: list[str]) -> str:
    """Return the SHA-256 of a ledger."""
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def report_on(day: Day) -> Report:
    """Judge a day that is at rest."""
    found = History(judged_at=day.world.time.now)
    broker = day.world.broker
    found.calls = list(day.world.target.calls)
    for place, log in broker.logs.items():
        group = group_of(place[0])
        if place[0] == TOPICS.lifecycle:
            found.lifecycle += [told for stored in log for told in read_told(stored.value, [NAMESPACE])]
        if group is None:
            continue
        committed = broker.position(group, place)
        if committed < len(log):
            found.unpassed.append(Unpassed(*place, committed, len(log)))
        for offset, stored in enumerate(log):
            _note(found, place, offset, stored.value, passed=offset < committed)
    read_ledger(day.db, found, [NAMESPACE], [SOURCE])
    found.pauses = list(_pauses(day))
    expected = Expected(acknowledged=set(day.acknowledged), refusable=set(day.refusable))
    return judge(found, expected, bound=timedelta(0))


def _pauses(day: Day) -> Iterator[Pause]:
    """Yield the times in which jobs were paused."""
    rows = day.db.execute("select job::text, state, at from simulated_states order by job, at, ctid")
    for job, changes in groupby(rows, key=lambda row: row[0]):
        since: datetime | None = None
        for _, state, at in changes:
            if since is not None:
                yield Pause(job, since, at)
            since = at if state == "paused" else None
        if since is not None:
            yield Pause(job, since, None)


def _note(found: History, place: tuple[str, int], offset: int, value: bytes, *, passed: bool) -> None:
    event = json.loads(value)
    if place[0] == TOPICS.submissions:
        if passed:
            found.passed.append(Passed(*place, offset, event=event["id"]))
        return
    for run in runs_of(event):
        found.messages.append(Message(place[0], offset, run["run_id"], run["fence"], run["namespace"]))
        if passed:
            found.passed.append(Passed(*place, offset, run["run_id"], run["fence"]))
