"""Rendezvous hashing: every shard has one owner, and only what must move moves."""

from collections import Counter
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.core.ids import shard_of, uuid7_batch
from noonmark.store.cluster.members import owner_of

members = st.lists(st.uuids(), min_size=1, max_size=12, unique=True)
SHARDS = range(128)


def shares(of: list[UUID]) -> dict[int, UUID | None]:
    return {shard: owner_of(shard, of) for shard in SHARDS}


@given(members)
def test_every_shard_has_exactly_one_owner_among_the_members(alive):
    assert set(shares(alive).values()) <= set(alive)


@given(members, st.randoms())
def test_the_order_in_which_members_are_listed_does_not_matter(alive, random):
    shuffled = list(alive)
    random.shuffle(shuffled)

    assert shares(alive) == shares(shuffled)


@given(members, st.uuids())
def test_a_newcomer_takes_shards_and_moves_none_between_the_others(alive, newcomer):
    before, after = shares(alive), shares([*alive, newcomer])

    assert all(after[shard] in {before[shard], newcomer} for shard in SHARDS)


@given(st.lists(st.uuids(), min_size=2, max_size=12, unique=True), st.data())
def test_when_a_member_dies_only_its_shards_move(alive, data):
    dead = data.draw(st.sampled_from(alive))
    before, after = shares(alive), shares([member for member in alive if member != dead])

    moved = {shard for shard in SHARDS if before[shard] != after[shard]}
    assert moved == {shard for shard in SHARDS if before[shard] == dead}


@settings(max_examples=20)
@given(st.integers(2, 8))
def test_members_get_about_the_same(count):
    counts = Counter(owner_of(shard, uuid7_members(count)) for shard in range(1024))

    assert len(counts) == count
    assert max(counts.values()) < 1.5 * 1024 / count


def uuid7_members(count: int) -> list[UUID]:
    """Ids as processes that start together draw them: they differ little at the front."""
    return [UUID(int=(1 << 120) | (7 << 76) | (n << 64) | (2 << 62) | n) for n in range(count)]


def test_jobs_that_were_made_together_are_spread_over_the_shards():
    counts = Counter(shard_of(job_id, 8) for job_id in uuid7_batch(8000))

    assert set(counts) == set(range(8))
    assert max(counts.values()) < 1200


def test_the_shard_of_a_job_never_changes():
    assert shard_of(UUID("01a21f90-4126-7967-bfbc-1e43b45048b1"), 4) == 1
    assert shard_of(UUID("01a21f90-4126-7967-bfbc-1e43b45048b1"), 1024) == 177
