"""`python -m benchmarks.monitoring_scenario`: the workers die under load, lag grows, alerts fire and resolve.

Every service, Prometheus and Alertmanager are real processes. Exit code 0: every alert that was to fire
reached Alertmanager and its receiver, and is over at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from benchmarks.load import Load, evenly, load
from benchmarks.monitoring import Alert, Alertmanager, Prometheus
from benchmarks.stack import BenchmarkError, Stack
from noonmark.core.states import Lane
from noonmark.devstack.processes.errors import DevStackError
from noonmark.telemetry.dashboards.files import DASHBOARDS

EXPECTED: Final = frozenset(
    {"NoonmarkPoolWithoutWorkers", "NoonmarkStartBacklogOverObjective", "NoonmarkStartBacklogStalled"}
)
"""What must fire while no worker is there, and be over when one is again."""

PANELS: Final = (
    ("overview", "Live workers"),
    ("overview", "Oldest run not started"),
    ("lanes-and-lag", "Runs waiting in Kafka"),
    ("lanes-and-lag", "Commit lag"),
    ("overview", "Start delay"),
    ("overview", "Runs settled per second"),
)

Notifications = SimpleQueue[tuple[str, str]]
"""Status and name of an alert that Alertmanager sent to its receiver."""

_BEFORE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 280.0


@dataclass(slots=True)
class Scenario:
    """What happens, and when: everything is printed as it comes."""

    prometheus: Prometheus
    alertmanager: Alertmanager
    notifications: Notifications
    began: float
    seen: set[Alert] = field(default_factory=set)
    fired: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    figures: dict[str, list[str]] = field(default_factory=dict)

    def say(self, what: str) -> None:
        """Print a line of the timeline."""
        print(f"{time.monotonic() - self.began:7.1f} s  {what}", flush=True)

    def poll(self) -> None:
        """Report which alerts have started or stopped firing in Alertmanager."""
        now = self.alertmanager.firing()
        for one in sorted(now - self.seen, key=str):
            self.say(f"FIRING    {one.severity:8} {one.name} {one.labels}")
        for one in sorted(self.seen - now, key=str):
            self.say(f"resolved  {one.severity:8} {one.name} {one.labels}")
        self.seen = now
        self.fired |= {one.name for one in now}
        while not self.notifications.empty():
            status, name = self.notifications.get()
            self.sent.add(f"{status} {name}")
            if name != "NoonmarkDeadMansSwitch":
                self.say(f"sent      {status:8} {name}")

    def until(self, reached: Callable[[], bool], what: str) -> None:
        """Poll until a condition holds.

        Raises:
            BenchmarkError: it does not hold within the whole time.
        """
        while not reached():
            if time.monotonic() - self.began > _LONGEST_SECONDS:
                raise BenchmarkError(f"{what} did not happen within {_LONGEST_SECONDS:.0f} s")
            self.poll()
            time.sleep(_POLL_SECONDS)

    def note(self) -> None:
        """Run every panel's query now."""
        for title, expr in panel_queries():
            value = self.prometheus.value(expr)
            shown = "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            self.figures.setdefault(f"{title}\n    {expr}", []).append(shown)


def panel_queries() -> Iterator[tuple[str, str]]:
    """The queries of some panels, with all values of their variables."""
    boards = {board.uid: board for board in DASHBOARDS}
    for uid, title in PANELS:
        panel = next(one for row in boards[uid].rows for one in row.panels if one.title == title)
        for query in panel.queries:
            expr = query.expr.replace("$__rate_interval", "30s")
            legend = f", {query.legend.split(' ')[0]}" if len(panel.queries) > 1 else ""
            yield f"{title}{legend}", re.sub(r"\$[a-z]+\b", ".*", expr)


def play(stack: Stack, scenario: Scenario, rate: float) -> None:
    """Run the scenario: load, death of the workers, their return."""
    worker = stack.services["worker"]
    with stack.connect() as connection:
        high = Load("scenario-high", evenly(rate / 4, _LONGEST_SECONDS), lane=Lane.HIGH)
        load(connection, high, Load("scenario-normal", evenly(rate, _LONGEST_SECONDS)))
    scenario.say(f"load: {rate / 4:g} runs/s in high, {rate:g} runs/s in normal")
    quiet_from = time.monotonic()
    scenario.until(lambda: time.monotonic() - quiet_from > _BEFORE_SECONDS, "a quiet half minute")
    early = scenario.fired & EXPECTED
    if early:
        raise BenchmarkError(f"fired without cause: {', '.join(sorted(early))}")
    scenario.note()

    worker.kill()
    scenario.say("the workers are killed (SIGKILL)")
    scenario.until(lambda: scenario.fired >= EXPECTED, f"{', '.join(sorted(EXPECTED))}")
    scenario.until(lambda: sent(scenario, "firing"), "sending the alerts")
    scenario.note()

    worker.start()
    scenario.say("the workers are restarted")
    scenario.until(lambda: not {one.name for one in scenario.seen} & EXPECTED, "the end of the alerts")
    scenario.until(lambda: sent(scenario, "resolved"), "sending the resolved alerts")
    scenario.note()
    scenario.say("done")
    stack.require_services()


def sent(scenario: Scenario, status: str) -> bool:
    """Whether the receiver has got this status for every alert that must fire."""
    return {f"{status} {name}" for name in EXPECTED} <= scenario.sent


def show(scenario: Scenario) -> None:
    """Print the panels' queries and their values."""
    print("\nPanels, largest value of all lines:       before     during      after")
    for question, values in scenario.figures.items():
        title, expr = question.split("\n", 1)
        print(f"{title:38}" + "".join(f"{value:>11}" for value in values) + f"\n{expr}")


@contextlib.contextmanager
def receiver(notifications: Notifications) -> Iterator[str]:
    """Listen for Alertmanager's notifications; gives the URL."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            notifications.put((body["status"], body["commonLabels"].get("alertname", "")))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def main() -> int:
    """Run the scenario."""
    parser = argparse.ArgumentParser(description="The workers die under load; alerts fire and resolve.")
    parser.add_argument("--hurry", type=float, default=10.0, help="divide the rules' durations by this (10)")
    parser.add_argument("--rate", type=float, default=40.0, help="runs a second in normal, a quarter in high")
    parser.add_argument("--folder", type=Path, help="where the data of the stack goes meanwhile")
    options = parser.parse_args()
    began = time.monotonic()
    notifications: Notifications = SimpleQueue()
    try:
        with contextlib.ExitStack() as cleanup:
            stack = cleanup.enter_context(Stack(_progress, {}, options.folder))
            stack.start_services()
            alertmanager = Alertmanager(stack.folder, cleanup.enter_context(receiver(notifications)))
            cleanup.callback(alertmanager.close)
            targets = {name: part.address for name, part in stack.services.items()}
            prometheus = Prometheus(stack.folder, targets, alertmanager, options.hurry)
            cleanup.callback(prometheus.close)
            scenario = Scenario(prometheus, alertmanager, notifications, began)
            scenario.say(f"{len(targets)} services, Prometheus, Alertmanager; durations / {options.hurry:g}")
            play(stack, scenario, options.rate)
            show(scenario)
    except (BenchmarkError, DevStackError, OSError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


def _progress(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
