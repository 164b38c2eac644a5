"""Two sessions at the same run in an order that is forced: what either must find when it gets its turn."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from tests.integration.store.room import claim, settle, states
from tests.integration.store.test_overlap_rules import CANCEL_RUNNING, minutely, tick
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, outcome

from noonmark.core.planning.promotion import limit_gate, overlap_gate
from noonmark.core.states import RunState
from noonmark.store.database.statements import statement
from noonmark.store.jobs import pauses as job_pauses
from noonmark.store.runs import cancel as run_cancel
from noonmark.store.runs import dead_letters, held_runs, leases
from noonmark.store.runs.cancel import RunKey
from noonmark.store.runs.dead_letters import DeadSelection


class Rival:
    """What another session does meanwhile."""

    def __init__(self, world, do):
        self._world = world
        self._failed: list[BaseException] = []
        self.connection = world.another()
        self.pid = self.connection.info.backend_pid
        self._thread = threading.Thread(target=self._run, args=(do,))
        self._thread.start()

    def _run(self, do):
        try:
            do(self.connection)
        except BaseException as error:  # noqa: BLE001 - told by `ended`
            self._failed.append(error)

    def waits(self):
        """Return when it waits for a lock."""
        for _ in range(100_000):
            if self._world.value("select count(*) from pg_locks where pid = %s and not granted", self.pid):
                return
            assert self._thread.is_alive(), self._failed
        raise AssertionError("it does not wait")

    def ended(self):
        self._thread.join(30)
        assert not self._thread.is_alive()
        assert self._failed == []


def test_a_run_that_is_skipped_while_a_promotion_moves_it_leaves_the_line(world):
    job_id = minutely(world, CANCEL_RUNNING)
    claim(world)
    tick(world)
    waiting = world.runs_of(job_id)[1]
    assert (waiting["state"], waiting["reason"]) == ("waiting", "overlap")
    gate = limit_gate("tests", "api", None)
    promotion = world.another()

    with promotion.transaction():
        moved = {"ids": [waiting["id"]]}
        day = {"first": waiting["scheduled_for"], "last": waiting["scheduled_for"]}
        promotion.execute(
            statement("update_run_wait_reasons"), {**moved, **day, "reason": "limit", "slotted": False}
        )
        promotion.execute(
            statement("move_waits"),
            {**moved, "targets": json.dumps({str(waiting["id"]): [str(gate.key), "limit", "api", None]})},
        )
        ahead = world.value("select round(extract(epoch from noonmark_now() - now()) / 60)::int")
        world.turn_clock(timedelta(minutes=ahead + 1))
        rival = Rival(world, lambda connection: claim(world, connection))
        rival.waits()
    rival.ended()

    assert world.run(waiting["id"])["state"] == "skipped"
    assert states(world, job_id)[-1] == ("queued", None)
    assert world.count("waits") == 0


def test_the_newest_instant_stops_a_run_that_a_promotion_has_just_given_the_slot(world):
    job_id = minutely(world, CANCEL_RUNNING)
    claim(world)
    tick(world)
    first, waiting = world.runs_of(job_id)
    worker = world.worker()
    world.db.execute("delete from slots")
    world.db.execute(
        "update runs set state = 'succeeded', finished_at = noonmark_now() where id = %s", [first["id"]]
    )
    assert overlap_gate(job_id, "tests").key == job_id
    promotion = world.another()

    with promotion.transaction():
        promotion.execute(statement("acquire_slots"), {"keys": [job_id], "run_ids": [waiting["id"]]})
        day = {"first": waiting["scheduled_for"], "last": waiting["scheduled_for"]}
        promotion.execute(
            statement("promote_runs"), {"ids": [waiting["id"]], "holders": [waiting["id"]], **day}
        )
        ahead = world.value("select round(extract(epoch from noonmark_now() - now()) / 60)::int")
        world.turn_clock(timedelta(minutes=ahead + 1))
        rival = Rival(world, lambda connection: claim(world, connection))
        rival.waits()
    rival.ended()

    assert states(world, job_id)[1:] == [("cancelled", "overlap"), ("waiting", "overlap")]
    assert settle(world) == 1
    assert world.start(worker, [world.runs_of(job_id)[-1]["id"]])


def test_a_cancel_leaves_a_retry_to_the_claim_that_has_it_in_hand(world):
    worker = world.worker()
    (run,) = world.started(worker)
    row = world.run(run.id)
    recording, claiming = world.another(), world.another()

    with claiming.transaction():
        with recording.transaction():
            recording.execute("select from runs where id = %s for update", [run.id])
            cancel = Rival(
                world,
                lambda connection: run_cancel.cancel(
                    connection, TOPICS, [RunKey(run.id, run.scheduled_for)], shards=SHARDS
                ),
            )
            cancel.waits()  # it has locked the timers, of which there are none yet
            recording.execute("update runs set state = 'retrying' where id = %s", [run.id])
            world.db.execute(
                """insert into timers (fire_at, scheduled_for, job_id, run_id, job_version, shard, lane, kind, namespace, pool)
                   values (now(), %s, %s, %s, 1, %s, 1, 2, 'tests', 'default')""",
                [row["scheduled_for"], row["job_id"], run.id, row["shard"]],
            )
            taken = claiming.execute(
                statement("claim_run_timers"),
                {"shards": list(EVERY_SHARD), "lane": 1, "kind": 2, "limit": 10},
            ).fetchall()
            assert [one[0] for one in taken] == [run.id]
        cancel.ended()  # it would wait for the claim, which is about to wait for the run
        day = {"first": row["scheduled_for"], "last": row["scheduled_for"]}
        claiming.execute(statement("requeue_runs"), {"ids": [run.id], **day, "reason": "undeliverable"})

    assert world.run(run.id)["state"] == "cancelled"
    assert world.count("outbox", "run_id is not null") == 0
    assert world.count("timers", "run_id is not null") == 0


def test_a_cancel_beside_a_move_between_wait_queues_leaves_no_wait_behind(world):
    run_id = world.put_run("waiting", reason="limit")
    row = world.run(run_id)
    world.db.execute("update waits set key = %s where run_id = %s", [uuid4(), run_id])
    moving = world.another()
    with moving.transaction():
        targets = json.dumps({str(run_id): [str(uuid4()), "limit", "api", None]})
        moving.execute(statement("move_waits"), {"ids": [run_id], "targets": targets})
        cancel = Rival(
            world,
            lambda connection: run_cancel.cancel(
                connection, TOPICS, [RunKey(run_id, row["scheduled_for"])], shards=SHARDS
            ),
        )
        cancel.waits()
    cancel.ended()

    assert world.run(run_id)["state"] == "cancelled"
    assert world.count("waits") == 0


@pytest.mark.parametrize("losses", [0, leases.LOSSES_BEFORE_WAIT])
@pytest.mark.parametrize("how", ["handed back", "lost"])
def test_a_run_that_loses_its_worker_while_its_job_is_paused_waits_for_the_resume(world, how, losses):
    worker = world.worker()
    paused, active = world.job(), world.job()
    runs = world.start(worker, [world.put_run(job_id=job_id, losses=losses) for job_id in (paused, active)])
    world.db.execute("update jobs set state = 'paused' where id = %s", [paused])

    if how == "lost":
        world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1")
        leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)
    else:
        unfinished = [(run.id, run.scheduled_for, 1) for run in runs]
        assert held_runs.requeue_unfinished(world.db, worker, unfinished).requeued == 2

    assert states(world, paused) == [("waiting", "paused")]
    waits = how == "lost" and losses
    assert states(world, active) == [("retrying" if waits else "queued", None)]
    assert world.count("timers", "run_id is not null") == bool(waits)
    assert world.messages(runs[0].id) == []
    assert world.column("select run_id from waits") == [runs[0].id]
    world.db.execute("update jobs set state = 'active' where id = %s", [paused])
    job_pauses.resume_runs(world.db, [paused])
    assert states(world, paused) == [("queued", None)]
    (message,) = world.messages(runs[0].id)
    assert message["fence"] == world.run(runs[0].id)["fence"]


def test_a_redriven_run_that_is_held_by_a_pause_does_not_pass_the_run_in_the_slot(world):
    job_id = world.job(policy={"overlap": "skip"})
    worker = world.worker()
    (dead,) = world.start(worker, [world.put_run(job_id=job_id, request_id="1")])
    world.record(worker, [outcome(dead, RunState.DEAD, reason="retries_exhausted", error="boom")])
    holder = world.put_run("running", job_id=job_id, owner=worker, request_id="2", holds_slot=True)
    world.db.execute("insert into slots values (%s, 0, %s, now())", [job_id, holder])
    found = dead_letters.find(world.db, DeadSelection())
    dead_letters.redrive(world.db, TOPICS, found, shards=SHARDS)
    world.db.execute("update jobs set state = 'paused' where id = %s", [job_id])
    job_pauses.pause_runs(world.db, [job_id], recurring=[], shards=EVERY_SHARD)
    assert world.run(dead.id)["reason"] == "paused"

    world.db.execute("update jobs set state = 'active' where id = %s", [job_id])
    assert job_pauses.resume_runs(world.db, [job_id]) == 1

    assert world.run(dead.id)["state"] == "waiting"
    assert settle(world) == 0
    world.db.execute("delete from slots")
    assert settle(world) == 1
    assert world.run(dead.id)["state"] == "queued"
