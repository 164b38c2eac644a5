"""Connection URLs, and the options that every session is opened with."""

import pytest

from noonmark.store.database import connect as module
from noonmark.store.database.connect import connect, sqlalchemy_url


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("postgresql://u:p@h:5/d?sslmode=require", "postgresql+psycopg://u:p@h:5/d?sslmode=require"),
        ("postgres://h/d", "postgresql+psycopg://h/d"),
        ("postgresql+psycopg://h/d", "postgresql+psycopg://h/d"),
    ],
)
def test_the_driver_is_named_for_sqlalchemy(given, wanted):
    assert sqlalchemy_url(given) == wanted


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
