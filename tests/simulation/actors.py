"""Actors: services of which the event loop makes one step at a time; each can die, pause and lose its connection."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import psycopg
from tests.simulation.broker import Broker
from tests.simulation.virtual_time import VirtualTime
from tests.support.virtual_clock import tell_time

from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.database.connect import connect
from noonmark.telemetry.logs import get_logger

if TYPE_CHECKING:
    from tests.simulation.worker import Target


class Killed(BaseException):
    """Stands for a kill -9 of an actor at the fault point where it is raised."""


@dataclass
class World:
    """What the actors share.

    Attributes:
        url: of the database.
        db: a connection of the day itself.
        shards: of the installation.
        time: the virtual clock.
        broker: the broker in memory.
        dice: the seed's dice for delays and handlers.
        target: what virtual handlers did.
        flaws: names of the mistakes that actors make on purpose, so that tests see the checker report them.
        armed: fault point to what happens there next: `kill` or `cut`.
        counts: what happened, for the summary.
        acting: the actor whose step this is.
    """

    url: str
    db: psycopg.Connection
    shards: int
    time: VirtualTime
    broker: Broker
    dice: Random
    target: Target
    flaws: frozenset[str] = frozenset()
    armed: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    acting: Actor | None = None

    @property
    def seconds(self) -> float:
        """The time in seconds of the clock that never jumps."""
        return self.time.monotonic()

    def hit(self, point: str) -> None:
        """Kill the acting service, or cut its connection, if this point is armed.

        Raises:
            Killed: the actor dies here.
            psycopg.OperationalError: the connection broke after a COMMIT was sent, so its result is unknown.
                If it breaks before, the next statement raises, be it the COMMIT.
        """
        what = self.armed.pop(point, None)
        if what is None or self.acting is None:
            return
        self.counts[f"{what} at {point}"] += 1
        if what == "kill":
            raise Killed(point)
        self.acting.cut()
        if ".after_" in point:
            raise psycopg.OperationalError("the connection was cut")

    def service(self, role: str, **settings: object) -> Service:
        """Return what a loop of the product needs to know of its process."""
        return Service(
            role,
            Settings(database_url=self.url, claim_pause_ms=0, **settings),  # type: ignore[arg-type]
            Health(),
            threading.Event(),
            get_logger(),
        )


class Actor(ABC):
    """One process of a service.

    Attributes:
        wakes_at: when its next step is due, in seconds.
        held_until: it is dead or paused until then.
        has_news: its last step wrote something that others wait for.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.wakes_at = world.seconds
        self.held_until = 0.0
        self.has_news = False
        self._connection: psycopg.Connection | None = None
        self.start()

    @abstractmethod
    def start(self) -> None:
        """Begin with an empty memory, as a new process does."""

    @abstractmethod
    def step(self, connection: psycopg.Connection) -> float:
        """Make one step; return the seconds until the next one."""

    def wake(self, seconds: float) -> None:
        """Make the next step in so many seconds, or earlier."""
        self.wakes_at = min(self.wakes_at, self.world.seconds + seconds)

    @property
    def due_at(self) -> float:
        """When the next step can be made."""
        return max(self.wakes_at, self.held_until)

    def act(self) -> None:
        """Make a step; a death or a broken connection has its consequences here."""
        self.world.acting = self
        self.has_news = False
        try:
            pause = self.step(self.connection())
        except Killed:
            self.die(self.world.dice.uniform(1, 120))
        except psycopg.OperationalError as error:
            self.world.counts[f"{type(error).__name__} of {self.name}"] += 1
            self.disconnect()
            self.wakes_at = self.world.seconds + self.world.dice.uniform(0.1, 1)
        else:
            self.wakes_at = self.world.seconds + max(pause, 0.001)

    def connection(self) -> psycopg.Connection:
        """Return the connection, with the clock turned to now."""
        if self._connection is None or self._connection.closed:
            self._connection = connect(self.world.url, application=self.name, autocommit=True)
        tell_time(self._connection, self.world.time.now)
        return self._connection

    def cut(self) -> None:
        """Break the connection as the network does: it rolls back, and this side finds out at its next use."""
        if self._connection is not None and not self._connection.closed:
            self.world.db.execute(
                "select pg_terminate_backend(%s, 10000)", [self._connection.info.backend_pid]
            )

    def disconnect(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def die(self, seconds: float) -> None:
        """Lose the memory and the connection, and start again in so many seconds."""
        self.disconnect()
        self.held_until = self.wakes_at = self.world.seconds + seconds
        self.start()

    def pause(self, seconds: float) -> None:
        """Stand still, with everything in memory, as after SIGSTOP."""
        self.held_until = self.world.seconds + seconds
