"""Events that runs emit: sent if and only if the run is recorded as succeeded, in order, by themselves."""

import pytest
from tests.integration.store.world import EVERY_SHARD, outcome

from noonmark.core.states import RunState
from noonmark.store.outbox import relay
from noonmark.store.outcomes.emitted_events import EmittedEvent, headers_of
from noonmark.store.outcomes.extras import OutcomeExtras


def event(number, topic="billing.invoices", key=b"k", **headers):
    return EmittedEvent(topic, key, b"%d" % number, tuple(headers.items()))


def emitted(world):
    return [row for row in relay.read(world.db, EVERY_SHARD, 1000) if row.headers is not None]


def test_events_of_a_success_are_in_the_outbox_in_the_order_they_were_emitted(world):
    worker = world.worker()
    first, second = world.started(worker, 2)
    outcomes = [outcome(run) for run in (first, second)]
    outcomes[0].extras = OutcomeExtras(emits=[event(n, a="\u00e9") for n in range(20)])
    outcomes[1].extras = OutcomeExtras(emits=[event(99, key=None)])

    world.record(worker, outcomes)

    rows = {row.seq: row for row in emitted(world)}
    of_first = [row.value for _, row in sorted(rows.items()) if row.key == b"k"]
    assert of_first == [b"%d" % n for n in range(20)]
    assert {row.slice for row in rows.values()} == {first.shard, second.shard}
    (other,) = [row for row in rows.values() if row.value == b"99"]
    assert other.key == second.job_id.bytes
    assert {row.lane for row in rows.values()} == {relay.EVENT_LANE}
    one = next(row for row in rows.values() if row.value == b"0")
    assert (one.topic, headers_of(one.headers)) == ("billing.invoices", [("a", "\u00e9".encode())])
    assert headers_of(other.headers) == []


@pytest.mark.parametrize("state", [RunState.RETRYING, RunState.DEAD, RunState.UNKNOWN, RunState.CANCELLED])
def test_an_attempt_that_did_not_succeed_has_emitted_nothing(world, state):
    worker = world.worker()
    (run,) = world.started(worker)
    if state is RunState.CANCELLED:
        world.db.execute("update runs set state = 'cancelling' where id = %s", [run.id])
    ended = outcome(run, state)
    ended.extras = OutcomeExtras(emits=[event(1)])

    world.record(worker, [ended])

    assert world.run(run.id)["state"] == state
    assert emitted(world) == []


def test_an_attempt_that_was_fenced_has_emitted_nothing(world):
    worker = world.worker()
    (run,) = world.started(worker, fence=2)
    late = outcome(run, fence=1)
    late.extras = OutcomeExtras(emits=[event(1)])

    recorded = world.record(worker, [late])

    assert len(recorded.fenced) == 1
    assert emitted(world) == []


def test_a_run_that_was_being_cancelled_has_emitted_nothing(world):
    worker = world.worker()
    (run,) = world.started(worker)
    world.db.execute("update runs set state = 'cancelling' where id = %s", [run.id])
    ended = outcome(run)
    ended.extras = OutcomeExtras(emits=[event(1)])

    recorded = world.record(worker, [ended])

    assert bool(emitted(world)) == (recorded.states[run.id] == RunState.SUCCEEDED)


def fill(world, count, *, topic="bad", slice_=0):
    world.db.execute(
        """insert into outbox (slice, lane, created_at, topic, key, value, headers)
           select %s, 3, now(), %s, 'k', n::text::bytea, '[]' from generate_series(1, %s) n""",
        [slice_, topic, count],
    )


def test_refused_events_leave_the_way_keep_their_order_and_lose_nothing(world):
    fill(world, 10)
    fill(world, 5, topic="good")
    bad = [row for row in relay.read(world.db, EVERY_SHARD, 1000) if row.topic == "bad"]

    assert relay.refuse(world.db, [(row, f"no {row.topic}") for row in bad]) == 10

    assert {row.topic for row in relay.read(world.db, EVERY_SHARD, 1000)} == {"good"}
    assert relay.count_refused(world.db, EVERY_SHARD, cap=7) == {"bad": 7}
    assert set(world.column("select refusal from outbox where lane = 4")) == {"no bad"}
    first = relay.read_refused(world.db, EVERY_SHARD, 4, after=0)
    rest = relay.read_refused(world.db, EVERY_SHARD, 100, after=first[-1].seq)
    assert [row.value for row in [*first, *rest]] == [b"%d" % n for n in range(1, 11)]
    assert relay.delete(world.db, first) == 4
    assert world.count("outbox", "lane = 4") == 6


def test_refused_events_of_slices_that_others_own_are_not_read(world):
    fill(world, 3, slice_=0)
    fill(world, 4, slice_=1)
    rows = relay.read(world.db, EVERY_SHARD, 1000)
    relay.refuse(world.db, [(row, "no") for row in rows])

    assert len(relay.read_refused(world.db, [1], 100, after=0)) == 4
    assert relay.count_refused(world.db, [1], cap=100) == {"bad": 4}


def test_a_row_that_was_sent_meanwhile_is_not_refused(world):
    fill(world, 2)
    rows = relay.read(world.db, EVERY_SHARD, 1000)
    relay.delete(world.db, rows[:1])

    assert relay.refuse(world.db, [(row, "no") for row in rows]) == 1


def test_refused_events_hold_no_claims_back(world):
    fill(world, 50)
    world.db.execute("update outbox set created_at = now() - interval '1 hour'")
    rows = relay.read(world.db, EVERY_SHARD, 1000)
    relay.refuse(world.db, [(row, "no") for row in rows])

    assert all(p.age_seconds is None and p.rows == 0 for p in relay.pressure(world.db, EVERY_SHARD, cap=10))
