"""Fixtures of the chaos tests, and the table that they print at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.chaos.tally import Tally
from tests.support.cluster import SERVICES, Cluster, cluster, fresh_prefix
from tests.support.stack import Kafka, Postgres

TALLY = pytest.StashKey[Tally]()

SMALL_BATCHES = {
    # So that a few hundred jobs are many passes of every fault point.
    "intake_batch": "40",
    "claim_batch": "40",
    "relay_batch": "48",
    "worker_slots": "24",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chaos-rounds", type=int, default=12, help="Random kills after the named ones.")
    parser.addoption("--chaos-seed", type=int, default=1, help="Which random kills.")
    parser.addoption("--chaos-kills", type=int, default=2, help="Kills that count per fault point.")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TALLY] = Tally()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tally = terminalreporter.config.stash[TALLY]
    if tally.figures:
        terminalreporter.section("chaos: figures")
        for figure in tally.figures:
            terminalreporter.line(figure)
    if tally.rows:
        terminalreporter.section("chaos")
        for line in tally.lines():
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    """What is printed at the end of the session."""
    return request.config.stash[TALLY]


@pytest.fixture(scope="session")
def noonmark_of_session(
    postgres_server: Postgres,
    template_database: str,
    kafka_server: Kafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    """One cluster for all tests, each with a namespace of its own: one process per service."""
    prefix = fresh_prefix()
    postgres_server.copy(template_database, prefix)
    with cluster(
        postgres_server.url_of(prefix),
        kafka_server.bootstrap,
        prefix,
        tmp_path_factory.mktemp("chaos"),
        **SMALL_BATCHES,
    ) as made:
        made.start_target()
        made.start(*SERVICES)
        yield made
    postgres_server.drop(prefix)
    kafka_server.delete_topics(prefix)


@pytest.fixture
def noonmark(noonmark_of_session: Cluster) -> Cluster:
    """The cluster, with one healthy process of each service whatever the test before left behind."""
    for service in SERVICES:
        healthy = [n for n in noonmark_of_session.nodes if n.service == service and n.expected_alive]
        if len(healthy) != 1 or not healthy[0].alive:
            for node in noonmark_of_session.nodes:
                if node.service == service and node.alive:
                    node.kill()
                node.expected_alive &= node.service != service
            noonmark_of_session.start(service)
    return noonmark_of_session
