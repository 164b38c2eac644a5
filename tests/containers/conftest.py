"""An engine, and an installation by docker-compose.yml on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.compose import Installation, copy_checkout
from tests.support.engine import Engine, running_engine
from tests.support.stand_ins import stand_ins


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """A Docker engine for the tests of a file."""
    with running_engine() as found:
        yield found


@pytest.fixture(scope="module")
def installation(engine: Engine) -> Installation:
    """A checkout of this state with passwords, and the images of others that it needs; nothing runs yet."""
    folder = engine.folder / "installation"
    copy_checkout(folder)
    stand_ins(engine, folder)
    made = Installation(engine, folder)
    made.set_up()
    return made
