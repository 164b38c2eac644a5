"""The cluster of the starved tests, with the settings as shipped, and the figures that they print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cluster import Cluster, cluster
from tests.support.stack import Kafka

from noonmark.settings.common import LeaseSettings

FIGURES = pytest.StashKey[list[str]]()

AS_SHIPPED = {
    name: str(field.default)
    for name, field in LeaseSettings.model_fields.items()
    if name.endswith("_seconds")
}


def pytest_configure(config: pytest.Config) -> None:
    config.stash[FIGURES] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if figures := terminalreporter.config.stash[FIGURES]:
        terminalreporter.section("starved: figures")
        for figure in figures:
            terminalreporter.line(figure)


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> list[str]:
    """What is printed at the end of the session."""
    return request.config.stash[FIGURES]


@pytest.fixture
def noonmark(database_url: str, kafka_server: Kafka, topic_prefix: str, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster without a process yet, with topics and a migrated database of its own."""
    handlers = "tests.support.chaos_handlers,tests.support.starved_handlers"
    given = {**AS_SHIPPED, "handlers": handlers, "scripts": "*"}
    with cluster(database_url, kafka_server.bootstrap, topic_prefix, tmp_path, **given) as made:
        made.start_target()
        yield made
