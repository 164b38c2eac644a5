"""Planning: one verdict per due instant, whatever the gap, the policy and the number of steps."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.planning.jitter import Jitter
from noonmark.core.planning.plan import (
    Caps,
    Misfire,
    MisfirePolicy,
    PauseWindow,
    Plan,
    PlannedInstant,
    SkippedRange,
    plan,
    plan_skips,
)
from noonmark.core.schedules.schedule import AnyOf, Cron, Interval, Once, RRule, Schedule
from noonmark.core.states import ResumeChoice, SkipReason

T0 = datetime(2026, 5, 4, tzinfo=UTC)
MINUTELY = Cron("* * * * *")
FIRE_ALL, FIRE_LATEST, SKIP = (Misfire(policy) for policy in MisfirePolicy)


def at(hours: int = 0, minutes: int = 0, seconds: float = 0) -> datetime:
    return T0 + timedelta(hours=hours, minutes=minutes, seconds=seconds)


def verdicts(planned: Plan) -> list[SkipReason | None]:
    return [instant.skipped for instant in planned.runs]


def test_an_instant_within_its_grace_runs_under_every_policy():
    for misfire in (FIRE_ALL, FIRE_LATEST, SKIP):
        planned = plan(MINUTELY, misfire, due=at(minutes=1), now=at(minutes=1, seconds=30))
        assert planned == Plan([PlannedInstant(at(minutes=1))], [], at(minutes=2), at(minutes=1))


def test_a_timer_claimed_before_it_is_due_stays_where_it_is():
    assert plan(MINUTELY, FIRE_ALL, due=at(minutes=5), now=at(minutes=4, seconds=59)) == Plan(
        [], [], at(minutes=5)
    )


def test_three_hours_down_under_fire_latest_is_one_run_and_the_rest_is_recorded():
    planned = plan(MINUTELY, FIRE_LATEST, due=at(minutes=1), now=at(3, 0, 30))
    assert planned.runs[-1] == PlannedInstant(at(3))
    assert [instant.scheduled_for for instant in planned.runs] == MINUTELY.between(T0, at(3), 1000)
    assert verdicts(planned).count(None) == 1
    assert verdicts(planned)[:120] == [SkipReason.LOOK_BACK] * 120
    assert verdicts(planned)[120:-1] == [SkipReason.COALESCED] * 59
    assert planned.next_at == at(3, 1)


def test_a_gap_beyond_the_ledger_cap_is_recorded_as_ranges_with_exact_counts():
    at_the_cap = plan(MINUTELY, FIRE_LATEST, due=at(minutes=1), now=at(3, 0, 30), caps=Caps(rows=179))
    assert (len(at_the_cap.runs), at_the_cap.summary) == (180, [])
    planned = plan(MINUTELY, FIRE_LATEST, due=at(minutes=1), now=at(3, 0, 30), caps=Caps(rows=178))
    assert planned.runs == [PlannedInstant(at(3))]
    assert planned.summary == [
        SkippedRange(at(minutes=1), at(2), 120, SkipReason.LOOK_BACK),
        SkippedRange(at(2, 1), at(2, 59), 59, SkipReason.COALESCED),
    ]


def test_fire_all_runs_oldest_first_a_capped_number_per_step_and_comes_back_for_the_rest():
    now = at(0, 50, 10)
    first = plan(MINUTELY, FIRE_ALL, due=at(minutes=1), now=now, caps=Caps(runs=20))
    assert [instant.scheduled_for for instant in first.runs] == [at(minutes=n) for n in range(1, 21)]
    assert first.next_at == at(minutes=21)
    second = plan(MINUTELY, FIRE_ALL, due=first.next_at, now=now, caps=Caps(runs=30))
    assert len(second.runs) == 30
    assert second.next_at == at(minutes=51)


def test_nothing_beyond_the_look_back_runs_under_any_policy():
    misfires = [Misfire(policy, look_back_seconds=1800) for policy in MisfirePolicy]
    for misfire in misfires:
        planned = plan(Cron("0 * * * *"), misfire, due=at(1), now=at(1, 40))
        assert planned == Plan([PlannedInstant(at(1), SkipReason.LOOK_BACK)], [], at(2), at(1, 40))


def test_the_default_look_back_always_holds_the_latest_instant_of_a_slow_schedule():
    monthly = Cron("0 0 1 * *")
    planned = plan(
        monthly, FIRE_LATEST, due=datetime(2026, 4, 1, tzinfo=UTC), now=datetime(2026, 5, 31, tzinfo=UTC)
    )
    assert verdicts(planned) == [SkipReason.LOOK_BACK, None]


def test_a_minute_job_resumed_after_three_hours_runs_as_the_resume_chose():
    """Paused at 00:00:30, resumed at 03:00:30: 180 instants were held."""

    def resumed(choice: ResumeChoice, **more: object) -> Plan:
        held = PauseWindow(at(3, 0, 30), choice)
        return plan(MINUTELY, FIRE_LATEST, due=at(minutes=1), now=at(3, 0, 31), held=held, **more)

    skipped = resumed(ResumeChoice.SKIP)
    assert verdicts(skipped) == [SkipReason.PAUSED] * 180
    assert skipped.next_at == at(3, 1)
    latest = resumed(ResumeChoice.LATEST)
    assert verdicts(latest) == [SkipReason.COALESCED] * 179 + [None]
    assert latest.runs[-1].scheduled_for == at(3)
    summed = resumed(ResumeChoice.LATEST, caps=Caps(rows=100))
    assert summed.runs == [PlannedInstant(at(3))]
    assert summed.summary == [SkippedRange(at(minutes=1), at(2, 59), 179, SkipReason.COALESCED)]
    every = resumed(ResumeChoice.ALL, caps=Caps(runs=1000))
    assert verdicts(every) == [None] * 180, "whoever asks for all gets all, beyond the default look-back"
    assert len(resumed(ResumeChoice.ALL).runs) == 100, "but in steps"


def test_instants_after_the_resume_follow_the_policy_of_the_job():
    held = PauseWindow(at(0, 3, 30), ResumeChoice.SKIP)
    planned = plan(MINUTELY, FIRE_ALL, due=at(minutes=1), now=at(0, 6), held=held)
    assert verdicts(planned) == [SkipReason.PAUSED] * 3, "what was held is a step of its own"
    assert planned.next_at == at(0, 4)
    assert verdicts(plan(MINUTELY, FIRE_ALL, due=at(0, 4), now=at(0, 6), held=held)) == [None] * 3


def test_a_claim_long_after_a_resume_judges_by_the_choice_only_what_was_held():
    """Resumed at 00:10:30, claimed at 03:00:30."""
    for choice, ran in ((ResumeChoice.ALL, 10), (ResumeChoice.LATEST, 1), (ResumeChoice.SKIP, 0)):
        first = plan(
            MINUTELY, SKIP, due=at(minutes=1), now=at(3, 0, 30), held=PauseWindow(at(0, 10, 30), choice)
        )
        assert verdicts(first).count(None) == ran
        assert first.next_at == at(0, 11)
        rest = plan(MINUTELY, SKIP, due=at(0, 11), now=at(3, 0, 30), held=PauseWindow(at(0, 10, 30), choice))
        assert verdicts(rest).count(None) == 1
        assert set(verdicts(rest)) == {SkipReason.LOOK_BACK, SkipReason.MISFIRED, None}


def test_a_pause_holds_what_would_have_started_in_it_not_what_starts_after_it():
    schedule = Cron("0 12 * * *", jitter_seconds=3600)
    jitter = Jitter(schedule, b"some job")
    starts = jitter.fire_at(at(12))
    assert at(12, 1) < starts
    held = PauseWindow(at(12, 1), ResumeChoice.SKIP)
    assert verdicts(plan(schedule, SKIP, due=at(12), now=starts, held=held, jitter=jitter)) == [None]
    held = PauseWindow(starts + timedelta(microseconds=1), ResumeChoice.SKIP)
    paused = plan(schedule, SKIP, due=at(12), now=starts + timedelta(hours=1), held=held, jitter=jitter)
    assert verdicts(paused) == [SkipReason.PAUSED]


def test_a_look_back_of_the_jobs_own_bounds_a_resume_of_all():
    misfire = Misfire(MisfirePolicy.FIRE_ALL, look_back_seconds=120)
    held = PauseWindow(at(0, 5), ResumeChoice.ALL)
    planned = plan(MINUTELY, misfire, due=at(minutes=1), now=at(0, 5), held=held)
    assert verdicts(planned) == [SkipReason.LOOK_BACK] * 2 + [None] * 2


def test_what_a_cancelled_job_still_owed_is_skipped_for_one_reason():
    planned = plan_skips(MINUTELY, SkipReason.CANCELLED, due=at(minutes=1), now=at(0, 3, 10))
    assert verdicts(planned) == [SkipReason.CANCELLED] * 3
    assert planned.next_at == at(0, 4)


def test_no_more_runs_than_the_job_has_left_are_planned():
    planned = plan(MINUTELY, FIRE_ALL, due=at(minutes=1), now=at(0, 9), runs_left=3)
    assert verdicts(planned) == [None] * 3
    assert planned.next_at == at(0, 4), "the claim ends the job once three of them are in the ledger"


def test_lateness_of_a_jittered_instant_counts_from_its_moved_start():
    schedule = Cron("* * * * *", jitter_seconds=50)
    jitter = Jitter(schedule, b"some job")
    fires = jitter.fire_at(at(minutes=1))
    assert at(minutes=1) < fires < at(minutes=1, seconds=50)
    tick = timedelta(microseconds=1)
    early = plan(schedule, SKIP, due=at(minutes=1), now=fires - tick, jitter=jitter)
    assert (early.runs, early.next_at) == ([], at(minutes=1))
    grace = timedelta(seconds=SKIP.grace_seconds)
    assert verdicts(plan(schedule, SKIP, due=at(minutes=1), now=fires + grace, jitter=jitter))[0] is None
    late = plan(schedule, SKIP, due=at(minutes=1), now=fires + grace + tick, jitter=jitter)
    assert verdicts(late)[0] is SkipReason.MISFIRED
    deadline = plan(
        schedule, FIRE_ALL, due=at(minutes=1), now=fires + tick, jitter=jitter, start_deadline_seconds=0.0
    )
    assert verdicts(deadline)[0] is SkipReason.START_DEADLINE


def test_what_is_on_time_again_after_a_gap_runs_and_what_was_missed_becomes_part_of_it():
    patient = Misfire(MisfirePolicy.FIRE_LATEST, grace_seconds=120)
    planned = plan(MINUTELY, patient, due=at(minutes=1), now=at(0, 5, 30))
    assert verdicts(planned) == [SkipReason.COALESCED] * 3 + [None] * 2


def test_a_grace_longer_than_an_hour_lengthens_the_default_look_back():
    patient = Misfire(MisfirePolicy.SKIP, grace_seconds=7200)
    assert verdicts(plan(Cron("0 * * * *"), patient, due=at(1), now=at(2, 40))) == [None, None]


def test_skip_runs_only_what_is_on_time():
    planned = plan(MINUTELY, SKIP, due=at(minutes=1), now=at(0, 4, 10))
    assert verdicts(planned) == [SkipReason.MISFIRED] * 3 + [None]
    assert planned.next_at == at(0, 5)


def test_what_would_run_after_its_start_deadline_is_skipped_for_that():
    hourly = Cron("0 * * * *")
    late = plan(hourly, FIRE_LATEST, due=at(1), now=at(1, 10), start_deadline_seconds=300)
    assert verdicts(late) == [SkipReason.START_DEADLINE]
    assert verdicts(plan(hourly, FIRE_LATEST, due=at(1), now=at(1, 5), start_deadline_seconds=300)) == [None]
    on_time = plan(hourly, FIRE_LATEST, due=at(1), now=at(1, 0, 30), start_deadline_seconds=10)
    assert verdicts(on_time) == [SkipReason.START_DEADLINE]


@pytest.mark.parametrize(
    ("misfire", "expected"), [(FIRE_ALL, None), (FIRE_LATEST, None), (SKIP, SkipReason.MISFIRED)], ids=str
)
def test_a_one_time_job_a_year_late_runs_unless_misfires_are_skipped(misfire, expected):
    year_late = T0 + timedelta(days=365)
    late = plan(Once(T0), misfire, due=T0, now=year_late)
    assert late == Plan([PlannedInstant(T0, expected)], [], None, year_late)
    assert plan(Once(T0), misfire, due=T0, now=T0) == Plan([PlannedInstant(T0)], [], None, T0)


def test_the_last_instant_before_the_end_leaves_nothing_to_come():
    ending = Cron("* * * * *", end=at(minutes=3))
    planned = plan(ending, FIRE_ALL, due=at(minutes=2), now=at(1))
    assert [instant.scheduled_for for instant in planned.runs] == [at(minutes=2), at(minutes=3)]
    assert planned.next_at is None


@pytest.mark.parametrize("choice", [ResumeChoice.ALL, ResumeChoice.LATEST])
def test_what_a_short_pause_deferred_waits_for_the_run_before_it_instead_of_being_skipped(choice):
    held = PauseWindow(at(0, 3, 30), choice)
    on_time = Misfire(MisfirePolicy.FIRE_LATEST, grace_seconds=600)
    planned = plan(MINUTELY, on_time, due=at(minutes=1), now=at(0, 3, 40), held=held, one_at_a_time=True)
    ran = [instant for instant in planned.runs if instant.skipped is None]
    assert [instant.patient for instant in ran] == [True]


def test_a_due_instant_that_the_schedule_no_longer_names_still_gets_its_verdict():
    off = at(0, 0, 17)
    planned = plan(MINUTELY, FIRE_ALL, due=off, now=at(0, 2))
    assert [instant.scheduled_for for instant in planned.runs] == [off, at(minutes=1), at(minutes=2)]


@pytest.mark.parametrize(
    "schedule", [Interval(timedelta(seconds=1), T0), MINUTELY, Cron("0 0 29 2 *")], ids=["1s", "1min", "leap"]
)
@pytest.mark.parametrize("misfire", [FIRE_ALL, FIRE_LATEST, SKIP], ids=str)
@pytest.mark.parametrize("choice", [None, *ResumeChoice], ids=str)
def test_a_gap_of_a_century_is_planned_at_once(schedule, misfire, choice):
    now = T0 + timedelta(days=36_525)
    due = schedule.next(T0)
    began = time.thread_time()
    held = PauseWindow(now, choice) if choice else None
    planned = plan(schedule, misfire, due=due, now=now, held=held)
    assert time.thread_time() - began < 0.2
    assert len(planned.runs) <= 1000 + 100
    covered = len(planned.runs) + sum(part.count for part in planned.summary)
    assert covered == 1 + schedule.count(due, min(planned.next_at, now)) - (planned.next_at <= now)


@pytest.mark.parametrize(
    "wrong",
    [
        {"grace_seconds": -1},
        {"grace_seconds": float("nan")},
        {"look_back_seconds": 59},
        {"look_back_seconds": float("inf")},
        {"policy": "sometimes"},
    ],
    ids=str,
)
def test_a_misfire_rule_that_makes_no_sense_cannot_be_made(wrong):
    with pytest.raises(ValueError, match="sometimes" if "policy" in wrong else next(iter(wrong))):
        Misfire(**wrong)


def test_a_catch_up_cap_that_lets_nothing_run_is_refused():
    with pytest.raises(ValueError, match="cap on runs is 0"):
        Caps(runs=0)


def oracle(schedule: Schedule, misfire: Misfire, due, now, held, deadline) -> list[PlannedInstant]:
    """Each instant judged by itself, in a plain loop, from the rules as they are documented."""
    instants = [due]
    while (following := schedule.next(instants[-1])) is not None and following <= now:
        instants.append(following)
    ages = [(now - instant).total_seconds() for instant in instants]
    once = isinstance(schedule, Once)
    period = schedule.period_seconds(now)
    look_back = misfire.look_back_seconds or max(3600.0, misfire.grace_seconds, period)
    last_held = max((instant for instant in instants if held and instant < held.until), default=None)
    judged = []
    for instant, age in zip(instants, ages, strict=True):
        missed = age > misfire.grace_seconds
        newest = instant == instants[-1]
        paused = last_held is not None and instant <= last_held
        if paused and held.choice is ResumeChoice.SKIP:
            verdict = SkipReason.PAUSED
        elif age > (misfire.look_back_seconds or float("inf") if paused or once else look_back):
            verdict = SkipReason.LOOK_BACK
        elif paused and held.choice is ResumeChoice.LATEST and instant < last_held:
            verdict = SkipReason.COALESCED
        elif not paused and missed and misfire.policy == MisfirePolicy.SKIP:
            verdict = SkipReason.MISFIRED
        elif not paused and missed and misfire.policy == MisfirePolicy.FIRE_LATEST and not newest:
            verdict = SkipReason.COALESCED
        elif deadline is not None and age > deadline:
            verdict = SkipReason.START_DEADLINE
        else:
            verdict = None
        judged.append(PlannedInstant(instant, verdict))
    return judged


seconds = st.integers(0, 20_000).map(float)
misfires = st.builds(
    lambda policy, grace, extra: Misfire(policy, grace, None if extra is None else grace + extra + 1),
    st.sampled_from(MisfirePolicy),
    st.sampled_from([0.0, 1.0, 60.0, 900.0, 7200.0]) | seconds,
    st.none() | seconds,
)
schedules = st.one_of(
    st.just(Once(T0)),
    st.builds(
        lambda every, end: Interval(timedelta(seconds=every), T0, None, end),
        st.sampled_from([20.0, 33.3, 60.0, 600.0, 5000.0]) | st.floats(20, 5000),
        st.none() | seconds.map(lambda s: at(seconds=s)),
    ),
    st.sampled_from(
        [
            MINUTELY,
            Cron("*/7 * * * *"),
            Cron("0 */2 * * *"),
            Cron("5-9 1-3 * * *", end=at(2, 7, 3)),
            RRule("FREQ=MINUTELY;INTERVAL=3", T0.replace(tzinfo=None)),
            AnyOf((Cron("*/5 * * * *"), Interval(timedelta(seconds=130), T0))),
        ]
    ),
)
# Built from pieces: drawn from one wide range, most gaps would be shorter than a period.
gaps = st.builds(
    lambda whole, millis: timedelta(seconds=whole, milliseconds=millis),
    st.sampled_from([0, 10, 60, 300, 900, 1800, 3600, 5400, 7200, 14_400]),
    st.integers(0, 120_000) | st.sampled_from([0, 1000, 60_000]),
)
deadlines = st.none() | st.sampled_from([0.0, 30.0, 600.0]) | seconds


def start_of(schedule: Schedule) -> datetime:
    return schedule.first(T0 - timedelta(microseconds=1)) or T0


pauses = st.none() | st.tuples(st.integers(-200, 14_400), st.sampled_from(ResumeChoice))


def pause_of(schedule: Schedule, due: datetime, pause: tuple[int, ResumeChoice] | None) -> PauseWindow | None:
    if pause is None or isinstance(schedule, Once):
        return None
    return PauseWindow(due + timedelta(seconds=pause[0]), pause[1])


@given(schedules, misfires, gaps, pauses, deadlines)
@settings(max_examples=250, deadline=None)
def test_each_instant_gets_the_verdict_of_a_plain_loop(schedule, misfire, gap, pause, deadline):
    due = start_of(schedule)
    now = due + gap
    held = pause_of(schedule, due, pause)
    runs, at = [], due
    for _ in range(2 if held else 1):
        planned = plan(
            schedule,
            misfire,
            due=at,
            now=now,
            held=held,
            start_deadline_seconds=deadline,
            caps=Caps(10_000, 10_000),
        )
        runs += planned.runs
        assert planned.summary == []
        at = planned.next_at
        if at is None or at > now:
            break
    assert runs == oracle(schedule, misfire, due, now, held, deadline)
    assert at == schedule.next(now)


def spread(schedule: Schedule, due: datetime, part: SkippedRange) -> list[datetime]:
    """The instants that a range stands for."""
    head = [due] if part.first == due else []
    instants = head + schedule.between(max(part.first - timedelta(microseconds=1), due), part.last, 10_000)
    assert (instants[0], instants[-1], len(instants)) == (part.first, part.last, part.count)
    return instants


@given(
    schedules,
    misfires,
    st.lists(gaps, min_size=1, max_size=4),
    st.lists(pauses, min_size=1, max_size=3),
    deadlines,
    st.integers(1, 40),
    st.integers(0, 40),
)
@settings(max_examples=250, deadline=None)
def test_over_all_steps_each_due_instant_is_covered_exactly_once(
    schedule, misfire, claims, held, deadline, catch_up_cap, ledger_cap
):
    due = start_of(schedule)
    first, now, covered, step = due, due, [], 0
    for gap in claims:
        now += gap
        while due is not None and due <= now:
            planned = plan(
                schedule,
                misfire,
                due=due,
                now=now,
                held=pause_of(schedule, first, held[step % len(held)]),
                start_deadline_seconds=deadline,
                caps=Caps(catch_up_cap, ledger_cap),
            )
            this_step = [instant.scheduled_for for instant in planned.runs]
            ran = [instant for instant in planned.runs if instant.skipped is None]
            assert len(ran) <= catch_up_cap
            assert len(this_step) - len(ran) <= ledger_cap
            assert this_step == sorted(this_step)
            for part in planned.summary:
                this_step += spread(schedule, due, part)
            assert this_step, "a step that plans nothing would be claimed for ever"
            covered += this_step
            due = planned.next_at
            step += 1
    expected = [first]
    while (following := schedule.next(expected[-1])) is not None and following <= now:
        expected.append(following)
    assert sorted(covered) == expected
