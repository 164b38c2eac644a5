"""Rows of the outbox that somebody has locked: sent once, and no other waits for them."""

from __future__ import annotations

import psycopg
import pytest
from tests.integration.dispatcher.line import BATCH, SLICES, Line, counted, queue_runs

from noonmark.core.states import Lane
from noonmark.store.outbox import relay

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


def test_a_locked_row_is_sent_once_and_holds_up_no_other(line: Line, other: psycopg.Connection) -> None:
    topic = line.topic("events")
    queue_runs(line, BATCH, Lane.LOW)
    line.emit(topic, "one", "two")
    with other.transaction():
        held = {
            other.execute(
                "select seq from outbox where lane = %s order by seq limit 1 for update", [lane]
            ).fetchall()[0][0]
            for lane in (int(Lane.LOW), 3)
        }
        line.pass_until(lambda: set(line.world.column("select seq from outbox")) == held)
        # The claims of the slice continue: a locked row is no sign that the relay is behind.
        assert {p.age_seconds for p in relay.pressure(line.world.db, SLICES, cap=1000)} == {None}
        queue_runs(line, BATCH, Lane.HIGH)
        line.pass_until(lambda: set(line.world.column("select seq from outbox")) == held)
        for _ in range(5):
            line.runs.run_once(line.world.db)
            line.events.run_once(line.world.db)

    line.pass_until(lambda: line.world.count("outbox") == 0)
    for lane in (Lane.LOW, Lane.HIGH):
        assert counted(line, line.topics.runs("good", lane)) == BATCH
    assert counted(line, topic) == 2
    assert not line.runs.locked
    assert not line.events.locked


def test_locked_rows_of_slices_that_another_dispatcher_takes_over_are_forgotten(
    line: Line, other: psycopg.Connection
) -> None:
    queue_runs(line, 1, Lane.NORMAL)
    with other.transaction():
        other.execute("select from outbox for update")
        for _ in range(3):
            line.runs.run_once(line.world.db)
        assert len(line.runs.locked) == 1
        line.runs._membership.owned = (2, 3)
        line.pass_until(lambda: not line.runs.locked)
    assert line.world.count("outbox") == 1


@pytest.mark.parametrize("what", ["run", "event"])
def test_a_lock_on_what_kafka_refuses_holds_up_no_other(
    line: Line, other: psycopg.Connection, what: str
) -> None:
    if what == "event":
        line.emit(f"{line.prefix}x.missing", "refused")
    else:
        queue_runs(line, 1, Lane.NORMAL, "keyless")
    with other.transaction():
        other.execute("select from outbox for update")
        queue_runs(line, BATCH, Lane.NORMAL)
        line.emit(line.topic("events"), "one")
        line.pass_until(lambda: line.world.count("outbox") == 1)
    line.pass_until(lambda: line.world.count("outbox", "lane < 4") == 0)
