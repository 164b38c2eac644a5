"""Details that Postgres cannot store cost an outcome its details, never its verdict."""

import threading

import pytest
from tests.integration.store.world import SHARDS, TOPICS, outcome
from tests.support.cluster import wait_until

from noonmark.core.states import RunState
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.database.hints import HintSender
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.outcomes.notes import Note
from noonmark.telemetry.logs import get_logger
from noonmark.worker.engine.recorder import RecorderLoop
from noonmark.worker.in_flight import StartBatches

PATIENCE = 60


@pytest.fixture
def recorder(world, emptied_database):
    worker = world.worker()
    service = Service(
        "worker", Settings(database_url=emptied_database), Health(), threading.Event(), get_logger()
    )
    made = RecorderLoop(
        service,
        TOPICS,
        HintSender(emptied_database),
        StartBatches(),
        shards=SHARDS,
        identity=lambda: worker,
        settled=lambda _: None,
    )
    thread = threading.Thread(target=made.run, args=[service.stop])
    thread.start()
    yield made, worker
    made.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_the_neighbours_of_details_that_cannot_be_stored_keep_theirs(world, recorder):
    made, worker = recorder
    runs = world.started(worker, 7)
    outcomes = []
    for number, run in enumerate(runs):
        checkpoint = b"{" if number == 4 else b"%d" % number
        extras = OutcomeExtras(note=Note(run, 1, checkpoint=checkpoint, version=1))
        extras.logged().add(f"line {number}")
        outcomes.append(outcome(run, result=f'"result {number}"', extras=extras))
    made.put(outcomes)
    wait_until(lambda: world.count("runs", "state = 'succeeded'") == 7, "all outcomes", PATIENCE)
    assert [world.run(run.id)["result"] for run in runs] == [
        None if number == 4 else f"result {number}" for number in range(7)
    ]
    assert world.count("run_notes") == world.count("attempt_logs") == 6


def test_a_note_that_is_no_json_is_dropped_and_the_verdict_stands(world, recorder):
    made, worker = recorder
    bad, good = world.started(worker, 2)
    extras = OutcomeExtras(note=Note(bad, 1, checkpoint=b"{", version=1))
    extras.logged().add("a line")
    made.put([outcome(bad, RunState.DEAD, reason="x", error="boom", extras=extras), outcome(good)])
    wait_until(lambda: world.run(good.id)["state"] == "succeeded", "the outcome beside it", PATIENCE)
    assert (world.run(bad.id)["state"], world.run(bad.id)["error"]) == ("dead", "details could not be stored")
    assert world.count("run_notes") == world.count("attempt_logs") == 0
