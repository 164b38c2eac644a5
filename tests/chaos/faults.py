"""The menu of faults: what is done, when, and how it ends. A seed decides everything."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from confluent_kafka import Consumer
from tests.chaos.fleet import Fleet
from tests.chaos.loads import Publisher
from tests.chaos.world import World
from tests.support.node import Node
from tests.support.proxy import Toxic
from tests.support.starver import Starver

LEASE_SECONDS = 3.0
KILLS_PER_PAUSE = 4
STRETCH_SECONDS = 10.0
"""Of the rare faults, so many seconds of a round have a few."""

TOXICS = {
    "latency": Toxic(latency=0.05, jitter=0.1),
    "slice": Toxic(slice_bytes=64, latency=0.002),
    "truncate": Toxic(limit_bytes=20_000),
    "half-open": Toxic(silent=True),
    "cut": Toxic(down=True),
}
GROUP = {
    "group.protocol": "consumer",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "log_level": 0,
}


@dataclass(slots=True)
class Agenda:
    """What is to be done when."""

    entries: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _count: itertools.count[int] = field(default_factory=itertools.count)

    def add(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something so many seconds from now."""
        heapq.heappush(self.entries, (time.monotonic() + seconds, next(self._count), action))

    def run(self, seconds: float) -> None:
        """Do what comes due in this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.entries and self.entries[0][0] <= time.monotonic():
                heapq.heappop(self.entries)[2]()
            else:
                time.sleep(min(0.02, left))

    def finish(self) -> None:
        """Do at once whatever is left, such as the ends of faults."""
        while self.entries:
            heapq.heappop(self.entries)[2]()


@dataclass(slots=True)
class Menu:
    """Every fault that can be done to a world."""

    world: World
    fleet: Fleet
    publisher: Publisher
    agenda: Agenda
    dice: Random

    def plan(self, seconds: float, kills: int) -> None:
        """Spread a round's faults over its time: many kills and some pauses, and a few of everything else."""
        for _ in range(kills):
            self.agenda.add(self.dice.uniform(0, seconds), self.kill)
        for _ in range(kills // KILLS_PER_PAUSE):
            self.agenda.add(self.dice.uniform(0, seconds * 0.9), self.pause)
        stretches = max(1, round(seconds / STRETCH_SECONDS))
        for number in range(stretches):
            self._plan_rare(number * seconds / stretches, seconds / stretches)

    def _plan_rare(self, begin: float, seconds: float) -> None:
        """Choose what happens once or twice in a stretch of a round."""

        def add(within: float, action: Callable[[], None]) -> None:
            self.agenda.add(begin + self.dice.uniform(0, seconds * within), action)

        rare = [self.pause, self.terminate, self.toxics, self.toxics, self.poison, self.storm, self.starve]
        if not self.world.disk.why:
            rare.append(self.fill_disk)
        if not self.world.clocks.why:
            rare.append(self.turn_clocks)
            if self.dice.random() < 0.1:
                add(0.7, self.set_database_ahead)
        for action in self.dice.sample(rare, 4):
            add(0.7, action)
        # At most one of these: two at once are only a longer outage.
        servers = [self.backend, self.crash_postgres, self.fail_over, self.kill_broker, self.restart_broker]
        if self.dice.random() < 0.7:
            add(0.6, self.dice.choice(servers))

    # -- processes -------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill one, or two at once; start others soon."""
        for _ in range(1 + (self.dice.random() < 0.35)):
            if (node := self.fleet.pick(self.dice)) is not None:
                self.fleet.kill(node)
        self.agenda.add(self.dice.uniform(0.05, 0.8), self.fleet.fill)

    def pause(self) -> None:
        """Let one stand still for longer than a lease."""
        if (node := self.fleet.pick(self.dice)) is not None and node.alive:
            self.fleet.pause(node)
            self.agenda.add(LEASE_SECONDS + self.dice.uniform(0.5, 2.5), lambda: self.fleet.resume(node))

    def terminate(self) -> None:
        """Let one drain, and start another."""
        node: Node | None = self.fleet.pick(self.dice)
        if node is not None and node.alive:
            self.fleet.terminate(node)
            self.agenda.add(0.1, self.fleet.fill)

    def starve(self) -> None:
        """Leave every process a twentieth of a core for a while; those that are paused stay so."""

        def living() -> list[int]:
            nodes = self.fleet.noonmark.nodes
            return [node.pid for node in nodes if node.expected_alive and node not in self.fleet.paused]

        # With the lease of these tests, which is short, some are taken for lost meanwhile.
        self.fleet.unreachable.update(living())
        starver = Starver(living, seed=self.dice.randrange(1000))
        starver.start()
        self.agenda.add(self.dice.uniform(2, 5), starver.stop)
        self.fleet.done["starvation"] += 1

    # -- clocks ----------------------------------------------------------------------------------------

    def turn_clocks(self) -> None:
        """Set the wall clocks of some processes off, forward or back; half of them are set right later."""
        for _ in range(self.dice.randint(2, 4)):
            if (node := self.fleet.pick(self.dice)) is not None:
                self.fleet.turn(
                    node, self.dice.choice((-1, 1)) * self.dice.choice((2, 30, 600)) * self.dice.random()
                )
                if self.dice.random() < 0.5:
                    self.agenda.add(self.dice.uniform(0.5, 4), lambda node=node: self.fleet.turn(node, 0))

    def set_database_ahead(self) -> None:
        """Let the clock of Postgres jump ahead: every lease is over at once."""
        self.world.clocks.set_ahead(self.dice.uniform(1, 20))
        # Until its next heartbeat a worker does not know that its lease is over.
        self.fleet.unreachable.update(node.pid for node in self.fleet.alive("worker"))
        self.fleet.done["database clock ahead"] += 1

    # -- the network -----------------------------------------------------------------------------------

    def toxics(self) -> None:
        """Make the way to a server bad for a while."""
        server = self.dice.choice(("postgres", "kafka"))
        name = self.dice.choice((*TOXICS, "reset"))
        for proxy in self.world.proxies(server):
            if name == "reset":
                proxy.reset()
            else:
                proxy.set(TOXICS[name])
                self.agenda.add(self.dice.uniform(1, 4), proxy.heal)
        self.fleet.done[f"{server} {name}"] += 1

    # -- servers ---------------------------------------------------------------------------------------

    def backend(self) -> None:
        """Kill a backend of Postgres, which then ends every session and recovers."""
        self.world.postgres.kill_backend(self.dice.random())
        self.fleet.done["postgres backend killed"] += 1

    def crash_postgres(self) -> None:
        """Immediate stop, and a start a moment later."""
        self.world.postgres.crash()
        self.agenda.add(self.dice.uniform(0.2, 2), self.world.postgres.restart)
        self.fleet.done["postgres immediate stop"] += 1

    def fail_over(self) -> None:
        """Let the standby take over; until the next repair there is none again, and the primary restarts."""
        if not self.world.postgres.can_fail_over:
            self.crash_postgres()
            return
        crash = self.dice.random() < 0.5
        self.world.postgres.fail_over(crash=crash)
        self.fleet.done["failover, primary killed" if crash else "failover, primary read-only"] += 1

    def kill_broker(self) -> None:
        """Kill -9, and a start a moment later."""
        self.world.broker.kill(gently=False)
        self.agenda.add(self.dice.uniform(0.2, 2), self.world.broker.start)
        self.fleet.done["broker killed"] += 1

    def restart_broker(self) -> None:
        """An orderly restart."""
        self.world.broker.kill(gently=True)
        self.world.broker.start()
        self.fleet.done["broker restarted"] += 1

    # -- others ----------------------------------------------------------------------------------------

    def storm(self) -> None:
        """Consumers that join the workers' groups, take partitions, read nothing, and leave."""
        noonmark, joined = self.world.noonmark, []
        for lane in ("high", "normal", "low"):
            group = f"{noonmark.prefix}.worker.default.{lane}"
            guest = Consumer({"bootstrap.servers": noonmark.bootstrap, "group.id": group, **GROUP})
            guest.subscribe([f"{noonmark.prefix}.runs.default.{lane}"])
            guest.poll(0)
            joined.append(guest)

        def leave() -> None:
            for guest in joined:
                with suppress(RuntimeError):
                    guest.close()

        self.agenda.add(self.dice.uniform(0.5, 1.5), leave)
        self.fleet.done["rebalance storm"] += 1

    def poison(self) -> None:
        """Bytes that are neither an event nor a run message, in every topic that is read."""
        noonmark, dice = self.world.noonmark, self.dice
        topics = [noonmark.topics.submissions, noonmark.topics.submissions_bulk]
        topics += [f"{noonmark.prefix}.runs.default.{lane}" for lane in ("high", "normal", "low")]
        values: list[bytes | None] = [
            dice.randbytes(200),
            b"\x00" * 50,
            b"",
            None,
            b'{"specversion":"1.0"',
            b'{"specversion":"9","type":"noonmark.job.create.v1","id":"x","source":"y","data":{}}',
            b'{"specversion":"1.0","type":"noonmark.run.queued.v1","data":[]}',
            b"9" * 70_000,
        ]
        for topic in topics:
            for value in dice.sample(values, 4):
                self.publisher.poison(topic, value, dice.randbytes(dice.choice((1, 5000))))
        self.fleet.done["poison"] += 1

    def fill_disk(self) -> None:
        """No room for what services write beside the servers."""
        self.world.disk.fill()
        self.agenda.add(self.dice.uniform(1, 3), self.world.disk.free)
        self.fleet.done["disk full"] += 1
