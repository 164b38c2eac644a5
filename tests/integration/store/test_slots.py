"""Overlap slots: one run of a job has it, in batches of every size and whatever another session does meanwhile."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.integration.store.test_races import Rival

from noonmark.core.ids import uuid7_batch
from noonmark.store.limits.slots import acquire_slots

pytestmark = pytest.mark.postgres

SIZES = [3, 60]
"""Below and above the size from which slots are inserted in a savepoint."""


def requests(size: int) -> list[tuple[UUID, UUID]]:
    return list(zip(uuid7_batch(size), reversed(uuid7_batch(size)), strict=True))


def held(world) -> dict[UUID, UUID]:
    return dict(world.db.execute("select key, run_id from slots").fetchall())


@pytest.mark.parametrize("size", SIZES)
def test_a_batch_gets_the_slots_that_nobody_has(world, size):
    first = requests(size)
    second = [(run_id, job_id) for run_id, (_, job_id) in zip(uuid7_batch(2), first[:2], strict=True)]
    others = requests(size)

    assert acquire_slots(world.db, first) == {run_id for run_id, _ in first}
    assert acquire_slots(world.db, [*second, *others]) == {run_id for run_id, _ in others}
    assert held(world) == {job_id: run_id for run_id, job_id in [*first, *others]}


@pytest.mark.parametrize("size", SIZES)
def test_of_several_runs_of_a_job_the_first_gets_the_slot(world, size):
    first = requests(size)
    later = [(run_id, job_id) for run_id, (_, job_id) in zip(uuid7_batch(size), first, strict=True)]

    assert acquire_slots(world.db, [*first, *later]) == {run_id for run_id, _ in first}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("commits", [True, False])
def test_a_slot_that_another_session_acquires_meanwhile_is_had_by_one_of_them(world, size, commits):
    mine = requests(size)
    (other_run,) = uuid7_batch(1)
    job_id = mine[size // 2][1]
    other, got = world.another(), []
    other.autocommit = False
    assert acquire_slots(other, [(other_run, job_id)]) == {other_run}

    def acquire(connection):
        with connection.transaction():
            got.extend(acquire_slots(connection, mine))

    rival = Rival(world, acquire)
    rival.waits()
    other.commit() if commits else other.rollback()
    rival.ended()

    wanted = {run_id for run_id, job in mine if job != job_id or not commits}
    assert set(got) == wanted
    assert held(world)[job_id] == (other_run if commits else mine[size // 2][0])
    assert len(held(world)) == size
