"""Classifies database errors: try again, reconnect, or fail."""

from __future__ import annotations

import errno
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import psycopg

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class DbFault(Enum):
    """The three classes of database errors."""

    TRANSIENT = "transient"
    """Try again, on a new connection if `must_reconnect`."""
    READ_ONLY = "read_only"
    """This server is a standby now: drop the connection, reconnect, try again."""
    PERMANENT = "permanent"
    """The same statement would fail again: report the error."""


_READ_ONLY: Final = "25006"
_LOCK_TIMEOUT: Final = "55P03"
_DEADLOCK: Final = "40P01"
_TRANSIENT: Final = frozenset(
    {
        "40001",  # serialization_failure
        _DEADLOCK,
        "25P03",  # idle_in_transaction_session_timeout: the server ended the session
        "25P04",  # transaction_timeout (Postgres 17): the server ended the session
        _LOCK_TIMEOUT,  # lock_not_available
        "57014",  # query_canceled: statement_timeout
        "57P01",  # admin_shutdown
        "57P02",  # crash_shutdown
        "57P03",  # cannot_connect_now
        "57P05",  # idle_session_timeout
    }
)
_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""The process or its host lacks descriptors or memory: often for seconds, until a handler has ended."""

_SESSION_ENDED: Final = frozenset({"25P03", "25P04", "57P01", "57P02", "57P03", "57P04", "57P05"})
# In psycopg, these classes are OperationalErrors, but repeating the statement cannot succeed:
# 54 program_limit_exceeded (a row too wide for an index), 55 wrong state of an object, 3D no such database.
_PERMANENT_CLASSES: Final = ("54", "55", "3D")


def classify(error: BaseException) -> DbFault:
    """Return the class of an exception that a database call raised.

    An operational error without an SQLSTATE means that the connection failed or was cut. A lack of
    descriptors or memory is transient too, wherever it is noticed.
    """
    if _is_short(error):
        return DbFault.TRANSIENT
    if not isinstance(error, psycopg.Error):
        return DbFault.PERMANENT
    state = error.sqlstate or ""
    if state == _READ_ONLY:
        return DbFault.READ_ONLY
    if state in _TRANSIENT or state.startswith(("08", "53")):
        return DbFault.TRANSIENT
    if state.startswith(_PERMANENT_CLASSES):
        return DbFault.PERMANENT
    return DbFault.TRANSIENT if isinstance(error, psycopg.OperationalError) else DbFault.PERMANENT


def log_fault(log: FilteringBoundLogger, error: BaseException, **more: Any) -> None:
    """Log an error after which the work is tried again, as the event that names its cause.

    A lock that another session holds, and a deadlock, are no outage: the database answers.
    """
    state = getattr(error, "sqlstate", None)
    said = {"error": str(error).strip(), "sqlstate": state, **more}
    if state == _LOCK_TIMEOUT:
        log.warning("lock_timeout", **said)
    elif state == _DEADLOCK:
        log.warning("deadlock", **said)
    else:
        log.warning("database_unavailable", **said)


def is_locked_out(error: BaseException) -> bool:
    """Return whether the database answers, but other sessions hold locks that the work needs."""
    return getattr(error, "sqlstate", None) in {_LOCK_TIMEOUT, _DEADLOCK}


def missing_because(error: BaseException) -> str:
    """Return what a loop lacks after an error, for /readyz."""
    return "locked by another session" if is_locked_out(error) else "unreachable"


def must_reconnect(error: BaseException) -> bool:
    """Return whether the connection is unusable after this error, even if its object looks intact."""
    if _is_short(error):
        return True  # perhaps in the middle of a message
    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state == _READ_ONLY or state in _SESSION_ENDED or state.startswith("08")


def _is_short(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in _SHORT
