"""Keys in Postgres, as the API and the intake ask about them."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from tests.support.emptying import turn_clock
from tests.support.issuer import RSA_KEY, jwk, token
from tests.support.keys import ADMIN

from noonmark.auth import authenticator
from noonmark.auth.authenticator import Authenticator
from noonmark.auth.errors import AuthenticationError, AuthenticationReason
from noonmark.auth.key_cache import KeyCache
from noonmark.auth.key_issuing import issue_key
from noonmark.core.access.roles import Permission, Role
from noonmark.settings import Settings
from noonmark.store.access.api_keys import NewKey, revoke_key


@pytest.fixture
def db(emptied_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def door(emptied_database: str, monkeypatch) -> Iterator[Authenticator]:
    """One that looks at the rows each time, so that a test need not wait."""
    monkeypatch.setattr(authenticator, "KeyCache", lambda dsn: KeyCache(dsn, keep_seconds=0))
    opened = Authenticator(emptied_database, Settings())
    yield opened
    opened.close()


@pytest.fixture
def remembering(emptied_database: str) -> Iterator[Authenticator]:
    opened = Authenticator(emptied_database, Settings())
    yield opened
    opened.close()


def made(db, **more):
    return issue_key(db, ADMIN, NewKey("ci", {"billing": Role.EDITOR}, **more))


def bearer(key):
    return f"Bearer {key.token}"


def reason(door, header):
    with pytest.raises(AuthenticationError) as caught:
        door.authenticate(header)
    assert caught.value.hint
    return caught.value.reason


def test_a_key_stands_for_its_principal(db, door):
    key = made(db, scopes=frozenset({Permission.JOBS_READ}), rate_per_minute=60)

    found = door.authenticate(bearer(key))

    assert found.id == f"key:{key.row.key_id}"
    assert (found.name, dict(found.grants), found.platform) == ("ci", {"billing": Role.EDITOR}, False)
    assert (found.scopes, found.rate_per_minute) == ({Permission.JOBS_READ}, 60)
    assert door.authenticate(f"bEARER {key.token}") == found


def test_of_a_secret_nothing_is_stored_but_its_hash(db):
    key = made(db)

    row = str(db.execute("select to_jsonb(api_keys) from api_keys").fetchone())

    assert key.token.secret not in row
    assert key.token.key_id in row


def test_headers_that_are_none_are_told_from_keys_that_are_unknown(db, door):
    key = made(db)
    text = str(key.token)
    wrong = text[:-1] + ("a" if text[-1] != "a" else "b")

    assert reason(door, None) is AuthenticationReason.MISSING
    assert reason(door, "") is AuthenticationReason.MISSING
    assert reason(door, text) is AuthenticationReason.MALFORMED
    assert reason(door, f"Basic {text}") is AuthenticationReason.MALFORMED
    assert reason(door, f"Bearer {text}x") is AuthenticationReason.MALFORMED
    assert reason(door, "Bearer " + "x" * 100_000) is AuthenticationReason.MALFORMED
    assert reason(door, "Bearer x.y.z") is AuthenticationReason.MALFORMED
    assert reason(door, f"Bearer {wrong}") is AuthenticationReason.UNKNOWN
    assert reason(door, "Bearer nmk_aaaaaaaaaaaa_" + "a" * 43) is AuthenticationReason.UNKNOWN


def test_a_wrong_secret_and_an_unknown_id_are_answered_alike(db, door):
    key = made(db)
    texts = set()
    for text in (f"nmk_{key.token.key_id}_{'a' * 43}", f"nmk_{'a' * 12}_{'a' * 43}"):
        with pytest.raises(AuthenticationError) as caught:
            door.authenticate(f"Bearer {text}")
        texts.add((str(caught.value), caught.value.hint))

    assert len(texts) == 1


def test_a_revoked_key_is_refused(db, door):
    key = made(db, signs=True)
    door.authenticate(bearer(key))
    assert door.principal_of_key(key.row.key_id) is not None

    assert revoke_key(db, key.row.key_id)

    assert reason(door, bearer(key)) is AuthenticationReason.REVOKED
    assert door.recall(bearer(key)) is None
    assert door.principal_of_key(key.row.key_id) is None
    assert not revoke_key(db, key.row.key_id)


def test_a_key_expires_by_the_clock_of_the_database(db, door):
    key = made(db, lives_seconds=3600, signs=True)
    door.authenticate(bearer(key))

    turn_clock(db, timedelta(hours=1))

    assert reason(door, bearer(key)) is AuthenticationReason.EXPIRED
    assert door.principal_of_key(key.row.key_id) is None


def test_only_who_has_the_secret_hears_that_a_key_is_revoked(db, door):
    key = made(db)
    revoke_key(db, key.row.key_id)

    assert reason(door, f"Bearer nmk_{key.token.key_id}_{'a' * 43}") is AuthenticationReason.UNKNOWN


def test_what_was_seen_a_moment_ago_is_recalled_without_asking(db, remembering):
    key = made(db)
    assert remembering.recall(bearer(key)) is None
    found = remembering.authenticate(bearer(key))
    db.execute("delete from api_keys")

    assert remembering.recall(bearer(key)) == found
    assert remembering.authenticate(bearer(key)) == found
    for header in (None, "", "x", f"Bearer nmk_{key.token.key_id}_{'a' * 43}", "Bearer x.y.z", "Bearer nmk_"):
        assert remembering.recall(header) is None


def test_the_use_of_a_key_is_noted_and_that_of_a_guess_is_not(db, door):
    key, other = made(db), made(db)
    door.authenticate(bearer(key))
    reason(door, f"Bearer nmk_{other.token.key_id}_{'a' * 43}")
    door.close()

    used = dict(
        db.execute(
            "select key_id, last_used_at = noonmark_now() - interval '0 s' or last_used_at > now()"
            " - interval '1 minute' from api_keys"
        ).fetchall()
    )
    assert used == {key.token.key_id: True, other.token.key_id: None}


def test_a_use_is_written_at_most_once_a_minute_whoever_writes(db, door):
    key = made(db)
    for _ in range(5):
        door.authenticate(bearer(key))
        door._keys._noted_at = None
    first = db.execute("select last_used_at, xmin::text from api_keys").fetchone()
    turn_clock(db, timedelta(seconds=61))
    door._keys._noted_at = None
    door.authenticate(bearer(key))
    second = db.execute("select last_used_at, xmin::text from api_keys").fetchone()
    door._keys._noted_at = None
    door.authenticate(bearer(key))

    assert second[0] > first[0]
    assert db.execute("select last_used_at, xmin::text from api_keys").fetchone() == second


def test_a_connection_that_died_is_made_anew(db, door):
    key = made(db)
    door.authenticate(bearer(key))
    db.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'noonmark-auth'"
        " and datname = current_database()"
    )

    assert door.authenticate(bearer(key)).name == "ci"


def test_without_a_database_it_is_an_error_of_the_database(emptied_database):
    door = Authenticator("postgresql://127.0.0.1:1/none", Settings())
    with pytest.raises(psycopg.OperationalError):
        door.authenticate(f"Bearer nmk_{'a' * 12}_{'a' * 43}")


def test_threads_may_ask_at_once(db, door):
    keys = [made(db) for _ in range(8)]

    def ask(n):
        return door.authenticate(bearer(keys[n % 8])).id

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(64))) == [f"key:{keys[n % 8].row.key_id}" for n in range(64)]


def test_a_publisher_is_found_by_the_id_of_a_key_that_signs(db, door):
    signing, other = made(db, signs=True), made(db)

    found = door.principal_of_key(signing.row.key_id)

    assert found.principal.id == f"key:{signing.row.key_id}"
    assert found.signing_secret == signing.signing_key.secret
    assert len(found.signing_secret) == 32
    assert door.principal_of_key(other.row.key_id) is None
    assert door.principal_of_key("nobody") is None
    assert door.principal_of_key("'; drop table api_keys; --") is None


def test_tokens_of_a_provider_are_checked_with_keys_from_its_own_address(emptied_database):
    """Over real HTTP on this host: discovery, keys, and a redirect that is not followed."""
    served = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = served.get(self.path)
            self.send_response(302 if body is None else 200)
            if body is None:
                self.send_header("Location", "/keys")
            self.end_headers()
            self.wfile.write(json.dumps(body or {}).encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    issuer = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        settings = Settings(oidc_issuer=issuer, oidc_audience="noonmark")
        served["/keys"] = {"keys": [jwk(RSA_KEY, "k1")]}
        served["/.well-known/openid-configuration"] = {"issuer": issuer, "jwks_uri": f"{issuer}/moved"}
        with pytest.raises(AuthenticationError) as caught:
            Authenticator(emptied_database, settings).authenticate(f"Bearer {token(iss=issuer)}")
        assert caught.value.reason is AuthenticationReason.ISSUER_AWAY

        served["/.well-known/openid-configuration"]["jwks_uri"] = f"{issuer}/keys"
        door = Authenticator(emptied_database, settings)
        text = token(iss=issuer)
        assert door.recall(f"Bearer {text}") is None
        found = door.authenticate(f"Bearer {text}")
        assert (found.id, dict(found.grants)) == ("oidc:u1", {"a": Role.VIEWER})
        assert door.recall(f"Bearer {text}") is found
        assert door.authenticate_jwt(text) is found
    finally:
        server.shutdown()
        server.server_close()
