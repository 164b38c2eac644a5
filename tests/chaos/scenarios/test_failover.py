"""Postgres fails over to its standby, with a thousand runs in flight and under an even load: none is lost or unknown.

NOONMARK_TEST_RATE sets the runs per second of the load (40).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.chaos.tally import Tally
from tests.support.cli import call
from tests.support.cluster import SERVICES, cluster
from tests.support.proxy import Network
from tests.support.publish import Load
from tests.support.replicas import Replicas
from tests.support.stack import Kafka

from noonmark.devstack.processes.ports import free_port
from noonmark.store.migrations.migrate import migrate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

IN_FLIGHT = 1000
RATE = int(os.environ.get("NOONMARK_TEST_RATE", "40"))
SECONDS = 30

_GAP = """
select extract(epoch from max(started_at - before))::float8
from (select started_at, lag(started_at) over (order by started_at) as before from runs where namespace = %s) as starts
where started_at >= %s
"""


@pytest.fixture
def replicas(server_dir: Path, network: Network, request: pytest.FixtureRequest) -> Iterator[Replicas]:
    folder = server_dir / f"replicas-{abs(hash(request.node.name))}"
    folder.mkdir()
    made = Replicas(folder, network)
    migrate(made.server.url)
    yield made
    made.close()


@pytest.mark.parametrize("crash", [True, False], ids=["the_primary_dies", "the_primary_stays_up_read_only"])
def test_a_failover_with_a_thousand_runs_in_flight_loses_none(
    replicas: Replicas, kafka_server: Kafka, topic_prefix: str, tmp_path: Path, tally: Tally, crash: bool
) -> None:
    gate = tmp_path / "gate"
    given = {"database_url": replicas.url}
    with cluster(replicas.direct, kafka_server.bootstrap, topic_prefix, tmp_path, **given) as noonmark:
        noonmark.start("intake", "trigger", "dispatcher")
        noonmark.start("worker", worker_slots="1200")
        load = Load()
        load.now(IN_FLIGHT // 2, "chaos.gate", payload={"gate": str(gate)})
        load.now(IN_FLIGHT // 2, "chaos.gate", payload={"gate": str(gate)}, delivery="at_most_once")
        noonmark.publish(load)
        noonmark.wait(lambda: len(noonmark.calls(load.namespace)) == IN_FLIGHT, "every handler to begin", 40)
        replicas.fail_over(crash=crash)
        gate.touch()
        report = noonmark.assert_clean(load, within=60)
        assert report["calls"] == IN_FLIGHT
        assert noonmark.rows(
            "select state, attempt, losses, fence, count(*) from runs group by 1, 2, 3, 4"
        ) == [("succeeded", 1, 0, 1, IN_FLIGHT)]
        how = "primary killed" if crash else "old primary up and read-only"
        tally.figures.append(
            f"failover ({how}) with {IN_FLIGHT} runs in flight: 0 lost, 0 unknown, 0 called again"
        )


def test_commands_find_the_primary_wherever_the_address_names_it(
    replicas: Replicas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = replicas.servers
    assert first is not None
    assert second is not None
    user = urlsplit(first.url)
    hosts = {"standby first": (second.port, first.port), "dead first": (free_port(), second.port, first.port)}
    monkeypatch.chdir(tmp_path)
    for ports in hosts.values():
        listed = ",".join(f"127.0.0.1:{port}" for port in ports)
        for attributes in ("read-write", "primary", "any"):
            monkeypatch.setenv(
                "NOONMARK_DATABASE_URL",
                f"postgresql://{user.username}:{user.password}@{listed}{user.path}?target_session_attrs={attributes}",
            )
            assert "the database schema is at" in call("db", "migrate", "--skip-topics").stdout
            assert json.loads(call("db", "check", "--json").stdout)["problems"] == []
            call("pool", "create", "--skip-topics", f"pool-{len(ports)}-{attributes}")
    replicas.fail_over(crash=True)
    assert json.loads(call("db", "check", "--json").stdout)["problems"] == []
    assert "pool-3-any" in call("pool", "list").stdout


@pytest.mark.parametrize("read_only", [True, False])
def test_a_failover_between_a_crash_and_its_restart_leaves_a_primary_with_a_standby(
    replicas: Replicas, read_only: bool
) -> None:
    replicas.crash()
    replicas.fail_over(crash=not read_only)
    replicas.restart()
    assert not replicas.can_fail_over
    replicas.repair()
    assert replicas.can_fail_over
    replicas.crash()
    replicas.crash()
    replicas.repair()
    assert (replicas.primary, replicas.can_fail_over) == (1, True)


@pytest.mark.timeout(180 + SECONDS * RATE // 100)
@pytest.mark.parametrize("crash", [True, False], ids=["the_primary_dies", "the_primary_stays_up_read_only"])
def test_a_failover_under_load_makes_runs_late_and_nothing_else(
    replicas: Replicas, kafka_server: Kafka, topic_prefix: str, tmp_path: Path, tally: Tally, crash: bool
) -> None:
    given = {"database_url": replicas.url}
    with cluster(replicas.direct, kafka_server.bootstrap, topic_prefix, tmp_path, **given) as noonmark:
        noonmark.start(*SERVICES, "worker")
        load = Load()
        with noonmark.standing_clock():
            load.once(RATE * SECONDS, noonmark.soon(2), spread_seconds=SECONDS)
            noonmark.take_in(load)
        third = "select count(*) >= %s from runs where namespace = %s and state = 'succeeded'"
        noonmark.wait(
            lambda: noonmark.value(third, len(load.jobs) // 3, load.namespace), "a third of the runs"
        )
        failed_at = noonmark.soon(0)
        replicas.fail_over(crash=crash)
        report = noonmark.assert_clean(load, within=60 + SECONDS)
        assert noonmark.states(load.namespace) == {"succeeded": len(load.jobs)}
        assert noonmark.rows("select distinct losses from runs") == [(0,)]
        gap, late = noonmark.value(_GAP, load.namespace, failed_at), report["late"]
        how = "primary killed" if crash else "old primary up and read-only"
        tally.figures.append(
            f"failover ({how}) at {RATE} runs/s: {len(load.jobs)} runs, 0 lost, {len(report['duplicates'])} called"
            " again;"
            f" no run started for {gap:.1f} s; late p50 {late['p50']:.3f} s, p99 {late['p99']:.1f} s,"
            f" at most {late['max']:.1f} s"
        )
