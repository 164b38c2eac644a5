"""Limits and caps: runs wait for room, and are queued when there is some."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.integration.store.room import (
    claim,
    due_jobs,
    finish,
    limit,
    promote,
    queued,
    settle,
    states,
    states_of,
)
from tests.integration.store.world import TOPICS, outcome
from tests.support.settings_orders import set_max_in_flight

from noonmark.core.states import Lane, RunState
from noonmark.store.claims import claims
from noonmark.store.limits import promotion
from noonmark.store.limits.wait_queue import reset_waits
from noonmark.store.runs import leases

LIMIT = ("waiting", "limit")
QUEUED = ("queued", None)


def test_a_run_under_a_limit_waits_without_a_message_and_is_queued_when_there_is_room(world):
    limit(world, "api", max_running=2)
    jobs = due_jobs(world, 3, "api")

    claim(world)
    assert states_of(world, jobs) == [LIMIT] * 3
    assert world.count("outbox") == 0
    assert world.count("waits", "limit_name = 'api'") == 3
    assert settle(world) == 2

    assert states_of(world, jobs) == [QUEUED, QUEUED, LIMIT]
    first = world.runs_of(jobs[0])[0]
    assert (first["fence"], first["holds_slot"]) == (2, True)
    assert [message["fence"] for message in world.messages(first["id"])] == [2]
    assert world.column("select slot_no from limit_slots order by 1") == [0, 1]
    assert settle(world) == 0

    assert finish(world, [first["id"]]) is True
    assert settle(world) == 1
    assert states_of(world, jobs) == [("succeeded", None), QUEUED, QUEUED]
    assert world.count("waits") == 0


def test_the_end_of_a_run_that_nobody_waits_for_tells_nobody(world):
    limit(world, "api", max_running=2)
    due_jobs(world, 1, "api")
    claim(world)
    settle(world)

    assert finish(world, queued(world)) is False
    assert world.count("limit_slots") == 0


def test_each_key_of_a_limit_has_a_count_of_its_own(world):
    limit(world, "api", max_running=1)
    jobs = due_jobs(world, 2, ("api", "customer 1")) + due_jobs(world, 2, ("api", "customer 2"))

    claim(world)

    assert settle(world) == 2
    assert states_of(world, jobs) == [QUEUED, LIMIT, QUEUED, LIMIT]


def test_a_slot_is_kept_through_a_retry_and_freed_with_the_verdict(world):
    limit(world, "api", max_running=1)
    (job_id,) = due_jobs(world, 1, "api")
    claim(world)
    settle(world)
    finish(world, queued(world), RunState.RETRYING, error="boom")
    assert states(world, job_id) == [("retrying", None)]
    assert world.count("limit_slots") == 1

    retry(world)

    assert states(world, job_id) == [LIMIT]
    assert settle(world) == 1
    assert world.count("limit_slots") == 1
    finish(world, queued(world), RunState.DEAD, error="boom", reason="retries_exhausted")
    assert world.count("limit_slots") == 0


def retry(world):
    return claims.claim_retries(world.db, Lane.NORMAL, (0, 1, 2, 3), 100)


def test_a_rate_lets_a_burst_through_and_then_so_many_by_time(world):
    limit(world, "api", rate_count=60, rate_seconds=60.0, burst=3)
    due_jobs(world, 10, "api")
    claim(world)

    done = promote(world)
    assert done.queued.total() == 3
    assert done.next_seconds == pytest.approx(1.0, abs=0.2)
    assert settle(world) == 0

    world.turn_clock(timedelta(seconds=2.5))
    assert settle(world) == 2
    world.turn_clock(timedelta(seconds=1000))
    assert settle(world) == 3


def test_a_clock_that_is_put_back_stops_no_bucket(world):
    limit(world, "api", rate_count=60, rate_seconds=60.0, burst=1)
    due_jobs(world, 3, "api", ago=7200.0)
    claim(world)
    assert settle(world) == 1

    world.turn_clock(timedelta(hours=-1))
    assert settle(world) == 0
    world.turn_clock(timedelta(hours=-1, seconds=1.1))

    assert settle(world) == 1
    # Nor does it give more when it is right again: a bucket holds its burst.
    world.turn_clock(timedelta())
    assert settle(world) == 1


def test_a_retry_takes_a_token_as_the_first_attempt_did(world):
    limit(world, "api", rate_count=1, rate_seconds=3600.0)
    (job_id,) = due_jobs(world, 1, "api")
    claim(world)
    assert settle(world) == 1
    finish(world, queued(world), RunState.RETRYING, error="boom")

    retry(world)

    assert settle(world) == 0
    assert states(world, job_id) == [LIMIT]
    world.turn_clock(timedelta(hours=1))
    assert settle(world) == 1


def test_a_run_that_another_limit_holds_up_stands_in_nobodys_way(world):
    limit(world, "wide", max_running=2)
    limit(world, "narrow", max_running=1)
    first = due_jobs(world, 30, "wide", "narrow", ago=9)
    second = due_jobs(world, 1, "wide", ago=1)
    claim(world)

    assert settle(world) == 2

    assert states_of(world, first).count(QUEUED) == 1
    assert states_of(world, second) == [QUEUED]
    assert world.count("waits", "limit_name = 'narrow'") + world.count("waits", "limit_name = 'wide'") == 29
    # Whoever moved into the line of the narrow limit keeps its place by age.
    finish(world, [world.runs_of(first[0])[0]["id"]])
    assert settle(world) == 1
    assert states_of(world, first[:2]) == [("succeeded", None), QUEUED]


def test_high_goes_first_and_then_the_oldest(world):
    limit(world, "api", max_running=3)
    low = due_jobs(world, 3, "api", lane=Lane.LOW, ago=60)
    old = due_jobs(world, 2, "api", ago=30)
    high = due_jobs(world, 1, "api", lane=Lane.HIGH, ago=1)
    claim(world)

    settle(world)

    assert states_of(world, high + old) == [QUEUED] * 3
    assert states_of(world, low) == [LIMIT] * 3


def test_a_limit_that_is_raised_or_dropped_lets_waiting_runs_go(world):
    limit(world, "api", max_running=1)
    jobs = due_jobs(world, 5, "api")
    claim(world)
    assert settle(world) == 1

    limit(world, "api", max_running=3)
    assert settle(world) == 2
    limit(world, "api", max_running=1)
    finish(world, queued(world)[:1])
    assert settle(world) == 0
    world.db.execute("delete from limits")
    assert settle(world) == 2
    assert LIMIT not in states_of(world, jobs)


def test_a_job_that_is_edited_to_have_no_limit_lets_its_waiting_runs_go(world):
    limit(world, "api", max_running=1)
    jobs = due_jobs(world, 2, "api")
    claim(world)
    settle(world)

    world.db.execute("update jobs set policy = null where id = %s", [jobs[1]])
    assert reset_waits(world.db, jobs[1])
    assert settle(world) == 1
    assert states_of(world, jobs) == [QUEUED, QUEUED]
    assert world.run(world.runs_of(jobs[1])[0]["id"])["holds_slot"] is False


def test_a_start_deadline_ends_the_wait_also_while_there_is_no_room(world):
    limit(world, "api", max_running=1)
    jobs = due_jobs(world, 3, "api", start_deadline_seconds=30)
    claim(world)
    settle(world)

    world.turn_clock(timedelta(minutes=1))
    done = promote(world)

    assert states_of(world, jobs) == [QUEUED] + [("skipped", "start_deadline")] * 2
    assert done.expired == {Lane.NORMAL: 2}
    assert [told["reason"] for told in world.told()] == ["start_deadline"] * 2
    assert world.count("waits") == 0


def test_a_retry_under_a_limit_has_no_start_deadline(world):
    limit(world, "api", max_running=1)
    (job_id,) = due_jobs(world, 1, "api", start_deadline_seconds=30)
    claim(world)
    settle(world)
    finish(world, queued(world), RunState.RETRYING, error="boom")
    world.turn_clock(timedelta(minutes=1))

    retry(world)

    assert settle(world) == 1
    assert states(world, job_id) == [QUEUED]


def test_two_triggers_at_once_give_out_no_slot_twice(world):
    limit(world, "api", max_running=7)
    jobs = due_jobs(world, 60, "api")
    claim(world)
    sessions = [world.another() for _ in range(4)]

    def work(connection):
        return sum(promote(world, connection).queued.total() for _ in range(10))

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(work, sessions)) == 7
    assert states_of(world, jobs).count(QUEUED) == 7
    assert world.column("select slot_no from limit_slots order by 1") == list(range(7))


def test_a_pass_beside_another_leaves_at_once_and_comes_back_soon(world):
    limit(world, "api", max_running=7)
    due_jobs(world, 1, "api")
    claim(world)
    other = world.another()

    with other.transaction():
        other.execute("select pg_advisory_xact_lock(%s)", [promotion._LOCK])
        done = promote(world)

    assert done.queued.total() == 0
    assert done.next_seconds is not None
    assert done.next_seconds < 1
    assert settle(world) == 1


def test_more_lines_than_a_pass_looks_at_are_all_reached(world, monkeypatch):
    monkeypatch.setattr(promotion, "_QUEUES_SQL_LIMIT", 3)
    limit(world, "api", max_running=1)
    for n in range(8):
        due_jobs(world, 2, ("api", f"customer {n}"))
    claim(world)

    total, from_key = 0, promotion.UNCHECKED_QUEUE
    for _ in range(20):
        done = promotion.promote(world.db, TOPICS, install_shards=4, from_key=from_key)
        total, from_key = total + done.queued.total(), done.from_key
    assert total == 8


def test_a_pass_ends_when_it_has_looked_at_enough_and_the_next_goes_on(world, monkeypatch):
    monkeypatch.setattr(promotion, "_PER_PASS", 5)
    for n in range(4):
        limit(world, f"l{n}", rate_count=1000, rate_seconds=1.0)
        due_jobs(world, 5, f"l{n}")
    claim(world)

    first = promote(world)

    assert first.queued.total() == 5
    assert first.more
    assert first.from_key != promotion.UNCHECKED_QUEUE


# Caps of namespaces


def test_a_cap_holds_the_runs_of_its_namespace_and_of_no_other(world):
    set_max_in_flight(world.db, "noisy", 2)
    noisy = due_jobs(world, 50, namespace="noisy", ago=60)
    quiet = due_jobs(world, 2, namespace="quiet", ago=1)

    claim(world)
    assert states_of(world, noisy) == [("waiting", "fairness")] * 50
    assert states_of(world, quiet) == [QUEUED] * 2
    assert settle(world) == 2

    finish(world, [world.runs_of(noisy[0])[0]["id"]])
    assert settle(world) == 1
    set_max_in_flight(world.db, "noisy", None)
    assert settle(world) == 47


def test_each_lane_of_a_namespace_has_a_cap_of_its_own(world):
    set_max_in_flight(world.db, "tests", 1)
    low = due_jobs(world, 3, lane=Lane.LOW, ago=60)
    high = due_jobs(world, 2, lane=Lane.HIGH)
    claim(world)

    assert settle(world) == 2
    assert states_of(world, low).count(QUEUED) == 1
    assert states_of(world, high).count(QUEUED) == 1


def test_namespaces_are_queued_in_turn(world):
    for name in ("a", "b"):
        set_max_in_flight(world.db, name, 100)
    a = due_jobs(world, 20, namespace="a", ago=60)
    b = due_jobs(world, 3, namespace="b", ago=1)
    claim(world)

    settle(world)

    order = queued(world)
    place = {run_id: n for n, run_id in enumerate(order)}
    assert [place[world.runs_of(job_id)[0]["id"]] // 2 for job_id in b] == [0, 1, 2]
    assert len(order) == len(a) + len(b)


def test_a_cap_comes_on_top_of_a_limit(world):
    set_max_in_flight(world.db, "tests", 2)
    limit(world, "api", max_running=3)
    jobs = due_jobs(world, 4, "api") + due_jobs(world, 4)
    claim(world)

    assert settle(world) == 2
    assert world.count("limit_slots", "limit_name is null") == 2
    assert len(states_of(world, jobs)) == 8


def test_capping_a_namespace_has_its_one_time_instants_planned(world):
    jobs = world.due_once(6, ago=-timedelta(hours=1))
    other = world.due_once(1, ago=-timedelta(hours=1))
    world.db.execute("update jobs set namespace = 'x' where id = any (%s)", [other])
    world.db.execute("update timers set namespace = 'x' where job_id = any (%s)", [other])
    world.db.execute('update jobs set schedule = \'{"run_at": "2030-01-01T00:00:00Z"}\'')

    assert set_max_in_flight(world.db, "tests", 3) is True

    assert world.column("select distinct kind from timers where job_id = any (%s)", jobs) == [1]
    assert world.column("select kind from timers where job_id = any (%s)", other) == [0]
    assert set_max_in_flight(world.db, "tests", 3) is False
    world.turn_clock(timedelta(hours=2))
    claim(world)
    assert settle(world) == 6  # two of each of the three lanes


def test_nobody_pays_for_what_nobody_uses(world):
    jobs = due_jobs(world, 3)

    claim(world)

    assert states_of(world, jobs) == [QUEUED] * 3
    assert promotion.has_waiting_runs(world.db) is False
    assert (world.count("waits"), world.count("limit_slots")) == (0, 0)


def test_a_run_that_is_lost_keeps_its_slot_and_needs_no_other(world):
    limit(world, "api", max_running=1)
    (job_id,) = due_jobs(world, 1, "api")
    claim(world)
    settle(world)
    worker = world.worker()
    (run,) = world.start(worker, queued(world))
    world.db.execute("update workers set lapsed_at = now(), epoch = epoch + 1")
    leases.run_pass(world.db, TOPICS, shards=4, gap_seconds=5)

    assert states(world, job_id) == [QUEUED]
    assert world.count("limit_slots") == 1
    assert world.record(worker, [outcome(run, fence=2)]).fenced
