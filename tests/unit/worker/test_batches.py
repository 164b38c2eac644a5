"""How many runs of each start batch are in hand; the batch row goes with the last."""

import threading

from msgspec.structs import asdict
from tests.unit.worker.hands import hand, started, success

from noonmark.store.database.row_types import StartedRun
from noonmark.worker.in_flight import RunsInFlight, StartBatches


def outcomes(*runs: StartedRun):
    return [success(hand(**asdict(run))) for run in runs]


def test_a_batch_ends_with_its_last_run():
    batches = StartBatches()
    first, second, other = started(batch_id=1), started(batch_id=1), started(batch_id=2)
    batches.started([first, second, other])

    assert batches.would_end(outcomes(first)) == []
    batches.ended(outcomes(first))
    assert batches.would_end(outcomes(second)) == [1]
    assert batches.known() == {1, 2}
    batches.ended(outcomes(second))
    assert batches.known() == {2}


def test_outcomes_of_a_whole_batch_end_it_at_once():
    batches = StartBatches()
    runs = [started(batch_id=1) for _ in range(3)] + [started(batch_id=2) for _ in range(2)]
    batches.started(runs)

    assert batches.would_end(outcomes(*runs[:4])) == [1]


def test_asking_what_would_end_changes_nothing():
    batches = StartBatches()
    run = started(batch_id=1)
    batches.started([run])

    assert batches.would_end(outcomes(run)) == batches.would_end(outcomes(run)) == [1]
    assert batches.known() == {1}


def test_the_row_of_a_batch_of_a_lost_lease_stays_for_whoever_queues_its_other_runs_again():
    batches = StartBatches()
    run = started(batch_id=7)
    batches.started([run])
    batches.clear()

    assert batches.known() == set()
    assert batches.would_end(outcomes(run)) == []
    batches.ended(outcomes(run))
    assert batches.known() == set()


def test_counts_are_right_while_starts_and_outcomes_happen_at_once():
    batches = StartBatches()
    runs = [started(batch_id=n % 5) for n in range(500)]
    batches.started(runs)

    def end(part):
        for run in part:
            batches.ended(outcomes(run))

    threads = [threading.Thread(target=end, args=(runs[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert batches.known() == set()


def test_a_run_that_is_handed_back_leaves_its_batch():
    batches = StartBatches()
    first, second, alone = started(batch_id=1), started(batch_id=1), started(batch_id=2)
    batches.started([first, second, alone])
    batches.handed_back([first, alone])

    assert batches.known() == {1}
    assert batches.would_end(outcomes(second)) == [1]


def test_a_run_that_leaves_its_batch_twice_takes_no_other_run_with_it():
    batches = StartBatches()
    first, second = started(batch_id=1), started(batch_id=1)
    batches.started([first, second])
    batches.handed_back([first])
    # The recorder had its outcome already: it is refused, and counted.
    batches.ended(outcomes(first))

    assert batches.known() == {1}
    assert batches.would_end(outcomes(first)) == []


def test_runs_that_are_handed_back_are_not_in_flight_any_more():
    in_flight = RunsInFlight()
    first, second = hand(batch_id=1), hand(batch_id=2)
    in_flight.add([first, second])
    in_flight.hand_back([first])

    assert in_flight.all() == [second]
    assert in_flight.batches.known() == {2}
