"""What the remedies for stranded jobs and runs do, and that one damaged row harms no other job."""

from __future__ import annotations

import pytest
from tests.integration.intake.world import SHARDS, TOPICS
from tests.integration.why import plants_of_damage
from tests.integration.why.scene import Scene
from tests.support.settings_orders import pause_namespace

from noonmark.core.states import JobState
from noonmark.store.claims import claims
from noonmark.store.database.statements import statement
from noonmark.store.runs import cancel as run_cancel
from noonmark.store.runs.cancel import RunKey
from noonmark.store.views import stranded
from noonmark.store.views.stranded import find_stranded

DAMAGED_TIMERS = [
    "a_timer_that_was_deleted",
    "a_timer_that_never_fires",
    "a_timer_at_infinity",
    "a_timer_before_all_time",
    "a_timer_of_another_millennium",
    "an_instant_of_another_millennium",
]
TICK = {"type": "python", "handler": "tests.noop", "schedule": {"cron": "* * * * *", "timezone": "UTC"}}


@pytest.mark.parametrize("damage", DAMAGED_TIMERS)
def test_the_same_document_sent_again_plans_the_job_again(scene: Scene, damage: str) -> None:
    job = getattr(plants_of_damage, damage)(scene)[0]

    scene.order("update", job, name="tick", **TICK)

    (timer,) = scene.world.timers(job)
    assert timer["fire_at"] == timer["scheduled_for"] == scene.at(60)
    assert find_stranded(scene.db).found == []


@pytest.mark.parametrize(
    "damage", ["a_timer_of_a_single_instant_that_was_deleted", "a_single_instant_of_another_millennium"]
)
def test_a_single_instant_that_is_to_come_is_planned_again(scene: Scene, damage: str) -> None:
    job = getattr(plants_of_damage, damage)(scene)[0]

    scene.order("update", job, type="python", handler="tests.noop", run_at=scene.told(3600))

    (timer,) = scene.world.timers(job)
    assert timer["fire_at"] == timer["scheduled_for"] == scene.at(3600)


def test_a_paused_job_without_a_timer_is_planned_again_for_its_resume(scene: Scene) -> None:
    job = scene.minutely()
    scene.order("pause", job)
    scene.db.execute("delete from timers")
    (found,) = find_stranded(scene.db).found
    assert found.sentence == "it is paused, but it has no timer, so nothing starts it"

    scene.order("update", job, name="tick", **TICK)

    assert len(scene.world.timers(job)) == 1
    assert scene.world.job(job)["state"] == JobState.PAUSED
    assert find_stranded(scene.db).found == []


def test_the_same_document_leaves_a_sound_job_unchanged(scene: Scene) -> None:
    job = scene.minutely(description="x")
    before = scene.world.timers(job), scene.world.job(job)["version"]

    scene.order("update", job, name="tick", description="x", **TICK)

    assert (scene.world.timers(job), scene.world.job(job)["version"]) == before


@pytest.mark.parametrize(
    "damage",
    [
        "a_retry_without_a_timer",
        "a_retry_that_never_comes",
        "a_waiting_run_that_is_in_no_queue",
        "a_report_without_a_deadline",
        "a_report_that_nothing_accepts",
    ],
)
def test_a_cancel_ends_a_stranded_run(scene: Scene, damage: str) -> None:
    run = getattr(plants_of_damage, damage)(scene)[0]
    at = scene.world.row("select scheduled_for from runs where id = %s", run)["scheduled_for"]

    run_cancel.cancel(scene.db, TOPICS, [RunKey(run, at)], shards=SHARDS)

    assert scene.world.row("select state from runs where id = %s", run)["state"] == "cancelled"
    assert find_stranded(scene.db).found == []


@pytest.mark.parametrize("instant", ["infinity", "-infinity", "0044-03-15 00:00+00 BC"])
@pytest.mark.parametrize("single", [True, False])
def test_an_instant_that_nothing_can_read_stops_no_other_job(
    scene: Scene, instant: str, single: bool
) -> None:
    scene.everybody()
    damaged = scene.submit(run_at=scene.told(30)) if single else scene.minutely("damaged")
    columns = "scheduled_for = %s, after_at = %s, fire_at = '2000-01-01'"
    scene.db.execute(f"update timers set {columns}", [instant, None if single else instant])
    once, tick = scene.submit(run_at=scene.told(30)), scene.minutely()
    scene.clock(60, "trigger")

    scene.claim()

    assert [len(scene.runs(job)) for job in (damaged, once, tick)] == [0, 1, 1]
    (found,) = find_stranded(scene.db).found
    assert (found.code, found.job_id) == ("timer_wrong", damaged)


@pytest.mark.parametrize("instant", ["-infinity", "0044-03-15 00:00+00 BC"])
@pytest.mark.parametrize("single", [True, False])
def test_a_timer_that_fires_before_all_time_stops_no_other_job(
    scene: Scene, instant: str, single: bool
) -> None:
    scene.everybody()
    damaged = scene.submit(run_at=scene.told(30)) if single else scene.minutely("damaged")
    scene.db.execute("update timers set fire_at = %s", [instant])
    once, tick = scene.submit(run_at=scene.told(30)), scene.minutely()
    scene.clock(60, "trigger")

    found = claims.probe(scene.db, range(SHARDS))
    scene.claim()

    assert found is not None
    assert sum(len(shards) for shards in found.due.values()) == 2
    assert [len(scene.runs(job)) for job in (damaged, once, tick)] == [0, 1, 1]
    assert [job.job_id for job in find_stranded(scene.db).found] == [damaged]


@pytest.mark.parametrize("instant", ["200000-01-01 00:00+00", "0044-03-15 00:00+00 BC"])
def test_a_last_instant_in_another_age_stops_no_other_job(scene: Scene, instant: str) -> None:
    scene.everybody()
    damaged = scene.minutely("damaged")
    scene.db.execute("update timers set after_at = %s", [instant])
    tick = scene.minutely()
    scene.clock(60, "trigger")

    scene.claim()

    assert [len(scene.runs(job)) for job in (damaged, tick)] == [0, 1]
    assert [job.job_id for job in find_stranded(scene.db).found] == [damaged]


@pytest.mark.parametrize("column", ["fire_at", "scheduled_for"])
def test_a_retry_with_an_instant_that_nothing_can_read_is_left_alone(scene: Scene, column: str) -> None:
    scene.everybody()
    damaged, plain = scene.submit(), scene.submit()
    for job in (damaged, plain):
        (run,) = scene.runs(job)
        scene.db.execute("update runs set state = 'retrying', attempt = 1 where id = %s", [run])
        scene.db.execute(
            """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
               select noonmark_now(), scheduled_for, job_id, id, job_version, shard, lane, 2, namespace, pool
               from runs where id = %s""",
            [run],
        )
    scene.db.execute(f"update timers set {column} = '-infinity' where job_id = %s", [damaged])

    scene.claim()

    states = [
        scene.world.row("select state from runs where job_id = %s", job)["state"] for job in (damaged, plain)
    ]
    assert states == ["retrying", "queued"]


def test_a_timer_whose_job_is_gone_is_found(scene: Scene) -> None:
    job = scene.minutely()
    scene.db.execute("delete from jobs")

    (found,) = find_stranded(scene.db).found

    assert (found.code, found.job_id) == ("timer_without_job", job)
    scene.db.execute(found.remedy.split("`")[1])
    assert find_stranded(scene.db).found == []


def test_a_message_whose_run_is_gone_is_found_once_it_stays(scene: Scene) -> None:
    scene.everybody()
    run = scene.run(scene.submit())
    scene.db.execute("delete from runs")
    assert find_stranded(scene.db).found == []
    scene.clock(61)

    (found,) = find_stranded(scene.db).found

    assert (found.code, found.run_id) == ("message_without_run", run)
    scene.db.execute(found.remedy.split("`")[1])
    assert find_stranded(scene.db).found == []


def test_no_more_than_a_hundred_of_a_kind_are_reported(scene: Scene) -> None:
    for number in range(3):
        scene.minutely(f"tick-{number}")
    scene.db.execute("delete from timers")

    assert len(find_stranded(scene.db, most=2).found) == 2


def test_a_search_that_takes_too_long_is_named_and_the_others_continue(scene: Scene, monkeypatch) -> None:
    scene.minutely()
    scene.db.execute("delete from timers")
    slow = {"find_stranded_runs": "select pg_sleep(60) where %(most)s > 0"}
    monkeypatch.setattr(stranded, "_TIME_LIMIT", "50ms")
    monkeypatch.setattr(stranded, "statement", lambda name: slow.get(name) or statement(name))

    search = find_stranded(scene.db)

    assert search.unsearched == ["runs"]
    assert [found.code for found in search.found] == ["timer_missing"]


def test_a_schedule_with_a_distant_instant_is_not_suspected(scene: Scene) -> None:
    scene.submit(name="leap", schedule={"cron": "0 0 29 2 *", "timezone": "UTC"})
    scene.submit(run_at="2400-01-01T00:00:00Z")
    scene.submit(name="late", schedule={"cron": "0 0 1 1 *", "timezone": "UTC", "jitter_seconds": 86_400})

    assert find_stranded(scene.db).found == []


def test_a_paused_namespace_is_not_suspected(scene: Scene) -> None:
    job = scene.minutely()
    pause_namespace(scene.db, "default", "moving house")
    scene.order("pause", job)

    assert find_stranded(scene.db).found == []
