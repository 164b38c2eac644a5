"""Which database errors are worth another try."""

import errno

import psycopg
import pytest
import structlog
from psycopg import errors
from structlog.testing import capture_logs

from noonmark.service.database_errors import (
    DbFault,
    classify,
    is_locked_out,
    log_fault,
    missing_because,
    must_reconnect,
)


@pytest.mark.parametrize(
    "state",
    [
        "40001",
        "40P01",
        "57P01",
        "57P02",
        "57P03",
        "57P05",
        "08006",
        "08003",
        "08P01",
        "53300",
        "53200",
        "57014",
        "55P03",
        "25P03",
    ],
)
def test_a_fault_of_the_moment_is_tried_again(state):
    assert classify(errors.lookup(state)()) is DbFault.TRANSIENT


def test_a_connection_that_was_cut_is_tried_again_on_a_new_one():
    error = psycopg.OperationalError("consuming input failed: server closed the connection unexpectedly")
    assert classify(error) is DbFault.TRANSIENT
    assert must_reconnect(error)


@pytest.mark.parametrize("state", ["23505", "42P01", "42501", "22P02", "54000", "55000", "3D000", "XX000"])
def test_a_fault_that_will_repeat_is_permanent(state):
    assert classify(errors.lookup(state)()) is DbFault.PERMANENT


def test_a_standby_is_told_apart_and_its_connection_dropped():
    error = errors.ReadOnlySqlTransaction()
    assert classify(error) is DbFault.READ_ONLY
    assert must_reconnect(error)


def test_other_exceptions_are_permanent():
    assert classify(KeyError("x")) is DbFault.PERMANENT
    assert not must_reconnect(KeyError("x"))


@pytest.mark.parametrize(
    ("state", "drop"), [("57P01", True), ("08006", True), ("40001", False), ("57014", False)]
)
def test_the_connection_is_dropped_only_where_it_is_gone(state, drop):
    assert must_reconnect(errors.lookup(state)()) is drop


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_lack_of_descriptors_or_memory_is_tried_again_on_a_new_connection(number):
    assert classify(OSError(number, "too many")) is DbFault.TRANSIENT
    assert must_reconnect(OSError(number, "too many"))


def test_any_other_error_of_the_system_is_permanent():
    assert classify(FileNotFoundError(errno.ENOENT, "no such file")) is DbFault.PERMANENT


@pytest.mark.parametrize(
    ("error", "event", "missing"),
    [
        (errors.LockNotAvailable("canceling statement"), "lock_timeout", "locked by another session"),
        (errors.DeadlockDetected("deadlock"), "deadlock", "locked by another session"),
        (errors.AdminShutdown("terminating"), "database_unavailable", "unreachable"),
        (errors.QueryCanceled("too slow"), "database_unavailable", "unreachable"),
        (psycopg.OperationalError("connection refused"), "database_unavailable", "unreachable"),
        (OSError(errno.EMFILE, "too many files"), "database_unavailable", "unreachable"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
def test_a_lock_of_another_session_is_not_reported_as_an_outage(error, event, missing):
    with capture_logs() as logs:
        log_fault(structlog.get_logger(), error, loop="claims")
    (line,) = logs
    assert (line["event"], line["log_level"], line["loop"]) == (event, "warning", "claims")
    assert line["sqlstate"] == getattr(error, "sqlstate", None)
    assert missing_because(error) == missing
    assert is_locked_out(error) is (event != "database_unavailable")
