"""Calendars in the database: what a change does to the jobs that use one, and to nobody else."""

import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.support.settings_orders import set_calendar

from noonmark.core.calendars.calendar import Calendar, CalendarError
from noonmark.core.states import TimerKind
from noonmark.store.database.connect import connect
from noonmark.store.schedules import calendars
from noonmark.store.schedules.calendars import CalendarInUseError, Change
from noonmark.store.schedules.time_facts import read_time_facts, share_time_facts

XMAS = Calendar.parse({"dates": ["2026-12-25"]})
LONGER = Calendar.parse({"dates": ["2026-12-24", "2026-12-25"]})
WEEKEND = Calendar.parse({"weekdays": ["SAT", "SUN"]})
AFTER = datetime(2026, 12, 24, 9, tzinfo=UTC)
NEXT = datetime(2026, 12, 26, 9, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)


def schedule_with(exclude=(), include=(), **more):
    pairs = {
        key: [[name, calendar.digest()] for name, calendar in named]
        for key, named in (("exclude", exclude), ("include", include))
        if named
    }
    return {
        "cron": "0 9 * * *",
        "timezone": "UTC",
        "calendars": {**pairs, "on_holiday": "skip"},
        **more,
    }


def job_with(world, *, state="active", kind=TimerKind.PLANNED, fire_at=NEXT, **named):
    """A job under calendars whose last settled instant was on Christmas Eve."""
    job = world.job(schedule=schedule_with(**named), state=state, recurring=True)
    world.timer(job, fire_at, kind=kind, scheduled_for=NEXT)
    world.db.execute(
        "update timers set after_at = %s, after_offset = 3600, runs_left = 7 where job_id = %s", [AFTER, job]
    )
    return job


def timer_of(world, job):
    (row,) = world.rows("select * from timers where job_id = %s", job)
    return row


def stored(world, job):
    return world.value("select schedule -> 'calendars' from jobs where id = %s", job)


def test_a_calendar_is_made_changed_and_left_alone(world):
    made = set_calendar(world.db, "tests", "us", XMAS)
    same = set_calendar(world.db, "tests", "us", Calendar.parse({"dates": ["2026-12-25"] * 2}))
    changed = set_calendar(world.db, "tests", "us", LONGER)

    assert [one.change for one in (made, same, changed)] == [Change.CREATED, Change.UNCHANGED, Change.CHANGED]
    assert (made.digest, changed.digest) == (XMAS.digest(), LONGER.digest())
    (row,) = calendars.list_calendars(world.db, "tests")
    assert (row.namespace, row.name, row.digest, row.body, row.jobs) == (
        "tests",
        "us",
        LONGER.digest(),
        LONGER.body(),
        0,
    )


def test_a_change_raises_the_number_that_tells_processes_to_read_again_and_no_change_does_not(world):
    def facts():
        return world.value("select facts from install")

    set_calendar(world.db, "tests", "us", XMAS)
    before = facts()
    set_calendar(world.db, "tests", "us", XMAS)
    assert facts() == before
    set_calendar(world.db, "tests", "us", LONGER)
    assert facts() > before


def test_contents_are_kept_once_for_all_names(world):
    set_calendar(world.db, "tests", "us", XMAS)
    set_calendar(world.db, "other", "de", XMAS)
    assert world.count("calendar_contents") == 1
    assert read_time_facts(world.db).calendars == {"tests": {"us": XMAS}, "other": {"de": XMAS}}
    assert calendars.get_calendar(world.db, "tests", "de") is None


@pytest.mark.parametrize("name", ["", "US", "a/b", "-a", "a" * 64, "a b"])
def test_a_name_that_is_none_is_refused(world, name):
    with pytest.raises(CalendarError, match="is not a valid calendar name; expected 1 to 63 of"):
        set_calendar(world.db, "tests", name, XMAS)


@pytest.mark.parametrize("kind", [TimerKind.PLANNED, TimerKind.ZONED])
def test_a_change_names_the_new_digest_in_its_jobs_and_lets_their_next_instant_be_found_anew(world, kind):
    set_calendar(world.db, "tests", "us", XMAS)
    job = job_with(world, exclude=[("weekend", WEEKEND), ("us", XMAS)], include=[("us", XMAS)], kind=kind)
    before = timer_of(world, job)

    began_at = world.now()
    result = set_calendar(world.db, "tests", "us", LONGER)

    assert (result.jobs, result.replanned) == (1, 1)
    assert stored(world, job) == {
        "exclude": [["weekend", WEEKEND.digest()], ["us", LONGER.digest()]],
        "include": [["us", LONGER.digest()]],
        "on_holiday": "skip",
    }
    after = timer_of(world, job)
    assert after["scheduled_for"] == after["after_at"] == AFTER
    assert began_at <= after["fire_at"] <= world.now()
    moved = {"scheduled_for", "fire_at"}
    assert {key: after[key] for key in after if key not in moved} == {
        key: before[key] for key in before if key not in moved
    }
    assert world.value("select version from jobs where id = %s", job) == 1


def test_a_change_reaches_the_members_of_a_union_and_nothing_that_only_looks_like_a_calendar(world):
    set_calendar(world.db, "tests", "us.east", XMAS)
    text = f'["us.east", "{XMAS.digest()}"]'
    lookalike = {
        "cron": "0 9 * * *",
        "timezone": "UTC",
        "seed": text,
        "calendars": {"exclude": [["us-east", "00"]]},
    }
    member = schedule_with(exclude=[("us.east", XMAS)])
    job = world.job(schedule={"any": [member, {"every": 3600, "seed": text}, member]}, recurring=True)
    world.timer(job, NEXT, kind=TimerKind.PLANNED)
    world.db.execute("update timers set after_at = %s", [AFTER])
    other = world.job(schedule=lookalike, recurring=True)

    assert calendars.get_calendar(world.db, "tests", "us.east").jobs == 1
    result = set_calendar(world.db, "tests", "us.east", LONGER)

    assert (result.jobs, result.replanned) == (1, 1)
    new = schedule_with(exclude=[("us.east", LONGER)])
    assert world.value("select schedule from jobs where id = %s", job) == {
        "any": [new, {"every": 3600, "seed": text}, new]
    }
    assert world.value("select schedule from jobs where id = %s", other) == lookalike


def test_a_change_leaves_everybody_else_alone(world):
    set_calendar(world.db, "tests", "us", XMAS)
    set_calendar(world.db, "other", "us", XMAS)
    lookalike = XMAS.digest()
    others = [
        job_with(world, exclude=[("weekend", XMAS)]),
        job_with(world, exclude=[("us-east", XMAS)]),
        job_with(world, exclude=[(lookalike, XMAS)]),
        job_with(world, exclude=[("us", XMAS)], state="cancelled"),
    ]
    foreign = job_with(world, exclude=[("us", XMAS)])
    world.db.execute("update jobs set namespace = 'other' where id = %s", [foreign])
    plain = world.job(schedule={"cron": "0 9 * * *", "timezone": "UTC"}, recurring=True)
    world.timer(plain, NEXT, kind=TimerKind.PLANNED)
    seen = [(stored(world, job), timer_of(world, job)) for job in [*others, foreign, plain]]

    result = set_calendar(world.db, "tests", "us", LONGER)

    assert (result.jobs, result.replanned) == (0, 0)
    assert [(stored(world, job), timer_of(world, job)) for job in [*others, foreign, plain]] == seen


def test_a_retry_of_a_job_is_not_touched(world):
    set_calendar(world.db, "tests", "us", XMAS)
    job = world.job(schedule=schedule_with(exclude=[("us", XMAS)]), recurring=True)
    world.timer(job, NEXT, kind=TimerKind.RETRY)
    before = timer_of(world, job)
    result = set_calendar(world.db, "tests", "us", LONGER)
    assert (result.jobs, result.replanned) == (1, 0)
    assert timer_of(world, job) == before


def test_a_paused_job_is_found_anew_at_its_resume_and_not_now(world):
    set_calendar(world.db, "tests", "us", XMAS)
    job = job_with(world, exclude=[("us", XMAS)], state="paused", fire_at=NEVER)
    result = set_calendar(world.db, "tests", "us", LONGER)
    assert (result.jobs, result.replanned) == (1, 1)
    after = timer_of(world, job)
    assert (after["fire_at"], after["scheduled_for"]) == (NEVER, AFTER)
    assert stored(world, job)["exclude"] == [["us", LONGER.digest()]]


def test_a_change_that_fails_changes_nothing(world):
    set_calendar(world.db, "tests", "us", XMAS)
    job = job_with(world, exclude=[("us", XMAS)])
    world.db.execute("update timers set after_at = null")
    with pytest.raises(AssertionError, match="have no last settled instant"):
        set_calendar(world.db, "tests", "us", LONGER)
    assert stored(world, job)["exclude"] == [["us", XMAS.digest()]]
    assert timer_of(world, job)["scheduled_for"] == NEXT
    assert calendars.get_calendar(world.db, "tests", "us").digest == XMAS.digest()


def test_many_jobs_are_planned_anew_in_a_few_statements(world):
    set_calendar(world.db, "tests", "us", XMAS)
    job = job_with(world, exclude=[("us", XMAS)])
    world.copies(job, 2_000)
    result = set_calendar(world.db, "tests", "us", LONGER)
    assert (result.jobs, result.replanned) == (2_001, 2_001)
    assert world.count("timers") == world.count("timers", "scheduled_for = after_at") == 2_001


def test_a_calendar_in_use_is_not_deleted_and_five_of_its_jobs_are_named(world):
    set_calendar(world.db, "tests", "us", XMAS)
    jobs = [job_with(world, exclude=[("us", XMAS)])]
    with pytest.raises(CalendarInUseError, match=f"calendar us is used by the job {jobs[0]}; remove it from"):
        calendars.delete_calendar(world.db, "tests", "us")
    jobs += [job_with(world, include=[("us", XMAS)]) for _ in range(5)]
    with pytest.raises(CalendarInUseError, match=r"is used by the jobs .* and others; remove") as caught:
        calendars.delete_calendar(world.db, "tests", "us")
    assert caught.value.jobs == [str(job) for job in jobs[:5]]
    assert calendars.get_calendar(world.db, "tests", "us").jobs == 6


def test_a_calendar_that_only_cancelled_jobs_name_is_deleted(world):
    set_calendar(world.db, "tests", "us", XMAS)
    job_with(world, exclude=[("us", XMAS)], state="cancelled")
    assert calendars.delete_calendar(world.db, "tests", "us") is True
    assert calendars.delete_calendar(world.db, "tests", "us") is False
    assert calendars.list_calendars(world.db) == []
    assert world.count("calendar_contents") == 1


def waits_for_a_lock(world, pid):
    """Wait until a session waits for another one's lock."""
    for _ in range(1000):
        if world.value("select cardinality(pg_blocking_pids(%s)) > 0", pid):
            return
        threading.Event().wait(0.02)
    raise AssertionError(f"session {pid} never waited")


class Elsewhere:
    """Sets a calendar from a session and a thread of its own."""

    def __init__(self, url, calendar):
        self.connection = connect(url, application="test", autocommit=True)
        self.result = None
        self.error = None
        self.thread = threading.Thread(target=self.run, args=[calendar])
        self.thread.start()

    @property
    def pid(self):
        return self.connection.info.backend_pid

    def run(self, calendar):
        try:
            self.result = set_calendar(self.connection, "tests", "us", calendar)
        except psycopg.Error as error:
            self.error = error

    def join(self):
        self.thread.join(30)
        self.connection.close()
        assert self.error is None
        return self.result


def test_a_job_that_is_being_made_with_a_calendar_gets_the_digest_of_a_change_that_comes_meanwhile(world):
    set_calendar(world.db, "tests", "us", XMAS)
    with world.db.transaction():
        share_time_facts(world.db, wait=True)
        change = Elsewhere(world.url, LONGER)
        waits_for_a_lock(world, change.pid)
        job = job_with(world, exclude=[("us", XMAS)])
    assert change.join().jobs == 1
    assert stored(world, job)["exclude"] == [["us", LONGER.digest()]]


def test_a_claim_under_way_ends_before_a_change_and_its_new_instant_is_found_anew(world):
    set_calendar(world.db, "tests", "us", XMAS)
    job = job_with(world, exclude=[("us", XMAS)])
    settled = NEXT + timedelta(days=1)
    with world.db.transaction():
        world.db.execute("select from timers where job_id = %s for update", [job])
        change = Elsewhere(world.url, LONGER)
        waits_for_a_lock(world, change.pid)
        world.db.execute("update timers set after_at = %s where job_id = %s", [settled, job])
    assert change.join().replanned == 1
    assert timer_of(world, job)["scheduled_for"] == settled


def test_a_claim_that_began_before_a_change_was_committed_does_not_take_the_new_timer_with_the_old_job(world):
    """A timer that were updated in place would be found by it, with the job as it was."""
    set_calendar(world.db, "tests", "us", XMAS)
    job = job_with(world, exclude=[("us", XMAS)], fire_at=world.now() - timedelta(minutes=1))
    found = []
    claimer = world.another()

    def claim():
        # Waits where the claim would skip: as if it had met the timer between the lock and the commit.
        found.extend(
            claimer.execute(
                "with due as materialized (select job_id from timers where fire_at <= noonmark_now() for update)"
                " select job_id, schedule from due join jobs on jobs.id = due.job_id"
            ).fetchall()
        )

    with world.db.transaction():
        set_calendar(world.db, "tests", "us", LONGER)
        thread = threading.Thread(target=claim)
        thread.start()
        waits_for_a_lock(world, claimer.info.backend_pid)
    thread.join(30)
    assert found == []
    assert timer_of(world, job)["scheduled_for"] == AFTER


def test_two_that_make_one_calendar_at_once_end_with_the_contents_of_the_later(world):
    with world.db.transaction():
        set_calendar(world.db, "tests", "us", XMAS)
        change = Elsewhere(world.url, LONGER)
        waits_for_a_lock(world, change.pid)
    assert change.join().change is Change.CHANGED
    assert calendars.get_calendar(world.db, "tests", "us").digest == LONGER.digest()
