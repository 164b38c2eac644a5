"""Fixtures of the intake's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.intake.line import Line
from tests.integration.intake.world import World, open_world
from tests.support.stack import Kafka


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    """An empty database, with the use-case code in front of it."""
    with open_world(emptied_database) as opened:
        yield opened


@pytest.fixture
def line(
    database_url: str, kafka_server: Kafka, topic_prefix: str, service_env: dict[str, str], tmp_path: Path
) -> Iterator[Line]:
    """Topics and a database of this test alone; `intake` starts the process between them."""
    line = Line(kafka_server.bootstrap, topic_prefix, database_url, service_env, tmp_path)
    yield line
    line.commits.close()
