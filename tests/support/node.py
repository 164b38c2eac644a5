"""One process of a service, and ways to hurt it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noonmark.devstack.processes import processes

KAFKA_CLIENT = '"logger":"noonmark.kafka.client"'


@dataclass(eq=False, slots=True)
class Node:
    """One process of a service."""

    name: str
    service: str
    process: subprocess.Popen[bytes]
    log_file: Path
    expected_alive: bool = True
    url: str = ""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs (a stopped one does)."""
        return not processes.has_ended(self.process)

    @property
    def ending(self) -> str:
        """How it ended: by which signal, or with which exit code."""
        code = self.process.returncode
        if code is None:
            # Left unreaped, as `alive` leaves it.
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                return "lives"
            code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended by itself with exit code {code}"

    def kill(self) -> None:
        """Kill -9, of this one process; what it started must notice by itself."""
        self.expected_alive = False
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait(30)

    def pause(self) -> None:
        """Stop it where it stands, as a long garbage collection or a paused virtual machine does."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on as if nothing had been."""
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to drain and end."""
        self.expected_alive = False
        os.kill(self.pid, signal.SIGTERM)

    def stop(self, within: float = 60.0) -> int:
        """Ask it to end and wait; return its exit code."""
        self.terminate()
        return self.process.wait(within)

    def ready(self) -> bool:
        """Whether /readyz says yes."""
        return self._get("/readyz")[0] == 200

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of a metric that carry these labels; 0 where there is none."""
        total = 0.0
        for line in self._get("/metrics")[1].splitlines():
            found = re.match(r"^(\w+)(?:\{(.*)\})? (\S+)", line)
            if (
                found
                and found[1] == name
                and all(f'{k}="{v}"' in (found[2] or "") for k, v in labels.items())
            ):
                total += float(found[3])
        return total

    def log(self, lines: int = 15) -> str:
        """The end of its log; the Kafka client's own lines are only counted, but for the last."""
        own: list[str] = []
        left_out: list[str] = []
        for line in processes.tail(self.log_file, lines=1000).splitlines():
            (left_out if KAFKA_CLIENT in line else own).append(line)
        if left_out:
            own.append(f"({len(left_out)} lines of the Kafka client are left out; the last: {left_out[-1]})")
        return "\n".join(own[-lines:])

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it has logged."""
        for line in self.log_file.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                yield json.loads(line)

    def logged(self, event: str) -> bool:
        """Whether a line with this event is in its log."""
        return any(line.get("event") == event for line in self.lines())

    def logged_field(self, event: str, field: str) -> Any:
        """A field of the first line with an event; None where there is no such line yet."""
        return next((line[field] for line in self.lines() if line.get("event") == event), None)

    @property
    def api_url(self) -> str:
        """Where a process of the API answers its callers."""
        port = self.logged_field("api_listening", "port")
        assert port is not None, f"{self.name} does not listen\n{self.log()}"
        return f"http://127.0.0.1:{port}"

    def last_logged(self, field: str, default: Any) -> Any:
        """The newest value of a field in its log."""
        return next((line[field] for line in reversed(list(self.lines())) if field in line), default)

    def _get(self, path: str, accept: str = "*/*") -> tuple[int, str]:
        if not self.url:
            port = self.logged_field("health_listening", "port")
            if port is None:
                return 0, ""
            self.url = f"http://127.0.0.1:{port}"
        try:
            request = urllib.request.Request(self.url + path, headers={"Accept": accept})
            with urllib.request.urlopen(request, timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""
