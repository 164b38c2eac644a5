"""Blockers that lie with a job: its state, its schedule, the capacity for its runs."""

from __future__ import annotations

from tests.integration.intake.world import SHARDS, TOPICS
from tests.integration.why.planting import Planted, plant
from tests.integration.why.scene import Scene
from tests.support.settings_orders import pause_namespace, set_calendar, set_max_in_flight

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.states import RunState
from noonmark.core.why.answers import Blocker
from noonmark.store.jobs import self_pauses
from noonmark.store.jobs.requests import FactCache
from noonmark.store.limits.limits import Figures, set_limit

# -- the job ---------------------------------------------------------------------------------------------


@plant
def a_pause_of_the_job(scene: Scene) -> Planted:
    job = scene.minutely()
    scene.order("pause", job, reason="target is down")
    scene.clock(150, "trigger")
    facts = {"since": scene.at(0), "reason": "target is down", "held_instants": 2}
    return job, Blocker.JOB_PAUSED, facts, f"the job has been paused since {scene.told(0)}: target is down"


@plant
def a_job_that_paused_itself(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.minutely(pause_after_failures=1)
    scene.order("trigger", job)
    scene.end(scene.start(scene.run(job)), RunState.DEAD, reason="retries_exhausted", error="boom")
    assert self_pauses.pause(scene.db, TOPICS, job, FactCache(), shards=SHARDS) is not None
    why = "1 run in a row died: boom"
    return job, Blocker.JOB_PAUSED_ITSELF, {"reason": why}, f"the job paused itself at {scene.told(0)}: {why}"


@plant
def a_pause_of_the_namespace(scene: Scene) -> Planted:
    job = scene.submit(run_at=scene.told(3600))
    pause_namespace(scene.db, "default", "moving house")
    facts = {"namespace": "default", "since": scene.at(0), "reason": "moving house"}
    return (
        job,
        Blocker.NAMESPACE_PAUSED,
        facts,
        f"its namespace default has been paused since {scene.told(0)}: moving house",
    )


@plant
def a_run_held_by_a_pause(scene: Scene) -> Planted:
    job = scene.submit()
    scene.order("pause", job, reason="not now")
    return (
        scene.run(job),
        Blocker.JOB_PAUSED,
        {"job": job},
        f"the job has been paused since {scene.told(0)}: not now",
    )


@plant
def a_cancelled_job(scene: Scene) -> Planted:
    job = scene.minutely()
    scene.order("cancel", job, reason="no longer wanted")
    facts = {"since": scene.at(0), "reason": "no longer wanted"}
    return job, Blocker.JOB_CANCELLED, facts, f"the job was cancelled at {scene.told(0)}: no longer wanted"


@plant
def a_job_that_cannot_be_planned(scene: Scene) -> Planted:
    job = scene.minutely()
    scene.db.execute("""update jobs set schedule = '{"cron": "often"}' where id = %s""", [job])
    scene.clock(60, "trigger")
    scene.claim()
    reason = scene.world.job(job)["state_reason"]
    assert reason.startswith("cannot be planned: ")
    return (
        job,
        Blocker.JOB_BROKEN,
        {"reason": reason},
        f"the job {reason}; it has been broken since {scene.told(60)}",
    )


# -- its schedule ----------------------------------------------------------------------------------------


@plant
def a_schedule_that_has_ended(scene: Scene) -> Planted:
    job = scene.submit(name="tick", schedule={"cron": "* * * * *", "timezone": "UTC", "end": scene.told(90)})
    scene.clock(60, "trigger")
    scene.claim()
    scene.start_and_end(job)
    scene.clock(120, "trigger")
    return job, Blocker.SCHEDULE_ENDED, {"end": scene.at(90)}, f"its schedule ended at {scene.told(90)}"


@plant
def runs_that_are_used_up(scene: Scene) -> Planted:
    job = scene.submit(name="tick", schedule={"cron": "* * * * *", "timezone": "UTC", "max_runs": 1})
    scene.clock(60, "trigger")
    scene.claim()
    scene.start_and_end(job)
    told = f"its schedule allowed 1 run; the last one came due by {scene.told(60)}"
    return job, Blocker.MAX_RUNS, {"max_runs": 1}, told


@plant
def calendars_that_leave_nothing(scene: Scene) -> Planted:
    every_day = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
    set_calendar(scene.db, "default", "holidays", Calendar.parse({"dates": ["2000-01-01"]}))
    job = scene.minutely_under("holidays")
    set_calendar(scene.db, "default", "holidays", Calendar.parse({"weekdays": every_day}))
    scene.clock(60, "trigger")
    scene.claim()
    facts = {"calendars": ["holidays"], "job": "tick"}
    return (
        job,
        Blocker.NO_NEXT_INSTANT,
        facts,
        "its calendars (holidays) exclude all further instants of its schedule",
    )


@plant
def a_closed_day(scene: Scene) -> Planted:
    scene.everybody()
    today = scene.noon.date().isoformat()
    set_calendar(scene.db, "default", "holidays", Calendar.parse({"dates": [today]}))
    job = scene.submit(
        name="evening",
        schedule={"cron": "0 18 * * *", "timezone": "UTC", "calendars": {"exclude": ["holidays"]}},
    )
    tomorrow = 30 * 3600
    facts = {"at": scene.at(tomorrow), "times": [f"{today}T18:00:00"], "calendars": ["holidays"]}
    told = (
        f"{today}T18:00:00 local time does not fire (skipped: {today} is in calendar holidays);"
        f" it is due at {scene.told(tomorrow)}"
    )
    return job, Blocker.CALENDAR, facts, told


@plant
def an_instant_that_has_not_come(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(run_at=scene.told(3600))
    return job, Blocker.NOT_DUE, {"at": scene.at(3600)}, f"it is due at {scene.told(3600)}"


@plant
def jitter(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(
        name="tick", schedule={"cron": "0 13 * * *", "timezone": "UTC", "jitter_seconds": 3600}
    )
    (timer,) = scene.world.timers(job)
    fires_at = timer["fire_at"]
    assert scene.at(3600) < fires_at < scene.at(7200)
    scene.clock(3600, "trigger")
    told = f"it was due at {scene.told(3600)}; its jitter delays the start to {fires_at:%Y-%m-%dT%H:%M:%SZ}"
    return job, Blocker.JITTER, {"at": scene.at(3600), "fires_at": fires_at}, told


# -- room ------------------------------------------------------------------------------------------------


@plant
def another_run_of_the_job(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.minutely(overlap="queue_one")
    scene.clock(60, "trigger", "worker")
    scene.claim()
    first = scene.start(scene.run(job))
    scene.clock(120, "trigger", "worker")
    scene.claim()
    scene.promote()
    facts = {
        "run": scene.runs(job)[1],
        "holder": first.id,
        "holder_state": "running",
        "holder_since": scene.at(60),
        "holder_worker": scene.worker.worker,
    }
    told = (
        f"it has been waiting since {scene.told(120)} for run {first.id} of the same job, which has been"
        f" running on worker {scene.worker.worker} (here, pid 7) since {scene.told(60)}"
    )
    return job, Blocker.OVERLAP, facts, told


@plant
def a_limit(scene: Scene) -> Planted:
    scene.everybody()
    set_limit(scene.db, "default", "api", Figures(max_running=1))
    limits = [{"name": "api", "key": "customer 1"}]
    first, _, third = [scene.submit(limits=limits) for _ in range(3)]
    scene.claim()
    scene.promote()
    waiting = scene.world.rows("select run_id, job_id from waits order by since, run_id")
    holder = scene.world.row("select run_id from limit_slots")["run_id"]
    assert {row["job_id"] for row in waiting} | {first, third} == {
        first,
        third,
        waiting[0]["job_id"],
        waiting[1]["job_id"],
    }
    run = waiting[0]["run_id"]
    facts = {"run": run, "limit": "api", "limit_key": "customer 1", "holders": [holder], "held": 1, "max": 1}
    told = (
        f"it has been waiting since {scene.told(0)} for limit api/customer 1: 1 of 1 slot is in use by run"
        f" {holder} (queued); no run ahead of it in the queue"
    )
    return run, Blocker.LIMIT, facts, told


@plant
def a_rate(scene: Scene) -> Planted:
    scene.everybody()
    set_limit(scene.db, "default", "mails", Figures(rate_count=1, rate_seconds=600))
    scene.submit(limits=["mails"])
    scene.claim()
    scene.promote()
    scene.clock(1, "trigger", "dispatcher")
    job = scene.submit(limits=["mails"])
    scene.claim()
    scene.promote()
    facts = {"run": scene.run(job), "limit": "mails", "until": scene.at(600), "before": 0}
    told = (
        f"it has been waiting since {scene.told(1)} for the rate of limit mails: with no run ahead of it,"
        f" its turn comes at about {scene.told(600)}"
    )
    return job, Blocker.RATE_LIMIT, facts, told


@plant
def a_cap_of_the_namespace(scene: Scene) -> Planted:
    scene.everybody()
    set_max_in_flight(scene.db, "default", 1)
    scene.submit()
    scene.claim()
    scene.promote()
    scene.clock(1, "trigger")
    job = scene.submit()
    scene.claim()
    scene.promote()
    facts = {"run": scene.run(job), "namespace": "default", "held": 1, "max": 1, "before": 0}
    told = (
        f"it has been waiting since {scene.told(1)} for capacity in namespace default: 1 of 1 runs of its"
        " lane are in flight; no run ahead of it in the queue"
    )
    return job, Blocker.NAMESPACE_CAP, facts, told
