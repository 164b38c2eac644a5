"""Everything here runs by `make test-virtual`, not by `make test`: minutes, on a clock that the tests set."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a line at once, whatever pytest does with output."""

    def print_now(line: str) -> None:
        with capsys.disabled():
            print(line, flush=True)

    print_now("")
    return print_now
