"""docker-compose.yml on an engine that can pull its images and build ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.cluster import wait_until

ROOT = Path(__file__).parents[2]


def missing() -> str:
    """What a machine lacks, empty if nothing: an engine that can pull images, and the client's plugin."""
    for command, reason in (
        (("docker", "info"), "no Docker engine answers: start one, or set DOCKER_HOST"),
        (("docker", "compose", "version"), "the plugin `docker compose` is not installed"),
    ):
        found = shutil.which(command[0])
        if not found or subprocess.run(command, check=False, capture_output=True, timeout=30).returncode != 0:
            return reason
    return ""


@pytest.mark.timeout(900)
def test_compose_is_a_working_system():
    if reason := missing():
        pytest.skip(reason)
    project = ("docker", "compose", "--project-name", "noonmark-test")
    environment = {
        **os.environ,
        "POSTGRES_PASSWORD": os.urandom(12).hex(),
        "GRAFANA_PASSWORD": os.urandom(12).hex(),
    }

    def compose(*arguments: str) -> str:
        done = subprocess.run(
            [*project, *arguments], check=False, capture_output=True, text=True, cwd=ROOT, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        compose("up", "--detach", "--wait", "--build")
        compose("--profile", "demo", "run", "--rm", "demo")
        assert compose("exec", "-T", "api", "noonmark", "admin", "bootstrap").startswith("nmk_")
        listing = (
            "exec",
            "-T",
            "api",
            "noonmark",
            "run",
            "list",
            "--job",
            "tick",
            "--state",
            "succeeded",
            "--json",
        )
        wait_until(lambda: json.loads(compose(*listing))["items"], "a run of the job `tick`", 60)
    finally:
        compose("--profile", "demo", "down", "--volumes", "--timeout", "45")
