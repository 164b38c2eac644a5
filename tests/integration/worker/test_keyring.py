"""The keys of run messages: read again when one is unknown, without a wait of the lanes for Postgres."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from tests.integration.store.world import World
from tests.support.cluster import wait_until

from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.cluster.pools import read_keys, register_pool, rotate_key
from noonmark.telemetry.logs import get_logger
from noonmark.worker.lanes.reader import Keyring

PATIENCE = 60


@pytest.fixture
def keyring(world: World) -> Iterator[Keyring]:
    register_pool(world.db, "keyed")
    service = Service("worker", Settings(database_url=world.url), Health(), threading.Event(), get_logger())
    keyring = Keyring(service, "keyed")
    thread = threading.Thread(target=keyring.run, args=[service.stop])
    thread.start()
    yield keyring
    service.stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_new_key_is_read_when_it_is_wanted_and_nobody_waits_for_a_database_that_does_not_answer(
    world: World, keyring: Keyring
) -> None:
    old, known_at = keyring.signer.current, keyring.known_at
    with psycopg.connect(world.url) as session:
        session.execute("lock table pool_keys in access exclusive mode")
        keyring.want()
        wait_until(lambda: world.count("pg_locks", "not granted"), "the read to wait", PATIENCE)
        # A lane reader goes on meanwhile: it may want the keys as often as it polls.
        for _ in range(100):
            keyring.want()
        assert (keyring.signer.current, keyring.known_at) == (old, known_at)
    new = rotate_key(world.db, "keyed")
    keyring.want()
    wait_until(lambda: keyring.signer.current != old, "the new key", PATIENCE)
    assert keyring.signer.current == read_keys(world.db, "keyed")[0].key_id
    assert new is not None
    assert keyring.known_at > known_at
