"""A Prometheus and an Alertmanager of the scenario's own: started, asked, ended."""

from __future__ import annotations

import json
import re
import shutil
import signal
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.stack import ROOT, BenchmarkError, wait_for
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.ports import LOOPBACK, free_port

RULES: Final = ROOT / "helm" / "noonmark" / "files" / "rules"
SCRAPE_SECONDS: Final = 2

_READY_SECONDS: Final = 30.0
_GRACE_SECONDS: Final = 10.0
_HTTP: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_DURATION: Final = re.compile(r"(\bfor: |\[|\boffset )(\d+)([smhd])\b")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert as Alertmanager shows it."""

    name: str
    labels: str
    severity: str


class Server:
    """A process with an HTTP address, ready once a path answers."""

    def __init__(self, command: Sequence[str], port: int, ready_path: str, log_file: Path) -> None:
        """Start it and wait until it is ready.

        Raises:
            BenchmarkError: it does not become ready; the message holds the end of its log.
        """
        self.url = f"http://{LOOPBACK}:{port}"
        self._process = processes.spawn(command, log_file=log_file, death_signal=signal.SIGKILL)
        if not wait_for(lambda: self._answers(ready_path), 1, timeout_seconds=_READY_SECONDS):
            self.close()
            raise BenchmarkError(f"{command[0]} was not ready:\n{processes.tail(log_file)}")

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON of an address."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with _HTTP.open(f"{self.url}{path}{query}", timeout=5) as reply:
            return json.load(reply)

    def close(self) -> None:
        """End it."""
        processes.stop(self._process, grace_seconds=_GRACE_SECONDS)

    def _answers(self, path: str) -> float:
        try:
            with _HTTP.open(f"{self.url}{path}", timeout=2):
                return 1.0
        except OSError:
            return 0.0


class Alertmanager(Server):
    """A real Alertmanager that tells a webhook.

    Args:
        folder: for its configuration and data.
        webhook: URL that receives every change.
    """

    def __init__(self, folder: Path, webhook: str) -> None:
        config = {
            "route": {
                "receiver": "scenario",
                "group_by": ["alertname"],
                "group_wait": "1s",
                "group_interval": "2s",
            },
            "receivers": [{"name": "scenario", "webhook_configs": [{"url": webhook}]}],
        }
        file = folder / "alertmanager.yml"
        # JSON is YAML.
        file.write_text(json.dumps(config), encoding="utf-8")
        port = free_port()
        command = [
            program("prometheus-alertmanager", "alertmanager"),
            f"--config.file={file}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address={LOOPBACK}:{port}",
            "--cluster.listen-address=",
        ]
        super().__init__(command, port, "/-/ready", folder / "alertmanager.log")

    def firing(self) -> set[Alert]:
        """Return the alerts that it holds now, without the one that always fires."""
        found = set()
        for one in self.get("/api/v2/alerts", active="true"):
            labels: dict[str, str] = dict(one["labels"])
            name, severity = labels.pop("alertname"), labels.pop("severity", "")
            if severity != "none":
                rest = " ".join(f"{key}={value}" for key, value in sorted(labels.items()))
                found.add(Alert(name, rest, severity))
        return found


class Prometheus(Server):
    """A real Prometheus that scrapes services and evaluates noonmark's rules.

    Args:
        folder: for its configuration and data.
        targets: address of each service's metrics.
        alertmanager: whom it tells.
        hurry: by how much the rules' durations are divided.
    """

    def __init__(
        self, folder: Path, targets: Mapping[str, str], alertmanager: Alertmanager, hurry: float
    ) -> None:
        rules = folder / "rules"
        rules.mkdir()
        for file in RULES.glob("*.yaml"):
            text = file.read_text(encoding="utf-8")
            (rules / file.name).write_text(hurried(text, hurry), encoding="utf-8")
        config = {
            "global": {
                "scrape_interval": f"{SCRAPE_SECONDS}s",
                "scrape_timeout": f"{SCRAPE_SECONDS}s",
                "evaluation_interval": f"{SCRAPE_SECONDS}s",
            },
            "rule_files": [str(rules / "*.yaml")],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [_host(alertmanager.url)]}]}]},
            "scrape_configs": [
                {"job_name": f"noonmark-{name}", "static_configs": [{"targets": [_host(address)]}]}
                for name, address in targets.items()
            ],
        }
        file = folder / "prometheus.yml"
        file.write_text(json.dumps(config), encoding="utf-8")
        port = free_port()
        command = [
            program("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address={LOOPBACK}:{port}",
        ]
        super().__init__(command, port, "/-/ready", folder / "prometheus.log")

    def value(self, expr: str) -> float | None:
        """Return the largest value of an expression, None where it has none."""
        found = self.get("/api/v1/query", query=expr)["data"]["result"]
        values = [float(one["value"][1]) for one in found]
        return max((value for value in values if value == value), default=None)


def hurried(rules: str, by: float) -> str:
    """Return rules whose `for`, windows and offsets are divided by a factor, none below two scrapes."""

    def shorter(found: re.Match[str]) -> str:
        seconds = int(found[2]) * _SECONDS[found[3]] / by
        return f"{found[1]}{max(2 * SCRAPE_SECONDS + 1, round(seconds))}s"

    return rules if by == 1 else _DURATION.sub(shorter, rules)


def program(*names: str) -> str:
    """Return the first of these programs that is installed.

    Raises:
        BenchmarkError: none is.
    """
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise BenchmarkError(f"{names[0]} is not installed: run `make deploy-tools`")


def _host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc
