"""A scene per test, and the answers that were given as a table at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.intake.world import open_world
from tests.integration.why.scene import Scene

from noonmark.core.zones.zones import zone_data_version
from noonmark.store.schedules.zone_data import ensure_active

_GIVEN = "first answer to a planted blocker"


@pytest.fixture
def scene(emptied_database: str, tmp_path: Path) -> Iterator[Scene]:
    with open_world(emptied_database) as world:
        ensure_active(world.connection, zone_data_version())
        yield Scene(world, tmp_path)


@pytest.fixture
def given(record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """Notes the sentence of a code; the end of the session shows all, so that they can be read in one place."""

    def note(code: str, sentence: str) -> None:
        record_property(_GIVEN, (code, sentence))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Properties travel with the reports, which is how they get here from the processes of pytest-xdist.
    ended = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    noted = (value for report in ended for name, value in report.user_properties if name == _GIVEN)
    answers: dict[str, str] = dict(reversed(list(noted)))
    if answers and terminalreporter.verbosity >= 0:
        terminalreporter.section(f"{len(answers)} planted blockers, and the first answer to each")
        width = max(map(len, answers))
        for code, sentence in sorted(answers.items()):
            terminalreporter.write_line(f"{code:<{width}}  {sentence}")
