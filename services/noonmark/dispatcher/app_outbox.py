"""Relays jobs that applications enqueued in their own databases: accepted once here, then deleted there."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.faults import hit
from noonmark.kafka.topics import Topics
from noonmark.outbox.bindings import AppOutbox
from noonmark.outbox.table import app_statement
from noonmark.schemas.events.submissions import CreateJob
from noonmark.schemas.jobs.job import parse_job
from noonmark.schemas.problems.refusal import FieldError, Refused, kind_of, printable, shown
from noonmark.schemas.problems.screening import parse_json
from noonmark.service.acceptor import Acceptor
from noonmark.service.backoff import Backoff
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect
from noonmark.store.database.hints import HintSender
from noonmark.store.jobs.submit import EventRef, Request, Result, Status
from noonmark.store.schedules.time_facts import Moment
from noonmark.telemetry.metrics import (
    APP_OUTBOX_OLDEST,
    APP_OUTBOX_REACHABLE,
    APP_OUTBOX_RELAYED,
    APP_OUTBOX_ROWS,
)

_BATCH: Final = 500
_BATCH_BYTES: Final = 8 * 1024 * 1024
"""The most bytes of documents in one batch; a larger document is relayed alone."""

_CHECK_SECONDS: Final = 1.0
"""The time for checking one batch; the rest goes into the next one. Both transactions are idle meanwhile, and
the databases end transactions that are idle for long.
"""

_IDLE_SECONDS: Final = 0.25
_MEASURE_SECONDS: Final = 5.0
_CAP: Final = 100_000
"""Rows are counted up to this number."""

_LONGEST_ERROR: Final = 4000


class Row(NamedTuple):
    """A row of an application's outbox; `document` is None if it is larger than a submission may be."""

    id: UUID
    namespace: str | None
    idempotency_key: str
    document: str | None


class AppOutboxLoop:
    """Relays one application's outbox, in its own thread and on its own connections.

    Rows are locked in the application's database, their jobs committed here, then the rows deleted there.
    After a crash in between, the rows are relayed again and the inbox recognises them; once the inbox has
    deleted their ids, the job's idempotency key does. An outage of one database does not affect the others.
    """

    def __init__(
        self, service: Service, bound: AppOutbox, topics: Topics, hints: HintSender, *, shards: int
    ) -> None:
        """Register the loop; the connections are opened when it runs."""
        self.name = f"app_outbox_{bound.name}"
        self._service = service
        self._bound = bound
        self._log = service.log.bind(loop=self.name)
        self._progress = service.health.progress(self.name, 120.0)
        self._acceptor = Acceptor(topics, hints, shards=shards, traces=service.traces)
        self._measure_at = 0.0
        self._most_rows = _BATCH
        self._note("not connected yet")
        for status in Status:
            APP_OUTBOX_RELAYED.labels(bound.name, status.value)

    def run(self, stop: threading.Event) -> None:
        """Relay until `stop` is set, and reconnect after every outage of either database."""
        backoff = Backoff(first_seconds=0.2, cap_seconds=20.0)
        while not stop.is_set():
            try:
                with (
                    connect(self._bound.url, application=self.name, autocommit=True) as theirs,
                    connect(self._service.settings.dsn, application=self.name, autocommit=True) as ours,
                ):
                    self._passes(theirs, ours, stop, backoff)
            except Exception as error:  # noqa: BLE001 - no error here may stop the other loops
                self._failed(error)
                backoff.wait(stop)

    def run_once(self, theirs: psycopg.Connection, ours: psycopg.Connection) -> int:
        """Relay one batch; return the number of rows that were relayed or parked."""
        with theirs.transaction():
            rows = self._take(theirs)
            if not rows:
                return 0
            verdicts = self._relay(ours, rows)
            hit("dispatcher.after_accept")
            self._settle(theirs, rows[: len(verdicts)], verdicts)
        self._most_rows = _next_size(rows, len(verdicts))
        return len(verdicts)

    def measure(self, theirs: psycopg.Connection) -> None:
        """Show how far the relay of the application's rows is behind."""
        found = theirs.execute(app_statement("measure"), {"cap": _CAP}).fetchone()
        assert found is not None
        waiting, parked, oldest = found
        name = self._bound.name
        APP_OUTBOX_ROWS.labels(name, "waiting").set(waiting)
        APP_OUTBOX_ROWS.labels(name, "parked").set(parked)
        APP_OUTBOX_OLDEST.labels(name).set(max(0.0, oldest or 0.0))

    def _passes(
        self, theirs: psycopg.Connection, ours: psycopg.Connection, stop: threading.Event, backoff: Backoff
    ) -> None:
        while not stop.is_set():
            relayed = self.run_once(theirs, ours)
            if time.monotonic() >= self._measure_at:
                self.measure(theirs)
                self._measure_at = time.monotonic() + _MEASURE_SECONDS
            self._progress.beat()
            backoff.reset()
            self._note("")
            if not relayed:
                stop.wait(_IDLE_SECONDS)

    def _take(self, theirs: psycopg.Connection) -> list[Row]:
        limits = {
            "most_rows": self._most_rows,
            "most_bytes": self._service.settings.max_submission_bytes,
            "batch_bytes": _BATCH_BYTES,
        }
        return [Row(*row) for row in theirs.execute(app_statement("take"), limits).fetchall()]

    def _relay(self, ours: psycopg.Connection, rows: Sequence[Row]) -> list[Result]:
        """Commit the jobs of a batch; return the results of all rows, or of the first ones."""
        checked: list[Request | Result] = []

        def read(moment: Moment) -> list[Request]:
            until = time.monotonic() + _CHECK_SECONDS
            for row in rows:
                checked.append(self._check(row, moment))
                if time.monotonic() > until:
                    break
            return [one for one in checked if isinstance(one, Request)]

        with ours.transaction():
            accepted = self._acceptor.accept_read(ours, read)
        self._acceptor.record_accepted(accepted)
        results = iter(accepted.results)
        return [next(results) if isinstance(one, Request) else one for one in checked]

    def _check(self, row: Row, moment: Moment) -> Request | Result:
        """Create the request of a row; an error in it must not stop the others."""
        try:
            document = self._document(row)
            spec = parse_job(
                document, now=moment.now, ledger_floor=moment.ledger_floor, facts=moment.facts, screened=True
            )
        except Refused as refused:
            return Result(Status.REJECTED, refused=refused)
        except Exception as error:  # noqa: BLE001 - an error in one row must not stop the others
            self._log.exception("row_not_checked", row=str(row.id))
            verdict = Refused([FieldError("", f"could not be checked: {type(error).__name__}")])
            return Result(Status.REJECTED, refused=verdict)
        return Request(CreateJob(spec), EventRef(f"outbox:{self._bound.name}", str(row.id), None))

    def _document(self, row: Row) -> dict[str, object]:
        """Read the document of a row, and set the namespace that the outbox is bound to.

        Raises:
            Refused: it is not a document, or names another namespace.
        """
        if row.document is None:
            most = self._service.settings.max_submission_bytes
            raise Refused([FieldError("", "is too large", f"at most {most} bytes of JSON")])
        document = parse_json(row.document.encode())
        if not isinstance(document, dict):
            raise Refused([FieldError("", f"is {kind_of(document)}", "a job document: a JSON object")])
        bound = self._bound.namespace
        for named in (document.get("namespace"), row.namespace):
            if named is not None and named != bound:
                message = f"{shown(named)} is not the namespace of this outbox"
                raise Refused([FieldError("/namespace", message, f"{bound}, or the field left out")])
        return {**document, "namespace": bound, "idempotency_key": row.idempotency_key}

    def _settle(self, theirs: psycopg.Connection, rows: Sequence[Row], verdicts: Sequence[Result]) -> None:
        """Delete the rows whose jobs are committed, and park those that were refused."""
        parked = [
            (row.id, _storable(str(verdict.refused), theirs.info.encoding))
            for row, verdict in zip(rows, verdicts, strict=True)
            if verdict.status is Status.REJECTED
        ]
        refused = {row_id for row_id, _ in parked}
        done = [row.id for row in rows if row.id not in refused]
        if done:
            theirs.execute(app_statement("remove"), {"ids": done})
        if parked:
            ids, errors = zip(*parked, strict=True)
            theirs.execute(app_statement("park"), {"ids": list(ids), "errors": list(errors)})
            self._log.warning("outbox_rows_parked", count=len(parked), row=str(ids[0]), reason=errors[0])
        for status, count in Counter(verdict.status for verdict in verdicts).items():
            APP_OUTBOX_RELAYED.labels(self._bound.name, status.value).inc(count)

    def _failed(self, error: Exception) -> None:
        """Record an error and continue: an outage of either database must not stop the other loops."""
        self._progress.beat()
        self._note("not relaying: see the log")
        # The last measurement would look like a current one.
        APP_OUTBOX_OLDEST.forget(self._bound.name)
        if isinstance(error, psycopg.Error):
            self._log.warning("outbox_not_relayed", error=str(error).strip(), sqlstate=error.sqlstate)
        else:
            self._log.error("outbox_not_relayed", exc_info=error)

    def _note(self, problem: str) -> None:
        self._service.health.note(self.name, problem)
        APP_OUTBOX_REACHABLE.labels(self._bound.name).set(not problem)


def _next_size(rows: Sequence[Row], dealt_with: int) -> int:
    """Return how many rows to lock next: locking more than it relays only blocks other dispatchers."""
    is_large = sum(len(row.document or "") for row in rows) >= _BATCH_BYTES // 2
    return min(_BATCH, 2 * dealt_with) if is_large or dealt_with < len(rows) else _BATCH


def _storable(text: str, encoding: str) -> str:
    """Return a text that a database with this encoding can store."""
    return printable(text)[:_LONGEST_ERROR].encode(encoding, "backslashreplace").decode(encoding)
