"""The worker's side of the supervisor: starts child processes and stops them with all their descendants."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.worker.processes.spawn_messages import Ending, SpawnRequest
from noonmark.worker.processes.spawned_child import Child
from noonmark.worker.processes.supervisor_connection import SupervisorConnection

START_TRIES: Final = 3
"""How often a child is requested whose request no supervisor took."""


class ChildLauncher:
    """Starts children through one supervisor process, which is started with the first child.

    All methods must be called on the event loop that called it first.
    """

    def __init__(self) -> None:
        self.hurry = asyncio.Event()
        """Set when children get no grace any more."""

        self._supervisor: SupervisorConnection | None = None
        self._ending: set[SupervisorConnection] = set()
        self._number = 0

    def spawn(
        self,
        request: SpawnRequest,
        stdin: int,
        extra: Sequence[int] = (),
        *,
        attempt: RunningAttempt | None = None,
    ) -> Child:
        """Start a child and read its output.

        Args:
            request: the child to start.
            stdin: its standard input; the caller closes it.
            extra: its descriptors 3 and up; the caller closes them.
            attempt: the attempt that gets its output from the beginning; None: see `Child.begin_output`.

        Returns:
            The child. If it could not be started, its `ended` says why.
        """
        loop = asyncio.get_running_loop()
        self._number += 1
        number = self._number
        child = Child(number, self.hurry, loop, attempt)
        try:
            with ExitStack() as descriptors:
                passed_on = _open_descriptors(child, request, descriptors)
                supervisor = self._connect(loop)
                child.send = supervisor.send
                supervisor.spawn(number, child, [passed_on[0], stdin, *passed_on[1:], *extra])
        except BaseException as error:
            child.close()
            if not isinstance(error, OSError):
                raise
            why = f"could not be started: {error.strerror or error}"
            child.end(Ending(None, why, started=False))
        return child

    def kill_all(self) -> None:
        """Kill every child, and give no child a grace from now on."""
        self.hurry.set()
        if self._supervisor is not None:
            self._supervisor.kill_all()

    async def close(self) -> None:
        """Stop the supervisor, and all children with it."""
        if self._supervisor is not None:
            self._supervisor.stop("the worker is ending")
        await asyncio.gather(*(supervisor.gone.wait() for supervisor in self._ending))

    def _connect(self, loop: asyncio.AbstractEventLoop) -> SupervisorConnection:
        """Return the connection to the supervisor, which is started if there is none."""
        if self._supervisor is None:
            self._supervisor = SupervisorConnection(loop, self._stopped, self._gone)
        return self._supervisor

    def _stopped(self, supervisor: SupervisorConnection) -> None:
        """Use another supervisor from the next child on.

        The loop does not wait for its end: other children, and calls to other systems, are served meanwhile.
        """
        if self._supervisor is supervisor:
            self._supervisor = None
        self._ending.add(supervisor)

    def _gone(self, supervisor: SupervisorConnection) -> None:
        self._ending.discard(supervisor)


def _open_descriptors(child: Child, request: SpawnRequest, opened: ExitStack) -> list[int]:
    """Return the request as a file, and the child's output and error; `opened` closes them.

    Raises:
        OSError: there are no descriptors or no memory left.
    """
    # A file without a name: a request can be larger than a message.
    file = os.memfd_create("request")
    opened.callback(os.close, file)
    with os.fdopen(os.dup(file), "wb") as writer:
        writer.write(request.encode())
    os.lseek(file, 0, os.SEEK_SET)
    passed_on = [file]
    for name in ("stdout", "stderr"):
        ours, theirs = os.pipe()
        opened.callback(os.close, theirs)
        child.read(ours, name)
        passed_on.append(theirs)
    return passed_on
