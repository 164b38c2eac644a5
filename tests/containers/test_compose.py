"""docker-compose.yml as an operator uses it, on a real engine: what docs/docker.md says about one installation."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.compose import Installation
from tests.support.doc_blocks import section_commands
from tests.support.kube import eventually
from tests.support.stand_ins import MISSING, stand_in_python

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "docker.md"
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
ONE_SHOT = {"migrate", "demo"}
RUNNING = SERVICES.keys() - ONE_SHOT - {MISSING}
OURS = {name for name, service in SERVICES.items() if service["image"].startswith("noonmark:")}
WRITABLE = {
    "postgres": ["/tmp", "/run/postgresql", "/var/lib/postgresql"],
    "prometheus": ["/prometheus"],
    "alertmanager": ["/alertmanager"],
    **{name: ["/tmp"] for name in OURS},
}
"""Where each container can write; Kafka's file system is not read-only."""

UNITS = {"M": 2**20, "G": 2**30}
CAPABILITIES = (
    "import re; print(re.findall(r'(?:CapEff|NoNewPrivs):\\s+(\\w+)', open('/proc/1/status').read()))"
)
FOLDERS = r"find / \( -path /proc -o -path /sys -o -path /dev \) -prune -o -type d -writable -print"
TAKE_MEMORY = "held = [bytearray(16 << 20) for _ in range(128)]"
TAKE_THREADS = """
import threading
held = threading.Event()
try:
    for count in range(5000):
        threading.Thread(target=held.wait, daemon=True).start()
except RuntimeError:
    print(count)
"""
KILL_SERVICE = """
import os, pathlib, signal
for process in pathlib.Path("/proc").glob("[1-9]*/cmdline"):
    words = process.read_bytes().split(b"\\0")
    if b"worker" in words and process.parent.name != "1":
        os.kill(int(process.parent.name), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def running(installation: Installation) -> Iterator[Installation]:
    """An installation that is started by the page's first commands, which also build the image."""
    stand_in_python(installation.engine, [installation.folder])
    installation.compose("up", "--detach", "--wait")
    yield installation
    installation.compose("--profile", "*", "down", "--volumes")


def test_up_starts_every_service_and_waits_until_all_are_healthy(running):
    found = running.containers()

    assert found.keys() == RUNNING | {"migrate"}
    assert {name for name in RUNNING if found[name]["State"]["Health"]["Status"] != "healthy"} == set()
    assert found["migrate"]["State"]["ExitCode"] == 0
    assert [one["RestartCount"] for one in found.values()] == [0] * len(found)


def test_one_image_of_ours_is_built_and_no_other_is_left(running):
    found = running.containers()
    (image,) = {SERVICES[name]["image"] for name in OURS}

    assert running.engine.docker("images", "--all", "--quiet", "--filter", "dangling=true") == ""
    assert {found[name]["Image"] for name in found.keys() & OURS} == {
        running.engine.docker("inspect", "--format", "{{.Id}}", image)
    }
    running.compose("up", "--detach", "--wait")
    again = running.containers()
    assert {name for name in RUNNING if again[name]["Id"] != found[name]["Id"]} == set()


def test_the_first_steps_of_the_page_work(running):
    """Each command of the section, in its order, with the keys that the ones before have printed."""
    variables = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    outputs = {}
    for command in section_commands(PAGE, "First steps"):
        if command.startswith("cp .env.example"):
            continue
        if command.startswith("export "):
            given = dict(word.split("=", 1) for word in command.split()[1:])
            key = re.search(r"nmp_\w+", outputs["--signs"])
            variables |= given | {"NOONMARK_PUBLISHER_KEY": key[0]}
            continue
        done = running.run("bash", "-c", command, **variables)
        assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}\n{running.state()}"
        outputs[command.split()[-1]] = done.stdout
        if command.endswith("admin bootstrap"):
            variables["NOONMARK_API_KEY"] = done.stdout.strip()
    (jobs,) = [output for command, output in outputs.items() if command.endswith("/v1/jobs")]
    assert "tick" in {job["name"] for job in json.loads(jobs)["items"]}

    def succeeded(job: str) -> bool:
        shown = running.noonmark("run", "list", "--job", job, "--state", "succeeded", "--json")
        return bool(json.loads(shown)["items"])

    for job in ("tick", "welcome-now"):
        eventually(f"a run of `{job}` has succeeded", lambda job=job: succeeded(job), seconds=60)


@pytest.mark.parametrize("name", sorted(RUNNING))
def test_a_container_is_confined_as_the_page_says(running, name):
    found, service = running.containers()[name], SERVICES[name]
    host, limits = found["HostConfig"], service["deploy"]["resources"]["limits"]

    assert host["ReadonlyRootfs"] == (name != "kafka")
    added = [one.removeprefix("CAP_") for one in host["CapAdd"] or ()]
    assert (host["CapDrop"], added) == (["ALL"], service.get("cap_add", []))
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert not host["Privileged"]
    assert host["Memory"] == int(limits["memory"][:-1]) * UNITS[limits["memory"][-1]]
    assert host["PidsLimit"] == limits["pids"]
    assert host["NanoCpus"] == float(limits["cpus"]) * 1e9
    published = [port for ports in found["NetworkSettings"]["Ports"].values() for port in ports or ()]
    assert {port["HostIp"] for port in published} <= {"127.0.0.1"}
    # As what runs has it: no capability, and no way to more rights.
    assert running.compose("exec", "-T", name, "python3", "-c", CAPABILITIES) == "['0000000000000000', '1']"


@pytest.mark.parametrize("name", sorted(RUNNING - {"kafka"}))
def test_a_container_can_write_only_where_it_is_meant_to(running, name):
    user = ["--user", "postgres"] if name == "postgres" else []
    shown = running.run("docker", "compose", "exec", "-T", *user, name, "sh", "-c", FOLDERS).stdout.split()

    assert sorted({place for place in WRITABLE[name] if place in shown}) == sorted(WRITABLE[name])
    assert [path for path in shown if not path.startswith(tuple(WRITABLE[name]))] == []


def test_what_takes_more_than_its_container_may_have_is_stopped_there(running):
    before = running.containers()
    taken = running.run("docker", "compose", "exec", "-T", "observer", "python", "-c", TAKE_MEMORY)
    threads = running.compose("exec", "-T", "watchdog", "python", "-c", TAKE_THREADS)

    assert taken.returncode == 137
    assert 500 < int(threads) < SERVICES["watchdog"]["deploy"]["resources"]["limits"]["pids"]
    after = running.containers()
    started = {name: one["State"]["StartedAt"] for name, one in before.items()}
    assert {name for name in RUNNING if after[name]["State"]["StartedAt"] != started[name]} == set()


def test_the_tools_of_the_broker_fit_next_to_it(running):
    (command,) = re.findall(r"`(docker compose exec [^`]+)`", (ROOT / "docs" / "recovery.md").read_text())
    heap = re.search(r"-Xmx(\d+)m", command)
    broker = re.search(r"-Xmx(\d+)m", SERVICES["kafka"]["environment"]["KAFKA_HEAP_OPTS"])

    listed = running.run("bash", "-c", f"{command} --bootstrap-server kafka:9092 --list")

    assert "noonmark.intake" in listed.stdout.split(), listed.stderr
    assert heap is not None
    assert int(heap[1]) + int(broker[1]) + 256 <= 1024
    assert not running.containers()["kafka"]["State"]["OOMKilled"]


def test_a_service_that_dies_starts_again(running):
    before = running.containers()["worker"]
    running.run("docker", "compose", "exec", "-T", "worker", "python", "-c", KILL_SERVICE)

    def is_back() -> bool:
        now = running.containers()["worker"]
        return now["RestartCount"] > before["RestartCount"] and now["State"]["Health"]["Status"] == "healthy"

    eventually("the worker is healthy again", is_back, seconds=90)
    assert running.containers()["worker"]["Id"] == before["Id"]


def test_workers_can_be_added(running):
    running.compose("up", "--detach", "--wait", "--scale", "worker=3")

    def live() -> int:
        (pool,) = json.loads(running.noonmark("pool", "list", "--json"))["items"]
        return pool["workers"]

    eventually("all three have their lease", lambda: live() >= 3, seconds=60)
    running.compose("up", "--detach", "--wait")


def test_a_backup_by_the_command_of_the_page_holds_the_tables(running):
    (command,) = re.findall(r"`(docker compose exec -T postgres pg_dump [^`]+)`", PAGE.read_text())
    done = running.run("bash", "-c", command)

    assert done.returncode == 0, done.stderr
    assert (running.folder / "noonmark.dump").stat().st_size > 10_000


def test_down_leaves_nothing_but_the_data_and_up_finds_it(running):
    running.compose("run", "--rm", "demo")
    running.compose("down")
    volumes = running.engine.docker("volume", "ls", "--quiet").split()

    assert running.containers() == {}
    assert (
        running.engine.docker("network", "ls", "--quiet", "--filter", "label=com.docker.compose.project")
        == ""
    )
    kept = {name.partition("_")[2] for name in volumes if name.startswith("noonmark_")}
    assert kept == {f"{name}-data" for name in ("kafka", "postgres", "prometheus", "alertmanager")}
    running.compose("up", "--detach", "--wait")
    assert "tick" in running.noonmark("job", "list")
    running.compose("run", "--rm", "demo")
