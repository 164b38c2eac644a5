"""The loop that serves children and calls to other systems never waits for the supervisor process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from noonmark.worker.processes.spawn_messages import SpawnRequest
from noonmark.worker.processes.spawned_child import Child
from noonmark.worker.processes.spawning import ChildLauncher

MANY = 3000
"""More commands than a socket holds."""


def run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 60))


def start(launcher: ChildLauncher, *argv: str) -> Child:
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - its descriptor
        return launcher.spawn(SpawnRequest(argv[0], argv, {}, "/"), nothing.fileno())


def descriptors() -> int:
    """The number of open descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def stopped(launcher: ChildLauncher) -> subprocess.Popen[bytes]:
    """The supervisor, stopped as by a lack of CPU."""
    assert launcher._supervisor is not None
    process = launcher._supervisor.process
    os.kill(process.pid, signal.SIGSTOP)
    return process


@pytest.mark.parametrize("how", ["closed", "lost"])
def test_the_loop_does_not_wait_for_a_supervisor_that_does_not_end(how: str) -> None:
    async def scene() -> None:
        launcher = ChildLauncher()
        child = start(launcher, "/bin/sleep", "600")
        assert await child.begun
        process = stopped(launcher)
        if how == "closed":
            closing = asyncio.ensure_future(launcher.close())
            await asyncio.wait([closing], timeout=0)
        else:
            launcher._supervisor.stop("a test wants it")

        # The call is over, and it is not: a child is gone only when nothing of it can run any more.
        assert process.poll() is None
        assert not child.ended.done()
        other = await start(launcher, "/bin/true").ended
        assert (other.code, other.started) == (0, True)

        ending = await child.ended
        assert (ending.code, ending.started) == (None, True)
        assert ending.error.startswith("was lost: ")
        assert process.poll() == -signal.SIGKILL
        await launcher.close()

    run(scene())


def test_commands_that_the_supervisor_does_not_read_wait_and_are_carried_out_in_order() -> None:
    async def scene() -> None:
        launcher = ChildLauncher()
        child = start(launcher, "/bin/sleep", "600")
        process = stopped(launcher)
        for _ in range(MANY):
            child.signal(signal.SIGCONT)
        others = [start(launcher, "/bin/sh", "-c", f"exit {code}") for code in (3, 4)]
        child.kill()

        os.kill(process.pid, signal.SIGCONT)

        assert [(await other.ended).code for other in others] == [3, 4]
        assert (await child.ended).code == -signal.SIGKILL
        for each in (child, *others):
            each.close()
        await launcher.close()
        assert process.poll() == 0  # it ended by itself

    run(scene())


def test_commands_that_were_never_read_are_dropped_with_their_supervisor() -> None:
    async def scene() -> None:
        launcher = ChildLauncher()
        child = start(launcher, "/bin/sleep", "600")
        stopped(launcher)
        for _ in range(MANY):
            child.signal(signal.SIGCONT)
        open_before = descriptors()
        late = start(launcher, "/bin/true")
        late.close()
        await launcher.close()

        assert [(await each.ended).error for each in (child, late)] == ["was lost: the worker is ending"] * 2
        assert descriptors() < open_before
        child.close()

    run(scene())
