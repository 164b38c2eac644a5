"""Images in place of those that no registry can be asked for, under the names that docker-compose.yml gives them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import yaml
from tests.support.deploy_tools import tool
from tests.support.engine import Engine

from noonmark.devstack.kafka.jars import kafka_jars
from noonmark.devstack.kafka.java import find_java
from noonmark.devstack.postgres.server import bundled_binaries
from noonmark.devstack.processes.patience import quiet

MISSING: Final = "grafana"
"""The service that has no stand-in: no package of it can be had here."""

TEMPLATES: Final = Path("/usr/share/prometheus/alertmanager")
"""Where Debian's Alertmanager has its templates."""


def stand_in_servers(engine: Engine, postgres: str, kafka: str) -> None:
    """Build Postgres and Kafka from what the embedded stack runs, under the names of their official images."""
    package = bundled_binaries().parents[1]
    libraries = package.with_name(f"{package.name}.libs")
    engine.build("postgres", postgres, {"package": package, "libraries": libraries})
    java = find_java(quiet)
    with _folder_of(engine, {"kafka-tools.jar": tool("kafka-tools.jar")}) as tools:
        parts = {"java": java.home, "libs": kafka_jars(java, quiet), "tools": tools}
        engine.build("kafka", kafka, parts)


def stand_ins(engine: Engine, checkout: Path) -> None:
    """Build every image that a checkout's docker-compose.yml names, except ours and that of `MISSING`."""
    services = yaml.safe_load((checkout / "docker-compose.yml").read_text())["services"]
    images = {name: service["image"] for name, service in services.items()}
    stand_in_servers(engine, images["postgres"], images["kafka"])
    files = {"prometheus": tool("prometheus"), "promtool.real": tool("promtool")}
    with _folder_of(engine, files) as programs:
        engine.build("prometheus", images["prometheus"], {"bin": programs})
    files = {"alertmanager": tool("prometheus-alertmanager"), "amtool": tool("amtool")}
    with _folder_of(engine, files) as programs:
        engine.build("alertmanager", images["alertmanager"], {"bin": programs, "templates": TEMPLATES})


def stand_in_python(engine: Engine, checkouts: Iterable[Path]) -> None:
    """Build the base of our image, with the packages that the builds of some checkouts install."""
    checkouts = tuple(checkouts)
    with _folder_of(engine, {}) as wheels:
        for checkout in checkouts:
            fetch_wheels(checkout, wheels)
        for base in {_match(r"^ARG BASE=(\S+)$", checkout / "Dockerfile") for checkout in checkouts}:
            engine.build("python", base, {"wheels": wheels})


def fetch_wheels(checkout: Path, wheels: Path) -> None:
    """Fetch the packages that the Dockerfile of a checkout installs, as pip of this machine gets them."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    build_tools = _match(r"^ +(pip==.*?)\s*\\$", checkout / "Dockerfile").split()
    wanted = [*project["dependencies"], *project["optional-dependencies"]["tracing"], *build_tools]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            # Debian's, which the base has.
            *("--python-version", "3.11", "--only-binary", ":all:"),
            *("--dest", wheels, "-c", checkout / "constraints.txt"),
            *wanted,
        ],
        check=True,
        timeout=400,
    )


def _match(pattern: str, file: Path) -> str:
    found = re.search(pattern, file.read_text(), re.MULTILINE)
    assert found, f"{file} has nothing like {pattern}"
    return found[1]


@contextmanager
def _folder_of(engine: Engine, files: Mapping[str, Path]) -> Iterator[Path]:
    """A folder with copies of files under other names."""
    folder = Path(tempfile.mkdtemp(dir=engine.folder))
    try:
        for name, source in files.items():
            shutil.copy(source, folder / name)
        yield folder
    finally:
        shutil.rmtree(folder)
