"""Fixtures of the intake's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.intake.world import World, open_world


@pytest.fixture
def world(emptied_database: str) -> Iterator[World]:
    """An empty database, with the use-case code in front of it."""
    with open_world(emptied_database) as opened:
        yield opened
