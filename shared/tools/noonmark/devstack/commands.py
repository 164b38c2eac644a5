"""`up`, `down` and `status` of a development stack: what `noonmark dev` calls."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
from rich.table import Table
from rich.text import Text

from noonmark.devstack import state
from noonmark.devstack.answers import silent_servers
from noonmark.devstack.leftovers import end_leftovers
from noonmark.devstack.options import DEFAULT_STATE_DIR, StackOptions
from noonmark.devstack.parts import http_readiness
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.errors import DevStackError, explain_os_error
from noonmark.devstack.report import Reporter
from noonmark.devstack.state import ProcessEntry, StackState
from noonmark.devstack.supervisor import Supervisor

_DOWN_SECONDS = 150.0
_SUPERVISOR_LOG = "supervisor.log"


def up(options: StackOptions) -> int:
    """Starts a stack; returns when it stops, or with `detach` when it is up.

    Returns:
        0: it ran and stopped in order, or (detached) it is up. 1: it could not be started, or already
            runs. 130: it was interrupted while it started.
    """
    progress = sys.stderr if options.as_json else sys.stdout
    try:
        if options.detach:
            return _up_detached(options, Reporter(progress))
        options.state_dir.joinpath("logs").mkdir(parents=True, exist_ok=True)
        reporter = Reporter(progress, options.state_dir / "logs" / _SUPERVISOR_LOG)
        return supervise(options, reporter)
    except DevStackError as error:
        Reporter(sys.stderr).fail(error)
    except OSError as error:
        Reporter(sys.stderr).fail(explain_os_error(error, "starting the stack"))
    return 1


def supervise(options: StackOptions, reporter: Reporter) -> int:
    """Runs a stack in this process until it is asked to stop.

    Raises:
        DevStackError: Another supervisor runs on the folder.
    """

    def when_up(current: StackState) -> None:
        _show_up(options, reporter, current)
        if not options.detach:
            reporter.line("Everything is up. Ctrl-C stops it.", style="green")

    with state.hold(options.state_dir) as free:
        if not free:
            raise _already_running(options.state_dir)
        return Supervisor(options, reporter).run(when_up)


def _show_up(options: StackOptions, reporter: Reporter, current: StackState) -> None:
    if options.as_json and not options.detach:
        sys.stdout.write(json.dumps(current.addresses(options.state_dir)) + "\n")
        sys.stdout.flush()
    else:
        reporter.addresses(current)


def _already_running(state_dir: Path) -> DevStackError:
    current = state.running(state_dir)
    pid = f", pid {current.supervisor.pid}" if current else ""
    return DevStackError(
        f"A stack is already running in {state_dir}{pid}; see `noonmark dev status`.",
        remedy="Stop it with `noonmark dev down` first, or start another one with --state-dir.",
    )


def _up_detached(options: StackOptions, reporter: Reporter) -> int:
    """Starts a supervisor in its own session and follows its log until everything is up."""
    if state.is_held(options.state_dir):
        raise _already_running(options.state_dir)
    logs = options.state_dir / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log_file = logs / _SUPERVISOR_LOG
    processes.rotate(log_file)
    offset = processes.log_size(log_file)
    command = [sys.executable, "-P", "-m", "noonmark.devstack", options.to_json()]
    with log_file.open("ab") as output:
        supervisor = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        while supervisor.poll() is None:
            offset = _follow(log_file, offset, reporter)
            current = state.load(options.state_dir)
            if current and current.phase == "ready" and current.supervisor.pid == supervisor.pid:
                return _leave(options, reporter, current, supervisor)
            time.sleep(0.1)
    except KeyboardInterrupt:
        reporter.line("interrupted: stopping what has been started")
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait()
    _follow(log_file, offset, reporter)
    return supervisor.returncode or 1


def _leave(
    options: StackOptions, reporter: Reporter, current: StackState, supervisor: subprocess.Popen[bytes]
) -> int:
    if options.as_json:
        sys.stdout.write(json.dumps(current.addresses(options.state_dir)) + "\n")
    else:
        reporter.addresses(current)
        elsewhere = "" if options.state_dir == DEFAULT_STATE_DIR else f" --state-dir {options.state_dir}"
        reporter.line(f"Everything is up. `noonmark dev down{elsewhere}` stops it.", style="green")
    # It keeps running on purpose: without this, Python warns about a child that was not waited for.
    supervisor.returncode = 0
    return 0


def _follow(log_file: Path, offset: int, reporter: Reporter) -> int:
    """Shows complete lines that the supervisor has logged since `offset`; returns the new offset."""
    with log_file.open("rb") as log:
        log.seek(offset)
        text = log.read()
    complete = text[: text.rfind(b"\n") + 1]
    for line in complete.decode("utf-8", errors="replace").splitlines():
        stamp, _, rest = line.partition(" ")
        reporter.line(rest if stamp.endswith("Z") else line)
    return offset + len(complete)


def down(state_dir: Path) -> int:
    """Stops a stack and everything it started, and nothing else.

    Returns:
        0: no part of it runs any more (also when nothing ran). 1: something could not be stopped.
    """
    reporter = Reporter(sys.stdout)
    current = state.load(state_dir)
    if current is None:
        if state.is_held(state_dir):
            Reporter(sys.stderr).fail(
                DevStackError(
                    f"A stack is starting or stopping in {state_dir}.", remedy="Try again in a moment."
                )
            )
            return 1
        reporter.line(f"No stack runs in {state_dir}.")
        return 0
    supervisor = current.supervisor.id
    if supervisor.send(signal.SIGTERM):
        names = ", ".join(reversed([*current.containers, *current.processes])) or "what has been started"
        with reporter.step("stack", f"stopping {names}") as result:
            ended = processes.wait_until(lambda: not supervisor.is_running(), timeout_seconds=_DOWN_SECONDS)
            result.append("stopped" if ended else f"the supervisor did not stop within {_DOWN_SECONDS:.0f} s")
        if not ended:
            supervisor.send(signal.SIGKILL)
    return _end_rest(state_dir, reporter)


def _end_rest(state_dir: Path, reporter: Reporter) -> int:
    """Stops what is left after the supervisor: nothing, unless it was killed."""
    left = state.load(state_dir)
    if left is None:
        return 0
    try:
        ended = end_leftovers(left)
    except DevStackError as error:
        Reporter(sys.stderr).fail(error)
        return 1
    if ended:
        reporter.line(f"The supervisor was gone; stopped what it had left running: {', '.join(ended)}.")
    else:
        reporter.line("The supervisor was gone, and no part of the stack was running.")
    state.remove(state_dir)
    return 0


def status(state_dir: Path, *, as_json: bool = False) -> int:
    """Shows what runs.

    Returns:
        0: the stack is up and all its processes run. 1: otherwise.
    """
    current = state.load(state_dir)
    alive = current is not None and current.supervisor.id.is_running()
    if current is None or not alive:
        if as_json:
            sys.stdout.write(json.dumps({"running": False, "state_dir": str(state_dir.resolve())}) + "\n")
        elif current is None:
            Reporter(sys.stdout).line(f"No stack runs in {state_dir}; `noonmark dev up` starts one.")
        else:
            Reporter(sys.stdout).warn(
                f"The supervisor of {state_dir} (pid {current.supervisor.pid}) is gone; "
                "`noonmark dev down` stops what it may have left running."
            )
        return 1
    rows = _rows(current)
    silent = silent_servers(current)
    healthy = current.phase == "ready" and all(row["running"] for row in rows.values()) and not silent
    if as_json:
        shown = {"running": True, "phase": current.phase, **current.addresses(state_dir), "processes": rows}
        shown["unanswered"] = silent
        sys.stdout.write(json.dumps(shown) + "\n")
    else:
        reporter = Reporter(sys.stdout)
        reporter.show(_status_table(rows))
        reporter.addresses(current)
        for name, how in current.restarting.items():
            reporter.warn(f"{name} {how}; the supervisor is restarting it")
        for name, reason in silent.items():
            reporter.warn(f"{name} {reason}")
    return 0 if healthy else 1


def _rows(current: StackState) -> dict[str, dict[str, Any]]:
    """The supervisor and its parts, by name."""
    rows = {"supervisor": _describe(current.supervisor, "")}
    for name, entry in current.processes.items():
        rows[name] = _describe(entry, current.metrics.get(name, ""))
    if current.containers:
        from noonmark.devstack.containers import describe_containers  # noqa: PLC0415 - optional extra

        rows |= describe_containers(current.containers)
    for name, how in current.restarting.items():
        row = rows.setdefault(name, {"running": False})
        # A container's row says itself what became of it: one that was removed by hand is not restarted.
        if not row["running"] and "container" not in row:
            row["reason"] = f"restarting: it {how}"
    return rows


def _describe(entry: ProcessEntry, metrics_url: str) -> dict[str, Any]:
    row: dict[str, Any] = {"pid": entry.pid, "running": entry.id.is_running(), "restarts": entry.restarts}
    if not row["running"]:
        return row
    try:
        process = psutil.Process(entry.pid)
        row["uptime_seconds"] = round(time.time() - process.create_time(), 1)
        row["rss_bytes"] = process.memory_info().rss
    except psutil.NoSuchProcess:
        row["running"] = False
    if metrics_url:
        missing = http_readiness(metrics_url.removesuffix("/metrics") + "/readyz")
        row |= {"ready": not missing, "reason": missing}
    return row


def _status_table(rows: dict[str, dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("part", "pid", "state", "up for", "memory", "restarts"):
        table.add_column(heading)
    for name, row in rows.items():
        text = "running" if row["running"] else "restarting" if "reason" in row else "not running"
        if "container" in row:
            text = row["reason"] or "running (container)"
        elif not row.get("ready", True):
            text = f"running, not ready: {row['reason']}"
        uptime = timedelta(seconds=int(row["uptime_seconds"])) if "uptime_seconds" in row else "-"
        memory = f"{row['rss_bytes'] / 1e6:.0f} MB" if "rss_bytes" in row else "-"
        good = row["running"] and row.get("ready", True)
        cells = (name, row.get("pid", "-"), text, uptime, memory, row.get("restarts", "-"))
        table.add_row(*(Text(str(cell)) for cell in cells), style="" if good else "yellow")
    return table
