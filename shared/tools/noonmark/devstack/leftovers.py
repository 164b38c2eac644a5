"""Stops what a killed supervisor left running."""

from __future__ import annotations

import contextlib
import signal

import psutil

from noonmark.devstack.processes import processes
from noonmark.devstack.processes.processes import ProcessId
from noonmark.devstack.state import STACK_ID_VARIABLE, StackState


def end_leftovers(state: StackState) -> list[str]:
    """Stops processes and containers of a dead supervisor, last started first.

    Only processes with the recorded start time are touched: a process id that another program has
        received since is left alone.

    Returns:
        Names of what was still running.

    Raises:
        DevStackError: Containers must be removed, but no engine answers.
    """
    ended: list[str] = []
    for name, entry in reversed(state.processes.items()):
        process = entry.id
        if process.send(signal.Signals[entry.stop_signal]):
            ended.append(name)
            if not _has_ended(process, entry.grace_seconds):
                process.send_to_group(signal.SIGKILL)
    if _kill_marked(state.stack_id):
        ended.append("processes that services had started")
    if state.containers:
        from noonmark.devstack.containers import remove_containers  # noqa: PLC0415 - optional extra

        ended += remove_containers(state.containers)
    return ended


def _kill_marked(stack_id: str) -> int:
    """Kills what services had started, identified by the stack's id in the environment."""
    killed = 0
    for process in psutil.process_iter():
        # Gone meanwhile, or another user's: not ours in both cases.
        with contextlib.suppress(psutil.Error):
            if process.environ().get(STACK_ID_VARIABLE) == stack_id:
                process.kill()
                killed += 1
    return killed


def _has_ended(process: ProcessId, timeout_seconds: float) -> bool:
    return processes.wait_until(lambda: not process.is_running(), timeout_seconds=timeout_seconds)
