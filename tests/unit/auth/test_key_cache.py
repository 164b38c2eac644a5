"""Keys as a process remembers them: for how long, how many, and what it asks the database."""

from __future__ import annotations

import psycopg
import pytest
from tests.support.issuer import Clock

from noonmark.auth import key_cache
from noonmark.auth.key_cache import KeyCache
from noonmark.core.access.roles import Permission, Role
from noonmark.store.access.api_keys import StoredKey


def stored(key_id, **more):
    fields = {
        "key_id": key_id,
        "name": key_id,
        "secret_hash": bytes(32),
        "signing_secret": None,
        "grants": {},
        "platform": False,
        "scopes": None,
        "rate_per_minute": None,
        "seconds_left": None,
        "revoked": False,
    }
    return StoredKey(**{**fields, **more})


class Table:
    """The rows, and every statement that was asked."""

    def __init__(self, monkeypatch, *rows):
        self.rows = {row.key_id: row for row in rows}
        self.reads: list[list[str]] = []
        self.noted: list[list[str]] = []
        self.away = False
        monkeypatch.setattr(key_cache, "connect", lambda *_a, **_k: self)
        monkeypatch.setattr(key_cache, "read_keys", self.read)
        monkeypatch.setattr(key_cache, "mark_used", self.note)

    def close(self):
        pass

    def read(self, _connection, ids):
        if self.away:
            raise psycopg.OperationalError("away")
        self.reads.append(ids)
        return [self.rows[name] for name in ids if name in self.rows]

    def note(self, _connection, ids):
        if self.away:
            raise psycopg.OperationalError("away")
        self.noted.append(ids)


A, B, C = (letter * 12 for letter in "abc")


@pytest.fixture
def clock():
    return Clock()


def test_a_key_is_read_once_and_again_when_it_is_stale(monkeypatch, clock):
    table = Table(monkeypatch, stored(A))
    cache = KeyCache("", clock=clock)

    assert cache.recall(A) is None
    assert [cache.find(A).key_id for _ in range(5)] == [A] * 5
    assert cache.recall(A).key_id == A
    clock.at += 3.9
    cache.find(A)
    assert table.reads == [[A]]
    clock.at += 0.1
    assert cache.recall(A) is None
    cache.find(A)
    assert table.reads == [[A], [A]]


def test_a_key_is_never_believed_for_five_seconds():
    assert key_cache.KEEP_SECONDS < 5


def test_what_is_revoked_is_known_at_the_next_look(monkeypatch, clock):
    table = Table(monkeypatch, stored(A))
    cache = KeyCache("", clock=clock)
    assert cache.valid(cache.find(A))
    table.rows[A] = stored(A, revoked=True)
    clock.at += 4
    assert not cache.valid(cache.find(A))
    del table.rows[A]
    clock.at += 4
    assert cache.find(A) is None


def test_a_key_ends_between_two_looks_when_the_database_said_so(monkeypatch, clock):
    Table(monkeypatch, stored(A, seconds_left=2.0), stored(B, seconds_left=-1.0))
    cache = KeyCache("", clock=clock)
    key = cache.find(A)

    assert cache.valid(key)
    clock.at += 2
    assert cache.expired(cache.find(A))
    assert cache.expired(cache.find(B))


def test_ids_that_are_none_are_remembered_too_and_what_has_no_form_is_not_asked(monkeypatch, clock):
    table = Table(monkeypatch)
    cache = KeyCache("", clock=clock)

    assert [cache.find(A) for _ in range(5)] == [None] * 5
    assert cache.find("nonsense") is None
    assert table.reads == [[A]]
    table.rows[A] = stored(A)
    clock.at += 4
    assert cache.find(A).key_id == A


def test_the_memory_is_bounded_whatever_is_guessed(monkeypatch, clock):
    Table(monkeypatch, stored(A))
    cache = KeyCache("", clock=clock, most=3)
    cache.find(A)

    for n in range(100):
        assert cache.find(f"{n:012d}") is None
    assert len(cache._unknown) == 3
    assert cache.recall(A) is not None


def test_all_used_keys_that_are_stale_are_read_with_one_statement(monkeypatch, clock):
    table = Table(monkeypatch, stored(A), stored(B), stored(C))
    cache = KeyCache("", clock=clock)
    for name in (A, B, C):
        cache.find(name)
    cache.remember_use(cache.find(A))
    cache.remember_use(cache.find(B))
    clock.at += 4

    cache.find(A)
    assert table.reads[3:] == [[A, B]]


def test_uses_are_written_together_and_seldom(monkeypatch, clock):
    table = Table(monkeypatch, stored(A), stored(B))
    cache = KeyCache("", clock=clock)

    cache.remember_use(cache.find(A))
    cache.note_uses()
    for _ in range(100):
        cache.remember_use(cache.find(A))
        cache.remember_use(cache.find(B))
        cache.note_uses()
    assert table.noted == [[A]]
    clock.at += key_cache.NOTE_SECONDS
    cache.note_uses()
    assert table.noted == [[A], [A, B]]
    clock.at += key_cache.NOTE_SECONDS
    cache.note_uses()
    assert len(table.noted) == 2


def test_uses_are_not_lost_when_the_process_ends_or_the_database_is_away(monkeypatch, clock):
    table = Table(monkeypatch, stored(A))
    cache = KeyCache("", clock=clock)
    cache.remember_use(cache.find(A))
    table.away = True
    cache.note_uses()
    assert table.noted == []
    table.away = False
    cache.close()
    assert table.noted == [[A]]


def test_without_the_database_a_stale_key_is_not_believed(monkeypatch, clock):
    table = Table(monkeypatch, stored(A))
    cache = KeyCache("", clock=clock)
    cache.find(A)
    table.away = True

    assert cache.find(A).key_id == A
    clock.at += 4
    with pytest.raises(psycopg.OperationalError):
        cache.find(A)


def test_what_is_stored_and_means_nothing_grants_nothing():
    row = stored(A, grants={"x": "viewer", "y": "owner"}, scopes=["jobs:read", "jobs:fly"], rate_per_minute=7)
    found = key_cache.principal_of(row)

    assert (found.id, dict(found.grants), found.rate_per_minute) == (f"key:{A}", {"x": Role.VIEWER}, 7)
    assert found.scopes == {Permission.JOBS_READ}
    assert key_cache.principal_of(stored(A, scopes=[])).scopes == frozenset()
