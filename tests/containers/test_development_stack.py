"""The development stack with Postgres and Kafka as containers of a real engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import Engine, running_engine
from tests.support.kube import eventually
from tests.support.stand_ins import stand_in_servers

from noonmark.devstack import state
from noonmark.devstack.containers import POSTGRES_IMAGE
from noonmark.devstack.kafka.jars import kafka_version
from noonmark.devstack.options import StackOptions

pytestmark = pytest.mark.timeout(600)

KAFKA_IMAGE = f"apache/kafka:{kafka_version()}"
UP = (
    "import sys; from noonmark.devstack import commands; from noonmark.devstack.options import StackOptions;"
    "sys.exit(commands.up(StackOptions.from_json(sys.argv[1])))"
)
DOWN = (
    "import sys; from pathlib import Path; from noonmark.devstack import commands;"
    "sys.exit(commands.down(Path(sys.argv[1])))"
)
STATUS = (
    "import sys; from pathlib import Path; from noonmark.devstack import commands;"
    "sys.exit(commands.status(Path(sys.argv[1]), as_json=True))"
)
ANSWERS = "import sys, psycopg; psycopg.connect(sys.argv[1]).execute('select count(*) from jobs')"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running_engine() as found:
        stand_in_servers(found, POSTGRES_IMAGE, KAFKA_IMAGE)
        yield found


def run(engine: Engine, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the engine's network, where the published ports are."""
    # The image that removes what a dead client left cannot be had here; the stack removes its containers itself.
    environment = {**engine.environment, "TESTCONTAINERS_RYUK_DISABLED": "true"}
    return subprocess.run(
        engine.inside(sys.executable, "-c", code, *arguments),
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=400,
    )


@pytest.fixture
def stack(engine: Engine, tmp_path: Path) -> Iterator[Path]:
    """A stack without services that is up; its folder."""
    folder = tmp_path / "stack"
    options = StackOptions(folder, stack="containers", detach=True, as_json=True, services=())
    done = run(engine, UP, options.to_json())
    try:
        assert done.returncode == 0, done.stderr
        yield folder
    finally:
        run(engine, DOWN, str(folder))


def containers(engine: Engine) -> dict[str, dict[str, Any]]:
    """What the engine says about the containers that exist, by image."""
    found = engine.docker("ps", "--all", "--quiet").split()
    return (
        {one["Config"]["Image"]: one for one in json.loads(engine.docker("inspect", *found))} if found else {}
    )


def test_servers_are_containers_that_answer_on_the_loopback_alone(engine, stack):
    found = containers(engine)

    assert found.keys() == {POSTGRES_IMAGE, KAFKA_IMAGE}
    for one in found.values():
        assert one["State"]["Running"]
        (published,) = (ports for ports in one["NetworkSettings"]["Ports"].values() if ports)
        assert {port["HostIp"] for port in published} == {"127.0.0.1"}
    current = state.load(stack)
    assert current is not None
    # Migrated, so topics were created, too.
    assert run(engine, ANSWERS, current.database_url).returncode == 0
    shown = run(engine, STATUS, str(stack))
    rows = json.loads(shown.stdout)["processes"]
    assert (shown.returncode, rows["postgres"]["running"], rows["kafka"]["running"]) == (0, True, True)


def test_a_server_that_is_killed_starts_again_with_its_data(engine, stack):
    current = state.load(stack)
    assert current is not None
    before = containers(engine)[POSTGRES_IMAGE]
    engine.docker("kill", before["Id"])

    eventually("Postgres runs again", lambda: containers(engine)[POSTGRES_IMAGE]["State"]["Running"])
    assert containers(engine)[POSTGRES_IMAGE]["Id"] == before["Id"]
    eventually("it has its tables", lambda: run(engine, ANSWERS, current.database_url).returncode == 0)


def test_a_server_that_is_removed_by_hand_is_reported_and_down_still_works(engine, stack):
    engine.docker("rm", "--force", "--volumes", containers(engine)[KAFKA_IMAGE]["Id"])
    log = stack / "logs" / "supervisor.log"

    eventually("the supervisor reports it", lambda: "Its container was removed by hand" in log.read_text())
    shown = run(engine, STATUS, str(stack))
    row = json.loads(shown.stdout)["processes"]["kafka"]
    assert (shown.returncode, row["running"], row["reason"]) == (1, False, "the container was removed")
    done = run(engine, DOWN, str(stack))
    assert done.returncode == 0, done.stderr
    assert containers(engine) == {}


@pytest.mark.parametrize("is_killed", [False, True])
def test_down_leaves_no_container_and_no_volume(engine, stack, is_killed):
    current = state.load(stack)
    assert current is not None
    if is_killed:
        subprocess.run(["kill", "-9", str(current.supervisor.pid)], check=True)
    done = run(engine, DOWN, str(stack))

    assert done.returncode == 0, done.stderr
    assert containers(engine) == {}
    assert engine.docker("volume", "ls", "--quiet") == ""
