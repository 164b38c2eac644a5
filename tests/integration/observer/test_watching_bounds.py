"""What a look costs and tells when very much is wrong, and when the clock is set back."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from tests.integration.store.world import World

from noonmark.core.states import TimerKind
from noonmark.observer import watch_loop as watched
from noonmark.store.alerts import queries, statistics

pytestmark = pytest.mark.postgres


def bury(world: World, job: UUID, letters: int, *, causes: int = 1, first: int = 0) -> None:
    """Dead letters of a job; each cause has as many as the others, or one more than those behind it."""
    world.db.execute(
        """insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, error, fingerprint, died_at)
           select gen_random_uuid(), noonmark_now(), %s, 'tests', 1, 'x', 'boom', 'f' || lpad((%s + n %% %s)::text, 5, '0'),
                  noonmark_now()
           from generate_series(0, %s - 1) n""",
        [job, first, causes, letters],
    )


def told(world: World) -> list[tuple[str, bool]]:
    """Cause and whether it is over, of each alert of dead runs."""
    rows = world.rows(
        "select details ->> 'cause' as cause, resolved_at is not null as over from alerts where kind = 'dead' order by 1, 2"
    )
    return [(row["cause"], row["over"]) for row in rows]


def test_of_very_many_causes_the_worst_are_told_and_the_others_once_there_is_room(
    world, watching, monkeypatch
):
    monkeypatch.setattr(watched, "MOST_OF_A_KIND", 4)
    desk, job = watching(), world.job()
    bury(world, job, 7, causes=7, first=10)
    desk.look()
    first = [cause for cause, _ in told(world)]
    assert len(first) == 4
    bury(world, job, 6, causes=2, first=90)
    desk.look()
    assert [cause for cause, _ in told(world)] == first

    world.db.execute("delete from dead_letters where fingerprint = any (%s)", [first])
    desk.look()
    desk.look()
    second = [cause for cause, over in told(world) if not over]
    assert [cause for cause, over in told(world) if over] == first
    assert {"f00090", "f00091"} < set(second)
    assert len(second) == 4

    world.db.execute("delete from dead_letters where fingerprint = any (%s)", [second])
    desk.look()
    desk.look()
    (last,) = [cause for cause, over in told(world) if not over]
    assert {*first, *second, last} == {f"f{n:05}" for n in (*range(10, 17), 90, 91)}
    assert desk.changes().count(("dead", "raised")) == 9


def test_of_very_many_late_jobs_no_more_are_told_while_the_first_are_open(world, watching, monkeypatch):
    monkeypatch.setattr(watched, "MOST_OF_A_KIND", 3)
    desk = watching(late_after_seconds=60, silent_after_seconds=86_400)
    jobs = [world.job(recurring=True) for _ in range(9)]
    for n, job in enumerate(jobs):
        world.timer(job, world.now() - timedelta(seconds=100 - n), kind=TimerKind.PLANNED)
    assert [alert["job_id"] for alert in desk.look()["late"]] == jobs[:3]

    world.db.execute("delete from timers where job_id = any (%s)", [jobs[:3]])
    assert len(desk.look()["late"]) == 3
    assert desk.changes() == [("late", "raised")] * 3

    world.db.execute("delete from timers where job_id = any (%s)", [jobs[3:6]])
    assert desk.look() == {}
    assert [alert["job_id"] for alert in desk.look()["late"]] == jobs[6:]


def test_late_runs_for_which_there_is_no_room_are_found_once_there_is(world, watching, monkeypatch):
    monkeypatch.setattr(queries, "_SILENCE_SLACK", 3)
    desk = watching(late_after_seconds=60, silent_after_seconds=86_400)
    first = [world.put_run(job_id=world.job()) for _ in range(4)]
    last = world.put_run(job_id=world.job(recurring=True))
    world.turn_clock(timedelta(seconds=70))
    (once,) = desk.look()["late"]
    assert once["details"]["count"] == 3

    world.start(world.worker(), first)
    desk.look()

    assert [alert["run_id"] for alert in desk.look()["late"]] == [last]


def test_one_cause_of_one_time_and_of_recurring_jobs_is_an_alert_of_each(world, watching):
    desk, once, recurring = watching(), world.job(), world.job(recurring=True)
    bury(world, recurring, 5)
    bury(world, once, 2)

    found = {alert["job_id"]: alert["details"]["count"] for alert in desk.look()["dead"]}

    assert found == {recurring: 5, None: 2}
    world.db.execute("delete from dead_letters where job_id = %s", [once])
    assert [alert["job_id"] for alert in desk.look()["dead"]] == [recurring]


def test_what_happens_after_the_clock_was_set_back_is_seen(world, watching):
    desk = watching(late_after_seconds=60, silent_after_seconds=120)
    world.turn_clock(timedelta(days=1))
    bury(world, world.job(), 1)
    statistics.begin(world.db)
    assert set(desk.look()) == {"dead"}

    world.turn_clock(timedelta(0))
    statistics.begin(world.db)
    job = world.job(recurring=True)
    bury(world, job, 1, first=7)
    world.put_run(job_id=world.job(recurring=True))
    assert {alert["details"]["cause"] for alert in desk.look()["dead"]} == {"f00000", "f00007"}

    world.turn_clock(timedelta(seconds=130))
    statistics.begin(world.db)
    assert set(desk.look()) == {"dead", "late", "silent"}


def test_what_comes_and_goes_is_one_alert_until_it_stays_away(world, watching):
    desk = watching(late_after_seconds=60, alert_hold_seconds=3600)
    job = world.job(recurring=True)
    for _ in range(3):
        world.timer(job, world.now() - timedelta(seconds=100), kind=TimerKind.PLANNED)
        assert set(desk.look()) == {"late"}
        world.db.execute("delete from timers")
        assert set(desk.look()) == {"late"}
    assert desk.changes() == [("late", "raised")]

    assert watching(late_after_seconds=60, alert_hold_seconds=0).look() == {}
    assert desk.changes() == [("late", "raised"), ("late", "resolved")]
