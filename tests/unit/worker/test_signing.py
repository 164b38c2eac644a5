"""Keys of namespaces in a worker: read once for many, kept through outages of the database."""

import asyncio

import psycopg
import pytest
from tests.unit.worker.hands import NOW

from noonmark.core.access.webhook_signature import new_secret, read_secret
from noonmark.store.access.signing_keys import SigningKey
from noonmark.worker.http import signing
from noonmark.worker.http.signing import SigningKeys

SECRET = new_secret()


class Database:
    """Answers with one key, or fails, and counts how often it was asked."""

    def __init__(self):
        self.asked, self.away = 0, False

    async def call(self, ask):
        del ask
        self.asked += 1
        await asyncio.sleep(0)
        if self.away:
            raise psycopg.OperationalError("gone")
        return [SigningKey("1", SECRET, NOW, None)]


def test_calls_that_begin_together_ask_once():
    database = Database()

    async def play():
        keys = SigningKeys(database)
        return await asyncio.gather(*(keys.of("one") for _ in range(50)), keys.of("two"))

    found = asyncio.run(play())

    assert database.asked == 2
    assert found == [[read_secret(SECRET)]] * 51


def test_known_keys_serve_through_an_outage_and_are_not_asked_for_all_the_time(monkeypatch):
    monkeypatch.setattr(signing, "REFRESH_SECONDS", 0.0)
    database = Database()

    async def play():
        keys = SigningKeys(database)
        await keys.of("one")
        database.away = True
        for _ in range(20):
            assert await keys.of("one") == [read_secret(SECRET)]
            await asyncio.sleep(0)

    asyncio.run(play())

    assert database.asked == 2


def test_without_any_key_nothing_can_be_signed():
    database = Database()
    database.away = True

    async def play():
        await SigningKeys(database).of("one")

    with pytest.raises(psycopg.OperationalError):
        asyncio.run(play())
