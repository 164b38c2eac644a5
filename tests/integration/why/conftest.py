"""A scene per test, and the answers that were given as a table at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.intake.world import open_world
from tests.integration.why.scene import Scene

from noonmark.core.zones import zone_data_version
from noonmark.store.zone_data import ensure_active

_GIVEN = pytest.StashKey[dict[str, str]]()


@pytest.fixture
def scene(emptied_database: str, tmp_path: Path) -> Iterator[Scene]:
    with open_world(emptied_database) as world:
        ensure_active(world.connection, zone_data_version())
        yield Scene(world, tmp_path)


@pytest.fixture
def given(request: pytest.FixtureRequest) -> dict[str, str]:
    """Sentences by their codes; shown when all tests have run, so that they can be read in one place."""
    return request.config.stash.setdefault(_GIVEN, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    answers = config.stash.get(_GIVEN, {})
    if answers and terminalreporter.verbosity >= 0:
        terminalreporter.section(f"{len(answers)} planted blockers, and the first answer to each")
        width = max(map(len, answers))
        for code, sentence in answers.items():
            terminalreporter.write_line(f"{code:<{width}}  {sentence}")
