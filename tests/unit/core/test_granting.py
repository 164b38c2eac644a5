"""Who of the waiting runs is queued: lanes, turns of namespaces, slots, tokens."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.planning.promotion import (
    Candidate,
    Gate,
    GateCapacity,
    GateLimit,
    fairness_gate,
    filled,
    gates_of,
    grant,
    limit_gate,
    overlap_gate,
    round_robin,
)
from noonmark.core.states import WaitReason

T0 = datetime(2026, 5, 4, tzinfo=UTC)
JOB = UUID(int=77)
API = limit_gate("shop", "api", None)
MAIL = limit_gate("shop", "mail", None)


def run(
    number: int, *gates: Gate, lane: int = 1, namespace: str = "shop", since: float = 0, holds=()
) -> Candidate:
    return Candidate(
        UUID(int=number), namespace, lane, T0 + timedelta(seconds=since), gates, frozenset(holds)
    )


def numbers(candidates) -> list[int]:
    return [candidate.run_id.int for candidate in candidates]


def passed(decisions) -> list[int]:
    return [d.candidate.run_id.int for d in decisions if d.blocked_by is None]


def test_high_goes_first_and_in_a_lane_each_namespace_in_turn() -> None:
    runs = [run(n, lane=2, since=-100) for n in (1, 2)]
    runs += [run(n, since=n) for n in (10, 11, 12, 13)]
    runs += [run(n, namespace="b", since=n) for n in (20, 21)]
    runs += [run(30, lane=0, since=99)]

    assert numbers(round_robin(runs)) == [30, 10, 20, 11, 21, 12, 13, 1, 2]


def test_slots_get_the_lowest_free_numbers() -> None:
    room = GateCapacity(GateLimit(max_running=4), taken={0, 2})

    decisions = grant([run(n, API, since=n) for n in range(4)], {API.key: room})

    assert [d.slots for d in decisions] == [[(API.key, 1)], [(API.key, 3)], [], []]
    assert [d.blocked_by for d in decisions] == [None, None, API, API]


def test_slots_of_a_wide_limit_are_found_in_one_walk() -> None:
    class Looks(set):
        looks = 0

        def __contains__(self, number: object) -> bool:
            self.looks += 1
            return super().__contains__(number)

    taken = Looks(range(5000))
    room = GateCapacity(GateLimit(max_running=10_000), taken=taken)

    decisions = grant([run(n, API, since=n) for n in range(300)], {API.key: room})

    assert [d.slots for d in decisions] == [[(API.key, n)] for n in range(5000, 5300)]
    assert taken.looks < 6000


def test_a_limit_that_a_job_names_twice_is_one_gate() -> None:
    gates = gates_of(JOB, "shop", 1, [("api", None), ("api", None), ("api", "a")], "allow", capped=False)
    room = GateCapacity(GateLimit(max_running=1))

    (decision,) = grant([run(1, *gates)], {API.key: room})

    assert [(gate.name, gate.part) for gate in gates] == [("api", None), ("api", "a")]
    assert decision.slots == [(API.key, 0)]


def test_a_limit_that_was_lowered_gives_no_slot_while_more_are_taken() -> None:
    room = GateCapacity(GateLimit(max_running=2), taken={5, 6})

    assert room.left == 0
    assert passed(grant([run(1, API)], {API.key: room})) == []


def test_a_run_that_holds_a_slot_needs_no_other_but_a_token() -> None:
    room = GateCapacity(GateLimit(max_running=1, rate_per_second=1.0, burst=1), taken={0}, tokens=1.0)

    decisions = grant([run(1, API, holds=[API.key]), run(2, API, holds=[API.key], since=1)], {API.key: room})

    assert [(d.blocked_by, d.slots, d.tokens) for d in decisions] == [(None, [], [API.key]), (API, [], [])]


def test_who_is_held_up_takes_nothing_of_the_limits_before_it() -> None:
    rooms = {
        API.key: GateCapacity(GateLimit(max_running=1)),
        MAIL.key: GateCapacity(GateLimit(max_running=1), taken={0}),
    }

    decisions = grant([run(1, API, MAIL), run(2, API, since=1)], rooms)

    assert [d.blocked_by for d in decisions] == [MAIL, None]


def test_the_overlap_slot_is_taken_also_by_who_is_held_up_after_it() -> None:
    slot = overlap_gate(JOB, "shop")
    rooms = {slot.key: GateCapacity(GateLimit(1)), API.key: GateCapacity(GateLimit(max_running=1), taken={0})}

    decisions = grant([run(1, slot, API), run(2, slot, API, since=1)], rooms)

    assert [(d.overlap, d.blocked_by) for d in decisions] == [(True, API), (False, slot)]


def test_a_gate_without_a_rule_is_open() -> None:
    assert passed(grant([run(n, API) for n in range(50)], {})) == list(range(50))


@pytest.mark.parametrize(
    ("tokens", "seconds", "expected"),
    [(None, 0, 20.0), (0.0, 3, 6.0), (0.0, 1000, 20.0), (1.5, -5, 1.5), (25.0, 0, 20.0)],
)
def test_a_bucket_fills_by_its_rate_up_to_its_burst(tokens, seconds, expected) -> None:
    assert filled(tokens, seconds, GateLimit(rate_per_second=2.0, burst=20)) == expected


def test_a_bucket_tells_when_its_next_token_comes() -> None:
    assert GateCapacity(GateLimit(rate_per_second=0.5, burst=1), tokens=0.25).next_token_seconds == 1.5
    assert GateCapacity(GateLimit(rate_per_second=0.5, burst=1), tokens=1.0).next_token_seconds is None
    assert GateCapacity(GateLimit(max_running=1)).next_token_seconds is None
    # Ten tenths are a token, whatever binary fractions make of them.
    assert GateCapacity(GateLimit(rate_per_second=1.0, burst=1), tokens=sum([0.1] * 10)).left == 1


def test_keys_of_gates_differ_however_names_and_parts_are_cut() -> None:
    gates = [
        limit_gate("a", "bc", None),
        limit_gate("ab", "c", None),
        limit_gate("a", "b", "c"),
        limit_gate("a", "b", ""),
        limit_gate("a", "b", None),
        limit_gate("a", "1:b", None),
        limit_gate("in flight", "b", None),
        fairness_gate("a", 0),
        fairness_gate("a", 1),
        fairness_gate("limit", 1),
    ]
    assert len({gate.key for gate in gates}) == len(gates)
    assert limit_gate("a", "b", "c") == limit_gate("a", "b", "c")
    # Slots in the database outlive every release: a key must never change.
    assert str(limit_gate("default", "api", None).key) == KEY_OF_API


KEY_OF_API = "9a2e057f-42db-a1d1-9f5b-01f5759b2001"


def test_gates_come_in_their_order() -> None:
    limits = [("api", None), ("mail", "k")]
    reasons = [g.reason for g in gates_of(JOB, "shop", 1, limits, "queue_one", capped=True)]
    assert reasons == [WaitReason.OVERLAP, WaitReason.LIMIT, WaitReason.LIMIT, WaitReason.FAIRNESS]
    assert [g.key for g in gates_of(JOB, "shop", 1, (), "skip", capped=False)] == [JOB]
    assert gates_of(JOB, "shop", 1, (), "allow", capped=False) == []


GATES = [limit_gate("shop", name, None) for name in "abc"]
CANDIDATES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from("xyz"),
        st.floats(0, 100, allow_nan=False),
        st.sets(st.sampled_from(range(3))),
        st.sets(st.sampled_from(range(3))),
    ),
    max_size=40,
)
RULES = st.tuples(st.none() | st.integers(1, 5), st.none() | st.integers(1, 5)).map(
    lambda pair: GateLimit(pair[0], None if pair[1] is None else 1.0, float(pair[1] or 1))
)


@given(CANDIDATES, st.tuples(RULES, RULES, RULES), st.tuples(*[st.sets(st.integers(0, 6))] * 3))
def test_no_gate_lets_more_through_than_it_has_room_for(drawn, rules, taken) -> None:
    """Whatever waits: slots are given once, tokens are not overdrawn, and nobody waits for nothing."""
    rooms = {
        gate.key: GateCapacity(rule, set(held), rule.burst)
        for gate, rule, held in zip(GATES, rules, taken, strict=True)
    }
    runs = [
        run(
            n,
            *[GATES[g] for g in sorted(needs)],
            lane=lane,
            namespace=space,
            since=since,
            holds=[GATES[g].key for g in holds],
        )
        for n, (lane, space, since, needs, holds) in enumerate(drawn)
    ]

    decisions = grant(runs, rooms)

    assert sorted(d.candidate.run_id.int for d in decisions) == list(range(len(runs)))
    slots = [slot for d in decisions for slot in d.slots]
    tokens = Counter(key for d in decisions for key in d.tokens)
    assert len(slots) == len(set(slots))
    for gate, rule, before in zip(GATES, rules, taken, strict=True):
        mine = {number for key, number in slots if key == gate.key}
        assert not mine & before
        assert len(mine | before) <= max(len(before), rule.max_running or len(mine | before))
        assert rule.rate_per_second is None or tokens[gate.key] <= rule.burst
        if rule.max_running is not None:
            assert all(number < rule.max_running for number in mine)
    for decision in decisions:
        if decision.blocked_by is None:
            continue
        assert decision.slots == []
        assert decision.tokens == []
        room = rooms[decision.blocked_by.key]
        assert not room.admits(holding=decision.blocked_by.key in decision.candidate.holds)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abcd")), max_size=60))
def test_no_namespace_is_more_than_one_turn_ahead_of_another(drawn) -> None:
    runs = [run(n, lane=lane, namespace=space, since=n) for n, (lane, space) in enumerate(drawn)]
    for lane in range(3):
        served: Counter[str] = Counter()
        left = Counter(c.namespace for c in runs if c.lane == lane)
        for candidate in round_robin([c for c in runs if c.lane == lane]):
            served[candidate.namespace] += 1
            still = [name for name in left if served[name] < left[name]]
            assert all(served[candidate.namespace] - served[name] <= 1 for name in still)
