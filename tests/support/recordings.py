"""Scrapes of real services, kept as input series of promtool: what alert rules are tried on.

Each scrape counts as one minute. A recording takes seconds, and the rules look at it as at an hour. What a series
says about the clock (when a loop made progress, when a process started) keeps its age.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from tests.support.node import Node

STEP_SECONDS = 60
_CLOCKS = {
    "noonmark_last_progress_timestamp_seconds",
    "noonmark_verify_completed_timestamp_seconds",
    "process_start_time_seconds",
}
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_FIRING = 'group by (alertname) (last_over_time(ALERTS{alertstate="firing",alertname!="NoonmarkDeadMansSwitch"}[1d]))'


@dataclass(slots=True)
class Recording:
    """What Prometheus would have read from the processes of one installation, in the Kubernetes namespace `jobs`."""

    series: dict[tuple[str, str], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    """Values by step, by target and by name with its own labels."""
    steps: int = 0
    metrics_file: Path | None = None
    """What a node exporter's textfile collector would read, if it exists."""

    def scrape(self, nodes: Iterable[Node], names: frozenset[str]) -> None:
        """Add one scrape of all nodes, also of those that are gone; only of metrics with these names."""
        for node in nodes:
            text = node._get("/metrics")[1] if node.alive else ""
            self._add(node.name, f"noonmark-{node.service}", text, names)
        if self.metrics_file is not None:
            text = self.metrics_file.read_text(encoding="utf-8") if self.metrics_file.exists() else ""
            self._add("node", "node", text, names)
        self.steps += 1

    def _add(self, instance: str, job: str, text: str, names: frozenset[str]) -> None:
        target = f'instance="{instance}",job="{job}",namespace="jobs"'
        if job != "node":
            self.series[target, "up{"][self.steps] = float(bool(text))
        for name, labels, value in _SAMPLE.findall(text):
            if name in names:
                own = re.sub(r"\bnamespace=", "exported_namespace=", labels)
                shown = float(value)
                if name in _CLOCKS:
                    shown = round(self.steps * STEP_SECONDS - (time.time() - shown), 1)
                self.series[target, f"{name}{{{own}"][self.steps] = shown

    def text(self) -> str:
        """The file: a line for each series of a target, with its values in promtool's notation."""
        lines = []
        for target, found in groupby(sorted(self.series), key=lambda key: key[0]):
            lines.append(f"[{target}]")
            lines += [f"{name}}} {self._values(self.series[target, name])}" for _, name in found]
        return "\n".join(lines) + "\n"

    def _values(self, values: Mapping[int, float]) -> str:
        words = [f"{values[step]:g}" if step in values else "_" for step in range(self.steps)]
        # Where a target is gone, Prometheus marks its series at once.
        for step in range(1, self.steps):
            if step not in values and step - 1 in values:
                words[step] = "stale"
        return " ".join(_short(word, len(list(run))) for word, run in groupby(words))


def _short(word: str, count: int) -> str:
    if count == 1 or word == "stale":
        return " ".join([word] * count)
    return f"_x{count}" if word == "_" else f"{word}x{count - 1}"


def input_series(text: str) -> list[dict[str, str]]:
    """The series of a file, as promtool reads them."""
    found, target = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            target = line[1:-1]
            continue
        name, _, values = line.rpartition("} ")
        comma = "" if name.endswith("{") else ","
        found.append({"series": f"{name}{comma}{target}}}", "values": values})
    return found


def minutes(text: str) -> int:
    """How many minutes a file covers."""
    words = input_series(text)[0]["values"].split()
    return sum(_length(word) for word in words)


def _length(word: str) -> int:
    found = re.fullmatch(r"(_)x(\d+)|.+x(\d+)", word)
    if not found:
        return 1
    return int(found[2]) if found[1] else int(found[3]) + 1


def judge(
    promtool: Path, rules: Sequence[Mapping[str, Any]], text: str, firing: Iterable[str], folder: Path
) -> str:
    """Let promtool say whether exactly these alerts fire on a recording; return what is wrong, or nothing."""
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": list(rules)}), encoding="utf-8")
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(firing)]
    test = {
        "interval": f"{STEP_SECONDS}s",
        "input_series": input_series(text),
        "promql_expr_test": [
            {"expr": _FIRING, "eval_time": f"{minutes(text) - 1}m", "exp_samples": expected}
        ],
    }
    cases = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "cases.yaml").write_text(yaml.safe_dump(cases), encoding="utf-8")
    done = subprocess.run(
        [promtool, "test", "rules", folder / "cases.yaml"], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr
