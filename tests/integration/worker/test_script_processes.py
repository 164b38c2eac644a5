"""All processes of a script end with its run and with no other, whatever is killed or stopped meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
from tests.integration.worker.script_bench import SH, Scripts
from tests.unit.worker.bench import PATIENCE

from noonmark.core.states import AttemptOutcome, DeliverySemantics, RunState
from noonmark.worker.processes import silence, supervisor

HELPER = "(env -i PATH=$PATH setsid sleep 600 & echo $! > helper); "
"""Starts a process that has neither the session nor the environment nor, soon, a parent of its script."""

UNTIL_GO = "until [ -e go ]; do sleep 0.02; done; "

FAMILY = (
    "trap '' TERM; "
    + HELPER
    + "setsid sh -c \"trap '' TERM; echo \\$\\$ > child; while :; do sleep 1; done\" & "
    "echo $$ > first; while :; do sleep 1; done"
)


def supervisor_of(*, pid: int | None = None) -> psutil.Process:
    (found,) = [p for p in psutil.Process(pid).children() if "supervisor.py" in " ".join(p.cmdline())]
    return found


def runs(pid: int) -> bool:
    """Whether a process exists and can still do something."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    return False


def written(scripts: Scripts, folder: Path, *names: str) -> list[int]:
    """The pids that a script has written to files, once it has."""
    files = [folder / name for name in names]
    scripts.wait(lambda: all(f.exists() and f.read_text().strip() for f in files), "the script to begin")
    return [int(file.read_text()) for file in files]


def test_the_end_of_a_script_harms_no_process_of_another(scripts, tmp_path):
    text = HELPER + UNTIL_GO + "kill -0 $(cat helper) || exit 9"
    held = scripts.start(SH, "-c", text, cwd=str(tmp_path))
    (helper,) = written(scripts, tmp_path, "helper")

    for _ in range(3):
        assert scripts.shell("true").state is RunState.SUCCEEDED
    assert runs(helper)
    (tmp_path / "go").touch()

    assert scripts.end(held).error is None
    assert not runs(helper)


def test_processes_count_whatever_their_session_and_environment(scripts):
    text = "for i in 1 2 3 4 5 6 7 8; do (env -i PATH=$PATH setsid sleep 600 &); done; sleep 600"
    outcome = scripts.shell(text, limits={"processes": 4})

    assert outcome.error == "the script was killed: it had more than 4 processes (limits.processes)"


def test_nothing_is_left_when_the_supervisor_is_killed(scripts, tmp_path):
    held = scripts.start(SH, "-c", FAMILY, cwd=str(tmp_path))
    pids = written(scripts, tmp_path, "first", "helper", "child")

    supervisor_of().kill()

    assert scripts.end(held).error == "the script was lost: the supervisor of child processes has ended"
    assert not any(map(runs, pids))
    assert scripts.shell("true").state is RunState.SUCCEEDED


def test_a_reaper_that_is_killed_takes_its_own_script_along_and_no_other(scripts, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    held = scripts.start(SH, "-c", FAMILY, cwd=str(tmp_path))
    spared = scripts.start(SH, "-c", HELPER + UNTIL_GO + "kill -0 $(cat helper) || exit 9", cwd=str(other))
    pids = written(scripts, tmp_path, "first", "helper", "child")
    written(scripts, other, "helper")

    psutil.Process(pids[0]).parent().kill()

    assert scripts.end(held).error == "the script was lost: the process that watched over it was killed"
    assert not any(map(runs, pids))
    (other / "go").touch()
    assert scripts.end(spared).error is None


def test_nothing_with_a_mark_is_left_when_supervisor_and_reaper_are_killed(scripts, tmp_path):
    text = "setsid sh -c 'echo $$ > child; exec sleep 600' & echo $$ > first; sleep 600"
    held = scripts.start(SH, "-c", text, cwd=str(tmp_path))
    pids = written(scripts, tmp_path, "first", "child")
    killed = [supervisor_of(), psutil.Process(pids[0]).parent()]
    killed[0].suspend()
    for process in reversed(killed):
        process.kill()

    assert scripts.end(held).error == "the script was lost: the supervisor of child processes has ended"
    assert not any(map(runs, pids))


def test_a_script_that_stops_its_reaper_is_timed_out(scripts, tmp_path):
    text = HELPER + "echo $$ > first; kill -STOP $PPID; sleep 600"
    held = scripts.start(SH, "-c", text, cwd=str(tmp_path), timeout_seconds=1.0)
    pids = written(scripts, tmp_path, "first", "helper")

    assert scripts.end(held).attempt_outcome is AttemptOutcome.TIMED_OUT
    assert not any(map(runs, pids))


WORKER = """
import asyncio, os, sys
from noonmark.worker.processes.spawn_messages import SpawnRequest
from noonmark.worker.processes.spawning import ChildLauncher

async def main():
    with open(os.devnull, "rb") as nothing:
        request = SpawnRequest("/bin/sh", ["sh", "-c", sys.argv[1]], dict(os.environ), sys.argv[2])
        await ChildLauncher().spawn(request, nothing.fileno()).ended

asyncio.run(main())
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_nothing_is_left_when_the_worker_is_killed(scripts, tmp_path, stopped):
    """Neither if its supervisor is stopped at that time."""
    command = [sys.executable, "-c", textwrap.dedent(WORKER), FAMILY, str(tmp_path)]
    with subprocess.Popen(command) as worker:
        pids = written(scripts, tmp_path, "first", "helper", "child")
        own = supervisor_of(pid=worker.pid)
        if stopped:
            own.suspend()
        worker.kill()
    try:
        scripts.wait(lambda: not any(map(runs, pids)), "all processes to end")
    finally:
        own.resume()
    scripts.wait(lambda: not runs(own.pid), "the supervisor to end")


@pytest.mark.parametrize("delivery", [DeliverySemantics.AT_LEAST_ONCE, DeliverySemantics.AT_MOST_ONCE])
def test_a_supervisor_that_is_stopped_is_replaced_and_the_time_until_then_is_no_script_s(
    scripts, tmp_path, delivery
):
    lost = scripts.start(SH, "-c", FAMILY, cwd=str(tmp_path))
    pids = written(scripts, tmp_path, "first", "helper", "child")
    stopped = supervisor_of()
    stopped.suspend()
    held = scripts.start(
        SH, "-c", "echo begun >> begun", cwd=str(tmp_path), timeout_seconds=1, delivery=delivery
    )

    assert scripts.end(lost).error == "the script was lost: the supervisor of child processes did not answer"
    assert not any(map(runs, pids))
    outcome = scripts.end(held)
    assert (outcome.state, outcome.error) == (RunState.SUCCEEDED, None)
    assert (tmp_path / "begun").read_text() == "begun\n"
    assert not runs(stopped.pid)


def test_a_script_that_no_supervisor_takes_has_not_begun(scripts, tmp_path, monkeypatch):
    deaf = tmp_path / "supervisor.py"
    deaf.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(supervisor, "__file__", str(deaf))
    monkeypatch.setattr(silence, "_MOST_SECONDS", 0.5)
    held = scripts.start(SH, "-c", "true", timeout_seconds=1)

    scripts.wait(scripts.executors.unbegun, "the run to be handed back")
    assert scripts.executors.unbegun() == [held]
    assert scripts.of(held) is None


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
def test_a_script_that_is_handed_back_counts_as_begun_if_it_may_have_begun(scripts, tmp_path, delay):
    assert scripts.shell("true").state is RunState.SUCCEEDED
    held = scripts.start(SH, "-c", "touch began; sleep 600", cwd=str(tmp_path))
    time.sleep(delay)
    scripts.executors.release([held.key])
    scripts.wait(lambda: not scripts.executors.are_ending([held.key]), "the script to end")

    assert held.began_at or not (tmp_path / "began").exists()


def test_an_at_most_once_script_that_no_supervisor_took_is_handed_back_as_not_begun(scripts, tmp_path):
    assert scripts.shell("true").state is RunState.SUCCEEDED
    supervisor_of().suspend()
    held = scripts.start(SH, "-c", "touch began", cwd=str(tmp_path), delivery=DeliverySemantics.AT_MOST_ONCE)
    scripts.wait(lambda: held.clock is not None, "the run to begin")
    time.sleep(0.2)
    assert held.began_at
    scripts.executors.release([held.key])
    scripts.wait(lambda: not scripts.executors.are_ending([held.key]), "the script to end")

    assert not held.began_at
    assert not (tmp_path / "began").exists()


def silent_seconds(pid: int, seconds: float) -> float:
    asked = silence.Silence(pid)
    asked.ask()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.05)
        asked.wait_more(0.05)
    return asked._seconds


def test_a_process_that_has_too_little_cpu_is_not_taken_for_a_stopped_one():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            assert silent_seconds(busy.pid, 1.0) < 0.5
            os.kill(busy.pid, signal.SIGSTOP)
            assert silent_seconds(busy.pid, 1.0) > 0.8
        finally:
            busy.kill()


def test_time_in_which_the_worker_did_not_run_is_not_counted():
    asked = silence.Silence(os.getpid())
    asked.ask()
    asked._checked_at -= PATIENCE
    asked.wait_more(0.05)
    assert not asked.is_too_long()
