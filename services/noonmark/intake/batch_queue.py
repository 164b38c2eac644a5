"""Passes checked batches from the reader to the writer: at most one being written and one waiting."""

from __future__ import annotations

import threading

from noonmark.intake.batch_checks import CheckedBatch


class BatchQueue:
    """Holds one waiting batch, and the one being written until it is committed, through database outages."""

    def __init__(self, wake: threading.Event) -> None:
        """Create an empty queue.

        Args:
            wake: the event to set when a batch is offered.
        """
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: CheckedBatch | None = None
        self._writing: CheckedBatch | None = None
        self._closed = False

    def offer(self, batch: CheckedBatch) -> None:
        """Add a batch. The waiting slot must be free, and only one thread may call this."""
        with self._changed:
            assert self._waiting is None, "a batch was offered while another one waits"
            self._waiting = batch
        self._wake.set()

    def wait_for_slot(self, timeout_seconds: float) -> bool:
        """Wait until the slot is free; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting is None, timeout_seconds)

    def begin(self) -> CheckedBatch | None:
        """Return the batch to write: the unfinished one, else the next one; None if there is neither."""
        with self._changed:
            if self._writing is None and not self._closed:
                self._writing, self._waiting = self._waiting, None
                self._changed.notify_all()
            return self._writing

    def done(self) -> None:
        """Forget the batch being written, because it is committed."""
        with self._changed:
            self._writing = None
            self._changed.notify_all()

    def close(self, timeout_seconds: float) -> None:
        """Stop handing out batches, and wait for the one being written."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._writing is None, timeout_seconds)

    def abandon(self) -> None:
        """Stop waiting for the batch being written, because the writer has stopped. Kafka redelivers it."""
        self._closed = True
        self.done()
