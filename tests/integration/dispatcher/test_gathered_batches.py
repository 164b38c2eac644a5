"""While many runs are queued, the relay waits for more of them; a batch that was full waits for nothing."""

from __future__ import annotations

import time
from uuid import UUID

import pytest
from tests.integration.dispatcher.line import BATCH, MESSAGES_OF_RUNS, SLICES, Line

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

MANY = 50_000
LONG_SECONDS = 0.02


def hold_seconds(line: Line) -> float:
    """Return how long the next pass waits before it reads, after one that was one of many."""
    line.runs._gathering.took(MANY)
    return line.runs._gathering.left_seconds(line.runs._is_full)


def test_a_pass_that_read_few_runs_is_followed_by_a_later_one(line: Line, waiting: list[UUID]) -> None:
    line.runs.run_once(line.world.db)  # ten runs: a quarter of a batch for each slice, and all are in one

    assert len(waiting) == BATCH
    assert hold_seconds(line) > LONG_SECONDS


def test_a_pass_waits_as_long_as_it_should(line: Line, waiting: list[UUID]) -> None:
    line.runs._gathering.took(MANY)
    began = time.monotonic()
    line.runs.run_once(line.world.db)

    assert time.monotonic() - began > LONG_SECONDS
    assert line.world.count("outbox") < len(waiting)


@pytest.mark.parametrize(("lane", "share"), [(1, 1), (2, 2)])
def test_a_full_batch_is_followed_at_once(line: Line, waiting: list[UUID], lane: int, share: int) -> None:
    db = line.world.db
    for _ in range(3):
        db.execute(MESSAGES_OF_RUNS, ["good"])
    # As many of each slice; of the low lane half as many are read at once.
    db.execute("update outbox set lane = %s, slice = seq %% %s", [lane, len(SLICES)])
    before = line.world.count("outbox")

    line.runs.run_once(db)

    assert before == 4 * len(waiting)
    assert before - line.world.count("outbox") == BATCH // share
    assert hold_seconds(line) == 0


def test_a_dispatcher_that_stops_does_not_wait(line: Line, waiting: list[UUID]) -> None:
    line.service.stop.set()
    line.runs._gathering.took(MANY)

    began = time.monotonic()
    line.runs._gathering.hold(line.service.stop, lambda: 0)

    assert waiting
    assert time.monotonic() - began < LONG_SECONDS
