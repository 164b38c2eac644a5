"""Seeds draw every fault of the menu several times, and mix releases; a process that hangs in its start is found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.chaos.clocks import Clocks
from tests.chaos.faults import TOXICS, Agenda, Menu
from tests.chaos.fleet import WANTED, Fleet
from tests.chaos.loads import Publisher
from tests.chaos.releases import THIS, Releases, are_mixed
from tests.chaos.run import Options
from tests.chaos.world import Disk, World
from tests.support.clocks.turned import TurnedClock
from tests.support.cluster import Cluster
from tests.support.evidence import read_told
from tests.support.node import Node
from tests.support.starver import Starver

from noonmark.verify.events import SETTLED

SEEDS = 20
LEAST = 5
"""How often each fault is drawn in so many seeds."""

FAULTS = {
    *("kill", "pause", "terminate", "starve", "turn_clocks", "set_database_ahead", "toxics", "backend"),
    *("crash_postgres", "fail_over", "kill_broker", "restart_broker", "storm", "poison", "fill_disk"),
}

HANG = "import time; time.sleep(600)"
START_SLOWLY = """
import http.server, json, sys, time
until = time.process_time() + 0.1
while time.process_time() < until: pass
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), Ready)
print(json.dumps({"event": "health_listening", "port": server.server_port}), flush=True)
server.serve_forever()
"""


class Proxy:
    """Records what is done to the way to a server."""

    def __init__(self, done: Counter[str]) -> None:
        self._done = done

    def set(self, toxic: object) -> None:
        self._done[next(name for name, known in TOXICS.items() if known is toxic)] += 1

    def reset(self) -> None:
        self._done["reset"] += 1

    def heal(self) -> None: ...


def fleet(folder: Path, *nodes: Node) -> Fleet:
    cluster = Cluster("", "", "", folder, nodes=[*nodes])
    return Fleet(cluster, Clocks(folder), Releases(Random(1)))


def drawn(folder: Path, *, why: str = "") -> tuple[Counter[str], Counter[str]]:
    """What seeds draw: faults, and what is done to the network; `why` a disk and clocks are out of reach."""
    faults: Counter[str] = Counter()
    network: Counter[str] = Counter()
    options = Options(0, 5)
    for seed in range(1, SEEDS + 1):
        for number in range(options.rounds - 1):
            world = SimpleNamespace(
                disk=Disk(folder, why),
                clocks=Clocks(folder, why=why),
                proxies=lambda _server: [Proxy(network)],
            )
            agenda = Agenda()
            menu = Menu(
                cast("World", world),
                fleet(folder),
                cast("Publisher", None),
                agenda,
                Random(f"{seed}/{number}"),
            )
            menu.plan(options.seconds, options.kills)
            for _, _, action in list(agenda.entries):
                faults[cast("Any", action).__name__] += 1
                if action == menu.toxics:
                    action()
    return faults, network


def test_seeds_draw_every_fault_several_times(tmp_path: Path) -> None:
    faults, network = drawn(tmp_path)
    assert faults.keys() == FAULTS
    assert min(faults.values()) >= LEAST, faults
    assert faults["starve"] >= SEEDS
    assert network.keys() == {*TOXICS, "reset"}
    assert min(network.values()) >= LEAST, network


def test_what_a_machine_does_not_allow_is_not_drawn(tmp_path: Path) -> None:
    faults, _ = drawn(tmp_path, why="not here")
    assert faults.keys() == FAULTS - {"fill_disk", "turn_clocks", "set_database_ahead"}


def test_times_of_calls_are_converted_to_the_clock_of_postgres(tmp_path: Path) -> None:
    clocks = Clocks(tmp_path, postgres=TurnedClock(tmp_path, tmp_path / "clock"))
    before = datetime.now(UTC) - timedelta(seconds=1)
    assert clocks.by_postgres(before) == before
    clocks.set_ahead(5)
    between = datetime.now(UTC)
    clocks.set_ahead(2.5)
    # A step counts from a moment before it, for calls that are dated too early.
    after = datetime.now(UTC) + timedelta(seconds=1)
    assert clocks.by_postgres(before) == before
    assert clocks.by_postgres(between) - between in {timedelta(seconds=5), timedelta(seconds=7.5)}
    assert clocks.by_postgres(after) == after + timedelta(seconds=7.5)
    assert clocks.postgres is not None
    assert clocks.postgres.seconds == 7.5


def test_a_third_of_the_seeds_runs_both_releases() -> None:
    assert sum(are_mixed(seed) for seed in range(1, 31)) == 10


def test_each_service_has_processes_of_both_releases_whatever_is_replaced(
    tmp_path: Path, spawn: Callable[[str], Node]
) -> None:
    dice = Random(7)
    chosen = Releases(dice, ("0.0.1", tmp_path))
    node = spawn(HANG)
    for service, wanted in WANTED.items():
        living: list[Node] = []
        for _ in range(30):
            while len(living) < wanted:
                code = chosen.choose(living)
                living.append(Node(service, service, node.process, node.log_file))
                chosen.note(living[-1], code)
            assert {chosen.is_old(one) for one in living} == {True, False}
            living.remove(dice.choice(living))
    assert chosen.started.keys() == {"0.0.1", THIS}
    assert Releases(dice).choose([]) is None


def test_a_process_that_hangs_in_its_start_is_found(tmp_path: Path, spawn: Callable[[str], Node]) -> None:
    node = spawn(HANG)
    tested = fleet(tmp_path, node)
    tested.await_these([node], seconds=1.0)
    ((name, how),) = tested.exits
    assert name == node.name
    assert how.startswith("is not ready, but was idle for 1.")


def test_a_process_that_is_starved_in_its_start_is_waited_for(
    tmp_path: Path, spawn: Callable[[str], Node]
) -> None:
    node = spawn(START_SLOWLY)
    tested = fleet(tmp_path, node)
    with Starver(lambda: [node.pid], share=0.1):
        tested.await_these([node], seconds=0.5)
    assert tested.exits == []
    assert node.ready()


def test_a_process_that_does_not_end_is_found(tmp_path: Path, spawn: Callable[[str], Node]) -> None:
    node = spawn(
        f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); {HANG}"
    )
    while "up" not in node.log():
        assert node.alive
    tested = fleet(tmp_path, node)
    tested.terminate(node, seconds=1.0)
    tested.await_leaving()
    ((_, how),) = tested.exits
    assert how.startswith("did not end after SIGTERM: it was idle for 1.")
    assert not node.alive


@pytest.mark.parametrize(("digests", "missing"), [(True, ""), (False, None)])
def test_an_event_of_a_release_without_digests_says_nothing_of_them(
    digests: bool, missing: str | None
) -> None:
    at = "2026-03-04T05:06:07+00:00"
    told = {
        "run_id": "r",
        "state": "succeeded",
        "fence": 1,
        "namespace": "n",
        "attempt": 1,
        "finished_at": at,
        "error": None,
        "started_at": at,
        "job_id": "j",
        "scheduled_for": at,
        "origin": "schedule",
        "lane": "normal",
        "pool": "default",
        "error_digest": "abc",
    }
    event = {"id": "e", "type": SETTLED, "data": {"outcomes": [told]}}
    (record,) = read_told(json.dumps(event).encode(), ["n"], digests=digests)
    assert record.result_digest == missing
    assert record.error_digest == "abc"


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Callable[[str], Node]]:
    """Starts Python code as if it were a process of a service."""
    with ExitStack() as stack:

        def start(code: str) -> Node:
            log = tmp_path / "log"
            with log.open("wb") as out:
                process = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=out)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return Node("trigger-0", "trigger", process, log)

        yield start
