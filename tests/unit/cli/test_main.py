"""The command as a whole."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from tests.support.cli import CliRunner, command_of

from noonmark.cli.main import app, main

COMMANDS = [
    ["intake"], ["trigger"], ["dispatcher"], ["worker"], ["watchdog"], ["observer"], ["verify"], ["run", "list"], ["run", "show"], ["job", "list"],
    ["job", "show"], ["rejection", "list"], ["rejection", "show"], ["dead", "list"], ["dead", "groups"], ["dead", "show"],
    ["dead", "redrive"], ["dead", "discard"], ["rights", "kafka"], ["rights", "postgres"], ["run", "cancel"], ["run", "logs"], ["run", "complete"], ["pool", "rotate-key"], ["pool", "retire-key"], ["pool", "keys"],
    ["workers"], ["lag"], ["submit"], ["db", "migrate"],
    ["db", "check"], ["pool", "create"], ["pool", "list"], ["config", "check"], ["dev", "up"], ["dev", "down"],
    ["dev", "status"], ["demo"], ["job", "pause"], ["job", "resume"], ["job", "trigger"], ["job", "cancel"], ["schedule", "next"],
    ["schedule", "explain"], ["schedule", "diff"], ["calendar", "set"], ["calendar", "import"],
    ["calendar", "list"], ["calendar", "show"], ["calendar", "delete"], ["backfill", "plan"],
    ["backfill", "start"], ["backfill", "list"], ["backfill", "show"], ["backfill", "cancel"],
    ["namespace", "set"], ["namespace", "list"], ["namespace", "show"], ["namespace", "pause"],
    ["signing-key", "list"], ["signing-key", "show"], ["signing-key", "rotate"], ["signing-key", "retire"],
    ["namespace", "resume"], ["namespace", "delete"], ["limit", "set"],
    ["limit", "list"], ["limit", "show"], ["limit", "delete"], ["zones", "show"], ["zones", "activate"],
    ["job", "apply"], ["job", "check"], ["job", "export"], ["job", "create"], ["job", "edit"], ["job", "delete"], ["job", "versions"], ["job", "diff"],
    ["run", "retry"], ["run", "tasks"], ["run", "graph"], ["run", "hold"], ["run", "release"], ["import", "crontab"], ["context", "add"], ["context", "list"], ["context", "use"],
    ["context", "show"], ["context", "remove"], ["api"], ["why"], ["audit"], ["admin", "bootstrap"],
    ["admin", "key", "create"], ["admin", "key", "list"], ["admin", "key", "revoke"], ["admin", "key", "show"],
    ["outbox", "install"], ["outbox", "retry"], ["outbox", "status"],
    ["healthcheck"], ["alert", "list"], ["alert", "show"], ["alert", "test"],
    ["dlq", "list"], ["dlq", "groups"], ["dlq", "show"], ["dlq", "redrive"], ["dlq", "discard"],
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert " ".join(command) in result.stdout


def test_no_command_is_missing_here():
    def below(command: Any, *names: str) -> Iterator[list[str]]:
        for name, child in command.commands.items():
            yield from below(child, *names, name) if hasattr(child, "commands") else [[*names, name]]

    assert sorted(below(command_of(app))) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_help_holds_brackets_which_are_taken_for_markup(command):
    found = command_of(app)
    for name in command:
        found = found.commands[name]
    texts = [found.help or "", *(getattr(option, "help", None) or "" for option in found.params)]
    assert [text for text in texts if "[" in text] == []


def test_help_of_jobs_says_how_they_are_made():
    assert "`noonmark submit`" in command_of(app).commands["job"].help


def test_help_tells_the_exit_codes():
    assert "Exit codes" in CliRunner().invoke(app, ["--help"]).stdout


@pytest.mark.parametrize(
    "command", [["walk"], ["run", "list", "--state", "sleeping"], ["worker", "--slots", "x"]]
)
def test_wrong_usage_exits_with_2(command):
    assert CliRunner().invoke(app, command).exit_code == 2


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["run", "list", "--state", "sleeping"], "'sleeping' is not one of 'waiting'"),
        (["run", "list", "--limit", "0"], "0 is not allowed: use a whole number from 1 to 10000"),
        (["job", "list", "--limit", "x"], "x is not allowed: use a whole number from 1 to 10000"),
        (["worker", "--slots", "x"], "x is not allowed: use a whole number"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_option_is_told_in_words_of_ours(command, told):
    result = CliRunner().invoke(app, command, env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert result.exit_code == 2
    shown = " ".join(result.output.replace("│", " ").split())
    assert told in shown
    assert "Value error" not in shown
    assert "Input should" not in shown


@pytest.mark.parametrize("command", [["dev", "up"], ["run", "list"], ["db", "check"]], ids=" ".join)
def test_a_wrong_address_is_a_sentence_and_exit_code_2_and_nothing_is_started(
    tmp_path, monkeypatch, capsys, command
):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("NOONMARK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NOONMARK_DATABASE_URL", "foo")
    monkeypatch.setattr(sys, "argv", ["noonmark", *command])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "NOONMARK_DATABASE_URL is not a Postgres URL" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_service_with_a_wrong_address_ends_with_a_sentence_and_exit_code_2(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "noonmark.cli.main", "trigger"],
        cwd=tmp_path,
        env={**env, "NOONMARK_DATABASE_URL": "foo"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "NOONMARK_DATABASE_URL is not a Postgres URL" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


SLOW_TO_LOAD = {
    "noonmark.cli.main": [
        "psycopg", "sqlalchemy", "confluent_kafka", "pydantic", "aiohttp", "psutil", "rich.console", "httpx",
        "fastapi", "yaml", "tomllib",
    ],
    # Every worker starts it before it takes a lease.
    "noonmark.worker.leases.heartbeat": ["pydantic", "confluent_kafka", "structlog", "sqlalchemy", "httpx"],
    **{
        f"noonmark.{service}.main": [
            "grpc", "aiohttp", "google.protobuf", "jsonschema", "alembic", "sqlalchemy", "httpx", "jwt",
        ]
        for service in ("intake", "trigger", "dispatcher")
    },
}  # fmt: skip


@cache
def loaded() -> dict[str, list[str]]:
    """For each of these modules, those of its libraries that are loaded once it is imported.

    One process imports them one after the other, which is cheaper than a process for each: what one loads
    is loaded when the next is looked at, too.
    """
    program = (
        "import importlib, json, sys\n"
        f"for module, libraries in {SLOW_TO_LOAD!r}.items():\n"
        "    importlib.import_module(module)\n"
        "    print(json.dumps([module, sorted(set(libraries) & set(sys.modules))]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_the_heartbeat_of_a_worker_waits_for_no_library_of_the_worker():
    assert loaded()["noonmark.worker.leases.heartbeat"] == []


def test_help_waits_for_no_driver():
    assert loaded()["noonmark.cli.main"] == []


@pytest.mark.parametrize("service", ["intake", "trigger", "dispatcher"])
def test_a_service_waits_for_no_library_that_only_some_jobs_or_migrations_need(service):
    assert loaded()[f"noonmark.{service}.main"] == []
