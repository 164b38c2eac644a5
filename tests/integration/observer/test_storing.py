"""Batches of outcomes: each counts once, whatever is read twice, left out, or in the middle when a process dies."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from tests.integration.observer.watch_desk import WatchDesk
from tests.integration.store.world import World, outcome
from tests.support.cluster import wait_until

from noonmark.core.ids import uuid7
from noonmark.core.monitoring.recent import Rates, decode
from noonmark.core.states import RunState
from noonmark.observer import outcome_store
from noonmark.schemas.events.settled import SettledRun, settled_event
from noonmark.store.alerts import statistics
from noonmark.store.alerts.statistics import Place

pytestmark = pytest.mark.postgres


@pytest.fixture
def desk(world: World, emptied_database: str) -> Iterator[WatchDesk]:
    made = WatchDesk(world, emptied_database)
    yield made
    made.close()


def fill(world: World, desk: WatchDesk, count: int = 15) -> None:
    """Runs of two recurring and some one-time jobs that ended in every way, an event each."""
    chance = random.Random(7)
    worker = world.worker()
    recurring = [world.job(recurring=True) for _ in range(2)]
    for n in range(count):
        (run,) = world.started(worker, job_id=recurring[n % 3] if n % 3 < 2 else world.job())
        state = chance.choice([RunState.SUCCEEDED, RunState.DEAD])
        error = f"ValueError: {n}" if state is RunState.DEAD else None
        world.record(worker, [outcome(run, state, error=error)], [run.batch_id])
    desk.collect()


def settled(job_id: UUID, state: str, at: datetime) -> SettledRun:
    """An outcome as an event has it."""
    return SettledRun(
        uuid7(), job_id, "tests", at, "schedule", state, None, 1, 1, "normal", "default", at, at, None
    )  # fmt: skip


def test_outcomes_are_counted_with_their_recurring_job(world, desk):
    worker = world.worker()
    job = world.job(recurring=True)
    (run,) = world.started(worker, job_id=job)
    (other,) = world.started(worker)
    world.record(worker, [outcome(run), outcome(other, RunState.DEAD, error="x")], [run.batch_id])

    desk.hear()

    (stats,) = world.rows("select * from job_stats")
    assert (stats["job_id"], stats["runs"], stats["kind"], stats["failures"]) == (job, 1, "python", 0)
    rates = statistics.rates(world.db, [job, other.job_id])
    assert rates == {job: Rates(1, 0, 0, 0, 0, rates[job].seconds_buckets)}
    assert sum(rates[job].seconds_buckets) == 1


def test_a_later_batch_adds_to_the_counts_of_the_last_hour_and_drops_older_ones(world, desk):
    job, worker = world.job(recurring=True), world.worker()
    seen = []
    for minutes in (0, 30, 50, 90, 155):
        world.turn_clock(timedelta(minutes=minutes))
        (run,) = world.started(worker, job_id=job)
        world.record(worker, [outcome(run)], [run.batch_id])
        desk.hear()
        seen.append(statistics.rates(world.db, [job])[job].succeeded)

    assert seen == [1, 2, 3, 2, 1]
    assert sum(decode(world.value("select recent from job_stats"), range(2**60)).values()) == 1
    world.turn_clock(timedelta(minutes=216))
    assert statistics.rates(world.db, [job]) == {}
    assert world.value("select runs from job_stats") == 5


def test_release_0_2_leaves_the_counts_as_they_are(world, desk):
    """Its observer beside this one updates the row without the column, and inserts rows without it."""
    job, worker = world.job(recurring=True), world.worker()
    for written in (1, 2):
        (run,) = world.started(worker, job_id=job)
        world.record(worker, [outcome(run)], [run.batch_id])
        desk.hear()
        assert statistics.rates(world.db, [job])[job].succeeded == written
        world.db.execute(_BY_0_2, [job])
        assert statistics.rates(world.db, [job])[job].succeeded == written
    world.db.execute("delete from job_stats")
    world.db.execute(_BY_0_2, [job])

    assert statistics.rates(world.db, [job]) == {}
    (run,) = world.started(worker, job_id=job)
    world.record(worker, [outcome(run)], [run.batch_id])
    desk.hear()
    assert statistics.rates(world.db, [job])[job].succeeded == 1
    assert world.value("select runs from job_stats") == 8


_BY_0_2 = """
insert into job_stats (job_id, namespace, kind, runs, usual_seconds, failures) values (%s, 'tests', 'python', 7, 1, 0)
on conflict (job_id) do update set runs = excluded.runs, usual_seconds = excluded.usual_seconds"""


def test_statistics_that_moved_since_they_were_read_are_written_all_the_same(world, desk):
    job, worker = world.job(recurring=True), world.worker()
    (run,) = world.started(worker, job_id=job)
    world.record(worker, [outcome(run)], [run.batch_id])
    desk.hear()
    stored = statistics.stats_of(world.db, [job])
    world.db.execute("update job_stats set runs = 5")

    stats = stored.by_job[job.int]
    stats.runs = 9
    statistics.write_stats(world.db, [stats], stored.places)
    assert world.value("select runs from job_stats") == 9

    world.db.execute("delete from job_stats")
    statistics.write_stats(world.db, [stats], stored.places)
    assert world.rows("select job_id, runs from job_stats") == [{"job_id": job, "runs": 9}]


def test_only_statistics_that_changed_are_written(world, desk):
    """An instant that was skipped hours ago is neither a figure nor of the last hour."""
    job, worker = world.job(recurring=True), world.worker()
    (run,) = world.started(worker, job_id=job)
    world.record(worker, [outcome(run)], [run.batch_id])
    desk.hear()
    place = "select ctid::text from job_stats"
    before = world.value(place)
    old = world.now() - timedelta(hours=3)

    for state, moved in (("skipped", False), ("succeeded", True)):
        desk.values.append(settled_event("tests", [settled(job, state, old)]))
        assert desk.take([len(desk.values) - 1]) == []
        assert (world.value(place) != before) == moved


def test_a_record_that_is_read_again_counts_no_more(world, desk):
    fill(world, desk)
    desk.hear(batch=7)
    once = desk.state()

    assert desk.take(range(10)) == []
    assert desk.take(range(len(desk.values))) == []

    assert desk.state() == once


def test_an_event_that_was_sent_twice_counts_once(world, desk):
    fill(world, desk, 6)
    desk.hear()
    once = desk.state()

    desk.values += desk.values[2:5]
    desk.hear()

    assert desk.state() == once
    assert world.value("select next_offset from observer_offsets") == 9


def test_of_a_gap_nothing_is_taken_before_what_lies_in_it(world, desk):
    fill(world, desk, 12)
    desk.hear(batch=100)
    whole = desk.state()
    statistics.forget(world.db)
    desk.place()

    assert desk.take(range(6, 12)) == [0]
    assert desk.state() == []
    assert desk.take(range(12)) == []

    assert desk.state() == whole


def test_an_observer_that_goes_on_while_all_is_forgotten_begins_again(world, desk):
    """Of two observers one rebuilds: the other, far into the topic, must not go on from there."""
    fill(world, desk, 12)
    desk.hear()
    whole = desk.state()
    fill(world, desk, 1)
    statistics.forget(world.db)

    assert desk.take([12]) == [0]
    assert desk.place() == {0: 0}
    desk.take(range(12))

    assert desk.state() == whole


def test_two_observers_that_read_the_same_count_once(world, desk, emptied_database):
    fill(world, desk)
    desk.hear()
    once = desk.state()
    statistics.forget(world.db)
    other = WatchDesk(world, emptied_database)
    other.values = desk.values
    desk.place()

    for first in range(0, 15, 5):
        for one in (desk, other):
            assert one.take(range(first, first + 5)) == []

    assert desk.state() == once
    other.close()


@pytest.mark.parametrize("seed", range(2))
def test_dying_anywhere_and_beginning_again_comes_to_the_same(world, desk, emptied_database, seed):
    """A crash is a transaction that did not commit; the next process begins where the last one that did ends."""
    fill(world, desk)
    desk.hear(batch=1000)
    clean = desk.state()
    statistics.forget(world.db)
    chance = random.Random(seed)
    place = desk.place()[0]
    while place < len(desk.values):
        batch = range(place, min(len(desk.values), place + chance.randint(1, 9)))
        if chance.random() < 0.4:
            cut = WatchDesk(world, emptied_database)
            cut.values = desk.values
            with pytest.raises(RuntimeError, match="died"):
                _dying(cut, batch)
            cut.close()
        else:
            desk.take(batch)
        place = desk.place()[0]

    assert desk.state() == clean


def _dying(desk: WatchDesk, batch: range) -> None:
    connection = desk.store._open()
    with connection.transaction():
        desk.store._take([desk.record(offset) for offset in batch])
        raise RuntimeError("died")


def test_what_the_topic_no_longer_holds_is_passed_over(world, desk):
    assert desk.store.places([Place(0, 100, 150)]) == {0: 100}


def test_a_topic_made_anew_is_read_from_its_begin(world, desk):
    world.db.execute("update observer_offsets set next_offset = 500")

    assert desk.store.places([Place(0, 0, 3)]) == {0: 0}
    assert world.value("select caught_up from observer_offsets") is False


def test_a_topic_made_anew_under_a_running_observer_is_sought_again(world, desk):
    fill(world, desk, 3)
    world.db.execute("update observer_offsets set next_offset = 500")

    assert desk.take(range(3)) == [0]
    desk.place()
    assert desk.take(range(3)) == []
    assert world.value("select next_offset from observer_offsets") == 3


@pytest.mark.parametrize("timestamp", [-1e18, 1e18, -0.001])
def test_a_time_that_does_not_exist_stops_nothing(world, desk, timestamp):
    fill(world, desk, 3)

    assert desk.store.take([desk.record(n)._replace(timestamp=timestamp) for n in range(3)]) == []

    assert world.value("select next_offset from observer_offsets") == 3


def test_outcomes_wait_while_there_are_more_or_no_longer_than_they_take(world, desk, monkeypatch):
    fill(world, desk, 3)
    monkeypatch.setattr(outcome_store, "_IDLE_SECONDS", 0.0)
    desk.place()
    assert desk.store.lag > 0
    old = [desk.record(n)._replace(timestamp=desk.world.now().timestamp() - 600) for n in range(3)]

    desk.store.take(old[:2])
    assert desk.store.lag > 599
    desk.store.take(old[2:])
    assert desk.store.lag == 0


def test_outcomes_that_the_database_does_not_take_wait(world, desk, emptied_database):
    fill(world, desk, 3)
    desk.place()
    old = [desk.record(n)._replace(timestamp=desk.world.now().timestamp() - 600) for n in range(3)]
    taking = threading.Thread(target=desk.store.take, args=[old])
    with psycopg.connect(emptied_database) as session:
        session.execute("lock table observer_offsets in access exclusive mode")
        taking.start()
        wait_until(lambda: desk.store.lag > 599, "the lag to be seen", 20)
        assert taking.is_alive()
        session.rollback()
    taking.join(20)
    assert world.value("select next_offset from observer_offsets") == 3


def test_a_partition_that_is_read_to_its_end_has_come_to_the_present(world, desk):
    world.db.execute("update observer_offsets set next_offset = 3, caught_up = false")

    assert desk.store.places([Place(0, 0, 3)]) == {0: 3}
    assert world.value("select caught_up from observer_offsets") is True


def test_a_record_that_is_no_event_stops_nothing(world, desk):
    fill(world, desk, 3)
    desk.values[1:1] = [b"{", b"", b'{"type": "other"}']

    desk.hear()

    assert desk.counted() == 2


def test_what_is_old_goes(world, desk):
    fill(world, desk, 12)
    desk.hear()
    assert world.count("observer_events") == 12
    world.db.execute("delete from jobs where id = (select job_id from job_stats order by job_id limit 1)")

    last = statistics.prune(world.db, after=UUID(int=0), limit=100)
    assert world.count("observer_events") == 12
    world.turn_clock(timedelta(hours=2))
    statistics.prune(world.db, after=UUID(int=0), limit=100)

    assert last is not None
    assert world.count("observer_events") == 0
    assert world.count("job_stats") == 1


def test_a_large_batch_is_stored_in_parts_and_what_was_stored_stays_when_a_later_part_fails(
    world, desk, monkeypatch
):
    fill(world, desk)
    monkeypatch.setattr(outcome_store, "_MOST_BYTES", 2 * max(map(len, desk.values)))
    parts: list[int] = []

    class PowerCutError(Exception):
        pass

    def take(records):
        parts.append(len(records))
        if len(parts) == 3:
            raise PowerCutError
        return outcome_store.OutcomeStore._take(desk.store, records)

    monkeypatch.setattr(desk.store, "_take", take)
    everything = list(range(len(desk.values)))
    with pytest.raises(PowerCutError):
        desk.take(everything)

    (row,) = world.rows("select next_offset from observer_offsets where topic = 't.lifecycle'")
    assert row["next_offset"] == parts[0] + parts[1] < len(everything)
    assert desk.take(everything) == []
    assert len(parts) > 5
    assert desk.counted() == len([n for n in range(len(everything)) if n % 3 < 2])
