"""Handlers whose rows commit together with the outcome of their run, or not at all (`exactly_once`).

The thread that executes the handler also records its success, in the handler's transaction, and checks the
run's fence last. Any other outcome is recorded after a rollback, like that of any other run.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

import psycopg
from psycopg.pq import TransactionStatus

from noonmark.attempts.outcomes import describe, failed, raised, succeeded
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.failures import Failure, exception_names
from noonmark.core.faults import hit
from noonmark.core.states import RunState
from noonmark.handlers import Context
from noonmark.service.backoff import Backoff
from noonmark.service.database_errors import DbFault, classify, must_reconnect
from noonmark.store.database.connect import connect
from noonmark.store.runs import finish, handler_transactions
from noonmark.store.runs.finish import Outcome, Recorded
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.logs import get_logger

_IDLE_SECONDS: Final = 60.0
_log = get_logger()


class OutcomeRecorder(Protocol):
    """The part of the recorder that is needed here."""

    closed: threading.Event

    def record_in(
        self, connection: psycopg.Connection, identity: Identity, outcomes: list[Outcome], *, unsure: bool
    ) -> Recorded:
        """Record outcomes in the caller's transaction."""

    def committed(self, outcomes: list[Outcome], recorded: Recorded) -> None:
        """Do what follows the commit of outcomes."""

    def put(self, outcomes: list[Outcome]) -> None:
        """Queue finished outcomes."""


class Connections:
    """Connections for handlers, one per open transaction; idle ones are closed after a minute."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._idle: list[tuple[psycopg.Connection, float]] = []
        self._lock = threading.Lock()

    def fresh(self) -> psycopg.Connection:
        """Open a connection."""
        return connect(self._dsn, application="handler", autocommit=True)

    def take(self) -> psycopg.Connection | None:
        """Take the most recently used idle connection; None if there is none."""
        with self._lock:
            return self._idle.pop()[0] if self._idle else None

    def give_back(self, connection: psycopg.Connection) -> None:
        """Keep a connection for the next transaction, unless it cannot be used any more."""
        if connection.broken or connection.info.transaction_status != TransactionStatus.IDLE:
            drop(connection)
            return
        now = time.monotonic()
        with self._lock:
            self._idle.append((connection, now))
            old = [c for c, since in self._idle if now - since > _IDLE_SECONDS]
            self._idle = [(c, since) for c, since in self._idle if now - since <= _IDLE_SECONDS]
        for unused in old:
            drop(unused)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            drop(connection)


def drop(connection: psycopg.Connection) -> None:
    """Close a connection, whatever state it is in."""
    with suppress(psycopg.Error):
        connection.close()


class HandlerTransaction:
    """The transaction of one attempt: opened at its first use, ended by the worker."""

    def __init__(self, connections: Connections, attempt: RunningAttempt) -> None:
        self._connections = connections
        self._until = attempt.began_at + attempt.timeout_seconds
        self._mark = f"{attempt.run.id}/{attempt.fence}"
        self._over = False
        self._leased: handler_transactions.LeasedConnection | None = None
        self.connection: psycopg.Connection | None = None

    @contextmanager
    def block(self) -> Iterator[psycopg.Connection]:
        """Give the handler the connection; if the block raises, it is rolled back."""
        if self._over:
            raise RuntimeError("the attempt is over, and its transaction with it")
        if self.connection is None:
            self.connection = self._begun()
        if self._leased is None:
            self._leased = handler_transactions.lease(self.connection)
        with self._leased.transaction():
            yield self._leased

    def take_over(self) -> bool:
        """Take the transaction from the handler; return whether it can still be committed."""
        if self._leased is not None:
            self._leased.take_back()
        return self.connection is not None and handler_transactions.take_over(self.connection, self._mark)

    def end(self) -> None:
        """Close the transaction for the handler; roll back what is not committed."""
        self._over = True
        connection, self.connection = self.connection, None
        if connection is None:
            return
        if self._leased is not None:
            self._leased.take_back()
        try:
            handler_transactions.clear(connection)
        except psycopg.Error:
            drop(connection)  # the server rolls back what has lost its connection
        else:
            self._connections.give_back(connection)

    def _begun(self) -> psycopg.Connection:
        left = self._until - time.monotonic()
        connection = self._connections.take()
        if connection is not None:
            try:
                handler_transactions.begin(connection, self._mark, seconds=left)
            except psycopg.OperationalError:  # it broke while it was idle; nothing has been written yet
                drop(connection)
            else:
                return connection
        connection = self._connections.fresh()
        handler_transactions.begin(connection, self._mark, seconds=left)
        return connection


class Transactions:
    """Executes handlers of `exactly_once` runs, and records their success in their own transaction."""

    def __init__(self, dsn: str, recorder: OutcomeRecorder, identity: Callable[[], Identity]) -> None:
        """Create the executor.

        Args:
            dsn: noonmark's database.
            recorder: writes outcomes.
            identity: returns the current lease of the worker.
        """
        self._recorder = recorder
        self._identity = identity
        self._connections = Connections(dsn)
        self._process = os.getpid()

    def run(
        self,
        attempt: RunningAttempt,
        context: Context,
        function: Callable[[Context], Any],
        claim: Callable[[RunningAttempt], bool],
        left: Callable[[RunningAttempt, Outcome], Outcome],
    ) -> Outcome | None:
        """Execute a handler.

        Args:
            attempt: the run.
            context: of the attempt.
            function: the handler.
            claim: claims the end of the run for this thread; returns False if it has ended already.
            left: completes an outcome that is not returned, with the notes and log of its attempt.

        Returns:
            An outcome for the recorder; None if the run is recorded, or was ended elsewhere.
        """
        identity = self._identity()
        transaction = HandlerTransaction(self._connections, attempt)
        try:
            context.bind_transaction(transaction.block)
            outcome = succeeded(attempt, function(context))
        except BaseException as error:  # noqa: BLE001 - SystemExit of a handler must not end its thread
            outcome = raised(attempt, error)
        if os.getpid() != self._process:
            os._exit(0)  # a fork that the handler made: the connection belongs to the parent
        try:
            if transaction.connection is None or outcome.state is not RunState.SUCCEEDED:
                return outcome
            if not claim(attempt):
                _log.warning("transaction_too_late", run_id=str(attempt.run.id), handler=attempt.run.handler)
                return None
            opened = _OpenAttempt(
                attempt, identity, transaction, transaction.connection, left(attempt, outcome), left
            )
            self._finish(opened)
            return None
        finally:
            transaction.end()

    def close(self) -> None:
        """Close idle connections."""
        self._connections.close()

    def _finish(self, opened: _OpenAttempt) -> None:
        """Record the success in the transaction and commit; make sure that the run gets one outcome."""
        connection, outcome = opened.connection, opened.outcome
        try:
            if not opened.transaction.take_over():
                self._fail(opened, _NOT_OPEN, Failure(retryable=False))
                return
            recorded = self._recorder.record_in(connection, opened.identity, [outcome], unsure=False)
            hit("worker.before_outcome")
            taken = recorded.states.get(outcome.run.id) == RunState.SUCCEEDED
            if taken:
                handler_transactions.commit(connection)
                hit("worker.after_outcome")
        except psycopg.Error as error:
            if connection.broken or must_reconnect(error):
                self._settle_unknown(opened, error)
            else:
                self._fail(opened, describe(error), Failure(exception=exception_names(type(error))))
            return
        except Exception as error:  # noqa: BLE001 - the run was claimed: nothing else gives it an outcome
            self._fail(opened, describe(error), Failure(exception=exception_names(type(error))))
            return
        opened.transaction.end()
        if taken or recorded.fenced:
            self._recorder.committed([outcome], recorded)
        else:
            # The run was cancelled meanwhile: nothing was committed, and the recorder writes that verdict.
            self._recorder.put([outcome])

    def _fail(self, opened: _OpenAttempt, error: str, failure: Failure) -> None:
        """Record that nothing was committed; first end the transaction, which may lock the run's row."""
        opened.transaction.end()
        attempt = opened.attempt
        self._recorder.put([opened.left(attempt, failed(attempt, error, failure=failure))])

    def _settle_unknown(self, opened: _OpenAttempt, error: psycopg.Error) -> None:
        """Find out whether the COMMIT succeeded, however long the database is down.

        A commit that is still in progress locks the row of the run: a failure that is recorded meanwhile
        waits for it, and is fenced if it succeeds.
        """
        opened.transaction.end()
        backoff = Backoff(first_seconds=0.1, cap_seconds=1.0)
        while self._identity() == opened.identity and not self._recorder.closed.is_set():
            try:
                done = self._is_recorded(opened)
            except psycopg.Error as fault:
                if classify(fault) is DbFault.PERMANENT:
                    raise
                time.sleep(backoff.next_seconds())
                continue
            if done:
                self._recorder.committed([opened.outcome], Recorded())
            else:
                text = f"the connection was lost, and nothing was committed: {describe(error)}"
                self._fail(opened, text, Failure(exception=exception_names(type(error))))
            return
        _log.warning("transaction_result_unknown", run_id=str(opened.attempt.run.id))

    def _is_recorded(self, opened: _OpenAttempt) -> bool:
        connection = self._connections.fresh()
        try:
            return bool(finish.already_recorded(connection, opened.identity, [opened.outcome]))
        finally:
            drop(connection)


@dataclass(frozen=True, slots=True)
class _OpenAttempt:
    """An attempt whose handler has returned, and whose transaction must be committed."""

    attempt: RunningAttempt
    identity: Identity
    transaction: HandlerTransaction
    connection: psycopg.Connection
    outcome: Outcome
    left: Callable[[RunningAttempt, Outcome], Outcome]


_NOT_OPEN: Final = (
    "the handler ended its transaction itself, or continued after one of its statements had failed; leave "
    "COMMIT and ROLLBACK to noonmark, and do not catch database errors inside `with ctx.transaction()`"
)
