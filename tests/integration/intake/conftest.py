"""Fixtures of the intake's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.intake.world import World, open_world


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """A database of this test's own, with the use-case code in front of it."""
    with open_world(database_url) as opened:
        yield opened
