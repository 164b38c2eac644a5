"""Days of the ledger made ahead and dropped, old rows pruned, vanished messages sent again."""

from datetime import UTC, timedelta

import psycopg
import pytest
from tests.integration.store.world import SHARDS, TOPICS

from noonmark.core.states import Lane, RunState
from noonmark.settings import Settings
from noonmark.store.maintenance import housekeeping
from noonmark.store.outbox import progress
from noonmark.store.runs import leases

SETTINGS = Settings(retention_days=30, partitions_ahead_days=3, inbox_days=14)


class Topics:
    """Topic names such as `runs.default.normal`."""

    def parse_runs(self, topic):
        kind, *rest = topic.split(".")
        return (rest[0], Lane[rest[1].upper()]) if kind == "runs" else None


def days(world):
    return world.column(
        """select to_date(right(child.relname, 8), 'YYYYMMDD') from pg_inherits
           join pg_class as child on child.oid = inhrelid
           where inhparent = 'runs'::regclass order by 1"""
    )


def test_days_are_made_ahead_and_once(world):
    world.turn_clock(timedelta(days=10))
    today = world.now().date()

    report = housekeeping.run_housekeeping(world.db, SETTINGS)
    again = housekeeping.run_housekeeping(world.db, SETTINGS)

    assert report.days_made == 5
    assert again.days_made == 0
    assert [today + timedelta(days=n) for n in range(-1, 4)] == days(world)[-5:]
    assert report.has_changes
    assert not again.has_changes


def test_many_sessions_that_make_one_day_make_it_once(world):
    day = (world.now() + timedelta(days=40)).date()
    first = world.another()
    with first.transaction():
        assert first.execute("select noonmark_make_day(%s)", [day]).fetchone() == (True,)
        # Claims and outcomes go on while the day is made.
        world.put_run()
    assert world.value("select noonmark_make_day(%s)", day) is False


def test_a_day_has_the_settings_and_indexes_of_the_ledger(world):
    options = set(
        world.value("select reloptions from pg_class where relname = %s", f"runs_{world.now():%Y%m%d}")
    )

    assert {"fillfactor=45", "autovacuum_vacuum_scale_factor=0.01", "vacuum_truncate=off"} <= options
    indexed = world.column(
        "select indexdef from pg_indexes where tablename = %s", f"runs_{world.now():%Y%m%d}"
    )
    assert sorted(definition.partition("(")[2] for definition in indexed) == [
        "id, scheduled_for)",
        "job_id, scheduled_for, origin, request_id)",
    ]


def old_run(world, state=RunState.SUCCEEDED, *, age=31, **columns):
    at = world.now() - timedelta(days=age)
    world.db.execute("select noonmark_make_day(%s)", [at.date()])
    return world.put_run(state, scheduled_for=at, **columns)


def test_a_day_after_retention_goes_with_all_that_hangs_on_it(world):
    dead = old_run(world, RunState.DEAD)
    done = old_run(world)
    for run_id in (dead, done):
        world.db.execute(
            """insert into attempts (run_id, scheduled_for, fence, attempt, outcome, finished_at)
               select id, scheduled_for, 1, 1, 'failed', now() from runs where id = %s""",
            [run_id],
        )
    world.db.execute(
        """insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, fingerprint, died_at)
           select id, scheduled_for, job_id, namespace, 1, 'lost', 'f', now() from runs where id = %s""",
        [dead],
    )
    world.db.execute(
        "insert into attempt_logs select id, scheduled_for, 1, 1, 'out', '', '', 0, now() from runs"
    )
    world.db.execute("insert into run_notes select id, scheduled_for, 1, 0.5, 'half', null, now() from runs")
    young = old_run(world, age=29)

    report = housekeeping.run_housekeeping(world.db, SETTINGS)

    assert (report.days_dropped, report.days_kept_unfinished) == (1, 0)
    assert world.column("select id from runs") == [young]
    for follower in ("attempts", "attempt_logs", "run_notes", "dead_letters"):
        assert world.count(follower) == 0


@pytest.mark.parametrize("plan", ["enable_nestloop", "enable_hashjoin", "enable_mergejoin"])
def test_days_are_found_whatever_the_plan_and_whatever_other_tables_are_called(world, plan):
    old_run(world)
    world.db.execute(f"set {plan} = off")

    assert housekeeping.run_housekeeping(world.db, SETTINGS).days_dropped == 1


@pytest.mark.parametrize("state", ["waiting", "queued", "running", "retrying", "cancelling"])
def test_a_day_with_an_unfinished_run_stays_whatever_its_age(world, state):
    run_id = old_run(world, RunState(state))
    old_run(world, age=32)

    report = housekeeping.run_housekeeping(world.db, SETTINGS)

    assert (report.days_dropped, report.days_kept_unfinished) == (1, 1)
    assert world.column("select id from runs") == [run_id]


def test_the_floor_of_the_ledger_rises_and_never_falls(world):
    before = world.value("select ledger_floor from install")
    world.turn_clock(timedelta(days=40))
    old_run(world, age=35)
    housekeeping.run_housekeeping(world.db, SETTINGS)
    raised = world.value("select ledger_floor from install")

    old_run(world, age=70)
    housekeeping.run_housekeeping(world.db, SETTINGS.model_copy(update={"retention_days": 60}))

    assert raised > before
    assert raised.astimezone(UTC).time().isoformat() == "00:00:00"
    assert raised.date() == (world.now() - timedelta(days=30)).date()
    assert world.value("select ledger_floor from install") == raised


def test_one_time_jobs_go_with_their_last_run_and_recurring_ones_stay(world):
    gone = world.job()
    old_run(world, job_id=gone)
    recurring = world.job(recurring=True)
    old_run(world, job_id=recurring)
    again = world.job()
    old_run(world, job_id=again)
    world.put_run(RunState.SUCCEEDED, job_id=again, origin="manual", request_id="r")
    still_due = world.job()
    old_run(world, job_id=still_due)
    world.timer(still_due, world.now() + timedelta(days=1))

    housekeeping.run_housekeeping(world.db, SETTINGS)

    assert set(world.column("select id from jobs")) == {recurring, again, still_due}


def test_a_day_that_somebody_is_writing_to_is_dropped_later(world):
    run_id = old_run(world)
    name = f"runs_{world.run(run_id)['scheduled_for']:%Y%m%d}"
    other = world.another()
    with other.transaction():
        other.execute("update runs set error = 'x' where id = %s", [run_id])
        with pytest.raises(psycopg.errors.LockNotAvailable):
            housekeeping.drop_day(world.db, name)

    assert housekeeping.drop_day(world.db, name)


def test_a_drop_that_somebody_reading_the_ledger_holds_up_does_not_hold_up_claims(world):
    """Whoever waits for the whole ledger makes everybody else wait behind it."""
    run_id = old_run(world)
    reader = world.another()
    with reader.transaction():
        reader.execute(f"select count(*) from runs where scheduled_for > '{world.today()}'")

        # It gives up while the reader goes on, and whoever came behind it goes on, too.
        report = housekeeping.run_housekeeping(world.db, SETTINGS)
        world.another().execute("select count(*) from runs")

    assert (report.days_dropped, report.days_kept_in_use) == (0, 1)
    assert world.column("select id from runs") == [run_id]
    assert housekeeping.run_housekeeping(world.db, SETTINGS).days_dropped == 1


def test_event_ids_are_forgotten_after_their_time(world):
    world.db.execute(
        """insert into inbox values (gen_random_uuid(), now() - interval '15 days', 's', 'old'),
                                    (gen_random_uuid(), now() - interval '13 days', 's', 'young')"""
    )

    assert housekeeping.run_housekeeping(world.db, SETTINGS).pruned_rows == 1
    assert world.column("select event_id from inbox") == ["young"]


def test_members_and_workers_that_are_long_gone_are_forgotten(world):
    worker = world.worker(lease_seconds=3)
    busy = world.worker(lease_seconds=3)
    world.started(busy)
    world.db.execute("update workers set lapsed_at = now() - interval '2 days'")
    world.db.execute(
        "insert into members values ('trigger', gen_random_uuid(), 'h', 1, now(), now() - interval '2 h')"
    )

    assert housekeeping.run_housekeeping(world.db, SETTINGS).pruned_rows == 2

    # A row that a start batch points to stays until its runs are taken up.
    assert world.column("select id from workers") == [busy.worker]
    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)
    housekeeping.run_housekeeping(world.db, SETTINGS)
    assert world.count("workers") == 0
    assert worker.worker != busy.worker


# messages that vanished


def pass_topic(world, topic="runs.default.normal", *, behind=timedelta(0)):
    progress.note_passed(world.db, topic, world.now() - behind)


def aged_run(world, **columns):
    return world.put_run(RunState.QUEUED, queued_at=world.now() - timedelta(hours=3), **columns)


def test_a_run_whose_message_was_acknowledged_and_passed_is_sent_again(world):
    run_id = aged_run(world)
    pass_topic(world)

    assert housekeeping.resend_vanished(world.db, Topics()) == 1

    assert (world.run(run_id)["state"], world.run(run_id)["fence"]) == ("queued", 2)
    assert [message["fence"] for message in world.messages(run_id)] == [2]
    assert housekeeping.resend_vanished(world.db, Topics()) == 0


def test_a_backlog_of_three_hours_is_not_sent_again(world):
    aged_run(world)
    pass_topic(world, behind=timedelta(hours=3, minutes=1))

    assert housekeeping.resend_vanished(world.db, Topics()) == 0


def test_age_alone_and_old_measurements_prove_nothing(world):
    aged_run(world)
    assert housekeeping.resend_vanished(world.db, Topics()) == 0

    pass_topic(world)
    world.db.execute("update topic_progress set measured_at = now() - interval '6 minutes'")
    assert housekeeping.resend_vanished(world.db, Topics()) == 0


def test_a_run_whose_message_is_still_in_the_outbox_has_not_vanished(world):
    run_id = aged_run(world)
    world.db.execute(
        """insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
           select shard, lane, now(), id, job_id, scheduled_for, 1, 1, namespace, pool from runs"""
    )
    pass_topic(world)

    assert housekeeping.resend_vanished(world.db, Topics()) == 0
    assert world.run(run_id)["fence"] == 1


def test_only_runs_of_the_topics_lane_and_pool_are_sent_again(world):
    aged_run(world, lane=int(Lane.HIGH))
    aged_run(world, pool="gpu")
    pass_topic(world)
    pass_topic(world, "lifecycle")

    assert housekeeping.resend_vanished(world.db, Topics()) == 0


def test_progress_of_a_topic_never_goes_back(world):
    pass_topic(world)
    best = world.value("select passed_until from topic_progress")
    pass_topic(world, behind=timedelta(hours=1))

    assert world.value("select passed_until from topic_progress") == best


def test_unfinished_runs_are_counted_where_they_are_known(world):
    worker = world.worker()
    world.put_run(RunState.WAITING)
    world.started(worker, 3)
    world.due_once(3)
    (run,) = world.started(worker)
    world.start(worker, [run.id])

    unfinished = progress.unfinished(world.db)

    # A run that was started twice for a lost reply is counted once.
    assert unfinished == progress.Unfinished(waiting=1, running=4, unsent=0)


def test_what_was_acknowledged_is_not_later_than_the_oldest_unsent_message(world):
    lanes = [("default", Lane.NORMAL), ("default", Lane.LOW)]
    world.db.execute(
        """insert into outbox (slice, lane, created_at, run_id, job_id, scheduled_for, fence, job_version, namespace, pool)
           values (0, 1, now() - interval '1 hour', gen_random_uuid(), gen_random_uuid(), now(), 1, 1, 'n', 'default')"""
    )

    until = progress.acknowledged_until(world.db, lanes)

    assert until[lanes[0]] == world.value("select created_at from outbox")
    assert world.now() - until[lanes[1]] >= timedelta(seconds=60)
