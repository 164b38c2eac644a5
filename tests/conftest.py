"""Fixtures that every test may use; servers start only when a test asks for them."""

import gc
from collections.abc import Generator, Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings
from tests.support.stack import (
    database_url,
    kafka_server,
    postgres_server,
    server_dir,
    service_env,
    template_database,
    topic_prefix,
)

__all__ = [
    "database_url",
    "kafka_server",
    "postgres_server",
    "server_dir",
    "service_env",
    "template_database",
    "topic_prefix",
]


# How long an example takes is a matter of what else the machine does; a test that is about time measures it itself.
settings.register_profile(
    "tests", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

_SERVERS = {"postgres_server": "postgres", "kafka_server": "kafka"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the servers that their fixtures start, so that `-m` finds those that start none."""
    for item in items:
        for fixture, mark in _SERVERS.items():
            if fixture in getattr(item, "fixturenames", ()) and item.get_closest_marker(mark) is None:
                item.add_marker(mark)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while thousands of tests and modules are made: a third of that time goes to it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over the thousands of tests and modules, which all stay, and run less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Let no test see how another, or a command in this process, set up logging."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()
