"""Claims that need planning: misfires, pauses, overlaps, gaps, broken jobs."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, Planned, minute, outcome

from noonmark.core.ids import uuid7
from noonmark.core.states import Lane, RunState, SkipReason, TimerKind
from noonmark.store.claims import claims
from noonmark.store.claims.planned_runs import PlannedRun, TimerPlan
from noonmark.store.claims.planner import Planner
from noonmark.store.documents.columns import NEVER
from noonmark.store.limits.slots import acquire_slots

PLANNER = Planner(catch_up_cap=100, ledger_cap=1000)


def claim(world, *, plan=PLANNER, lane=Lane.NORMAL, limit=8000, connection=None, kind=TimerKind.PLANNED):
    return claims.claim_planned(
        connection or world.db,
        lane,
        EVERY_SHARD,
        limit,
        kind=kind,
        plan=plan,
        topics=TOPICS,
        install_shards=SHARDS,
    )


def every(period: str, anchor: datetime, **bounds: datetime) -> dict[str, str]:
    def text(at: datetime) -> str:
        return at.astimezone(UTC).isoformat().replace("+00:00", "Z")

    return {"every": period, "anchor": text(anchor), **{key: text(at) for key, at in bounds.items()}}


def recurring(world, *, due, period="PT1M", policy=None, state="active", **bounds):
    """A job whose timer stands at an instant in the past."""
    job_id = world.job(schedule=every(period, due, **bounds), policy=policy, state=state, recurring=True)
    world.timer(job_id, due, kind=TimerKind.PLANNED)
    return job_id


def verdicts(world, job_id):
    return [(run["state"], run["reason"]) for run in world.runs_of(job_id)]


def next_at(world, job_id):
    return world.value("select fire_at from timers where job_id = %s", job_id)


def test_an_instant_that_is_on_time_runs_and_its_timer_moves_to_the_next(world):
    due = world.now() - timedelta(seconds=5)
    job_id = recurring(world, due=due)

    result = claim(world)

    assert (result.claimed, result.queued, result.skipped) == (1, 1, {})
    (run,) = world.runs_of(job_id)
    assert (run["state"], run["scheduled_for"], run["fence"], run["origin"]) == ("queued", due, 1, "schedule")
    assert [message["run_id"] for message in world.messages(run["id"])] == [run["id"]]
    assert next_at(world, job_id) == due + timedelta(minutes=1)
    assert world.value("select scheduled_for from timers") == due + timedelta(minutes=1)
    assert claim(world).claimed == 0


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"policy": "fire_latest", "grace_seconds": 30}, [("skipped", "coalesced")] * 4 + [("queued", None)]),
        ({"policy": "fire_all", "grace_seconds": 30}, [("queued", None)] * 5),
        ({"policy": "skip", "grace_seconds": 30}, [("skipped", "misfired")] * 4 + [("queued", None)]),
        (
            {"policy": "fire_all", "grace_seconds": 30, "look_back_seconds": 150},
            [("skipped", "look_back")] * 2 + [("queued", None)] * 3,
        ),
    ],
    ids=["fire latest", "fire all", "skip", "fire all within the look-back"],
)
def test_missed_instants_get_the_verdict_of_the_misfire_policy_each(world, policy, expected):
    due = world.now() - timedelta(minutes=4, seconds=10)
    job_id = recurring(world, due=due, policy={"misfire": policy})

    result = claim(world)

    assert verdicts(world, job_id) == expected
    assert next_at(world, job_id) == due + timedelta(minutes=5)
    told = [(one["state"], one["reason"]) for one in world.told()]
    assert told == [verdict for verdict in expected if verdict[0] == "skipped"]
    assert sum(result.skipped.values()) == len(told)
    assert world.count("outbox", "run_id is not null") == result.queued == len(expected) - len(told)


def test_a_timer_of_a_paused_recurring_job_waits_for_the_resume(world):
    due = world.now() - timedelta(minutes=2, seconds=10)
    job_id = recurring(world, due=due, state="paused")

    assert claim(world).skipped == {}

    assert verdicts(world, job_id) == []
    assert next_at(world, job_id) == NEVER
    assert world.value("select scheduled_for from timers where job_id = %s", job_id) == due


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("skip", [("skipped", "paused")] * 3),
        ("latest", [("skipped", "coalesced")] * 2 + [("queued", None)]),
        ("all", [("queued", None)] * 3),
    ],
)
def test_what_a_pause_held_gets_its_verdict_by_the_choice_of_the_resume(world, choice, expected):
    due = world.now() - timedelta(minutes=2, seconds=10)
    job_id = recurring(world, due=due, policy={"misfire": {"policy": "skip"}})
    world.db.execute(
        "update jobs set resumed_at = noonmark_now(), resume_choice = %s where id = %s", [choice, job_id]
    )

    claim(world)

    assert verdicts(world, job_id) == expected
    assert next_at(world, job_id) == due + timedelta(minutes=3)


def test_a_paused_one_time_job_waits_and_is_not_skipped(world):
    due = world.now() - timedelta(seconds=5)
    job_id = world.job(schedule={"run_at": due.astimezone(UTC).isoformat()}, state="paused")
    world.timer(job_id, due, kind=TimerKind.PLANNED)

    result = claim(world)

    assert (result.claimed, result.queued, result.skipped) == (1, 0, {})
    assert verdicts(world, job_id) == [("waiting", "paused")]
    assert world.column("select reason from waits where job_id = %s", job_id) == ["paused"]
    assert world.count("outbox") == world.count("timers") == 0


def test_an_instant_of_an_unfinished_job_that_must_not_overlap_is_skipped_until_the_slot_is_free(world):
    worker = world.worker()
    job_id = recurring(world, due=world.now() - timedelta(seconds=5), policy={"overlap": "skip"})
    claim(world)
    first = world.runs_of(job_id)[0]
    assert first["holds_slot"]
    (running,) = world.start(worker, [first["id"]])

    world.turn_clock(timedelta(seconds=60))
    assert claim(world).skipped == {"overlap": 1}
    world.turn_clock(timedelta(seconds=120))
    assert claim(world).skipped == {"overlap": 1}
    world.record(worker, [outcome(running)])
    world.turn_clock(timedelta(seconds=180))
    assert claim(world).queued == 1

    assert verdicts(world, job_id) == [
        ("succeeded", None),
        ("skipped", "overlap"),
        ("skipped", "overlap"),
        ("queued", None),
    ]
    assert [run["holds_slot"] for run in world.runs_of(job_id)] == [True, False, False, True]
    assert acquire_slots(world.db, [(uuid7(), job_id)]) == set()
    assert world.column("select run_id from slots") == [world.runs_of(job_id)[-1]["id"]]


def test_a_run_that_waits_for_its_retry_still_holds_the_slot(world):
    worker = world.worker()
    job_id = recurring(world, due=world.now() - timedelta(seconds=5), policy={"overlap": "skip"})
    claim(world)
    (running,) = world.start(worker, [world.runs_of(job_id)[0]["id"]])
    world.record(worker, [outcome(running, RunState.RETRYING, error="boom", retry_seconds=600.0)])

    world.turn_clock(timedelta(seconds=60))

    assert claim(world).skipped == {"overlap": 1}


def test_a_gap_under_fire_all_runs_one_after_the_other_where_runs_must_not_overlap(world):
    worker = world.worker()
    due = world.now() - timedelta(minutes=3, seconds=10)
    policy = {"overlap": "skip", "misfire": {"policy": "fire_all", "grace_seconds": 5}}
    job_id = recurring(world, due=due, policy=policy)

    for number in range(1, 5):
        while claim(world).claimed:
            pass  # the next one finds no slot, and waits
        assert verdicts(world, job_id) == [("succeeded", None)] * (number - 1) + [("queued", None)]
        run = world.runs_of(job_id)[-1]
        assert run["scheduled_for"] == due + timedelta(minutes=number - 1)
        (running,) = world.start(worker, [run["id"]])
        world.record(worker, [outcome(running)])
        world.db.execute("update timers set fire_at = noonmark_now() where scheduled_for <= noonmark_now()")

    assert next_at(world, job_id) == due + timedelta(minutes=4)


def test_an_instant_that_is_on_time_does_not_wait_for_the_run_before_it_under_fire_all(world):
    due = world.now() - timedelta(seconds=5)
    recurring(world, due=due, policy={"overlap": "skip", "misfire": {"policy": "fire_all"}})
    claim(world)
    world.turn_clock(timedelta(seconds=60))

    assert claim(world).skipped == {"overlap": 1}


def test_of_instants_that_are_due_at_once_only_the_latest_runs_where_runs_must_not_overlap(world):
    due = world.now() - timedelta(seconds=35)
    job_id = recurring(world, due=due, period="PT10S", policy={"overlap": "skip"})

    claim(world)

    assert verdicts(world, job_id) == [("skipped", "coalesced")] * 3 + [("queued", None)]


def test_broken_jobs_are_set_aside_and_the_999_others_are_planned_in_the_same_tick(world):
    due = world.now() - timedelta(seconds=5)
    good = [recurring(world, due=due)]
    good += world.copies(good[0], 998)
    broken = world.job(schedule={"cron": "0 0 31 2 *"}, recurring=True)
    world.timer(broken, due, kind=TimerKind.PLANNED)
    nonsense = world.job(schedule={"every": 5}, recurring=True)
    world.timer(nonsense, due, kind=TimerKind.PLANNED)
    policy = world.job(schedule=every("PT1M", due), policy={"overlap": "sometimes"}, recurring=True)
    world.timer(policy, due, kind=TimerKind.PLANNED)

    result = claim(world)

    assert (result.claimed, result.queued) == (1002, 999)
    assert {job_id for job_id, _ in result.broken} == {broken, nonsense, policy}
    states = dict(world.db.execute("select state, count(*) from jobs group by 1").fetchall())
    assert states == {"active": 999, "broken": 3}
    reasons = world.column("select state_reason from jobs where state = 'broken'")
    assert all(reason.startswith("cannot be planned: ") for reason in reasons)
    assert sorted(world.column("select job_id from outbox")) == sorted(good)
    assert world.count("timers") == 999


def test_the_timer_of_a_job_that_is_gone_is_dropped(world):
    due = world.now() - timedelta(seconds=5)
    gone, cancelled = recurring(world, due=due), recurring(world, due=due, state="cancelled")
    world.db.execute("delete from jobs where id = %s", [gone])

    assert claim(world).queued == 0
    assert world.count("timers") == 0
    assert verdicts(world, cancelled) == [("skipped", "cancelled")], "it came due before the cancel"


def test_a_gap_of_many_days_makes_the_days_of_the_ledger_that_it_needs(world):
    """The trigger was off for three weeks: housekeeping made no days, and every instant gets its verdict."""
    due = world.now() - timedelta(days=21)
    daily = recurring(world, due=due, period="P1D")
    world.db.execute(f"drop table runs_{world.now():%Y%m%d}")
    weekly = recurring(
        world, due=due, period="P7D", policy={"misfire": {"policy": "fire_all", "look_back_seconds": 9e6}}
    )

    claim(world)

    assert [reason for _, reason in verdicts(world, daily)] == ["look_back"] * 21 + [None]
    assert verdicts(world, weekly) == [("queued", None)] * 4


def test_a_gap_with_more_instants_than_the_cap_is_summed_up_in_one_row(world):
    due = world.now() - timedelta(days=2, seconds=10)
    job_id = recurring(world, due=due, policy={"misfire": {"policy": "fire_latest", "grace_seconds": 0}})

    result = claim(world)

    *summaries, run = world.runs_of(job_id)
    assert run["state"] == "queued"
    assert sum(row["instants"] for row in summaries) == 2 * 24 * 60 == sum(result.skipped.values())
    assert [row["reason"] for row in summaries] == ["look_back", "coalesced"]
    # The ranges touch each other and the run: no instant without a verdict.
    edges = [(row["scheduled_for"], row["last_scheduled_for"]) for row in summaries]
    assert edges[0][0] == due
    assert edges[1][0] - edges[0][1] == run["scheduled_for"] - edges[1][1] == timedelta(minutes=1)
    assert all(row["finished_at"] for row in summaries)


def test_a_gap_with_more_runs_than_the_cap_is_caught_up_in_several_claims(world):
    due = world.now() - timedelta(minutes=249, seconds=10)
    policy = {"misfire": {"policy": "fire_all", "look_back_seconds": 90_000}}
    job_id = recurring(world, due=due, policy=policy)

    queued = [claim(world).queued for _ in range(4)]

    assert queued == [100, 100, 50, 0]
    instants = [run["scheduled_for"] for run in world.runs_of(job_id)]
    assert instants == [due + timedelta(minutes=n) for n in range(250)]


def test_an_instant_that_is_in_the_ledger_already_is_told_to_nobody_and_gives_its_slot_back(world):
    due = world.now() - timedelta(seconds=5)
    job_id = recurring(world, due=due, policy={"overlap": "skip"})
    world.put_run(RunState.SUCCEEDED, job_id=job_id, scheduled_for=due)

    result = claim(world)

    assert (result.claimed, result.queued, result.skipped) == (1, 0, {})
    assert verdicts(world, job_id) == [("succeeded", None)]
    assert world.count("outbox") == world.count("slots") == 0
    assert next_at(world, job_id) == due + timedelta(minutes=1)


def test_two_triggers_with_one_shard_share_its_timers(world):
    due = world.now() - timedelta(seconds=5)
    jobs = [recurring(world, due=due) for _ in range(40)]
    other = world.another()
    seen = []

    def plan_in_the_middle(timer):
        seen.append(timer.job_id)
        if len(seen) == 1:
            seen.append(claim(world).claimed)
        return PLANNER(timer)

    first = claim(world, plan=Planned(plan_in_the_middle), connection=other, limit=80)

    assert first.claimed + seen[1] == 40
    assert sorted(world.column("select job_id from outbox")) == sorted(jobs)


def test_a_job_whose_schedule_ends_is_complete_and_has_no_timer(world):
    due = world.now() - timedelta(seconds=65)
    job_id = recurring(
        world, due=due, end=due + timedelta(seconds=60), policy={"misfire": {"policy": "fire_all"}}
    )

    claim(world)

    assert verdicts(world, job_id) == [("queued", None)] * 2
    assert world.value("select state from jobs where id = %s", job_id) == "completed"
    assert world.count("timers") == 0


def test_a_start_deadline_is_kept_with_the_run_and_judged_when_it_is_planned(world):
    due = world.now() - timedelta(minutes=2, seconds=10)
    policy = {"start_deadline_seconds": 30, "misfire": {"policy": "fire_all"}}
    job_id = recurring(world, due=due, policy=policy)

    claim(world)

    *late, last = world.runs_of(job_id)
    assert [(run["state"], run["reason"]) for run in late] == [("skipped", SkipReason.START_DEADLINE)] * 2
    assert last["start_by"] == last["scheduled_for"] + timedelta(seconds=30)
    assert [run["start_by"] for run in late] == [None, None]


def test_jobs_of_one_minute_are_claimed_lane_by_lane(world):
    due = minute(world.now())
    for lane in Lane:
        job_id = world.job(schedule={"cron": "* * * * *"}, lane=lane, recurring=True)
        world.timer(job_id, due, kind=TimerKind.PLANNED, lane=lane)

    assert [claim(world, lane=lane).queued for lane in Lane] == [1, 1, 1]
    assert sorted(world.column("select lane from outbox")) == list(Lane)


def test_the_plan_is_given_the_job_as_it_is_under_the_lock(world):
    due = world.now() - timedelta(seconds=5)
    job_id = recurring(world, due=due, policy={"overlap": "allow"})
    seen = []

    def plan(timer):
        seen.append(timer)
        return TimerPlan([PlannedRun(timer.scheduled_for, RunState.QUEUED)], next_at=None, completed=False)

    claim(world, plan=Planned(plan))

    *_, timer = seen  # the last: others were read to find groups
    assert (timer.job_id, timer.scheduled_for, timer.state) == (job_id, due, "active")
    assert timer.policy == '{"overlap": "allow"}'
    assert timer.now >= due
