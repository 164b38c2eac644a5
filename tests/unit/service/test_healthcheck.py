"""The health check of a container asks the service beside it, and says what it heard."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest
from tests.support.cli import call

from noonmark.service.health import Health, HealthServer
from noonmark.service.healthcheck import HealthcheckError, ask, main, metrics_address
from noonmark.telemetry.metrics import REGISTRY


@pytest.fixture
def health():
    return Health()


@pytest.fixture
def port(health, monkeypatch):
    server = HealthServer(health, "127.0.0.1", 0, REGISTRY)
    monkeypatch.setenv("NOONMARK_METRICS_HOST", "0.0.0.0")
    monkeypatch.setenv("NOONMARK_METRICS_PORT", str(server.port))
    yield server.port
    server.close()


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({"NOONMARK_METRICS_PORT": "9090"}, ("127.0.0.1", 9090)),
        ({"NOONMARK_METRICS_PORT": "9090", "NOONMARK_METRICS_HOST": "0.0.0.0"}, ("127.0.0.1", 9090)),
        ({"NOONMARK_METRICS_PORT": "9090", "NOONMARK_METRICS_HOST": "::"}, ("::1", 9090)),
        ({"NOONMARK_METRICS_PORT": "1", "NOONMARK_METRICS_HOST": "10.0.0.7"}, ("10.0.0.7", 1)),
    ],
)
def test_asks_where_the_settings_say(environment, address):
    assert metrics_address(environment) == address


@pytest.mark.parametrize("given", [None, "0", "65536", "-1", "metrics", "\uff19"])
def test_says_that_it_needs_a_port(given):
    environment = {} if given is None else {"NOONMARK_METRICS_PORT": given}
    with pytest.raises(HealthcheckError, match="NOONMARK_METRICS_PORT"):
        metrics_address(environment)


def test_a_live_service_is_well(port, capsys):
    assert main() == 0
    assert json.loads(capsys.readouterr().out)["status"] == "ok"


def test_a_stuck_loop_is_told(port, health, capsys):
    health.fail("claim", "the loop has ended")

    assert main() == 1
    assert json.loads(capsys.readouterr().err)["stuck"] == {"claim": "the loop has ended"}


def test_nobody_there_is_told(monkeypatch, capsys):
    monkeypatch.setenv("NOONMARK_METRICS_HOST", "127.0.0.1")
    monkeypatch.setenv("NOONMARK_METRICS_PORT", str(unused_port()))

    assert main() == 1
    assert capsys.readouterr().err.startswith("no response from 127.0.0.1, port ")


def test_no_port_is_told(monkeypatch, capsys):
    monkeypatch.delenv("NOONMARK_METRICS_PORT", raising=False)

    assert main() == 1
    assert "NOONMARK_METRICS_PORT" in capsys.readouterr().err


def test_somebody_else_who_listens_there_is_no_health(capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = ask(*listener.getsockname(), "/livez", seconds=0.05)

    assert not answer.good
    assert "no response" in answer.text


def test_what_a_container_runs_imports_neither_settings_nor_drivers(port):
    names = "noonmark.settings", "pydantic", "typer", "prometheus_client", "psycopg"
    code = (
        "import sys; from noonmark.service.healthcheck import main; code = main();"
        f" print([name for name in {names!r} if name in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[]")


def test_the_command_asks_the_same(port):
    assert json.loads(call("healthcheck").stdout)["status"] == "ok"


def test_the_command_tells_what_a_service_waits_for(port, health):
    health.require("database", "does not answer")

    call("healthcheck")
    told = call("healthcheck", "--ready", code=1).stderr
    assert json.loads(told)["missing"] == {"database": "does not answer"}


def test_the_command_takes_an_address(port, monkeypatch):
    monkeypatch.delenv("NOONMARK_METRICS_PORT")

    call("healthcheck", "--port", str(port), "--host", "127.0.0.1")
    assert "NOONMARK_METRICS_PORT" in call("healthcheck", code=2).stderr
