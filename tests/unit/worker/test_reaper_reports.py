"""The report of a reaper, as the supervisor reads it after the reaper's end."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator

import pytest

from noonmark.worker.processes.supervisor import _report

REPORT = {"status": 1792, "cpu_seconds": 0.1, "error": "", "crowded": False}


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The supervisor's end of a control socket, and the reaper's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


@pytest.mark.parametrize("unread", [0, 1, 3])
def test_signals_that_a_reaper_left_unread_do_not_hide_its_report(
    ends: tuple[socket.socket, socket.socket], unread: int
) -> None:
    ours, theirs = ends
    theirs.send(json.dumps(REPORT).encode())
    for _ in range(unread):
        ours.send(bytes((signal.SIGKILL,)))
    theirs.close()

    assert _report(ours) == REPORT


@pytest.mark.parametrize("unread", [0, 1])
def test_a_reaper_that_was_killed_has_no_report(
    ends: tuple[socket.socket, socket.socket], unread: int
) -> None:
    ours, theirs = ends
    for _ in range(unread):
        ours.send(bytes((signal.SIGKILL,)))
    theirs.close()

    assert _report(ours) is None
