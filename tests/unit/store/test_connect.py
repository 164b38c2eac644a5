"""The options that every session is opened with."""

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
