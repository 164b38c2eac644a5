"""The Dockerfile's own steps on a stand-in base, and the image run as its user, with nothing to write but /tmp."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from tests.support.cluster import wait_until
from tests.support.deploy_tools import tool
from tests.support.image import Buildah, Image

from noonmark.devstack.processes.ports import free_port

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
BASE = "localhost/python-stand-in:bookworm"
NAME = "localhost/noonmark:test"
LARGEST = 260_000_000
"""Bytes that the image may add to its base, unpacked."""

SERVICES = ("api", "intake", "trigger", "dispatcher", "worker", "observer", "watchdog")
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
EXAMPLES = {ROOT / "examples": "/srv/app/examples"}


@pytest.fixture(scope="module")
def buildah() -> Iterator[Buildah]:
    archive = tool("base-image.tar")
    tool("buildah")
    if os.geteuid() != 0:
        pytest.skip("building with mounts of its own needs root here")
    folder = Path(tempfile.mkdtemp(prefix="noonmark-image-"))
    # Reachable for the image's user.
    folder.chmod(0o711)
    builder = Buildah(folder)
    try:
        builder.load(archive, BASE)
        yield builder
    finally:
        builder.call("rm", "--all")
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(buildah: Buildah) -> Image:
    buildah.build(ROOT, NAME, base=BASE)
    return Image.unpack(buildah, NAME)


@pytest.mark.timeout(400)
def test_the_image_is_small_and_says_what_it_is(image, buildah, report):
    added = sum(buildah.layer_bytes(NAME)) - sum(buildah.layer_bytes(BASE))
    report.append(f"image: {added / 1e6:.0f} MB above its base")

    assert added < LARGEST
    assert image.config["User"] == "65532:65532"
    assert image.config["Entrypoint"] == ["noonmark"]
    assert image.config["StopSignal"] == "SIGTERM"
    assert image.config["Labels"]["org.opencontainers.image.version"] == VERSION
    assert image.config["Labels"]["org.opencontainers.image.base.name"] == BASE


def test_commands_run_in_it(image):
    assert image.run("noonmark", "--version").stdout.strip() == VERSION
    helped = image.run("noonmark", "api", "--help")
    assert (helped.returncode, "Serve the REST API" in helped.stdout) == (0, True)
    assert image.run("noonmark", "db", "check").returncode == 3


def test_its_user_can_write_nothing_but_tmp(image):
    code = """
import os, sys
print(os.getuid(), os.getgid(), os.getgroups())
for folder in ("/opt/noonmark/lib", "/srv/app", "/etc", "/tmp"):
    try:
        open(f"{folder}/new", "w").close()
        print(folder, "written")
    except OSError as error:
        print(folder, os.strerror(error.errno))
"""
    done = image.run("python", "-c", code)

    assert done.stdout.splitlines() == [
        "65532 65532 [65532]",
        *(f"{folder} Read-only file system" for folder in ("/opt/noonmark/lib", "/srv/app", "/etc")),
        "/tmp written",
    ]
    # And where the file system is not read-only, by the rights of its files.
    assert image.run("find", "/opt", "/srv", "/etc", "/usr", "-writable", "-not", "-type", "l").stdout == ""


def test_it_holds_the_tested_versions_and_no_installer(image):
    code = (
        "import importlib.metadata as m, json;"
        " print(json.dumps({d.name.lower().replace('_', '-').replace('.', '-'): d.version for d in m.distributions()}))"
    )
    held = json.loads(image.run("/opt/noonmark/bin/python", "-I", "-c", code).stdout)
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    tested = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}

    assert held.pop("noonmark") == VERSION
    assert {name: version for name, version in held.items() if tested.get(name) != version} == {}
    assert {"opentelemetry-sdk", "faust-streaming", "cramjam", "tzdata"} <= held.keys()
    assert {"pip", "setuptools", "hatchling", "pytest", "testcontainers", "psutil"} & held.keys() == set()


def test_every_module_is_compiled(image):
    """Nothing can be written at run time, so what is not compiled is compiled at each start."""
    code = """
import importlib.util, os, sys
import noonmark.cli.main, noonmark.worker.main, noonmark.service.healthcheck, asyncio, email.parser
files = [m.__file__ for m in sys.modules.values() if getattr(m, "__file__", None) and m.__file__.endswith(".py")]
print([f for f in files if not os.path.exists(importlib.util.cache_from_source(f))], len(files))
"""
    shown = image.run("python", "-c", code).stdout.split()

    assert shown[0] == "[]"
    assert int(shown[1]) > 500


def test_nothing_of_the_build_is_left(image):
    assert not (image.root / "build").exists()
    assert list((image.root / "run/secrets").glob("*")) == []
    assert {name for name in image.environment if name.startswith("PIP")} == set()


def test_a_health_check_without_a_service_fails(image):
    done = image.health(NOONMARK_METRICS_PORT=str(free_port()))
    assert (done.returncode, done.stderr[:26]) == (1, "no response from 127.0.0.1")


@pytest.mark.timeout(240)
def test_the_services_work_in_it(image, service_env, tmp_path, report):
    """As docker-compose.yml starts them: its commands, and the jobs of its profile `demo`."""
    ours = {name: value for name, value in service_env.items() if name.startswith("NOONMARK_")}
    with ExitStack() as ends:
        migrated = image.run("noonmark", *COMPOSE["migrate"]["command"], **ours)
        assert migrated.returncode == 0, migrated.stderr
        nodes, variables = {}, {}
        for service in SERVICES:
            variables[service] = {
                **ours,
                "NOONMARK_METRICS_HOST": "127.0.0.1",
                "NOONMARK_METRICS_PORT": str(free_port()),
                "NOONMARK_API_HOST": "127.0.0.1",
                "NOONMARK_API_PORT": str(free_port()),
            }
            name, *options = COMPOSE[service]["command"]
            nodes[service] = image.start(name, tmp_path, *options, binds=EXAMPLES, **variables[service])
            ends.callback(nodes[service].process.wait, 30)
            ends.callback(nodes[service].process.kill)

        def state() -> str:
            return "\n".join(f"{node.name} {node.ending}\n{node.log()[-1500:]}" for node in nodes.values())

        def well(service: str) -> bool:
            assert nodes[service].alive, state()
            return image.health(**variables[service]).returncode == 0

        for service in SERVICES:
            wait_until(lambda service=service: well(service), f"{service} to be well", 60, state)
        ask = ("noonmark", "healthcheck", "--ready")
        wait_until(
            lambda: image.run(*ask, **variables["worker"]).returncode == 0,
            "a worker that is ready",
            30,
            state,
        )
        applied = image.run("noonmark", *COMPOSE["demo"]["command"], binds=EXAMPLES, **ours)
        assert applied.returncode == 0, applied.stderr
        assert "tick" in applied.stdout

        def ran() -> list[dict[str, object]]:
            listed = image.run(
                "noonmark", "run", "list", "--job", "tick", "--state", "succeeded", "--json", **ours
            )
            return json.loads(listed.stdout)["items"]

        wait_until(ran, "a run of the job `tick`", 30, state)
        bootstrap = image.run("noonmark", "admin", "bootstrap", **ours)
        assert bootstrap.stdout.startswith("nmk_")
        codes = {service: node.stop(45) for service, node in nodes.items()}

    assert codes == dict.fromkeys(SERVICES, 0)
    report.append(f"image: {len(SERVICES)} services ran in it read-only as user 65532, and ended in order")
