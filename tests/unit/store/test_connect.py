"""The options that every session is opened with, and what callers see if it cannot be opened."""

import socket
import subprocess
import sys

from noonmark.store.database import connect as module
from noonmark.store.database.connect import connect


def test_every_session_is_bounded_in_time_and_notices_a_dead_peer(monkeypatch):
    seen = {}
    monkeypatch.setattr(module.psycopg, "connect", lambda dsn, **options: seen.update(options, dsn=dsn))

    connect("postgresql://h/d", application="claim", statement_timeout_seconds=8)

    assert seen["application_name"] == "noonmark-claim"
    assert seen["connect_timeout"] > 0
    assert seen["keepalives"] == 1
    assert seen["tcp_user_timeout"] > 0
    assert seen["target_session_attrs"] == "read-write"
    assert seen["prepare_threshold"] is None
    for option in ("statement_timeout=8000", "lock_timeout=4000", "TimeZone=UTC", "tcp_keepalives_idle=10"):
        assert f" -c {option} " in f"{seen['options']} "
    assert "idle_in_transaction_session_timeout" in seen["options"]


def test_a_process_without_free_descriptors_sees_an_outage_and_still_has_its_statements():
    """Every count of free descriptors, because psycopg needs them for several purposes."""
    script = """
import os, resource, sys
import psycopg
from noonmark.store.database.connect import connect
from noonmark.store.database.statements import names, statement
statement("insert_attempts")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.dup(0))
except OSError:
    pass
for _ in range(3):
    try:
        connect(sys.argv[1], application="test")
    except psycopg.OperationalError as error:
        print("outage", type(error.__cause__).__name__)
    os.close(held.pop())
print(all(map(statement, names())))
"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql://u@127.0.0.1:{server.getsockname()[1]}/d?connect_timeout=2"
        shown = subprocess.run(
            [sys.executable, "-c", script, url], capture_output=True, text=True, check=True, timeout=120
        ).stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["outage", "outage", "outage", "True"]
    assert "outage OSError" in shown
