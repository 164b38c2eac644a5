"""Edits of schedules: limits go on counting, and a job named by its id keeps its namespace's rules."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

import pytest
from tests.integration.intake.world import World, event, nightly

from noonmark.store.jobs.submit import Status

pytestmark = pytest.mark.postgres

UPDATE: Final = {"type": "python", "handler": "a.b"}


def test_a_limit_counts_the_runs_of_a_job_over_all_its_edits(world: World) -> None:
    job_id = world.job_id(nightly(schedule={"cron": "0 3 * * *", "max_runs": 5}))
    world.connection.execute("update timers set runs_left = 2 where job_id = %s", [job_id])

    world.one(event("update", **UPDATE, name="nightly", schedule={"cron": "0 4 * * *", "max_runs": 5}))
    assert world.timers(job_id)[0]["runs_left"] == 2
    world.one(event("update", **UPDATE, name="nightly", schedule={"cron": "0 4 * * *", "max_runs": 7}))
    assert world.timers(job_id)[0]["runs_left"] == 4
    world.one(event("update", **UPDATE, name="nightly", schedule={"cron": "0 4 * * *", "max_runs": 3}))
    assert world.timers(job_id) == []
    assert world.job(job_id)["state"] == "completed"
    world.one(event("update", **UPDATE, name="nightly", schedule={"cron": "0 4 * * *", "max_runs": 4}))
    assert world.timers(job_id)[0]["runs_left"] == 1
    assert world.job(job_id)["state"] == "active"


def test_an_update_by_id_reads_the_schedule_as_the_jobs_namespace_has_it(world: World) -> None:
    world.connection.execute("insert into namespaces (name, timezone) values ('billing', 'Asia/Tokyo')")
    job_id = world.job_id(nightly(namespace="billing"))
    world.one(event("update", **UPDATE, job_id=str(job_id), schedule="0 9 * * *"))
    assert world.job(job_id)["schedule"]["timezone"] == "Asia/Tokyo"
    world.one(event("update", **UPDATE, job_id=str(job_id), schedule="H 9 * * *"))
    assert world.job(job_id)["schedule"]["seed"] == "nightly"


def due_now(world: World, job_id: UUID, *, waits_for_jitter: bool = False) -> datetime:
    """Let the next instant of a job have come a moment ago, its start still ahead where it waits for jitter."""
    at: datetime = world.row("select noonmark_now() - interval '5 seconds' as at")["at"]
    world.connection.execute(
        "update timers set scheduled_for = %s, fire_at = case when %s then noonmark_now() + interval '10 minutes'"
        " else %s end where job_id = %s",
        [at, waits_for_jitter, at, job_id],
    )
    return at


def test_an_instant_that_waits_for_its_jitter_runs_at_once_when_its_job_is_edited(world: World) -> None:
    schedule = {"cron": "0 * * * *", "jitter_seconds": 1800}
    job_id = world.job_id(nightly(schedule=schedule))
    at = due_now(world, job_id, waits_for_jitter=True)

    world.one(event("update", **UPDATE, name="nightly", schedule=schedule, description="another"))

    run = world.run(job_id)
    assert (run["scheduled_for"], run["state"], run["job_version"]) == (at, "queued", 1)


def test_an_edit_when_the_last_run_of_a_limited_job_is_due_gives_it_no_more(world: World) -> None:
    schedule = {"cron": "0 3 * * *", "max_runs": 2}
    job_id = world.job_id(nightly(schedule=schedule))
    due_now(world, job_id)
    world.connection.execute("update timers set runs_left = 1 where job_id = %s", [job_id])

    world.one(event("update", **UPDATE, name="nightly", schedule=schedule, description="another"))

    assert world.run(job_id)["state"] == "queued"
    assert world.timers(job_id) == []
    assert world.job(job_id)["state"] == "completed"


def test_an_edit_keeps_the_rhythm_of_every_interval_of_a_union(world: World) -> None:
    schedule = {"any": ["*/20 * * * *", {"every": 1000}]}
    job_id = world.job_id(nightly(schedule=schedule))
    before = world.job(job_id)["schedule"]
    world.one(event("update", **UPDATE, name="nightly", schedule=schedule, misfire="skip"))
    assert world.job(job_id)["schedule"] == before


@pytest.mark.parametrize(
    "schedule", ['{"cron": "* * * * *", "timezone": "Gone/Zone"}', '{"cron": "x", "calendars": null}']
)
def test_a_job_whose_schedule_cannot_be_read_can_be_cancelled_and_mended(world: World, schedule: str) -> None:
    for name, kind in (("one", "cancel"), ("two", "update")):
        job_id = world.job_id(nightly(name, schedule={"cron": "0 3 * * *"}))
        world.one(event("pause", name=name))
        due_now(world, job_id)
        world.connection.execute("update jobs set schedule = %s where id = %s", [schedule, job_id])
        more = {**UPDATE, "schedule": "0 4 * * *"} if kind == "update" else {}
        assert world.one(event(kind, name=name, **more)).status is Status.ACCEPTED
        assert world.run(job_id)["reason"] == "paused"
