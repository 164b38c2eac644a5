"""What the tests of a deployment report at the end."""

from __future__ import annotations

import pytest

REPORT = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REPORT] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if lines := terminalreporter.config.stash[REPORT]:
        terminalreporter.section("deployment: report")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> list[str]:
    """Lines that are printed at the end of the session."""
    return request.config.stash[REPORT]
