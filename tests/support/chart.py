"""Renders the chart with Helm, once per set of values; what the tests of manifests look at."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from tests.support.deploy_tools import tool

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "helm" / "noonmark"
SETS: Final = sorted((ROOT / "tests" / "chart" / "values").glob("*.yaml"))
RELEASE: Final = "test"
NAMESPACE: Final = "scheduling"

Manifest = dict[str, Any]


def helm(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm and return what it said, whatever its exit code."""
    return subprocess.run(
        [str(tool("helm")), *arguments], input=stdin, capture_output=True, text=True, check=False, timeout=120
    )


def template(values: str) -> subprocess.CompletedProcess[str]:
    """Render the chart with a text of values."""
    return helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", "-", stdin=values)


@cache
def rendered() -> dict[str, list[Manifest]]:
    """Return the manifests of every set of values, by its name."""
    with ThreadPoolExecutor(4) as threads:
        texts = threads.map(lambda path: template(path.read_text(encoding="utf-8")), SETS)
        return {path.stem: _manifests(path, done) for path, done in zip(SETS, texts, strict=True)}


def _manifests(path: Path, done: subprocess.CompletedProcess[str]) -> list[Manifest]:
    assert done.returncode == 0, f"{path.name}: {done.stderr}"
    found = yaml.load_all(done.stdout, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [manifest for manifest in found if manifest]


def of_kind(values: str, kind: str) -> dict[str, Manifest]:
    """Return the manifests of a kind that a set of values gives, by name without that of the release."""
    return {
        manifest["metadata"]["name"].removeprefix(f"{RELEASE}-noonmark-"): manifest
        for manifest in rendered()[values]
        if manifest["kind"] == kind
    }


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Yield the spec of every pod, with a name for messages."""
    for manifest in manifests:
        name = f"{manifest['kind']}/{manifest['metadata']['name']}"
        if manifest["kind"] in {"Deployment", "Job"}:
            yield name, manifest["spec"]["template"]["spec"]
        elif manifest["kind"] == "CronJob":
            yield name, manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        elif manifest["kind"] == "Pod":
            yield name, manifest["spec"]


def containers(pod: Manifest) -> list[Manifest]:
    """Return all containers of a pod."""
    return [*pod.get("initContainers", []), *pod["containers"]]


def environment(container: Manifest) -> dict[str, Any]:
    """Return what a container is told: texts, and references to Secrets as `secret/key`."""
    told = {}
    for entry in container.get("env", []):
        reference = entry.get("valueFrom", {}).get("secretKeyRef")
        told[entry["name"]] = f"{reference['name']}/{reference['key']}" if reference else entry["value"]
    return told
