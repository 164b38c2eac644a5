"""The faults of a day, drawn by the seed: what breaks, when, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from noonmark.core.faults import POINTS

if TYPE_CHECKING:
    from tests.simulation.day import Day
    from tests.simulation.worker import Worker

Fault = Callable[["Day", Random], None]
FAULTS = 30
# Neither the observer, the outboxes of applications nor workflows are simulated.
KILL_POINTS = tuple(
    point
    for point in POINTS
    if not point.startswith(("observer.", "workflow.")) and point != "dispatcher.after_accept"
)
_CUT_POINTS = tuple(point for point in KILL_POINTS if not point.startswith("intake"))


def kill_at_a_point(day: Day, dice: Random) -> None:
    """Kill the next service that passes a point, between two of its steps."""
    day.world.armed[dice.choice(KILL_POINTS)] = "kill"


def cut_at_a_point(day: Day, dice: Random) -> None:
    """Break the database connection of the next service that passes a point."""
    day.world.armed[dice.choice(_CUT_POINTS)] = "cut"


def kill_worker(day: Day, dice: Random) -> None:
    """Lose a worker with all that it runs."""
    day.when(lambda worker: worker.die(dice.uniform(1, 1200)), in_flight, 7.0)


def pause_worker(day: Day, dice: Random) -> None:
    """Stop a worker for longer than its lease; then it continues where it was."""
    day.when(lambda worker: worker.pause(dice.uniform(900, 2400)), in_flight, 7.0)


def pause_worker_before_it_begins(day: Day, _dice: Random) -> None:
    """Stop a worker that has taken runs and begun none of them, until others have long run them."""
    day.when(lambda worker: worker.pause(2400), lambda worker: len(worker.unbegun()), 0.2)


def kill_worker_with_a_full_buffer(day: Day, _dice: Random) -> None:
    """Lose a worker that has read more messages than it has slots."""
    day.when(lambda worker: worker.die(600), lambda worker: worker.buffered(), 0.2)


def in_flight(worker: Worker) -> int:
    """Return the number of runs that a worker has in flight."""
    return len(worker.in_flight)


def skew_clock(day: Day, dice: Random) -> None:
    """Set the clock of the host wrong, by up to an hour."""
    day.world.time.skew = timedelta(seconds=dice.uniform(-3600, 3600))


def broker_away(day: Day, dice: Random) -> None:
    """Have the broker answer nothing for minutes."""
    day.world.broker.away_until = day.world.seconds + dice.uniform(60, 900)


def triggers_down(day: Day, dice: Random) -> None:
    """Have no trigger over due instants, so that misfire policies decide."""
    for trigger in day.triggers:
        trigger.die(dice.uniform(600, 7200))


def kill_dispatcher(day: Day, dice: Random) -> None:
    """Lose a dispatcher; the other one has all slices after a while."""
    dice.choice(day.dispatchers).die(dice.uniform(1, 1200))


def move_partitions(day: Day, dice: Random) -> None:
    """Give partitions to other workers while records of them are in flight."""
    day.rebalance(dice)


def store_twice(day: Day, dice: Random) -> None:
    """Have the broker store many records twice and deliver late, until the next such fault."""
    day.world.broker.twice = dice.choice((0.0, 0.1, 0.3))
    day.world.broker.late = dice.choice((0.1, 2.0, 30.0))


ALL: tuple[Fault, ...] = (
    kill_at_a_point,
    kill_at_a_point,
    kill_at_a_point,
    cut_at_a_point,
    cut_at_a_point,
    kill_worker,
    pause_worker,
    skew_clock,
    broker_away,
    triggers_down,
    kill_dispatcher,
    move_partitions,
    store_twice,
)


def planned(dice: Random, seconds: float) -> Iterator[tuple[float, Fault]]:
    """Yield the faults of a day of so many seconds: each kind once, the rest at random."""
    kinds = [*ALL, *dice.choices(ALL, k=FAULTS - len(ALL))]
    for kind in kinds:
        yield dice.uniform(0.02, 0.95) * seconds, kind
