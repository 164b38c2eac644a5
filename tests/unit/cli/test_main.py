"""The command as a whole."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from noonmark.cli.main import app

COMMANDS = [
    ["intake"], ["trigger"], ["dispatcher"], ["worker"], ["run", "list"], ["run", "show"], ["job", "list"],
    ["job", "show"], ["rejection", "list"], ["dead", "list"], ["workers"], ["lag"], ["submit"], ["db", "migrate"],
    ["db", "check"], ["pool", "create"], ["pool", "list"], ["config", "check"], ["dev", "up"], ["dev", "down"],
    ["dev", "status"], ["demo"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert " ".join(command) in result.stdout


def test_help_tells_the_exit_codes():
    assert "Exit codes" in CliRunner().invoke(app, ["--help"]).stdout


@pytest.mark.parametrize(
    "command", [["walk"], ["run", "list", "--state", "sleeping"], ["worker", "--slots", "x"]]
)
def test_wrong_usage_exits_with_2(command):
    assert CliRunner().invoke(app, command).exit_code == 2


def test_help_waits_for_no_driver():
    program = (
        "import sys, noonmark.cli.main;"
        "print(*sorted({'psycopg', 'sqlalchemy', 'confluent_kafka', 'pydantic', 'aiohttp', 'psutil', 'rich.console'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
