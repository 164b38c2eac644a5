"""The beat itself: sent while all is well, withheld otherwise, and its address shown nowhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
import structlog
from tests.support.receiver import Receiver

from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import WATCHDOG_BEATS, WATCHDOG_PART_OK
from noonmark.watchdog.check_rounds import Check, CheckRounds
from noonmark.watchdog.heartbeat_loop import BeatLoop


@pytest.fixture
def outside() -> Iterator[Receiver]:
    outside = Receiver()
    yield outside
    outside.close()


class Watch:
    """A watchdog of two parts that a test makes ill."""

    def __init__(self, url: str) -> None:
        self.wrong = {"kafka": "", "trigger": ""}
        settings = Settings(watchdog_url=url)
        self.health = Health()
        service = Service("watchdog", settings, self.health, threading.Event(), get_logger())
        check = Check("check", ("kafka", "trigger"), lambda: dict(self.wrong), str)
        self.loop = BeatLoop(service, CheckRounds((check,), within_seconds=30), within_seconds=30)

    def close(self) -> None:
        stop = threading.Event()
        stop.set()
        self.loop.run(stop)


@pytest.fixture
def watch(outside: Receiver) -> Iterator[Watch]:
    watch = Watch(f"{outside.url}/s3cret")
    yield watch
    watch.close()


def count(result: str) -> float:
    value: float = WATCHDOG_BEATS.labels(result)._value.get()
    return value


def test_it_beats_while_all_parts_are_well_and_is_silent_while_one_is_not(watch, outside):
    assert watch.loop.run_once()
    watch.wrong["trigger"] = "stands still: password of nobody"
    withheld = count("withheld")

    assert not watch.loop.run_once()
    assert len(outside.got) == 1
    assert count("withheld") == withheld + 1
    assert WATCHDOG_PART_OK.labels("trigger")._value.get() == 0
    assert WATCHDOG_PART_OK.labels("kafka")._value.get() == 1
    alive, body = watch.health.ready()
    assert alive
    assert body["notes"] == {"kafka": "ok", "trigger": "stands still", "beat": "ok"}

    watch.wrong["trigger"] = ""
    assert watch.loop.run_once()
    assert len(outside.got) == 2


def test_each_trouble_is_logged_once_with_its_reason(watch):
    with structlog.testing.capture_logs() as logs:
        for wrong in ("", "stands still: 1", "stands still: 2", ""):
            watch.wrong["trigger"] = wrong
            watch.loop.run_once()

    assert [(one["event"], one.get("trigger")) for one in logs] == [
        ("beats_withheld", "stands still: 1"),
        ("beats_go_on", None),
    ]


def test_an_address_that_does_not_take_it_is_told_without_the_address(watch, outside, caplog):
    outside.status = 404
    failed = count("failed")

    with caplog.at_level(logging.DEBUG, logger="httpx"), structlog.testing.capture_logs() as logs:
        assert watch.loop.run_once()

    assert count("failed") == failed + 1
    assert logs[0]["reason"] == "answered 404"
    assert "s3cret" not in f"{logs} {watch.health.ready()}"


def test_without_an_address_it_only_shows(outside):
    watch = Watch("")
    none = count("no_url")

    assert watch.loop.run_once()

    assert count("no_url") == none + 1
    assert outside.got == []
    watch.close()
