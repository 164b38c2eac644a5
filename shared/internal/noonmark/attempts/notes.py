"""Writes progress and checkpoints of running attempts, about once a second, the latest of each run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import psycopg

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.attempt_key import attempt_key
from noonmark.handlers.effects import Fenced, Saved
from noonmark.service.backoff import Backoff
from noonmark.service.database_errors import DbFault, classify, must_reconnect
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect
from noonmark.store.outcomes.notes import Note, Saving, save_notes
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.metrics import FENCED_WRITES

_ROUND_SECONDS = 1.0
_BUSY_SECONDS = 0.05
_MOST = 500


class NoteWriter:
    """Holds the notes that are not written yet. Without notes it costs nothing, not even a connection.

    A note is also part of its attempt's outcome: if it is not written when the attempt ends, it is written
    with the outcome, in the same transaction.
    """

    name = "notes"

    def __init__(self, service: Service, identity: Callable[[], Identity]) -> None:
        """Create the writer.

        Args:
            service: the process.
            identity: returns the current lease of the worker.
        """
        self._service = service
        self._log = service.log.bind(loop=self.name)
        self._identity = identity
        self._health = service.health.progress(self.name, 60.0)
        self._lock = threading.Lock()
        self._fresh: dict[Any, Note] = {}
        self._waiting: dict[Any, list[tuple[int, Future[None]]]] = {}
        self._pending = threading.Event()
        self._hurry = threading.Event()
        self._empty = threading.Condition(self._lock)
        self._closed = False
        self._connection: psycopg.Connection | None = None

    def progress(self, attempt: RunningAttempt, fraction: float | None, message: str) -> None:
        """Note how far an attempt is; callable from any thread."""
        with self._lock:
            note = self._note_of(attempt)
            note.progress, note.message = fraction, message

    def checkpoint(self, attempt: RunningAttempt, data: bytes) -> Saved:
        """Note where the next attempt can resume; callable from any thread."""
        with self._lock:
            note = self._note_of(attempt)
            note.checkpoint = data
            version = note.version
        # Nothing is stored for callers that do not wait: a handler can call this 100,000 times a second.
        return Saved(lambda: self._wait_for(attempt.key, note, version))

    def _wait_for(self, key: Any, note: Note, version: int) -> Future[None]:
        written: Future[None] = Future()
        with self._lock:
            saved, pending = note.saved >= version, key in self._fresh
            if pending and not saved:
                self._waiting.setdefault(key, []).append((version, written))
                self._hurry.set()
        if saved:
            written.set_result(None)
        elif not pending:
            _refuse([written])
        return written

    def _note_of(self, attempt: RunningAttempt) -> Note:
        extras = attempt.ensure_extras()
        if extras.note is None:
            extras.note = Note(attempt.run, attempt.fence)
        extras.note.version += 1
        self._fresh[attempt.key] = extras.note
        self._pending.set()
        return extras.note

    def forget(self, keys: Sequence[Any]) -> None:
        """Drop the notes of attempts that have ended: they are written with their outcomes, or not at all."""
        with self._lock:
            for key in keys:
                self._fresh.pop(key, None)
            given_up = [future for key in keys for _, future in self._waiting.pop(key, ())]
            self._empty.notify_all()
        _refuse(given_up)

    def settle(self, timeout_seconds: float) -> None:
        """Wait until all notes are written, before runs are handed back with their checkpoints."""
        with self._lock:
            self._hurry.set()
            self._pending.set()
            self._empty.wait_for(lambda: not self._fresh, timeout_seconds)

    def close(self) -> None:
        """Stop the writer; called when no run is in flight any more."""
        self._closed = True
        self._pending.set()
        self._hurry.set()

    def run(self, stop: threading.Event) -> None:
        """Write notes until the engine closes the writer, at the end of a drain."""
        del stop
        backoff = Backoff(first_seconds=0.1, cap_seconds=1.0)
        while not self._closed:
            self._health.beat()
            if not self._pending.wait(_ROUND_SECONDS * 10):
                continue
            self._hurry.wait(_ROUND_SECONDS)
            self._hurry.clear()
            try:
                busy = self._write_round()
            except psycopg.Error as error:
                self._failed(error)
                backoff.wait(threading.Event())
            else:
                backoff.reset()
                if busy:
                    self._hurry.wait(_BUSY_SECONDS)
        if self._connection is not None:
            self._connection.close()

    def _write_round(self) -> bool:
        """Write the notes; return whether rows were locked by others and must wait for the next round."""
        batch = self._snapshot()
        if not batch:
            return False
        if self._connection is None:
            self._connection = connect(self._service.settings.dsn, application="notes", autocommit=True)
        saving = self._save(self._connection, list(batch.values()))
        done: list[Future[None]] = []
        fenced: list[Future[None]] = []
        lost = 0
        with self._lock:
            for key, written in batch.items():
                if written.run.id in saving.saved:
                    done += self._saved(key, written)
                elif written.run.id not in saving.busy and self._fresh.pop(key, None) is not None:
                    lost += 1
                    fenced += [future for _, future in self._waiting.pop(key, ())]
            if not self._fresh:
                self._pending.clear()
                self._empty.notify_all()
        for future in done:
            future.set_result(None)
        _refuse(fenced)
        if lost:
            FENCED_WRITES.labels("worker", "note").inc(lost)
        return bool(saving.busy)

    def _save(self, connection: psycopg.Connection, notes: list[Note]) -> Saving:
        """Save notes. One that Postgres refuses is dropped alone: notes are not verdicts."""
        worker, epoch = self._identity()
        try:
            return save_notes(connection, worker, epoch, notes)
        except psycopg.Error as error:
            if classify(error) is not DbFault.PERMANENT:
                raise
            middle = len(notes) // 2
            if not middle:
                self._drop(notes[0], error)
                return Saving(set(), set())
        halves = [self._save(connection, some) for some in (notes[:middle], notes[middle:])]
        return Saving(*(set().union(*parts) for parts in zip(*halves, strict=True)))

    def _drop(self, note: Note, error: psycopg.Error) -> None:
        """Drop a note that cannot be stored, and tell the handler if it waits for it."""
        why = str(error).strip()
        self._log.error("note_dropped", run_id=str(note.run.id), error=why)
        key = attempt_key(note.run.id, note.fence)
        with self._lock:
            self._fresh.pop(key, None)
            waiting = self._waiting.pop(key, [])
        for _, future in waiting:
            future.set_exception(RuntimeError(f"the checkpoint cannot be stored: {why}"))

    def _snapshot(self) -> dict[Any, Note]:
        with self._lock:
            if not self._fresh:
                self._pending.clear()
            # Copies: an attempt can change its note while it is written.
            return {key: replace(note) for key, note in list(self._fresh.items())[:_MOST]}

    def _saved(self, key: Any, written: Note) -> list[Future[None]]:
        note = self._fresh.get(key)
        if note is not None:
            note.saved = max(note.saved, written.version)
            if note.version == written.version:
                del self._fresh[key]
        waiting = self._waiting.pop(key, [])
        later = [(version, future) for version, future in waiting if version > written.version]
        if later:
            self._waiting[key] = later
        return [future for version, future in waiting if version <= written.version]

    def _failed(self, error: psycopg.Error) -> None:
        self._log.warning("notes_not_written_yet", count=len(self._fresh), error=str(error).strip())
        if self._connection is not None and (must_reconnect(error) or self._connection.broken):
            self._connection.close()
            self._connection = None


def _refuse(futures: Sequence[Future[None]]) -> None:
    for future in futures:
        future.set_exception(Fenced("this attempt does not own the run any more; stop working on it"))
