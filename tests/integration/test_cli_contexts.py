"""Commands that ask a server, by a context or by the environment, instead of the database."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import uvicorn
from tests.support.cli import call
from tests.support.keys import make_token

from noonmark.api.app import build_app
from noonmark.api.main import make_parts, read_cursor_key
from noonmark.auth.authenticator import Authenticator
from noonmark.settings import Settings

pytestmark = pytest.mark.postgres

JOB = "name: tick\ntype: python\nhandler: a.b\nschedule: '@hourly'\n"


@pytest.fixture
def address(emptied_database: str) -> Iterator[str]:
    """A server over the emptied database, and its address."""
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        row = connection.execute("select shards from install").fetchone()
        assert row is not None
        key = read_cursor_key(connection)
    settings = Settings.load(database_url=emptied_database)
    parts = make_parts(settings, shards=row[0], cursor_key=key)
    authenticator = Authenticator(settings.dsn, settings)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build_app(parts, authenticator), lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)
    listening.close()
    authenticator.close()
    parts.close()


@pytest.fixture
def context(
    command_line: None, address: str, emptied_database: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Makes a context with a key of a role, and no database in the environment."""
    monkeypatch.delenv("NOONMARK_DATABASE_URL")
    monkeypatch.setenv("NOONMARK_CONFIG", str(Path("config.toml").absolute()))

    def make(name: str, role: str, namespace: str = "shop") -> None:
        with psycopg.connect(emptied_database, autocommit=True) as connection:
            key = make_token(connection, role, namespace)
        call("context", "add", name, "--url", address, "--key", "-", "--use", stdin=key + "\n")
        Path("jobs.yaml").write_text(JOB)

    return make


def test_what_is_applied_by_a_context_is_made_by_its_server_in_the_namespace_of_its_key(
    context, emptied_database
):
    context("shop", "editor")
    report = json.loads(call("job", "apply", "-f", "jobs.yaml", "--json").stdout)
    assert [(one["namespace"], one["name"], one["action"]) for one in report["items"]] == [
        ("shop", "tick", "created")
    ]
    assert json.loads(call("job", "apply", "-f", "jobs.yaml", "--json").stdout)["unchanged"] == 1
    call("job", "pause", "tick")
    with psycopg.connect(emptied_database) as connection:
        assert connection.execute("select namespace, name, state from jobs").fetchall() == [
            ("shop", "tick", "paused")
        ]


def test_what_a_server_has_is_read_by_a_context_alone(context, emptied_database):
    context("shop", "editor")
    call("job", "apply", "-f", "jobs.yaml")
    run = json.loads(call("job", "trigger", "tick", "--json").stdout)["run_id"]

    assert "tick" in call("job", "list").stdout
    assert json.loads(call("job", "show", "tick", "--json").stdout)["namespace"] == "shop"
    (listed,) = json.loads(call("run", "list", "--job", "tick", "--json").stdout)["items"]
    assert listed["id"] == run
    assert "manual" in call("run", "show", run).stdout
    assert "its attempts stored no output" in call("run", "logs", run).stdout
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        connection.execute(
            "insert into workers (pool, host, pid, lease_seconds, beat_at) values ('default', 'box', 1, 15, now())"
        )
    assert " box " in call("workers").stdout
    assert "job 'tock' does not exist (did you mean 'tick'?); " in call("job", "show", "tock", code=1).stderr


def test_the_payload_and_the_rejections_of_others_are_not_read(context):
    context("shop", "editor")
    call("job", "apply", "-f", "jobs.yaml")
    context("looker", "viewer")
    assert "(hidden: the key may not read payloads)" in call("job", "show", "tick").stdout
    assert "platform" in call("rejection", "list", code=1).stderr


def test_orders_and_settings_by_a_context_reach_its_server_and_the_audit_log_names_the_key(
    context, emptied_database
):
    context("shop", "admin")
    call("limit", "set", "mail", "--rate", "5/s")
    assert "limit 'post' does not exist in namespace 'shop'" in call("limit", "delete", "post", code=1).stderr
    call("calendar", "set", "days", "--date", "2026-12-25")
    assert "'gone' does not exist in namespace shop" in call("calendar", "show", "gone", code=1).stderr
    call("namespace", "set", "shop", "--max-jobs", "9")
    call("namespace", "pause", "shop", "--reason", "moving")
    call("job", "apply", "-f", "jobs.yaml")
    with psycopg.connect(emptied_database) as connection:
        job = connection.execute("select id from jobs").fetchone()
        assert job is not None
    call("job", "trigger", str(job[0]))
    cancelled = json.loads(
        call("run", "cancel", "--job", "tick", "--reason", "enough", "--yes", "--json").stdout
    )
    assert (cancelled["matched"], cancelled["ended"]) == (1, 1)
    for words in (("dead", "list"), ("dead", "groups"), ("dead", "redrive", "--all", "--yes")):
        call(*words)
    with psycopg.connect(emptied_database) as connection:
        rows = connection.execute(
            "select action, count(*) from audit_log where actor like 'key:%' and namespace = 'shop' group by 1"
        ).fetchall()
    assert dict(rows) == dict.fromkeys(
        (
            "limit.put",
            "calendar.put",
            "namespace.put",
            "namespace.pause",
            "job.create",
            "job.trigger",
            "run.cancel",
        ),
        1,
    )


def test_what_a_role_does_not_allow_is_told_and_changes_nothing(context, emptied_database):
    context("shop", "operator")
    told = call("job", "apply", "-f", "jobs.yaml", code=1).stderr
    assert "jobs:write" in told
    with psycopg.connect(emptied_database) as connection:
        assert connection.execute("select count(*) from jobs").fetchone() == (0,)


def test_a_key_that_is_not_valid_is_told(context, monkeypatch, address):
    monkeypatch.setenv("NOONMARK_API_URL", address)
    monkeypatch.setenv("NOONMARK_API_KEY", "nmk_" + "a" * 12 + "_" + "B" * 43)
    Path("jobs.yaml").write_text(JOB)
    told = call("job", "apply", "-f", "jobs.yaml", code=1).stderr
    assert "Credentials are missing or invalid" in told
    assert "B" * 43 not in told


def test_a_server_that_is_away_is_code_3(context, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("NOONMARK_API_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("NOONMARK_API_KEY", "k")
        told = call("job", "pause", "tick", code=3).stderr
    assert "cannot be reached" in told
    assert "noonmark context show" in told
