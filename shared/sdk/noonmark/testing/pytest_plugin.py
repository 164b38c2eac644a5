"""The pytest plugin of noonmark: the fixture `noonmark_stack`. It loads nothing until a test uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from noonmark.testing.stacks import Stack


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options for the handlers of a project."""
    parser.addini(
        "noonmark_handlers", "modules with handlers for the worker of noonmark_stack", type="args", default=[]
    )
    parser.addini("noonmark_path", "folder that the worker of noonmark_stack imports them from", default=None)


@pytest.fixture(scope="session")
def noonmark_stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A complete installation, once per session: real Postgres, real Kafka, the API and every service.

    `.client` calls the API, `.publisher` publishes submissions, `.wait_for(run_id)` waits for a run.
    `.database_url` and `.kafka_bootstrap` give direct access. If no stack can run, tests are skipped with the
    reason. The ini option `noonmark_handlers` lists the modules with the worker's handlers.
    """
    from noonmark.testing.stacks import StackUnavailableError, start_stack  # noqa: PLC0415

    config = request.config
    place = config.getini("noonmark_path")
    path = str(config.rootpath / place) if place else str(config.rootpath)
    folder = tmp_path_factory.mktemp("noonmark") / "stack"
    with ExitStack() as running:
        try:
            started = start_stack(folder, handlers=config.getini("noonmark_handlers"), path=path)
            stack = running.enter_context(started)
        except StackUnavailableError as error:
            pytest.skip(f"noonmark_stack cannot run here: {error}")
        yield stack
