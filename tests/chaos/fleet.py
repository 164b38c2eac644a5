"""The processes of a chaos run: how many of each service there should be, and what was done to them."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from tests.chaos.clocks import Clocks
from tests.chaos.releases import Releases
from tests.support.cluster import Cluster
from tests.support.node import Node
from tests.support.patience import Budget, Patience

from noonmark.verify.history import Exit, Owners

WANTED = {"trigger": 2, "dispatcher": 2, "worker": 3, "intake": 2}
WEIGHTS = {"trigger": 3, "dispatcher": 3, "worker": 6, "intake": 2}
END_SECONDS = 40.0
READY_SECONDS = 60.0
OWNERS_SECONDS = 15.0
CPU_SECONDS = 60.0
"""Of a process that is to be ready, or to end: a start takes about two."""
LOOK_SECONDS = 0.1
STARVING_LOAD = 4.0
"""Of one CPU: above it, processes wait for seconds now and then."""


@dataclass(slots=True)
class Fleet:
    """Living processes, and a count of what they suffered."""

    noonmark: Cluster
    clocks: Clocks
    releases: Releases
    done: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    paused: list[Node] = field(default_factory=list)
    leaving: dict[Node, Patience] = field(default_factory=dict)
    unreachable: set[int] = field(default_factory=set)
    exits: list[Exit] = field(default_factory=list)

    def start(self) -> None:
        """Start everything."""
        self.fill()
        self.await_ready()

    def alive(self, service: str) -> list[Node]:
        """Processes of a service that should live."""
        return [node for node in self.noonmark.nodes if node.service == service and node.expected_alive]

    def pick(self, dice: Random) -> Node | None:
        """Choose a victim."""
        (service,) = dice.choices([*WEIGHTS], [*WEIGHTS.values()])
        living = [node for node in self.alive(service) if node not in self.paused]
        return dice.choice(living) if living else None

    # -- what is done to them --------------------------------------------------------------------------

    def kill(self, node: Node) -> None:
        """Kill -9."""
        if node.expected_alive and node.alive:
            node.kill()
            self.kills[node.service] += 1
            self.done["kill"] += 1

    def pause(self, node: Node) -> None:
        """Let it stand still."""
        node.pause()
        self.paused.append(node)
        self.unreachable.add(node.pid)
        self.done["pause"] += 1

    def resume(self, node: Node) -> None:
        """Let it go on."""
        if node in self.paused:
            self.paused.remove(node)
            if node.alive:
                node.resume()

    def terminate(self, node: Node, seconds: float = END_SECONDS) -> None:
        """Ask it to drain and end; it hangs if it is idle for longer than these seconds."""
        node.terminate()
        self.leaving[node] = Patience(node.pid, seconds, CPU_SECONDS)
        self.done["terminate"] += 1

    def turn(self, node: Node, seconds: float) -> None:
        """Set the wall clock of a process off; 0: it is right again."""
        if node.expected_alive and node.alive:
            self.clocks.turn(node, seconds)
            self.done["clock step"] += 1

    # -- repair ----------------------------------------------------------------------------------------

    def look(self) -> None:
        """Note who ended by himself."""
        for node in self.noonmark.nodes:
            if node.expected_alive and not node.alive:
                self.exits.append(Exit(node.name, f"{node.ending}: {node.log(3)[-400:]}"))
                node.expected_alive = False
        for node, patience in list(self.leaving.items()):
            if not node.alive:
                node.process.wait()
                del self.leaving[node]
            elif why := patience.lost():
                self.exits.append(Exit(node.name, f"did not end after SIGTERM: it {why}"))
                node.kill()
                del self.leaving[node]

    def fill(self) -> None:
        """Start what is missing, without waiting for it."""
        self.look()
        for service, wanted in WANTED.items():
            for _ in range(wanted - len(self.alive(service))):
                self._launch(service)

    def _launch(self, service: str) -> None:
        code, clock = self.releases.choose(self.alive(service)), self.clocks.new()
        environment = None if clock is None else clock.environment
        node = self.noonmark.launch(service, code=code, environment=environment)
        self.clocks.give(node, clock)
        self.releases.note(node, code)

    def await_ready(self) -> None:
        """Wait until all that should live are ready; note who is not."""
        for node in list(self.paused):
            self.resume(node)
        self.fill()
        self.await_these([node for node in self.noonmark.nodes if node.expected_alive])
        self.look()

    def await_these(self, nodes: list[Node], seconds: float = READY_SECONDS) -> None:
        """Wait until these are ready or dead; note those that hang.

        A process that does not get the CPU for its start does not hang, however long that takes.
        """
        waiting = {node: Patience(node.pid, seconds, CPU_SECONDS) for node in nodes}
        while waiting:
            for node, patience in list(waiting.items()):
                if node.ready() or not node.alive:
                    del waiting[node]
                elif why := patience.lost():
                    self.exits.append(Exit(node.name, f"is not ready, but {why}: {node.log(4)[-600:]}"))
                    del waiting[node]
            time.sleep(LOOK_SECONDS)

    def await_leaving(self) -> None:
        """Wait until those that drain have ended."""
        while self.leaving:
            self.look()
            time.sleep(LOOK_SECONDS)

    def owners(self) -> list[Owners]:
        """Who owns the shards, once every process has looked again."""
        found = []
        for role in ("trigger", "dispatcher"):
            nodes = self.alive(role)
            shards = self.noonmark.value("select shards from install")

            def owned(nodes: list[Node] = nodes, role: str = role) -> int:
                return int(sum(node.metric("noonmark_owned_shards", role=role) for node in nodes))

            budget = Budget(OWNERS_SECONDS)
            while owned() != shards and not budget.over:
                budget.look()
                time.sleep(LOOK_SECONDS)
            found.append(Owners(role, owned(), shards))
        return found

    def note_starved(self) -> None:
        """Note workers that lost their lease for want of CPU: as if somebody had stopped them for a while.

        Whether a process got the CPU in time cannot be read afterwards, so the load of the machine decides.
        """
        if os.getloadavg()[0] > STARVING_LOAD * (os.cpu_count() or 1):
            lapsed = self.noonmark.rows("select distinct pid from workers where lapsed_at is not null")
            self.unreachable.update(pid for (pid,) in lapsed)
