"""Who owns which shard, by beats in Postgres and a hash that every process computes alike."""

import os
import subprocess
import sys
from datetime import timedelta

from noonmark.store.cluster.members import Membership, owner_of

SHARDS = 64


def member(world, role="trigger"):
    membership = Membership(role, shards=SHARDS, timeout_seconds=3)
    return membership, membership.beat(world.db)


def owned_by(members):
    return sorted(shard for membership in members for shard in membership.owned)


def test_a_member_alone_owns_every_shard_and_leads(world):
    membership = Membership("trigger", shards=SHARDS, timeout_seconds=3)
    assert membership.owned == ()
    assert not membership.leads

    assert membership.beat(world.db)

    assert membership.owned == tuple(range(SHARDS))
    assert membership.leads
    assert not membership.beat(world.db)


def test_the_shards_are_shared_out_exactly_once_and_one_member_leads(world):
    members = [member(world)[0] for _ in range(5)]
    for membership in members:
        membership.beat(world.db)

    assert owned_by(members) == list(range(SHARDS))
    assert [membership.leads for membership in members].count(True) == 1
    assert all(membership.owned for membership in members)


def test_a_join_moves_only_shards_to_the_newcomer_and_a_leave_moves_them_back(world):
    members = [member(world)[0] for _ in range(3)]
    for membership in members:
        membership.beat(world.db)
    before = {membership.id: set(membership.owned) for membership in members}

    newcomer, _ = member(world)
    for membership in members:
        membership.beat(world.db)
    for membership in members:
        assert set(membership.owned) <= before[membership.id]
        assert before[membership.id] - set(membership.owned) <= set(newcomer.owned)
    assert owned_by([*members, newcomer]) == list(range(SHARDS))

    newcomer.leave(world.db)
    assert (newcomer.owned, newcomer.leads) == ((), False)
    for membership in members:
        membership.beat(world.db)
    assert {membership.id: set(membership.owned) for membership in members} == before


def test_the_shards_of_a_dead_member_move_when_its_time_is_over_by_the_clock_of_the_database(world):
    (dead, _), (alive, _) = member(world), member(world)
    alive.beat(world.db)
    dead.beat(world.db)
    had = dead.owned
    assert owned_by([dead, alive]) == list(range(SHARDS))

    world.turn_clock(timedelta(seconds=2.5))
    assert not alive.beat(world.db)
    world.turn_clock(timedelta(seconds=3.5))
    assert alive.beat(world.db)

    assert alive.owned == tuple(range(SHARDS))
    assert alive.leads
    # The other one was only paused: it comes back to what it had.
    assert not dead.beat(world.db)
    assert dead.owned == had
    alive.beat(world.db)
    assert owned_by([dead, alive]) == list(range(SHARDS))


def test_roles_share_out_their_shards_apart_from_each_other(world):
    trigger, _ = member(world)
    dispatcher, _ = member(world, "dispatcher")
    trigger.beat(world.db)

    assert len(trigger.owned) == len(dispatcher.owned) == SHARDS


def test_processes_with_other_hash_seeds_give_every_shard_the_same_owner():
    script = (
        "from uuid import UUID; from noonmark.store.cluster.members import owner_of;"
        "members = [UUID(int=n * 2**64 + n) for n in range(1, 8)];"
        "print([owner_of(shard, members).int for shard in range(1000)])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "random")
    }

    assert len(answers) == 1
    assert len(answers.pop()) > 1000


def test_nobody_owns_anything_without_members():
    assert owner_of(0, []) is None
