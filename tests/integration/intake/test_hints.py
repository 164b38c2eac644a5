"""Hints: they arrive soon, survive a lost connection, and never disturb the sender."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from noonmark.store.database.hints import DUE_CHANNEL, OUTBOX_CHANNEL, HintListener, HintSender

pytestmark = pytest.mark.postgres


@pytest.fixture
def sender(database_url: str) -> Iterator[HintSender]:
    sender = HintSender(database_url)
    yield sender
    sender.close()


@pytest.fixture
def heard(database_url: str) -> Iterator[dict[str, threading.Event]]:
    """Events of both channels, with a listener that is connected."""
    events = {DUE_CHANNEL: threading.Event(), OUTBOX_CHANNEL: threading.Event()}
    stop = threading.Event()
    thread = threading.Thread(target=HintListener(database_url, events).run, args=(stop,))
    thread.start()
    assert all(event.wait(20) for event in events.values()), "set once on connecting"
    for event in events.values():
        event.clear()
    yield events
    stop.set()
    thread.join(20)
    assert not thread.is_alive()


def test_a_hint_arrives_on_its_channel_only(sender: HintSender, heard: dict[str, threading.Event]) -> None:
    sender.due()
    assert heard[DUE_CHANNEL].wait(20)
    assert not heard[OUTBOX_CHANNEL].is_set()
    sender.outbox()
    assert heard[OUTBOX_CHANNEL].wait(20)


def test_a_listener_that_lost_its_connection_looks_again_and_hears_again(
    database_url: str, sender: HintSender, heard: dict[str, threading.Event]
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = 'noonmark-hints'"
        )
    assert heard[DUE_CHANNEL].wait(20), "a hint may have been missed: look again"
    heard[OUTBOX_CHANNEL].clear()
    sender.outbox()
    assert heard[OUTBOX_CHANNEL].wait(20)


def test_a_sender_without_a_database_neither_waits_nor_raises() -> None:
    sender = HintSender("postgresql://nobody@127.0.0.1:1/nothing")
    for _ in range(1000):
        sender.due()
    sender.close()
