"""Blockers that lie on the way of a run: triggers, dispatchers, workers, attempts, verdicts."""

from __future__ import annotations

from tests.integration.intake.world import SHARDS, TOPICS
from tests.integration.why.planting import Planted, plant
from tests.integration.why.scene import SHARD_LIST, Scene
from tests.support.zone_data import OLD_VERSION, old_zone_data, planning_with

from noonmark.core.states import RunState
from noonmark.core.why.answers import Blocker
from noonmark.store.cluster.pools import register_pool
from noonmark.store.outbox import progress, relay
from noonmark.store.outcomes.callback_rows import Expected, NewCallback, open_callbacks
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import cancel as run_cancel
from noonmark.store.runs.cancel import RunKey
from noonmark.store.schedules.zone_data import activate

# -- trigger and dispatcher ------------------------------------------------------------------------------


@plant
def no_trigger(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(run_at=scene.told(60))
    scene.clock(70, "dispatcher", "worker")
    facts = {"due_since": scene.at(60), "last_beat_at": scene.at(0), "seconds": 10.0}
    told = (
        f"no live triggers, so nothing that comes due is claimed; the last heartbeat was at {scene.told(0)}"
    )
    return job, Blocker.TRIGGER_STOPPED, facts, told


@plant
def a_trigger_that_does_not_keep_up(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(run_at=scene.told(60))
    scene.clock(90, "trigger", "dispatcher", "worker")
    facts = {"due_since": scene.at(60), "seconds": 30.0, "triggers": 1}
    told = (
        "it came due 30.0 s ago and has not been claimed, although 1 trigger is live: claims do not keep up"
    )
    return job, Blocker.TRIGGER_BEHIND, facts, told


@plant
def zone_data_of_another_release(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(name="tick", schedule={"cron": "* * * * *", "timezone": "America/New_York"})
    with planning_with(old_zone_data(scene.folder / "old")):
        activate(scene.db)
    scene.clock(70, "trigger", "dispatcher", "worker")
    here = scene.facts(job).zone_data
    assert here != OLD_VERSION
    told = (
        f"it has been due since {scene.told(60)}, and only triggers with the active zone data ({OLD_VERSION})"
        f" claim jobs with a time zone; this process has {here}"
    )
    return job, Blocker.ZONE_DATA, {"active": OLD_VERSION, "here": here, "due_since": scene.at(60)}, told


@plant
def no_dispatcher(scene: Scene) -> Planted:
    scene.everybody(but="dispatcher")
    job = scene.submit()
    facts = {"run": scene.run(job), "unsent_since": scene.at(0)}
    told = f"no live dispatchers; the run's message has been in the outbox since {scene.told(0)}"
    return job, Blocker.DISPATCHER_STOPPED, facts, told


@plant
def a_dispatcher_that_does_not_get_on(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit()
    scene.clock(30, "trigger", "dispatcher", "worker")
    facts = {
        "run": scene.run(job),
        "unsent_since": scene.at(0),
        "seconds": 30.0,
        "unsent": 1,
        "dispatchers": 1,
    }
    told = (
        "1 run of its lane and slice waits in the outbox, the oldest for 30.0 s, although 1 dispatcher is"
        " live: they make no progress, or Kafka does not answer"
    )
    return job, Blocker.DISPATCHER_BEHIND, facts, told


@plant
def a_message_that_kafka_refuses(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit()
    (row,) = [one for one in relay.read(scene.db, SHARD_LIST, 100) if one.run_id]
    parked = relay.Parked(row.run_id, row.scheduled_for, row.fence, "unknown topic")
    assert relay.park(scene.db, [row], [parked], retry_seconds=30) == 1
    facts = {"run": scene.run(job), "reason": "unknown topic", "since": scene.at(0), "retry_at": scene.at(30)}
    told = f"Kafka refuses its message: unknown topic; it is retried at {scene.told(30)}"
    return job, Blocker.UNDELIVERABLE, facts, told


# -- workers ---------------------------------------------------------------------------------------------


@plant
def no_worker(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit()
    scene.relay()
    scene.clock(90, "trigger", "dispatcher")
    facts = {"pool": "default", "last_beat_at": scene.at(0)}
    told = f"no live workers in pool default; the last heartbeat was at {scene.told(0)}"
    return job, Blocker.NO_WORKER, facts, told


@plant
def no_worker_with_the_handler(scene: Scene) -> Planted:
    scene.everybody(but="worker")
    job = scene.submit(handler="tests.nop")
    scene.hire()
    scene.relay()
    facts = {"pool": "default", "handler": "tests.nop", "workers": 1}
    told = (
        "no live worker of pool 'default' has a handler 'tests.nop'; did you mean 'tests.noop'?"
        " (one of: tests.noop)"
    )
    return job, Blocker.NO_WORKER_FOR_HANDLER, facts, told


@plant
def no_worker_of_the_kind(scene: Scene) -> Planted:
    scene.everybody(but="worker")
    job = scene.submit(type="http", handler=None, payload={"url": "http://127.0.0.1/"})
    scene.hire(kinds=("python",))
    scene.relay()
    told = "no live worker of pool 'default' runs jobs of type 'http' (one of: python)"
    return job, Blocker.NO_WORKER_FOR_KIND, {"pool": "default", "kind": "http", "workers": 1}, told


@plant
def a_pool_that_is_gone(scene: Scene) -> Planted:
    scene.everybody()
    register_pool(scene.db, "gone")
    job = scene.submit(pool="gone")
    scene.relay()
    # Nothing of ours deletes a pool: somebody did by hand.
    scene.db.execute("delete from pool_keys where pool = 'gone'")
    scene.db.execute("delete from pools where name = 'gone'")
    return job, Blocker.NO_SUCH_POOL, {"pool": "gone"}, "its pool 'gone' is not registered"


@plant
def a_message_that_is_gone(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit()
    scene.relay()
    scene.clock(50, "trigger", "dispatcher", "worker")
    progress.note_passed(scene.db, "t.runs.default.normal", scene.at(40), lost=True)
    facts = {"run": scene.run(job), "passed_until": scene.at(40), "queued_at": scene.at(0), "lane": "normal"}
    told = (
        "its message is gone: workers have read everything in lane normal up to"
        f" {scene.told(40)}, and it was queued at {scene.told(0)}"
    )
    return job, Blocker.MESSAGE_LOST, facts, told


@plant
def workers_that_are_busy(scene: Scene) -> Planted:
    scene.everybody()
    other = scene.submit()
    scene.start(scene.run(other))
    job = scene.submit()
    scene.relay()
    scene.clock(50, "trigger", "dispatcher", "worker")
    told = (
        f"it has been queued since {scene.told(0)}, and its message was sent; 1 worker of pool default is"
        " live, with 1 run in flight"
    )
    return job, Blocker.WORKERS_BUSY, {"run": scene.run(job), "workers": 1, "in_flight": 1}, told


# -- attempts --------------------------------------------------------------------------------------------


@plant
def a_retry_that_is_not_due(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit()
    scene.end(scene.start(scene.run(job)), RunState.RETRYING, error="503", retry_seconds=60)
    facts = {"run": scene.run(job), "attempt": 1, "until": scene.at(60), "error": "503"}
    told = f"attempt 1 failed: 503; the next one is due at {scene.told(60)}"
    return job, Blocker.RETRYING, facts, told


@plant
def a_worker_that_was_lost(scene: Scene) -> Planted:
    scene.everybody()
    run = scene.start(scene.run(scene.submit()))
    scene.lose_worker(70)
    scene.hire()
    scene.relay()
    facts = {"run": run.id, "worker": scene.worker.worker, "lost_at": scene.at(70), "attempt": 1, "losses": 1}
    told = f"worker {scene.worker.worker} was lost at {scene.told(70)}, in attempt 1; that attempt is queued again"
    return run.id, Blocker.WORKER_LOST, facts, told


@plant
def a_run_that_waits_because_it_lost_workers(scene: Scene) -> Planted:
    scene.everybody()
    run = scene.start(scene.run(scene.submit()))
    scene.db.execute("update runs set losses = 2 where id = %s", [run.id])
    scene.lose_worker(70)
    scene.hire()
    until = scene.world.row("select fire_at from timers where run_id = %s", run.id)["fire_at"]
    told = (
        f"worker {scene.worker.worker} was lost at {scene.told(70)}, in attempt 1, and the run has lost 3 workers;"
        f" that attempt is repeated at {until:%Y-%m-%dT%H:%M:%SZ}"
    )
    return run.id, Blocker.WORKER_LOST, {"until": until, "losses": 3}, told


@plant
def a_worker_that_sends_no_heartbeat(scene: Scene) -> Planted:
    scene.everybody()
    run = scene.start(scene.run(scene.submit()))
    scene.clock(40, "trigger", "dispatcher")
    told = (
        f"it has been running on worker {scene.worker.worker} (here, pid 7) since {scene.told(0)}, attempt 1;"
        f" that worker sent its last heartbeat at {scene.told(0)}, and counts as lost if it sends none until"
        f" {scene.told(60)}: the attempt is then repeated (an at_most_once run ends as unknown)"
    )
    return run.id, Blocker.RUNNING, {"worker": scene.worker.worker, "beat_at": scene.at(0)}, told


@plant
def an_outcome_that_a_lost_worker_took_along(scene: Scene) -> Planted:
    scene.everybody()
    run = scene.start(scene.run(scene.submit(delivery="at_most_once")))
    scene.lose_worker(70)
    told = (
        f"it ended as unknown at {scene.told(70)} (lost): nothing shows whether it took effect;"
        f" worker {scene.worker.worker} was lost at {scene.told(70)}, in attempt 1"
    )
    return run.id, Blocker.UNKNOWN, {"reason": "lost"}, told


@plant
def a_report_that_is_awaited(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit()
    run = scene.start(scene.run(job))
    open_callbacks(scene.db, *scene.worker, [NewCallback(run.id, run.scheduled_for, 1, "t" * 43)])
    scene.end(run, RunState.RUNNING, extras=OutcomeExtras(callback=Expected(60.0)))
    told = f"its target accepted it and has until {scene.told(60)} to report the outcome"
    return job, Blocker.CALLBACK, {"run": run.id, "until": scene.at(60)}, told


@plant
def a_cancel_that_is_not_confirmed(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit()
    run = scene.start(scene.run(job))
    run_cancel.cancel(scene.db, TOPICS, [RunKey(run.id, run.scheduled_for)], shards=SHARDS)
    told = (
        f"it was asked to stop, and worker {scene.worker.worker} (here, pid 7) has not confirmed yet"
        " that it stopped"
    )
    return job, Blocker.CANCELLING, {"run": run.id, "worker": scene.worker.worker, "host": "here"}, told


@plant
def attempts_that_are_used_up(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit()
    scene.end(scene.start(scene.run(job)), RunState.DEAD, reason="retries_exhausted", error="boom")
    facts = {"run": scene.run(job), "attempts": 1, "reason": "retries_exhausted", "error": "boom"}
    told = f"it has been dead since {scene.told(0)}, after 1 attempt (retries_exhausted): boom"
    return job, Blocker.DEAD, facts, told


# -- instants that were skipped --------------------------------------------------------------------------


@plant
def instants_skipped_for_a_run_under_way(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.minutely(overlap="skip")
    scene.clock(60, "trigger", "worker")
    scene.claim()
    run = scene.start(scene.run(job))
    for seconds in (120, 180, 240):
        scene.clock(seconds, "trigger", "worker")
        scene.claim()
    facts = {"instants": 3, "first": scene.at(120), "last": scene.at(240), "holder": run.id}
    told = (
        f"the last 3 instants, from {scene.told(120)} to {scene.told(240)}, were skipped: overlap: another run"
        f" of the job was unfinished (run {run.id}, which has been running on worker"
        f" {scene.worker.worker} (here, pid 7) since {scene.told(60)})"
    )
    return job, Blocker.SKIPPED_OVERLAP, facts, told


@plant
def an_instant_that_misfired(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(run_at=scene.told(60), misfire={"policy": "skip", "grace_seconds": 30})
    scene.clock(600, "trigger")
    scene.claim()
    told = (
        f"the instant {scene.told(60)} was skipped: misfired: it was too late, and the misfire policy is skip"
    )
    return job, Blocker.MISFIRED, {"instants": 1, "first": scene.at(60)}, told


@plant
def a_start_deadline_that_has_passed(scene: Scene) -> Planted:
    scene.everybody()
    job = scene.submit(start_deadline_seconds=20)
    scene.clock(30, "trigger", "dispatcher", "worker")
    told = f"its start deadline passed at {scene.told(20)}: the trigger or a worker will skip it"
    return job, Blocker.START_DEADLINE, {"run": scene.run(job), "start_by": scene.at(20)}, told
