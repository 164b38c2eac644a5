"""Dead letters: written with the verdict, redriven and discarded set by set, never twice."""

import threading
from uuid import uuid4

import pytest
from tests.integration.store.world import SHARDS, TOPICS, World, outcome

from noonmark.core.states import RunState
from noonmark.store.jobs import pauses as job_pauses
from noonmark.store.limits import promotion
from noonmark.store.runs import dead_letters, leases
from noonmark.store.runs.dead_letters import DeadSelection, Refusal


def dead(world: World, count: int = 1, *, error: str = "boom", job_id=None, **columns):
    """Runs that a worker tried and gave up."""
    job_id = job_id or world.job()
    worker = world.worker()
    runs = [world.put_run(job_id=job_id, request_id=str(n), **columns) for n in range(count)]
    started = world.start(worker, runs)
    world.record(
        worker, [outcome(run, RunState.DEAD, reason="retries_exhausted", error=error) for run in started]
    )
    return runs


def redrive(world: World, runs=None, connection=None):
    connection = connection or world.db
    found = dead_letters.find(connection, DeadSelection(runs=runs))
    return dead_letters.redrive(connection, TOPICS, found, shards=SHARDS)


def states(world: World, runs) -> set[str]:
    return {world.run(run)["state"] for run in runs}


def test_a_death_leaves_a_letter_with_its_cause_and_an_event_with_every_attempt(world):
    job_id = world.job()
    world.db.execute("update jobs set name = 'invoices', kind = 'python' where id = %s", [job_id])
    run = world.put_run(job_id=job_id)
    first, second = world.worker(), world.worker()
    (started,) = world.start(first, [run])
    world.record(
        first, [outcome(started, RunState.RETRYING, error="order 1 has no lines", retry_seconds=5.0)]
    )
    world.db.execute("update runs set state = 'queued', fence = 2 where id = %s", [run])
    (again,) = world.start(second, [run])
    world.record(
        second,
        [outcome(again, RunState.DEAD, fence=2, reason="retries_exhausted", error="order 2 has no lines")],
    )

    (letter,) = world.rows("select * from dead_letters")
    (event,) = world.told(TOPICS.dead)
    assert (letter["name"], letter["kind"], letter["attempts"]) == ("invoices", "python", 2)
    assert (event["job_name"], event["kind"], event["attempts"]) == ("invoices", "python", 2)
    assert event["fingerprint"] == letter["fingerprint"]
    assert [(a["number"], a["fence"], a["outcome"], a["error"]) for a in event["history"]] == [
        (1, 1, "failed", "order 1 has no lines"),
        (2, 2, "failed", "order 2 has no lines"),
    ]
    assert [a["worker"] for a in event["history"]] == [first.worker, second.worker]
    assert event["history_omitted"] == 0


def test_runs_that_died_of_one_cause_share_a_fingerprint(world):
    dead(world, error="no order 17")
    dead(world, error="no order 18")
    dead(world, error="another thing")

    assert world.value("select count(distinct fingerprint) from dead_letters") == 2


def test_a_run_that_lost_its_worker_too_often_has_its_losses_in_the_event(world):
    worker = world.worker()
    (started,) = world.started(worker)
    world.db.execute("update runs set losses = %s where id = %s", [leases.LOSS_BUDGET, started.id])
    world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1")
    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)

    (event,) = world.told(TOPICS.dead)
    assert event["reason"] == "lost"
    assert [a["outcome"] for a in event["history"]] == ["lost"]


def test_a_redriven_run_is_queued_with_its_message_and_a_new_budget(world):
    (run,) = dead(world)
    world.db.execute("update runs set losses = 3 where id = %s", [run])
    before = world.run(run)
    world.db.execute("delete from outbox")

    done = redrive(world)

    after = world.run(run)
    assert dict(done.states) == {"queued": 1}
    assert (after["state"], after["fence"], after["attempt"], after["losses"]) == (
        "queued",
        before["fence"] + 1,
        0,
        0,
    )
    assert (after["error"], after["reason"], after["finished_at"]) == (None, None, None)
    (message,) = world.messages(run)
    assert message["fence"] == after["fence"]
    assert world.count("dead_letters") == 0
    assert world.count("attempts") == 1
    (told,) = world.told()
    assert (told["run_id"], told["state"], told["fence"]) == (str(run), "queued", after["fence"])


def test_a_redriven_run_starts_and_may_die_again(world):
    (run,) = dead(world)
    redrive(world)
    worker = world.worker()
    (again,) = world.start(worker, [run])
    world.record(worker, [outcome(again, RunState.DEAD, fence=2, reason="retries_exhausted", error="boom")])

    assert world.run(run)["state"] == "dead"
    assert world.count("dead_letters") == 1
    assert world.count("attempts") == 2


def test_what_is_not_dead_is_refused_and_left_alone(world):
    (run,) = dead(world)
    redrive(world)
    gone = dead_letters.DeadRun(run, world.run(run)["scheduled_for"])

    again = dead_letters.redrive(world.db, TOPICS, [gone], shards=SHARDS)
    discarded = dead_letters.discard(world.db, TOPICS, [gone], reason=None, shards=SHARDS)

    assert again.refused == discarded.refused == {run: Refusal.NOT_DEAD}
    assert world.run(run)["fence"] == 2


@pytest.mark.parametrize(
    ("state", "refusal"), [("cancelled", Refusal.JOB_CANCELLED), (None, Refusal.JOB_GONE)]
)
def test_a_run_whose_job_is_over_is_refused(world, state, refusal):
    job_id = world.job()
    runs = dead(world, job_id=job_id)
    if state is None:
        world.db.execute("delete from jobs where id = %s", [job_id])
    else:
        world.db.execute("update jobs set state = %s where id = %s", [state, job_id])

    done = redrive(world)

    assert done.refused == dict.fromkeys(runs, refusal)
    assert states(world, runs) == {"dead"}
    assert world.count("dead_letters") == 1


def test_a_run_of_a_paused_job_waits_for_the_resume(world):
    job_id = world.job()
    (run,) = dead(world, job_id=job_id)
    world.db.execute("update jobs set state = 'paused', paused_by = 'job' where id = %s", [job_id])
    world.db.execute("delete from outbox")

    assert dict(redrive(world).states) == {"waiting": 1}

    assert (world.run(run)["reason"], world.messages(run)) == ("paused", [])
    assert world.column("select reason from waits where run_id = %s", run) == ["paused"]


@pytest.mark.parametrize("overlap", ["skip", "queue_one"])
def test_redriven_runs_of_a_job_without_overlap_run_one_after_the_other(world, overlap):
    job_id = world.job()
    runs = dead(world, 3, job_id=job_id)
    world.db.execute(
        "update jobs set policy = jsonb_build_object('overlap', %s::text) where id = %s", [overlap, job_id]
    )

    assert dict(redrive(world).states) == {"waiting": 3}

    worker = world.worker()
    for left in (2, 1, 0):
        promotion.promote(world.db, TOPICS, install_shards=SHARDS)
        promotion.promote(world.db, TOPICS, install_shards=SHARDS)
        (queued,) = world.rows("select id, scheduled_for, fence from runs where state = 'queued'")
        assert world.count("waits") == left
        (started,) = world.start(worker, [queued["id"]])
        assert started.holds_slot
        world.record(worker, [outcome(started, fence=queued["fence"])])
    assert states(world, runs) == {"succeeded"}
    assert world.count("slots") == 0


def test_of_a_paused_job_that_skips_overlaps_one_run_waits_for_the_resume_and_the_others_are_refused(world):
    job_id = world.job()
    runs = dead(world, 3, job_id=job_id)
    world.db.execute(
        """update jobs set policy = '{"overlap": "skip"}', state = 'paused', paused_by = 'job' where id = %s""",
        [job_id],
    )

    done = redrive(world)

    assert dict(done.states) == {"waiting": 1}
    assert sorted(done.refused.values()) == [Refusal.OVERLAP] * 2
    assert sorted(world.run(run)["holds_slot"] for run in runs) == [False, False, True]
    assert world.count("slots") == 1
    with world.db.transaction():
        job_pauses.resume_runs(world.db, [job_id])
    assert world.count("runs", "state = 'queued'") == 1


def test_runs_of_a_job_with_limits_ask_for_room(world):
    job_id = world.job()
    (run,) = dead(world, job_id=job_id)
    world.db.execute(
        """update jobs set policy = '{"overlap": "allow", "limits": [["api", null]]}' where id = %s""",
        [job_id],
    )

    redrive(world)

    assert (world.run(run)["state"], world.run(run)["reason"]) == ("waiting", "limit")
    promotion.promote(world.db, TOPICS, install_shards=SHARDS)
    assert world.run(run)["state"] == "queued"


def test_a_discarded_run_stays_as_it_is_for_good(world):
    (run,) = dead(world, error="boom")
    before = world.run(run)
    world.db.execute("delete from outbox")

    found = dead_letters.find(world.db, DeadSelection())
    done = dead_letters.discard(world.db, TOPICS, found, reason="known outage", shards=SHARDS)

    after = world.run(run)
    assert dict(done.states) == {"discarded": 1}
    assert (after["state"], after["reason"], after["error"]) == ("discarded", "known outage", "boom")
    assert (after["fence"], after["finished_at"]) == (before["fence"], before["finished_at"])
    assert world.count("dead_letters") == 0
    (told,) = world.told()
    assert (told["state"], told["reason"]) == ("discarded", "known outage")
    assert world.told(TOPICS.dead) == []


def test_letters_are_found_by_what_they_say(world):
    (first,) = dead(world, error="one")
    (second,) = dead(world, error="two")
    print_ = world.value("select fingerprint from dead_letters where run_id = %s", first)

    def found(**wanted):
        return [run.run_id for run in dead_letters.find(world.db, DeadSelection(**wanted))]

    assert found() == [first, second]
    assert found(fingerprint=print_) == [first]
    assert found(runs=[second, uuid4()]) == [second]
    assert found(namespace="tests") == [first, second]
    assert found(namespace="other") == found(reason="lost") == found(name="x") == []
    assert found(job=world.run(second)["job_id"]) == [second]
    assert len(dead_letters.find(world.db, DeadSelection(), limit=1)) == 1


def test_a_large_order_works_in_steps_and_a_second_one_at_the_same_time_changes_nothing_twice(world):
    job_id = world.job()
    dead(world, 40, job_id=job_id)
    world.db.execute("delete from outbox")
    counts = []

    def order(connection):
        after, done = None, 0
        while found := dead_letters.find(connection, DeadSelection(), limit=7, after=after):
            done += dead_letters.redrive(connection, TOPICS, found, shards=SHARDS).done
            after = found[-1].run_id
        counts.append(done)

    sessions = [threading.Thread(target=order, args=(world.another(),)) for _ in range(3)]
    for session in sessions:
        session.start()
    for session in sessions:
        session.join()

    assert sum(counts) == 40
    assert world.column("select distinct fence from runs") == [2]
    assert world.count("outbox", "run_id is not null") == 40
    assert world.count("dead_letters") == 0


def test_an_outcome_of_the_first_life_is_refused(world):
    worker = world.worker()
    run = world.put_run()
    (started,) = world.start(worker, [run])
    world.record(worker, [outcome(started, RunState.DEAD, reason="retries_exhausted", error="boom")])
    redrive(world)

    recorded = world.record(worker, [outcome(started)])

    assert len(recorded.fenced) == 1
    assert world.run(run)["state"] == "queued"
