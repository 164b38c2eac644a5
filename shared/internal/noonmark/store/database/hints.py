"""Hints between services over LISTEN and NOTIFY: they save waiting, and nothing depends on one arriving.

Every listener also polls. A hint is sent on a separate connection, never in the transaction that it is
about: NOTIFY takes one lock for the whole database at commit.
"""

from __future__ import annotations

import logging
import random
import select
import threading
from collections.abc import Mapping
from typing import Final

import psycopg
from psycopg import sql

from noonmark.store.database.connect import connect

_log = logging.getLogger(__name__)

DUE_CHANNEL: Final = "noonmark_due"
"""A timer was written that is due within a second: triggers check their timers."""

ENDED_CHANNEL: Final = "noonmark_ended"
"""A run of a task has ended, or a workflow run was queued: triggers advance workflows."""

FREED_CHANNEL: Final = "noonmark_freed"
"""A slot was released that runs wait for: triggers check the wait queues."""

OUTBOX_CHANNEL: Final = "noonmark_outbox"
"""Run messages were added to the outbox: dispatchers read it."""

_FIRST_RETRY_SECONDS: Final = 0.1
_LAST_RETRY_SECONDS: Final = 5.0
_STOP_CHECK_SECONDS: Final = 0.5


class HintSender:
    """Sends hints from its own thread and connection, combining many calls into one notification.

    Calls never wait and never raise. During an outage of the database, hints are dropped: the polls of the
    listeners find the work.

    Args:
        dsn: libpq URL.
        min_interval_seconds: at most one notification per channel in this time.
    """

    def __init__(self, dsn: str, *, min_interval_seconds: float = 0.005) -> None:
        self._dsn = dsn
        self._min_interval_seconds = min_interval_seconds
        self._pending: set[str] = set()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def due(self) -> None:
        """Report that a timer is due soon."""
        self._request(DUE_CHANNEL)

    def ended(self) -> None:
        """Report that a workflow can go on."""
        self._request(ENDED_CHANNEL)

    def freed(self) -> None:
        """Report that capacity was released that runs wait for."""
        self._request(FREED_CHANNEL)

    def outbox(self) -> None:
        """Report that run messages are in the outbox."""
        self._request(OUTBOX_CHANNEL)

    def close(self) -> None:
        """Stop the thread; hints not sent yet are dropped."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=_LAST_RETRY_SECONDS)

    def _request(self, channel: str) -> None:
        with self._lock:
            self._pending.add(channel)
            # Started with the first hint, so that a sender created before a fork or never used costs nothing.
            if self._thread is None and not self._closing.is_set():
                thread = threading.Thread(target=self._run, name="hints-sender", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    # The system has no thread now. The next request tries again; polling continues.
                    _log.warning("cannot send hints yet: %s", error)
                    return
                self._thread = thread
        self._wake.set()

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                with connect(self._dsn, application="hints", autocommit=True) as connection:
                    failures = 0
                    self._send_until_closed(connection)
            except psycopg.Error as error:
                failures += 1
                _log.debug("cannot send hints: %s", str(error).strip())
                self._closing.wait(_retry_seconds(failures))

    def _send_until_closed(self, connection: psycopg.Connection) -> None:
        while True:
            self._wake.wait()
            if self._closing.is_set():
                return
            # Cleared before the pending channels are read: a request in between wakes the next round.
            self._wake.clear()
            with self._lock:
                channels, self._pending = list(self._pending), set()
            if channels:
                connection.execute(
                    "select pg_notify(channel, '') from unnest(%s::text[]) as t (channel)", [channels]
                )
            self._closing.wait(self._min_interval_seconds)


class HintListener:
    """Sets events when hints arrive. A loop of a service, on a direct connection: poolers lose LISTEN.

    Every event is also set after each connect, because a hint may have been missed before.

    Args:
        dsn: libpq URL of the server itself.
        channels: the event that each channel sets.
    """

    def __init__(self, dsn: str, channels: Mapping[str, threading.Event]) -> None:
        self.name = "hints"
        self._dsn = dsn
        self._channels = dict(channels)

    def run(self, stop: threading.Event) -> None:
        """Listen until `stop` is set, and reconnect after every outage of the database."""
        failures = 0
        while not stop.is_set():
            try:
                with connect(self._dsn, application="hints", autocommit=True) as connection:
                    self._listen(connection)
                    failures = 0
                    self._receive(connection, stop)
            except psycopg.Error as error:
                failures += 1
                _log.warning("cannot receive hints, polling continues: %s", str(error).strip())
                stop.wait(_retry_seconds(failures))

    def _listen(self, connection: psycopg.Connection) -> None:
        for channel in self._channels:
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        for event in self._channels.values():
            event.set()

    def _receive(self, connection: psycopg.Connection, stop: threading.Event) -> None:
        # Not `connection.notifies`, which wakes up ten times a second to check for signals.
        session, waiting = connection.pgconn, select.poll()
        waiting.register(session.socket, select.POLLIN)
        while not stop.is_set():
            # The timeout bounds how long a stop takes; the keepalives detect a dead peer.
            waiting.poll(_STOP_CHECK_SECONDS * 1000)
            session.consume_input()
            while (notification := session.notifies()) is not None:
                event = self._channels.get(notification.relname.decode())
                if event is not None:
                    event.set()


def _retry_seconds(failures: int) -> float:
    longest: float = min(_LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2.0 ** min(failures, 32))
    return random.uniform(0, longest)
