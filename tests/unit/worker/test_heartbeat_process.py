"""The heartbeat process, at its worker's sudden end and at signals of the terminal."""

import json
import os
import signal
import subprocess
import sys

import pytest

from noonmark.worker.leases.lease import _blocked_signals

LIMIT_SECONDS = 60
COMMAND = [sys.executable, "-m", "noonmark.worker.leases.heartbeat"]


def test_a_report_that_nobody_reads_any_more_ends_it_without_a_traceback():
    """A second signal ends a worker at once: its end of the pipe closes while the heartbeat reports."""
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    # It reports that it is ready when it has received the first line.
    process.stdin.write(json.dumps({}).encode() + b"\n")
    process.stdin.flush()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()
    assert process.wait(LIMIT_SECONDS) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_a_signal_of_the_terminal_does_not_end_it_even_before_it_has_loaded(number):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    with _blocked_signals():
        process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before
    os.kill(process.pid, number)
    # It ends when its input does, as at the end of every worker.
    said, complaint = process.communicate(timeout=LIMIT_SECONDS)
    assert (process.returncode, said, complaint) == (0, b"", b"")
