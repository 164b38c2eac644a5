"""Rows that somebody changed by hand, so that nothing continues a job or a run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.integration.why.planting import Planted, plant
from tests.integration.why.scene import Scene

from noonmark.core.states import RunState
from noonmark.core.why.answers import Blocker
from noonmark.store.limits.limits import Figures, set_limit
from noonmark.store.outcomes.callback_rows import Expected, NewCallback, open_callbacks
from noonmark.store.outcomes.extras import OutcomeExtras

AFTERWARDS = ": the job does not run as its schedule says"


def wrong(scene: Scene, fault: str, **columns: str) -> Planted:
    """Change the timer of a job of every minute."""
    scene.everybody()
    job = scene.minutely()
    for name, value in columns.items():
        scene.db.execute(f"update timers set {name} = %s where job_id = %s", [value, job])
    return job, Blocker.TIMER_WRONG, {"job": "tick"}, fault + AFTERWARDS


@plant
def a_timer_that_was_deleted(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.minutely()
    scene.db.execute("delete from timers")
    told = "the job: it is active, but it has no timer, so nothing starts it"
    return job, Blocker.TIMER_MISSING, {"job": "tick", "namespace": "default"}, told


@plant
def a_timer_of_a_single_instant_that_was_deleted(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(run_at=scene.told(3600))
    scene.db.execute("delete from timers")
    told = "the job: it is active, but it has no timer, so nothing starts it"
    return job, Blocker.TIMER_MISSING, {"job": job}, told


@plant
def a_timer_that_never_fires(scene: Scene) -> Planted:
    return wrong(
        scene, "its timer never fires, although the job is not paused", fire_at="9999-12-31 00:00+00"
    )


@plant
def a_timer_at_infinity(scene: Scene) -> Planted:
    job, code, facts, _ = wrong(scene, "", fire_at="infinity")
    told = f"its timer has an instant that cannot come: {scene.noon:%F} 12:01:00+00, infinity{AFTERWARDS}"
    return job, code, facts, told


@plant
def a_timer_before_all_time(scene: Scene) -> Planted:
    columns = {"fire_at": "-infinity", "scheduled_for": "-infinity"}
    return wrong(scene, "its timer has an instant that cannot come: -infinity, -infinity", **columns)


@plant
def a_timer_of_another_millennium(scene: Scene) -> Planted:
    fault = f"its timer fires at 3000-01-01T00:00:00Z, although its instant is {scene.told(60)}"
    return wrong(scene, fault, fire_at="3000-01-01 00:00+00")


@plant
def an_instant_of_another_millennium(scene: Scene) -> Planted:
    fault = f"its timer is at 3000-01-01T00:00:00Z, although its schedule has an instant at {scene.told(60)}"
    columns = {"fire_at": "3000-01-01 00:00+00", "scheduled_for": "3000-01-01 00:00+00"}
    return wrong(scene, fault, **columns)


@plant
def a_single_instant_of_another_millennium(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(run_at=scene.told(3600))
    scene.db.execute(
        "update timers set fire_at = '3000-01-01 00:00+00', scheduled_for = '3000-01-01 00:00+00'"
    )
    fault = (
        f"its timer is at 3000-01-01T00:00:00Z, although its schedule has an instant at {scene.told(3600)}"
    )
    return job, Blocker.TIMER_WRONG, {"job": job}, fault + AFTERWARDS


def retrying(scene: Scene) -> UUID:
    """A run that failed and is to be tried again."""
    scene.everybody()
    run = scene.start(scene.run(scene.submit()))
    scene.end(run, RunState.RETRYING, retry_seconds=60, error="boom")
    return run.id


def stranded(run: UUID, missing: str, sentence: str) -> Planted:
    facts: dict[str, Any] = {"run": run, "missing": missing}
    return run, Blocker.RUN_STRANDED, facts, sentence


@plant
def a_retry_without_a_timer(scene: Scene) -> Planted:
    run = retrying(scene)
    scene.db.execute("delete from timers")
    return stranded(run, "no_timer", "it is retrying, but it has no timer, so nothing continues it")


@plant
def a_retry_that_never_comes(scene: Scene) -> Planted:
    run = retrying(scene)
    scene.db.execute("update timers set fire_at = 'infinity'")
    return stranded(run, "never", "it is retrying, but its timer is set to an instant that never comes")


@plant
def a_waiting_run_that_is_in_no_queue(scene: Scene) -> Planted:
    scene.everybody()
    set_limit(scene.db, "default", "api", Figures(max_running=1))
    for _ in range(2):
        scene.submit(limits=["api"])
    scene.claim()
    scene.promote()
    run = scene.world.row("select run_id from waits")["run_id"]
    scene.db.execute("delete from waits where run_id = %s", [run])
    return stranded(run, "no_wait", "it is waiting, but it is in no queue, so nothing continues it")


def reporting(scene: Scene) -> UUID:
    """A run whose target will report later."""
    scene.everybody()
    run = scene.start(scene.run(scene.submit()))
    worker = scene.worker
    wanted = NewCallback(run.id, run.scheduled_for, 1, "token")
    assert open_callbacks(scene.db, worker=worker.worker, epoch=worker.epoch, wanted=[wanted])
    scene.end(run, RunState.RUNNING, extras=OutcomeExtras(callback=Expected(600)))
    return run.id


@plant
def a_report_without_a_deadline(scene: Scene) -> Planted:
    run = reporting(scene)
    scene.db.execute("delete from timers")
    return stranded(run, "no_deadline", "it waits for the report of its target, but it has no deadline")


@plant
def a_report_that_nothing_accepts(scene: Scene) -> Planted:
    run = reporting(scene)
    scene.db.execute("delete from callbacks")
    told = "it waits for the report of its target, but no callback of it exists to accept one"
    return stranded(run, "no_callback", told)
