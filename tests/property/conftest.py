"""Prints, at the end of a test run, what the proof of the time arithmetic compared."""

from __future__ import annotations

import pytest
from tests.support.time_oracle import counts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = counts.report()
    if lines:
        terminalreporter.section("fire instants: what was compared")
        for line in lines:
            terminalreporter.write_line(line)
