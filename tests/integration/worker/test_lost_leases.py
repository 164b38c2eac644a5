"""What a lost lease leaves behind is queued again, whatever the recorder had already taken."""

from tests.integration.store.world import SHARDS, TOPICS, outcome

from noonmark.store.runs import leases


def test_an_outcome_that_is_recorded_after_the_lease_was_lost_strands_no_run_of_its_batch(world, desk):
    taken, dropped = world.started(desk.identity, 2)
    desk.batches.started([taken, dropped])
    # The worker forgets what it runs, but for the outcome that the recorder has taken and tries to write.
    desk.batches.clear()
    written = outcome(taken)
    desk.recorder.put([written])
    desk.wait_for(written)
    assert world.run(taken.id)["state"] == "succeeded"

    world.db.execute("update workers set lapsed_at = noonmark_now()")
    leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)

    assert world.run(taken.id)["state"] == "succeeded"
    assert (world.run(dropped.id)["state"], world.run(dropped.id)["losses"]) == ("queued", 1)
    assert world.count("start_batches") == 0
