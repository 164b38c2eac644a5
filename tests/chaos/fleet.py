"""The processes of a chaos run: how many of each service there should be, and what was done to them."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from tests.support.cluster import Cluster, wait_until
from tests.support.node import Node

from noonmark.verify.history import Exit, Owners

WANTED = {"trigger": 2, "dispatcher": 2, "worker": 3, "intake": 2}
WEIGHTS = {"trigger": 3, "dispatcher": 3, "worker": 6, "intake": 2}
END_SECONDS = 40.0
READY_SECONDS = 60.0


@dataclass(slots=True)
class Fleet:
    """Living processes, and a count of what they suffered."""

    noonmark: Cluster
    done: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    paused: list[Node] = field(default_factory=list)
    leaving: dict[Node, float] = field(default_factory=dict)
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

    def terminate(self, node: Node) -> None:
        """Ask it to drain and end."""
        node.terminate()
        self.leaving[node] = time.monotonic()
        self.done["terminate"] += 1

    # -- repair ----------------------------------------------------------------------------------------

    def look(self) -> None:
        """Note who ended by himself."""
        for node in self.noonmark.nodes:
            if node.expected_alive and not node.alive:
                self.exits.append(Exit(node.name, f"{node.ending}: {node.log(3)[-400:]}"))
                node.expected_alive = False
        for node, since in list(self.leaving.items()):
            if not node.alive:
                node.process.wait()
                del self.leaving[node]
            elif time.monotonic() - since > END_SECONDS:
                self.exits.append(Exit(node.name, f"did not end {END_SECONDS:g} s after SIGTERM"))
                node.kill()
                del self.leaving[node]

    def fill(self) -> None:
        """Start what is missing, without waiting for it."""
        self.look()
        for service, wanted in WANTED.items():
            for _ in range(wanted - len(self.alive(service))):
                self.noonmark.launch(service)

    def await_ready(self) -> None:
        """Wait until all that should live are ready; note who is not."""
        for node in list(self.paused):
            self.resume(node)
        self.fill()
        living = [node for node in self.noonmark.nodes if node.expected_alive]
        give_up_at = time.monotonic() + READY_SECONDS
        for node in living:
            try:
                left = max(0.1, give_up_at - time.monotonic())
                wait_until(lambda: node.ready() or not node.alive, "readiness", left)  # noqa: B023
            except AssertionError:
                self.exits.append(
                    Exit(node.name, f"is not ready {READY_SECONDS:g} s later: {node.log(4)[-600:]}")
                )
        self.look()

    def await_leaving(self) -> None:
        """Wait until those that drain have ended."""
        while self.leaving:
            self.look()
            time.sleep(0.05)

    def owners(self) -> list[Owners]:
        """Who owns the shards, once every process has looked again."""
        found = []
        for role in ("trigger", "dispatcher"):
            nodes = self.alive(role)
            shards = self.noonmark.value("select shards from install")

            def owned(nodes: list[Node] = nodes, role: str = role) -> int:
                return int(sum(node.metric("noonmark_owned_shards", role=role) for node in nodes))

            with suppress(AssertionError):
                wait_until(lambda: owned() == shards, "owners", 15)  # noqa: B023
            found.append(Owners(role, owned(), shards))
        return found

    def take_unreachable(self) -> set[int]:
        """Process ids that stood still, with their living children."""
        return set(self.unreachable) | {os.getpid()}
