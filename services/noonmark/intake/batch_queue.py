"""Where the reader hands checked batches to the writer: one being written, one waiting, no more."""

from __future__ import annotations

import threading

from noonmark.intake.batch_checks import CheckedBatch


class BatchQueue:
    """A batch in the writer's hands stays there until it is done, through every outage of the database."""

    def __init__(self, wake: threading.Event) -> None:
        """Make it empty.

        Args:
            wake: set when a batch is offered.
        """
        self._wake = wake
        self._changed = threading.Condition()
        self._waiting: CheckedBatch | None = None
        self._writing: CheckedBatch | None = None
        self._closed = False

    def offer(self, batch: CheckedBatch) -> None:
        """Hand in a batch; there must be room, and only one thread offers."""
        with self._changed:
            assert self._waiting is None, "a batch was offered where there was no room"
            self._waiting = batch
        self._wake.set()

    def wait_for_slot(self, timeout_seconds: float) -> bool:
        """Wait until a batch can be offered; False if it cannot."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting is None, timeout_seconds)

    def begin(self) -> CheckedBatch | None:
        """Take the batch to write: the one that is not done yet, else the next; None if there is none."""
        with self._changed:
            if self._writing is None and not self._closed:
                self._writing, self._waiting = self._waiting, None
                self._changed.notify_all()
            return self._writing

    def done(self) -> None:
        """Let go of the batch being written: it is committed."""
        with self._changed:
            self._writing = None
            self._changed.notify_all()

    def close(self, timeout_seconds: float) -> None:
        """Let nothing new be begun, and wait for what is being written."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._writing is None, timeout_seconds)

    def abandon(self) -> None:
        """Say that the writer is gone: nobody waits for what it held; it is delivered again."""
        self._closed = True
        self.done()
