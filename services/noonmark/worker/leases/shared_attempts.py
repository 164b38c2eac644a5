"""What the heartbeat process sees of the worker: memory of both, written without a lock or a system call.

The worker writes which attempts run on its interpreter, on which thread and until when. A thread of the
worker, the pulse, counts in it several times a second, as long as it gets the interpreter's lock (GIL). The
heartbeat process reads both (`stuck_worker.py`): messages would not be sent when they are needed.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

if TYPE_CHECKING:  # for the heartbeat process, which would load most of the worker with it
    from noonmark.attempts.running_attempt import RunningAttempt

PULSE_SECONDS: Final = 0.25
_HEAD: Final = struct.Struct("<QQ")
_SLOT: Final = struct.Struct("<dQ16s")
_END_BY: Final = struct.Struct("<d")


class _ThisThread(threading.local):
    """The id of the calling thread, as the kernel names it: asking for it is a system call."""

    def __init__(self) -> None:
        self.id = threading.get_native_id()


_this_thread = _ThisThread()


@dataclass(frozen=True, slots=True)
class SharedAttempt:
    """An attempt that runs on the worker's interpreter.

    Attributes:
        run_id: of its run.
        thread: id of its thread, as the kernel names it.
        end_by: when it is past its timeout and its grace, in monotonic seconds.
    """

    run_id: UUID
    thread: int
    end_by: float


class SharedAttempts:
    """A table of attempts in shared memory; more of them than it has slots are not watched."""

    def __init__(self, slots: int, *, grace_seconds: float = 0.0, fd: int | None = None) -> None:
        """Create the table, or open that of another process.

        Args:
            slots: number of attempts that it holds.
            grace_seconds: allowed to an attempt beyond its timeout.
            fd: of the table of another process.
        """
        size = _HEAD.size + slots * _SLOT.size
        self.slots = slots
        self.fd = os.memfd_create("noonmark-attempts") if fd is None else fd
        if fd is None:
            os.truncate(self.fd, size)
        self._memory = mmap.mmap(self.fd, size)
        self._grace_seconds = grace_seconds
        self._unused = [_HEAD.size + slot * _SLOT.size for slot in range(slots)]

    def enter(self, attempt: RunningAttempt) -> int:
        """Write an attempt that begins on this thread; return its place, or -1 if all are taken."""
        try:
            place = self._unused.pop()
        except IndexError:
            return -1
        end_by = attempt.began_at + attempt.timeout_seconds + self._grace_seconds
        # `bytes` of a UUID is a property, written in Python.
        run_id = attempt.run.id.int.to_bytes(16, "big")
        _SLOT.pack_into(self._memory, place, end_by, _this_thread.id, run_id)
        return place

    def leave(self, place: int) -> None:
        """Remove an attempt that has ended on its thread."""
        if place >= 0:
            _END_BY.pack_into(self._memory, place, 0.0)
            self._unused.append(place)

    def start_pulse(self) -> None:
        """Start the thread that counts while it gets the interpreter's lock."""
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def pulse(self) -> tuple[int, int]:
        """Return the count of the pulse and the id of its thread; 0 before it has started."""
        count, thread = _HEAD.unpack_from(self._memory)
        return count, thread

    def overdue(self, now: float) -> list[SharedAttempt]:
        """Return the attempts that are past their timeout and grace.

        Args:
            now: monotonic time in seconds.
        """
        rows = _SLOT.iter_unpack(self._memory[_HEAD.size :])
        return [
            SharedAttempt(UUID(bytes=run_id), thread, end_by)
            for end_by, thread, run_id in rows
            if 0.0 < end_by < now
        ]

    def _beat(self) -> None:
        thread, count = threading.get_native_id(), 0
        while True:
            count += 1
            _HEAD.pack_into(self._memory, 0, count, thread)
            time.sleep(PULSE_SECONDS)
