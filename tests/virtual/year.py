"""The run through a stretch of virtual time: jobs are taken in, triggers claim, fall over and are started again.

What is in the ledger at the end is compared with the oracle's list of instants, job by job.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from tests.support.settings_orders import set_calendar
from tests.support.time_oracle.clock import wall_clock
from tests.virtual.instants import Due, Member, due
from tests.virtual.schedules import CALENDARS, DEFAULT_ZONE, ZONES, VirtualJob
from tests.virtual.system import System, job_document

from noonmark.core.calendars.calendar import Calendar
from noonmark.store.claims import claims

AFTERWARDS = timedelta(hours=2)
"""Longer than any jitter: what was due before the end has fired by then."""

UNTIL_SHARDS_ARE_FREE = timedelta(seconds=10)
"""Longer than a trigger may be silent before its shards are given to another."""


class TriggerDied(Exception):  # noqa: N818 - an event, not an error of the test
    """Stands for a kill -9 of a trigger at the point where it is raised."""


@dataclass
class Totals:
    """What the run did, for its last line."""

    schedules: int
    zones: int
    fires: int = 0
    passes: int = 0
    steps: int = 0
    restarts: int = 0
    killed_in_claim: int = 0
    run_seconds: float = 0.0
    oracle_seconds: float = 0.0
    families: Counter[str] = field(default_factory=Counter)

    def line(self, span: str) -> str:
        """Return the summary."""
        return (
            f"virtual clock, {span}: {self.schedules:,} schedules in {self.zones} zones, {self.fires:,} fires,"
            f" {self.passes:,} claim passes in {self.steps:,} steps of time, {self.restarts} restarts of a trigger"
            f" ({self.killed_in_claim} within a claim); ledger equals oracle; run {self.run_seconds:.0f} s,"
            f" oracle {self.oracle_seconds:.0f} s"
        )


def take_in(system: System, jobs: Sequence[VirtualJob]) -> dict[UUID, VirtualJob]:
    """Set up calendars and the default zone, and make the jobs through intake."""
    namespace, zone = DEFAULT_ZONE
    system.db.execute("insert into namespaces (name, timezone) values (%s, %s)", [namespace, zone])
    for owner in ("virtual", namespace):
        for name, body in CALENDARS.items():
            set_calendar(system.db, owner, name, Calendar.parse(body))
    made: dict[UUID, VirtualJob] = {}
    for begin in range(0, len(jobs), 250):
        batch = jobs[begin : begin + 250]
        documents = [
            job_document(job.name, job.schedule, **job.more) | {"namespace": job.namespace} for job in batch
        ]
        made |= dict(zip(system.submit("create", documents), batch, strict=True))
    assert len(made) == len(jobs)
    return made


def run_through(
    system: System, *, until: datetime, rng: random.Random, totals: Totals, say: Callable[[str], None]
) -> None:
    """Let time pass from now to `until`, and on until everything due by then has fired."""
    began = time.monotonic()
    watched = list(_watched(system.now, until, rng))
    for _ in range(2):
        _start(system, rng)
    month = 0
    with _deadly_claims(rng) as deaths:
        while system.now < until + AFTERWARDS:
            if system.now.month != month:
                month = system.now.month
                say(
                    f"{system.now:%Y-%m-%d}: {system.told:,} fires, {totals.passes:,} claim passes,"
                    f" {totals.steps:,} steps, {time.monotonic() - began:.0f} s"
                )
            system.turn_to(min(_next_stop(system, watched, until, rng), until + AFTERWARDS))
            totals.steps += 1
            _claim(system, rng, totals)
            if rng.random() < 0.01:
                totals.restarts += 1
                system.stop_trigger(rng.choice(system.triggers), leave=rng.random() < 0.5)
                _start(system, rng)
        deaths.clear()
        for _ in range(2):  # the shards of a trigger that was killed last are free once its time is up
            system.turn_to(system.now + UNTIL_SHARDS_ARE_FREE)
            _claim(system, rng, totals)
    totals.run_seconds = time.monotonic() - began


def _start(system: System, rng: random.Random) -> None:
    # Small caps let many claims of one job follow each other.
    system.start_trigger(catch_up_cap=rng.choice((3, 20, 100)), claim_batch=rng.choice((40, 1000)))


def _claim(system: System, rng: random.Random, totals: Totals) -> None:
    rng.shuffle(system.triggers)
    while True:
        try:
            totals.passes += system.claim()
        except TriggerDied:
            assert system.claiming is not None
            system.stop_trigger(system.claiming)
            _start(system, rng)
            totals.restarts += 1
            totals.killed_in_claim += 1
        else:
            return


@contextmanager
def _deadly_claims(rng: random.Random) -> Iterator[list[str]]:
    """Let claims die now and then, before their commit or just after it."""
    armed = ["trigger.before_commit", "trigger.after_commit"]
    with pytest.MonkeyPatch.context() as patch:

        def hit(point: str) -> None:
            if point in armed and rng.random() < 0.004:
                raise TriggerDied(point)

        patch.setattr(claims, "hit", hit)
        yield armed


def _watched(start: datetime, until: datetime, rng: random.Random) -> Iterator[tuple[datetime, datetime]]:
    """Return stretches in which time goes from one due instant to the next: all changes of clocks, and others."""
    changes = {
        change
        for zone in ZONES
        for change in wall_clock(zone).changes(int(start.timestamp()), int(until.timestamp()))
    }
    for change in sorted(changes):
        at = datetime.fromtimestamp(change, UTC)
        yield at - timedelta(minutes=70), at + timedelta(minutes=130)
    for _ in range((until - start).days // 3):
        at = start + timedelta(minutes=rng.randrange(int((until - start).total_seconds() // 60)))
        yield at, at + timedelta(hours=1)


def _next_stop(
    system: System, watched: Sequence[tuple[datetime, datetime]], until: datetime, rng: random.Random
) -> datetime:
    if any(begin <= system.now < end for begin, end in watched):
        return max(system.next_at() or until, system.now + timedelta(microseconds=1))
    step = timedelta(minutes=rng.choice((5, 37, 60, 180, 300, 480)), seconds=rng.choice((0, 0, 7)))
    begins = [begin for begin, _ in watched if system.now < begin]
    return min([system.now + step, *begins])


# the comparison


def compare(
    system: System,
    made: Mapping[UUID, VirtualJob],
    *,
    created: datetime,
    until: datetime,
    totals: Totals,
    say: Callable[[str], None],
) -> None:
    """Hold the ledger against the oracle.

    Raises:
        AssertionError: an instant is there twice, is missing, was made up or did not run; or a job's end is wrong.
    """
    began = time.monotonic()
    assert system.column(
        "select distinct state || coalesce(reason, '') || instants::text || origin from runs"
    ) == ["queued1schedule"]
    assert system.value("select count(*) from runs") == system.told, "as many messages as runs"
    assert not system.value("select exists (select from runs where queued_at < scheduled_for)")
    assert not system.value("select exists (select from runs where zone_data is null)")
    per_job = "select job_id, array_agg(extract(epoch from scheduled_for) order by scheduled_for) from runs"
    ledger = dict(
        system.db.execute(f"{per_job} where scheduled_for <= %s group by job_id", [until]).fetchall()
    )
    states = dict(system.db.execute("select id, state from jobs").fetchall())
    assert ledger.keys() <= made.keys()
    wrong = []
    # By zone, so that the walks over one zone's clock are made once.
    for done, (job_id, job) in enumerate(sorted(made.items(), key=lambda item: item[1].shape.zone)):
        found = [float(at) for at in ledger.get(job_id, [])]
        expected = _expected(job, found, created, until)
        totals.fires += len(expected.instants)
        totals.families[job.family] += len(expected.instants)
        wrong += _differences(job, found, expected)
        if not _may_be(states[job_id], job, expected) and not _may_be(
            states[job_id],
            job,
            _expected(job, found, created, system.now),  # it may have ended since `until`
        ):
            wrong.append(f"{job.name} ({job.family}) {job.schedule}: is {states[job_id]}")
        if done % 200 == 199:
            say(f"compared {done + 1} jobs, {totals.fires:,} instants, {time.monotonic() - began:.0f} s")
    totals.oracle_seconds = time.monotonic() - began
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:20])


def _expected(job: VirtualJob, found: Sequence[float], created: datetime, until: datetime) -> Due:
    members = job.members
    if job.hashed and found:
        members = tuple(_with_value(member, job, int(found[0])) for member in members)
    return due(members, job.shape, int(created.timestamp()), int(until.timestamp()))


def _with_value(member: Member, job: VirtualJob, first: int) -> Member:
    """Put the minute and the hour of the first run in the place of `H`."""
    shown = wall_clock(job.shape.zone).walls(first, first + 1, 1)[0]
    minute, hour, *days = member.text.split()
    if hour.startswith("H("):
        low, high = (int(word) for word in hour[2:-1].split("-"))
        assert low <= shown // 3600 % 24 <= high, f"{member.text} ran at {shown // 3600 % 24} h"
    values = [
        str(value) if word.startswith("H") else word
        for word, value in ((minute, shown // 60 % 60), (hour, shown // 3600 % 24))
    ]
    return replace(member, text=" ".join([*values, *days]))


def _differences(job: VirtualJob, found: Sequence[float], expected: Due) -> Iterator[str]:
    counted, wanted = Counter(found), Counter(expected.instants)
    twice = [at for at, count in counted.items() if count > 1]
    missing, made_up = sorted((wanted - counted).elements()), sorted((counted - wanted).elements())
    for told, instants in (("twice", twice), ("missing", missing), ("made up", made_up)):
        if instants:
            shown = ", ".join(f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" for at in instants[:4])
            yield f"{job.name} ({job.family}) {job.schedule}: {len(instants)} {told}: {shown}"


def _may_be(state: str, job: VirtualJob, expected: Due) -> bool:
    # A calendar may be changed to have days again: such a job is never complete before its end.
    ended = "completed" if not expected.more else "active"
    return state == ended or (state == "active" and job.shape.is_closed is not None)
