"""Child processes: started in their own group, identified by pid and start time, always stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from noonmark.devstack.processes import launch
from noonmark.devstack.processes.patience import CpuTime, Growth, Patience

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_KEEP_LOG_BYTES = 50_000_000
Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Account:
    """The operating system user that a server runs as if it may not run as root.

    Attributes:
        uid: User id.
        gid: Group id.
    """

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, distinguished from a later one with the same process id.

    Attributes:
        pid: The process id.
        started: When it started: boot id and clock ticks since boot if /proc shows them (they do
                not change when the clock is set), else psutil's creation time.
    """

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """Identifies a running process.

        Raises:
            ProcessLookupError: No such process.
        """
        return cls(pid, _start_mark(pid))

    def is_running(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            return _start_mark(self.pid) == self.started and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False

    def send(self, number: signal.Signals) -> bool:
        """Sends a signal to this very process; False if it no longer runs."""
        if not self.is_running():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def send_to_group(self, number: signal.Signals) -> None:
        """Sends a signal to its whole process group, if it leads one and still runs."""
        if not self.is_running():
            return
        try:
            if os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return


def _start_mark(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            raise ProcessLookupError(f"no process has the id {pid}") from None
        try:
            return f"{psutil.Process(pid).create_time():.2f}"
        except psutil.NoSuchProcess:
            raise ProcessLookupError(f"no process has the id {pid}") from None
    # The name, in parentheses, may itself hold spaces and parentheses; the start is field 22.
    ticks = stat.rpartition(")")[2].split()[19]
    return f"{_BOOT_ID.read_text(encoding='ascii').strip()}:{ticks}"


def spawn(
    command: Sequence[str | Path],
    *,
    log_file: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    account: Account | None = None,
    pass_fds: Sequence[int] = (),
    death_signal: signal.Signals | None = signal.SIGTERM,
) -> Process:
    """Starts a command in its own process group, its output appended to a log file.

    Args:
        command: Program and arguments.
        log_file: Takes stdout and stderr.
        env: The whole environment; the current one if None.
        cwd: Working folder.
        account: Another user to run as (only root can).
        pass_fds: Open files that the command inherits under the same numbers.
        death_signal: What the command gets when the *thread* that calls this ends, even by SIGKILL
            of its process; None lets the command outlive it. Call from the main thread.

    Raises:
        OSError: The log file could not be opened, or Python could not be started.
    """
    prefix: list[str] = [sys.executable, "-I", "-S", launch.__file__]
    if death_signal is not None:
        prefix += ["--parent", str(os.getpid()), "--death-signal", death_signal.name]
    if account is not None:
        prefix += ["--uid", str(account.uid), "--gid", str(account.gid)]
    arguments = [*prefix, "--", *(str(part) for part in command)]
    with log_file.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - the caller's own command
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            cwd=cwd,
            pass_fds=pass_fds,
            process_group=0,
        )


def run(
    command: Sequence[str | Path],
    *,
    log_file: Path,
    name: str,
    patience: Patience,
    env: Mapping[str, str] | None = None,
    account: Account | None = None,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
) -> int:
    """Runs a command until it exits and returns its exit code; it never outlives the caller.

    Args:
        command: Program and arguments.
        log_file: Takes stdout and stderr.
        name: What it is called in messages.
        patience: How long it may take.
        env: The whole environment; the current one if None.
        account: Another user to run as (only root can).
        cwd: Working folder.
        pass_fds: Open files that the command inherits under the same numbers.

    Raises:
        DevStackError: It took too long, and was killed.
    """
    process = spawn(command, log_file=log_file, env=env, account=account, cwd=cwd, pass_fds=pass_fds)
    try:
        patience.wait_for(name, CpuTime(process.pid), Growth(log_file)).until(
            lambda: process.poll() is not None, f"its log is {log_file}", interval_seconds=0.02
        )
        return process.returncode
    finally:
        kill(process)


def has_ended(process: Process) -> bool:
    """Whether a child has stopped; it is not reaped, so that its group id cannot be reused yet."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def is_alive(process: Process) -> bool:
    """Whether a child still runs."""
    return not has_ended(process)


def stop(process: Process, *, number: signal.Signals = signal.SIGTERM, grace_seconds: float) -> bool:
    """Asks a child to stop, waits, and kills its group if it does not; True if it stopped when asked.

    Other processes in the child's group are killed, too.
    """
    if process.returncode is not None:
        return True
    if not has_ended(process):
        os.kill(process.pid, number)
    ended = wait_until(lambda: has_ended(process), timeout_seconds=grace_seconds, interval_seconds=0.02)
    kill(process)
    return ended


def kill(process: Process) -> None:
    """Kills what is left of a child's process group and reaps the child; harmless if it has stopped."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(
    condition: Callable[[], bool], *, timeout_seconds: float, interval_seconds: float = 0.05
) -> bool:
    """Polls until the condition holds; False if time ran out."""
    give_up_at = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(interval_seconds)
    return True


def tail(log_file: Path, *, lines: int = 15) -> str:
    """The last lines of a log; empty if there is no log."""
    try:
        with log_file.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 64_000))
            text = log.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def log_size(log_file: Path) -> int:
    """Bytes in the log now: where the lines of the next start begin."""
    return log_file.stat().st_size if log_file.exists() else 0


def tail_since(log_file: Path, offset: int, *, lines: int = 15) -> str:
    """The last lines that were written after `offset`, so that an old cause is not reported again."""
    if not log_file.exists():
        return ""
    with log_file.open("rb") as log:
        log.seek(offset)
        text = log.read(1_000_000).decode("utf-8", errors="replace")
    return "\n".join(text.rstrip().splitlines()[-lines:])


def rotate(log_file: Path) -> None:
    """Renames a large log (to `.1`) before a process opens it again."""
    if log_size(log_file) > _KEEP_LOG_BYTES:
        log_file.replace(log_file.with_name(log_file.name + ".1"))
