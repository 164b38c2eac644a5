"""Pause and resume, of a job and of its namespace, by a clock that stands still: what becomes of each instant."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.integration.intake.world import SHARDS, TOPICS, World, create, event, nightly
from tests.support.settings_orders import pause_namespace, resume_namespace

from noonmark.core.states import Lane, ResumeChoice, RunState, TimerKind
from noonmark.core.zones.zones import zone_data_version
from noonmark.store.claims import claims
from noonmark.store.claims.planned_runs import ClaimResult
from noonmark.store.claims.planner import Planner
from noonmark.store.database.connect import connect
from noonmark.store.documents.columns import NEVER
from noonmark.store.jobs.submit import Reason, Status
from noonmark.store.limits import promotion
from noonmark.store.namespaces import batches as namespace_batches
from noonmark.store.namespaces.namespaces import NamespaceError
from noonmark.store.namespaces.pauses import mark_paused
from noonmark.store.schedules.zone_data import ensure_active

pytestmark = pytest.mark.postgres

SHARD_LIST = list(range(SHARDS))
EVERY_MINUTE = {"cron": "* * * * *"}
CHOICES = list(ResumeChoice)
Verdict = tuple[str, str | None]


class Pauses:
    """A database whose clock stands where a test puts it, with a trigger's claim beside the intake."""

    def __init__(self, world: World) -> None:
        self.world = world
        now: datetime = world.row("select now() as now")["now"]
        self.midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        self.at("00:00:00")

    def at(self, clock: str) -> datetime:
        """Put the clock to a time of this day and keep it there."""
        hours, minutes, seconds = map(int, clock.split(":"))
        instant = self.midnight + timedelta(hours=hours, minutes=minutes, seconds=seconds)
        self.world.connection.execute(
            "create or replace function noonmark_now() returns timestamptz language sql stable parallel safe"
            f" as 'select timestamptz ''{instant.isoformat()}'''"
        )
        return instant

    def claim(
        self,
        *,
        kind: TimerKind = TimerKind.PLANNED,
        runs: int = 1000,
        rows: int = 1000,
        connection: psycopg.Connection | None = None,
    ) -> ClaimResult:
        """Claim once, as the trigger does."""
        return claims.claim_planned(
            connection or self.world.connection,
            Lane.NORMAL,
            SHARD_LIST,
            400,
            kind=kind,
            plan=Planner(catch_up_cap=runs, ledger_cap=rows),
            topics=TOPICS,
            install_shards=SHARDS,
        )

    def claim_all(self, **caps: Any) -> int:
        """Claim until nothing is due; return how many claims had something."""
        times = 0
        while self.claim(**caps).claimed:
            times += 1
        return times

    def ledger(self, job_id: UUID) -> dict[str, Verdict]:
        """Read what became of each instant, by its time of day; a range by its first."""
        rows = self.world.rows(
            "select scheduled_for, state, reason from runs where job_id = %s order by 1", job_id
        )
        return {f"{row['scheduled_for']:%H:%M:%S}": (row["state"], row["reason"]) for row in rows}

    def verdicts(self, job_id: UUID) -> Counter[Verdict]:
        return Counter(self.ledger(job_id).values())


@pytest.fixture
def pauses(world: World) -> Pauses:
    ensure_active(world.connection, zone_data_version())
    return Pauses(world)


def pause_job(world: World) -> None:
    assert world.one(event("pause", name="nightly")).status is Status.ACCEPTED


def resume_job(world: World, choice: ResumeChoice) -> None:
    taken = world.taken(event("resume", name="nightly", missed=choice.value))
    assert taken.results[0].status is Status.ACCEPTED
    assert taken.due_soon


def pause_space(world: World) -> None:
    assert pause_namespace(world.connection, "default", "moving").jobs == 1


def resume_space(world: World, choice: ResumeChoice) -> None:
    assert resume_namespace(world.connection, "default", choice).jobs == 1


WAYS = [
    pytest.param(pause_job, resume_job, id="job"),
    pytest.param(pause_space, resume_space, id="namespace"),
]
Pausing = Callable[[World], None]
Resuming = Callable[[World, ResumeChoice], None]

# -- what the choice does ------------------------------------------------------------------------------


@pytest.mark.parametrize(("pausing", "resuming"), WAYS)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_each_held_instant_gets_the_verdict_that_the_resume_chose(
    pauses: Pauses, pausing: Pausing, resuming: Resuming, choice: ResumeChoice, zone: str | None
) -> None:
    world = pauses.world
    zoned = {} if zone is None else {"timezone": zone}
    kind = TimerKind.PLANNED if zone is None else TimerKind.ZONED
    job_id = world.job_id(nightly(schedule={**EVERY_MINUTE, **zoned}, overlap="allow"))
    pauses.at("00:02:00")
    pauses.claim_all(kind=kind)
    pauses.at("00:02:30")
    pausing(world)
    before = pauses.ledger(job_id)
    (timer,) = world.timers(job_id)
    assert timer["fire_at"] == NEVER

    pauses.at("02:00:00")
    assert pauses.claim(kind=kind).claimed == 0
    assert pauses.ledger(job_id) == before, "an instant gets its row at the resume"
    pauses.at("02:00:30")
    resuming(world, choice)
    pauses.claim_all(kind=kind)
    pauses.at("02:01:00")
    pauses.claim_all(kind=kind)

    ledger = pauses.ledger(job_id)
    assert list(ledger)[-1] == "02:01:00"
    assert ledger.pop("02:01:00") == ("queued", None), "the first instant after the resume is on time"
    held = Counter(verdict for at, verdict in ledger.items() if at > "00:02:30")
    wanted: dict[ResumeChoice, dict[Verdict, int]] = {
        ResumeChoice.SKIP: {("skipped", "paused"): 118},
        ResumeChoice.LATEST: {("skipped", "coalesced"): 117, ("queued", None): 1},
        ResumeChoice.ALL: {("queued", None): 118},
    }
    assert held == wanted[choice]
    if choice is ResumeChoice.LATEST:
        assert ledger["02:00:00"] == ("queued", None)
    job = world.job(job_id)
    assert (job["state"], job["paused_at"], job["paused_by"]) == ("active", None, None)
    assert (job["resumed_at"], job["resume_choice"]) == (
        pauses.midnight + timedelta(hours=2, seconds=30),
        choice.value,
    )


def test_b073_a_minute_job_paused_for_three_hours_runs_once_and_accounts_for_the_other_179(
    pauses: Pauses,
) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE))
    pauses.at("00:00:30")
    pause_job(world)
    pauses.at("03:00:30")
    resume_job(world, ResumeChoice.LATEST)
    pauses.claim_all()
    pauses.at("03:01:00")
    world.end(world.start(job_id))
    pauses.claim_all()

    assert pauses.verdicts(job_id) == {
        ("skipped", "coalesced"): 179,
        ("succeeded", None): 1,
        ("queued", None): 1,
    }
    ledger = pauses.ledger(job_id)
    assert (ledger["03:00:00"], ledger["03:01:00"]) == (("succeeded", None), ("queued", None))


def test_b073_with_a_lower_cap_the_179_are_one_summary_row(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE))
    pauses.at("00:00:30")
    pause_job(world)
    pauses.at("03:00:30")
    resume_job(world, ResumeChoice.LATEST)
    pauses.claim_all(rows=100)

    summary = world.row("select * from runs where job_id = %s and state = 'skipped'", job_id)
    assert (summary["instants"], summary["reason"]) == (179, "coalesced")
    assert summary["scheduled_for"] == pauses.midnight + timedelta(minutes=1)
    assert summary["last_scheduled_for"] == pauses.midnight + timedelta(hours=2, minutes=59)
    assert pauses.ledger(job_id)["03:00:00"] == ("queued", None)


def test_latest_is_one_run_also_where_several_held_instants_lie_within_the_grace(pauses: Pauses) -> None:
    world = pauses.world
    start = pauses.midnight.isoformat()
    job_id = world.job_id(nightly(schedule={"every": 10, "start": start}, overlap="allow"))
    pauses.at("00:00:05")
    pause_job(world)
    pauses.at("00:10:05")
    resume_job(world, ResumeChoice.LATEST)
    pauses.at("00:10:20")  # two more have come due since, in time
    pauses.claim_all()
    runs = [at for at, verdict in pauses.ledger(job_id).items() if verdict == ("queued", None)]
    assert runs == ["00:10:00", "00:10:10", "00:10:20"]


@pytest.mark.parametrize(("pausing", "resuming"), WAYS)
def test_a_flood_takes_several_claims_and_ends_with_each_instant_exactly_once(
    pauses: Pauses, pausing: Pausing, resuming: Resuming
) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE, overlap="allow"))
    pauses.at("00:00:30")
    pausing(world)
    pauses.at("05:00:30")
    resuming(world, ResumeChoice.ALL)
    times = pauses.claim_all(runs=70)
    assert times == 5
    ledger = pauses.ledger(job_id)
    assert len(ledger) == len(world.rows("select from runs")) == 300
    assert (next(iter(ledger)), list(ledger)[-1]) == ("00:01:00", "05:00:00")
    assert set(ledger.values()) == {("queued", None)}
    assert len(world.rows("select from outbox where run_id is not null")) == 300
    assert pauses.claim_all(runs=70) == 0


def test_held_instants_run_one_after_the_other_where_runs_must_not_overlap(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE))
    pause_job(world)
    pauses.at("00:10:30")
    resume_job(world, ResumeChoice.ALL)
    pauses.claim_all()
    assert pauses.ledger(job_id) == {"00:01:00": ("queued", None)}, "the others wait for it"
    world.connection.execute("delete from slots")
    pauses.at("00:10:32")
    pauses.claim_all()
    assert list(pauses.ledger(job_id)) == ["00:01:00", "00:02:00"]


@pytest.mark.parametrize("choice", [ResumeChoice.LATEST, ResumeChoice.ALL])
def test_the_jobs_own_limits_hold_for_what_was_held(pauses: Pauses, choice: ResumeChoice) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE, overlap="allow", start_deadline_seconds=150))
    pause_job(world)
    pauses.at("00:10:30")
    resume_job(world, choice)
    pauses.claim_all()
    ran = [at for at, verdict in pauses.ledger(job_id).items() if verdict == ("queued", None)]
    if choice is ResumeChoice.LATEST:
        assert ran == ["00:10:00"]
    else:
        assert ran == ["00:08:00", "00:09:00", "00:10:00"]
        assert pauses.verdicts(job_id)["skipped", "start_deadline"] == 7


@pytest.mark.parametrize(
    ("choice", "left"), [(ResumeChoice.SKIP, 3), (ResumeChoice.LATEST, 2), (ResumeChoice.ALL, 0)]
)
def test_a_job_under_max_runs_counts_what_ran_and_not_what_was_skipped(
    pauses: Pauses, choice: ResumeChoice, left: int
) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule={**EVERY_MINUTE, "max_runs": 3}, overlap="allow"))
    pause_job(world)
    pauses.at("00:10:30")
    resume_job(world, choice)
    pauses.claim_all()
    assert pauses.verdicts(job_id)["queued", None] == 3 - left
    if left:
        (timer,) = world.timers(job_id)
        assert timer["runs_left"] == left
    else:
        assert world.timers(job_id) == []
        assert world.job(job_id)["state"] == "completed"


def test_what_no_claim_had_reached_before_the_pause_is_held_with_it(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE))
    pauses.at("00:05:30")
    pause_job(world)
    pauses.at("00:08:30")
    resume_job(world, ResumeChoice.SKIP)
    pauses.claim_all()
    assert pauses.verdicts(job_id) == {("skipped", "paused"): 8}


def test_jitter_delays_no_held_instant_and_keeps_the_next_one_in_its_place(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule={**EVERY_MINUTE, "jitter_seconds": 30}, overlap="allow"))
    (timer,) = world.timers(job_id)
    shift = timer["fire_at"] - timer["scheduled_for"]
    assert shift < timedelta(seconds=30)
    pause_job(world)
    pauses.at("00:00:20")
    resume_job(world, ResumeChoice.SKIP)
    pauses.at("00:01:00")
    pauses.claim_all()
    (timer,) = world.timers(job_id)
    assert timer["fire_at"] - timer["scheduled_for"] == shift
    assert pauses.ledger(job_id) == {}
    pauses.at("00:01:30")
    pauses.claim_all()
    assert pauses.ledger(job_id) == {"00:01:00": ("queued", None)}


# -- one-time jobs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pausing", "resuming"), WAYS)
@pytest.mark.parametrize("overlap", ["allow", "skip"])
def test_the_run_of_a_one_time_job_waits_and_the_resume_queues_it(
    pauses: Pauses, pausing: Pausing, resuming: Resuming, overlap: str
) -> None:
    world = pauses.world
    run_at = (pauses.midnight + timedelta(minutes=5)).isoformat()
    job_id = world.job_id(create(run_at=run_at, overlap=overlap))
    if pausing is pause_job:
        world.one(event("pause", job_id=str(job_id)))
    else:
        pausing(world)
    pauses.at("00:05:00")
    assert claims.claim_once(world.connection, Lane.NORMAL, SHARD_LIST, 100).claimed == 0
    pauses.claim_all()
    run = world.run(job_id)
    assert (run["state"], run["reason"]) == ("waiting", "paused")
    assert world.timers(job_id) == []

    pauses.at("01:00:00")
    if pausing is pause_job:
        world.one(event("resume", job_id=str(job_id)))
    else:
        resuming(world, ResumeChoice.SKIP)
    if overlap == "skip":  # it has no slot yet, and takes its turn with whatever else is waiting
        promotion.promote(world.connection, TOPICS, install_shards=SHARDS)
    run = world.run(job_id)
    assert (run["state"], run["reason"], len(world.outbox(run["id"]))) == ("queued", None, 1)
    assert run["holds_slot"] is (overlap == "skip")
    assert world.rows("select from waits") == []


def test_a_held_one_time_job_keeps_its_start_deadline(pauses: Pauses) -> None:
    world = pauses.world
    due = pauses.midnight + timedelta(minutes=5)
    job_id = world.job_id(create(run_at=due.isoformat(), start_deadline_seconds=60))
    world.one(event("pause", job_id=str(job_id)))
    pauses.at("00:05:00")
    pauses.claim_all()
    assert world.run(job_id)["start_by"] == due + timedelta(seconds=60)


def test_a_job_that_is_due_on_arrival_waits_where_its_namespace_is_paused(pauses: Pauses) -> None:
    world = pauses.world
    pause_namespace(world.connection, "default")
    job_id = world.job_id(create())
    job = world.job(job_id)
    assert (job["state"], job["paused_by"], job["paused_at"]) == ("paused", "namespace", pauses.midnight)
    assert world.rows("select from runs") == []
    pauses.claim_all()
    assert world.run(job_id)["state"] == "waiting"
    resume_space(world, ResumeChoice.SKIP)
    assert world.run(job_id)["state"] == "queued"


# -- job and namespace -------------------------------------------------------------------------------------


def test_a_job_paused_on_its_own_account_stays_so_through_its_namespaces_pause(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly())
    other = world.job_id(nightly("other"))
    world.one(event("pause", name="nightly", reason="mine"))
    assert pause_namespace(world.connection, "default").jobs == 1
    assert resume_namespace(world.connection, "default", ResumeChoice.ALL).jobs == 1
    job = world.job(job_id)
    assert (job["state"], job["paused_by"], job["state_reason"]) == ("paused", "job", "mine")
    assert world.job(other)["state"] == "active"
    assert [timer["fire_at"] for timer in world.timers(job_id)] == [NEVER]


def test_a_pause_asked_for_inside_a_paused_namespace_outlasts_its_resume(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE, overlap="allow"))
    pause_space(world)
    held_since = world.job(job_id)["paused_at"]
    pauses.at("00:01:30")
    pause_job(world)
    job = world.job(job_id)
    assert (job["paused_by"], job["paused_at"]) == ("job", held_since)
    assert resume_namespace(world.connection, "default").jobs == 0
    assert world.job(job_id)["state"] == "paused"
    resume_job(world, ResumeChoice.ALL)
    pauses.claim_all()
    assert pauses.ledger(job_id) == {"00:01:00": ("queued", None)}


def test_a_resume_inside_a_paused_namespace_is_refused_with_the_reason(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly())
    pause_space(world)
    refused = world.one(event("resume", name="nightly"))
    assert (refused.reason, refused.job_id) == (Reason.CONFLICT, job_id)
    assert (
        "cannot be resumed: its namespace 'default' is paused (`noonmark namespace resume default` resumes it)"
        in str(refused.refused)
    )
    assert world.job(job_id)["state"] == "paused"


def test_pausing_twice_keeps_the_first_date_and_holds_nothing_twice(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE))
    world.one(event("trigger", name="nightly"))
    pause_job(world)
    first, run = world.job(job_id), world.run(job_id)
    pauses.at("00:01:30")
    pause_job(world)
    assert pause_namespace(world.connection, "default")[:3] == (True, 0, 0)
    assert pause_namespace(world.connection, "default")[:3] == (False, 0, 0)
    again = world.job(job_id)
    assert (again["paused_at"], again["paused_by"]) == (first["paused_at"], "job")
    assert world.run(job_id) == run


def test_a_recurring_job_made_inside_a_paused_namespace_is_held_from_the_start(pauses: Pauses) -> None:
    world = pauses.world
    pause_namespace(world.connection, "default")
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE, overlap="allow"))
    elsewhere = world.job_id(nightly(schedule=EVERY_MINUTE, namespace="other"))
    pauses.at("00:02:30")
    pauses.claim_all()
    assert pauses.ledger(job_id) == {}
    assert len(pauses.ledger(elsewhere)) == 2
    resume_space(world, ResumeChoice.ALL)
    pauses.claim_all()
    assert pauses.ledger(job_id) == {"00:01:00": ("queued", None), "00:02:00": ("queued", None)}


def test_an_update_inside_a_paused_namespace_settles_what_was_held_and_stays_held(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE))
    pause_space(world)
    pauses.at("00:02:30")
    world.one(event("update", name="nightly", type="python", handler="a.b", schedule={"every": 600}))
    assert pauses.verdicts(job_id) == {("skipped", "paused"): 2}
    job, (timer,) = world.job(job_id), world.timers(job_id)
    assert (job["state"], job["paused_by"], job["version"]) == ("paused", "namespace", 2)
    assert (timer["fire_at"], timer["job_version"]) == (NEVER, 2)
    resume_space(world, ResumeChoice.SKIP)
    assert world.job(job_id)["state"] == "active"


def test_a_cancel_gives_no_verdict_to_the_place_from_which_an_instant_was_to_be_found_anew(
    pauses: Pauses,
) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule={**EVERY_MINUTE, "timezone": "Europe/Berlin"}))
    pause_job(world)
    pauses.at("00:02:30")
    # As a change of zone data or of a calendar leaves the timer of a paused job.
    world.connection.execute("update timers set scheduled_for = after_at")
    world.one(event("cancel", name="nightly"))
    assert pauses.ledger(job_id) == {"00:01:00": ("skipped", "paused"), "00:02:00": ("skipped", "paused")}


@pytest.mark.parametrize("state", ["broken", "completed"])
def test_a_job_that_an_update_mends_inside_a_paused_namespace_begins_held(pauses: Pauses, state: str) -> None:
    world = pauses.world
    job_id = world.job_id(nightly())
    world.connection.execute("update jobs set state = %s", [state])
    world.connection.execute("delete from timers")
    pause_namespace(world.connection, "default")
    world.one(event("update", name="nightly", type="python", handler="a.b", schedule=EVERY_MINUTE))
    job, (timer,) = world.job(job_id), world.timers(job_id)
    assert (job["state"], job["paused_by"], job["paused_at"]) == ("paused", "namespace", pauses.midnight)
    assert timer["fire_at"] == NEVER
    resume_space(world, ResumeChoice.SKIP)


def test_a_cancel_inside_a_paused_namespace_ends_the_job_and_its_held_runs(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE))
    world.one(event("trigger", name="nightly"))
    pause_space(world)
    pauses.at("00:02:30")
    world.one(event("cancel", name="nightly"))
    assert pauses.verdicts(job_id) == {("skipped", "paused"): 2, ("cancelled", "with its job"): 1}
    assert (world.job(job_id)["state"], world.job(job_id)["paused_at"]) == ("cancelled", None)
    assert resume_namespace(world.connection, "default")[:3] == (True, 0, 0)


@pytest.mark.parametrize("state", ["active", "completed", "broken"])
def test_a_trigger_inside_a_paused_namespace_waits_for_its_resume(pauses: Pauses, state: str) -> None:
    world = pauses.world
    job_id = world.job_id(nightly())
    world.connection.execute("update jobs set state = %s", [state])
    pause_namespace(world.connection, "default")
    world.one(event("trigger", name="nightly"))
    run = world.run(job_id)
    assert (run["state"], run["reason"], world.outbox(run["id"])) == ("waiting", "paused", [])
    assert resume_namespace(world.connection, "default").runs == 1
    assert (world.run(job_id)["state"], len(world.outbox(run["id"]))) == ("queued", 1)


def test_a_trigger_of_a_one_time_job_that_is_over_waits_too(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(create())
    world.end(world.start(job_id))
    assert pause_namespace(world.connection, "default").jobs == 0, "it is over, and stays so"
    assert world.job(job_id)["state"] == "active"
    result = world.one(event("trigger", job_id=str(job_id)))
    assert (world.job(job_id)["state"], world.job(job_id)["paused_by"]) == ("paused", "namespace")
    assert resume_namespace(world.connection, "default")[:3] == (True, 1, 1)
    assert world.row("select state from runs where id = %s", result.run_id)["state"] == "queued"


# -- runs under way ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("pausing", "resuming"), WAYS)
def test_a_run_that_fails_during_the_pause_is_tried_again_after_it(
    pauses: Pauses, pausing: Pausing, resuming: Resuming
) -> None:
    world = pauses.world
    job_id = world.job_id(nightly())
    world.one(event("trigger", name="nightly"))
    run = world.start(job_id)
    pausing(world)
    world.end(run, RunState.RETRYING)
    assert world.run(job_id)["state"] == "retrying", "what runs goes on"
    pauses.at("02:00:00")
    result = claims.claim_retries(world.connection, Lane.NORMAL, SHARD_LIST, 100)
    assert (result.claimed, result.queued) == (1, 0)
    held = world.run(job_id)
    assert (held["state"], held["reason"]) == ("waiting", "paused")
    resuming(world, ResumeChoice.SKIP)
    assert (world.run(job_id)["state"], len(world.outbox(held["id"]))) == ("queued", 1)
    assert world.start(job_id).attempt == 2


def test_a_namespaces_pause_holds_the_unfinished_runs_of_jobs_that_are_over(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly())
    world.one(event("trigger", name="nightly"))
    world.connection.execute("update jobs set state = 'completed'")
    world.connection.execute("delete from timers")
    assert pause_namespace(world.connection, "default")[:3] == (True, 0, 1)
    assert (world.job(job_id)["state"], world.run(job_id)["state"]) == ("completed", "waiting")
    assert world.outbox(world.run(job_id)["id"]) == []
    assert resume_namespace(world.connection, "default")[:3] == (True, 0, 1)
    assert (world.job(job_id)["state"], world.run(job_id)["state"]) == ("completed", "queued")


# -- beside claims and other sessions -------------------------------------------------------------------------


class Elsewhere:
    """Does something in a thread and a session of its own."""

    def __init__(self, url: str, what: Callable[[psycopg.Connection], object]) -> None:
        self.connection = connect(url, application="tests", autocommit=True)
        self.error: BaseException | None = None
        self._what = what
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._what(self.connection)
        except BaseException as error:  # noqa: BLE001 - told by `join`
            self.error = error

    def await_lock(self, world: World) -> None:
        pid = self.connection.info.backend_pid
        for _ in range(1500):
            if world.row("select cardinality(pg_blocking_pids(%s)) > 0 as waits", pid)["waits"]:
                return
            self.thread.join(0.02)
        raise AssertionError("the other session never waited")

    def join(self) -> None:
        self.thread.join(30)
        self.connection.close()
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("recurring", [True, False])
def test_a_pause_waits_for_a_claim_under_way_and_holds_what_it_queued(
    pauses: Pauses, recurring: bool
) -> None:
    world = pauses.world
    run_at = (pauses.midnight + timedelta(minutes=1)).isoformat()
    one_time = create(run_at=run_at, overlap="skip")
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE) if recurring else one_time)
    pauses.at("00:01:00")
    with connect(world.url, application="tests", autocommit=True) as trigger, trigger.transaction():
        assert pauses.claim(connection=trigger).queued == 1
        pausing = Elsewhere(world.url, lambda session: pause_namespace(session, "default"))
        pausing.await_lock(world)
    pausing.join()
    run = world.run(job_id)
    assert (run["state"], run["reason"], world.outbox(run["id"])) == ("waiting", "paused", [])
    assert world.job(job_id)["state"] == "paused"


@pytest.mark.parametrize("pausing", [True, False])
def test_a_claim_that_began_before_a_change_was_committed_takes_nothing_with_the_job_as_it_was(
    pauses: Pauses, pausing: bool
) -> None:
    """It would find a timer that were updated in place, and read the job by its older snapshot."""
    world = pauses.world
    job_id = world.job_id(create(run_at=(pauses.midnight + timedelta(minutes=1)).isoformat(), overlap="skip"))
    if not pausing:
        world.one(event("pause", job_id=str(job_id)))
    pauses.at("00:01:00")
    found: list[Any] = []
    # Waits where the claim would skip: as if it had met the timer just after the commit.
    look = (
        "with due as materialized (select job_id from timers where kind = 1 and fire_at <= noonmark_now() for update)"
        " select state from due join jobs on jobs.id = due.job_id"
    )
    with world.connection.transaction():
        world.one(event("pause" if pausing else "resume", job_id=str(job_id)))
        claim = Elsewhere(world.url, lambda session: found.extend(session.execute(look).fetchall()))
        with connect(world.url, application="tests", autocommit=True) as watcher:
            claim.await_lock(World(world.url, watcher))
    claim.join()
    assert found == []
    pauses.claim_all()
    assert world.run(job_id)["state"] == ("waiting" if pausing else "queued")


def test_an_order_that_comes_before_the_pause_got_to_its_job_finds_it_held(pauses: Pauses) -> None:
    world = pauses.world
    job_id = world.job_id(nightly(schedule=EVERY_MINUTE))
    world.one(event("trigger", name="nightly"))
    mark_paused(world.connection, "default", None)  # the process died after its first commit
    assert world.job(job_id)["state"] == "active"
    assert world.one(event("resume", name="nightly")).reason is Reason.CONFLICT
    world.one(event("update", name="nightly", type="python", handler="a.b", schedule=EVERY_MINUTE))
    assert (world.job(job_id)["state"], world.job(job_id)["paused_by"]) == ("paused", "namespace")
    assert world.run(job_id)["state"] == "waiting"
    assert pause_namespace(world.connection, "default").jobs == 0
    resume_space(world, ResumeChoice.SKIP)
    assert world.run(job_id)["state"] == "queued"


def test_two_who_pause_and_resume_at_once_end_in_one_state(pauses: Pauses) -> None:
    world = pauses.world
    for number in range(3):
        world.one(nightly(f"job-{number}"))

    def resume_meanwhile(_jobs: int, _runs: int) -> None:
        other = Elsewhere(world.url, lambda session: resume_namespace(session, "default"))
        other.join()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(namespace_batches, "BATCH", 1)
        with pytest.raises(NamespaceError, match="another user has resumed namespace default"):
            pause_namespace(world.connection, "default", progress=resume_meanwhile)
    assert {row["state"] for row in world.rows("select state from jobs")} == {"active"}


def test_a_second_pause_does_not_take_what_the_first_resume_let_run(pauses: Pauses) -> None:
    """No trigger was there between the two pauses: the first resume's choice is carried out by the second pause."""
    job_id = pauses.world.job_id(nightly(schedule={"cron": "0 * * * *"}))
    pauses.at("00:30:00")
    pause_job(pauses.world)
    pauses.at("01:30:00")
    resume_job(pauses.world, ResumeChoice.ALL)
    pauses.at("01:30:01")
    pause_job(pauses.world)
    pauses.at("02:30:00")
    resume_job(pauses.world, ResumeChoice.SKIP)

    pauses.claim_all()

    assert pauses.ledger(job_id) == {"01:00:00": ("queued", None), "02:00:00": ("skipped", "paused")}
