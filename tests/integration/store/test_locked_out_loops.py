"""A loop that meets a lock of another session says so, and does not report an outage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg
import pytest
import structlog
from structlog.testing import capture_logs

from noonmark.service.database_loop import DatabaseLoop
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings

pytestmark = pytest.mark.postgres

LIMIT_SECONDS = 30


class Locking(DatabaseLoop):
    """A loop that needs a lock on a table in every pass."""

    def __init__(self, service: Service) -> None:
        super().__init__(service, "locking")
        self.passed = threading.Event()

    def run_once(self, connection: psycopg.Connection) -> float:
        with connection.transaction():
            connection.execute("set local lock_timeout = '50ms'")
            connection.execute("lock table install")
        self.passed.set()
        return 1.0


def wait_until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def test_a_loop_that_waits_too_long_for_a_lock_says_that_it_is_locked_out(emptied_database: str) -> None:
    health = Health()
    stop = threading.Event()
    with capture_logs() as logs, psycopg.connect(emptied_database) as other:
        service = Service(
            "trigger", Settings(database_url=emptied_database), health, stop, structlog.get_logger()
        )
        loop = Locking(service)
        other.execute("lock table install")
        thread = threading.Thread(target=loop.run, args=(stop,))
        thread.start()
        try:
            # The condition is set before the event is logged.
            wait_until(lambda: logs)
            missing = str(health.ready())
            other.rollback()
            assert loop.passed.wait(LIMIT_SECONDS)
        finally:
            stop.set()
            loop.wake.set()
            thread.join(LIMIT_SECONDS)
    assert {line["event"] for line in logs} == {"lock_timeout"}
    assert logs[0]["sqlstate"] == "55P03"
    assert "locked by another session" in missing
