"""Alerts on their way to real receivers: in order, once where nothing dies, again under the same id where it does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.integration.store.world import World, open_world
from tests.support.deploy_tools import tool
from tests.support.receiver import Receiver

from noonmark.alerting.channels import channel_names, open_channels
from noonmark.core.ids import uuid7
from noonmark.core.monitoring.alerts import AlertKind, FoundAlert
from noonmark.observer.delivery_loop import DeliveryLoop, delivery_loops
from noonmark.receiver import verify
from noonmark.service.health import Health
from noonmark.service.runner import Service, StartError
from noonmark.settings import Settings
from noonmark.store.alerts import alerts, deliveries
from noonmark.store.maintenance import housekeeping
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.metrics import ALERT_DELIVERIES, ALERT_DELIVERIES_WAITING

pytestmark = pytest.mark.postgres

SECRET = "whsec_" + "A" * 43 + "="
SIDE = {"topic": "noonmark.alerts", "shards": 4}


class Desk:
    """An observer's channels, and the alerts that they are to tell."""

    def __init__(self, world: World, url: str, **settings: Any) -> None:
        self.world = world
        self.settings = Settings(database_url=url, **settings)
        self.loops: dict[str, DeliveryLoop] = {}
        for channel in open_channels(self.settings):
            self.loops[channel.name] = DeliveryLoop(self.service(), channel)

    def service(self) -> Service:
        return Service("observer", self.settings, Health(), threading.Event(), get_logger())

    def raised(self, fingerprint: str = "late:x", **found: Any) -> UUID:
        one = FoundAlert(AlertKind.LATE, fingerprint, "has not started", namespace="tests", **found)
        (row,) = alerts.raise_alerts(self.world.db, [one], channels=channel_names(self.settings), **SIDE)
        return row.id

    def resolved(self, fingerprint: str = "late:x") -> None:
        assert alerts.resolve_alerts(
            self.world.db, [fingerprint], channels=channel_names(self.settings), **SIDE
        )

    def tell(self, channel: str = "webhook") -> None:
        self.loops[channel].run_once(self.world.db)

    def let_pass(self, seconds: float) -> None:
        self.world.db.execute(
            "update alert_deliveries set due_at = due_at - make_interval(secs => %s)", [seconds]
        )

    def row(self, change: str = "raised") -> tuple[Any, ...]:
        """Attempts, last error, whether it was told, whether it is still to be told."""
        (row,) = self.world.rows(
            "select attempts, last_error, sent_at is not null as told, isfinite(due_at) as due"
            " from alert_deliveries where change = %s",
            change,
        )
        return tuple(row.values())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@contextmanager
def open_desk(url: str, **settings: Any) -> Iterator[Desk]:
    with open_world(url) as world:
        desk = Desk(world, url, **settings)
        yield desk
        for loop in desk.loops.values():
            loop.ending(world.db)


@pytest.fixture
def desk(emptied_database: str, receiver: Receiver) -> Iterator[Desk]:
    with open_desk(emptied_database, alert_webhook_url=receiver.url, alert_webhook_secret=SECRET) as desk:
        yield desk


def told(receiver: Receiver) -> list[str]:
    return [verify(headers, body, [SECRET]).id for headers, body in receiver.got]


def test_a_change_is_told_once_signed_and_its_end_after_its_beginning(desk, receiver):
    alert = desk.raised()
    desk.resolved()

    desk.tell()
    assert told(receiver) == [f"{alert}-raised"]
    desk.tell()
    desk.tell()

    assert told(receiver) == [f"{alert}-raised", f"{alert}-resolved"]
    assert desk.row("raised") == desk.row("resolved") == (1, None, True, False)


def test_what_a_dead_receiver_missed_it_hears_when_it_is_back(desk, receiver):
    alert = desk.raised()
    desk.resolved()
    receiver.close()

    desk.tell()
    attempts, error, sent, waits = desk.row()
    assert (attempts, sent, waits) == (1, False, True)
    assert "cannot be reached" in error
    assert ALERT_DELIVERIES_WAITING.labels("webhook")._value.get() == 2
    desk.tell()
    assert desk.row()[0] == 1, "it waits before it tries again"

    receiver.open()
    desk.let_pass(6)
    desk.tell()
    desk.tell()
    assert told(receiver) == [f"{alert}-raised", f"{alert}-resolved"]
    assert desk.row() == (2, None, True, False)


def test_what_is_refused_for_long_is_given_up_and_shown_and_holds_up_no_end(desk, receiver):
    alert = desk.raised()
    desk.resolved()
    receiver.status = 401
    desk.world.db.execute(
        "update alert_deliveries set attempts = %s where change = 'raised'", [deliveries.MOST_ATTEMPTS - 1]
    )
    before = ALERT_DELIVERIES.labels("webhook", "given_up")._value.get()

    desk.tell()
    assert desk.row() == (deliveries.MOST_ATTEMPTS, "answered 401", False, False)
    assert ALERT_DELIVERIES.labels("webhook", "given_up")._value.get() == before + 1
    receiver.status = 200
    desk.tell()

    assert told(receiver) == [f"{alert}-raised", f"{alert}-resolved"]
    assert desk.row("resolved") == (1, None, True, False)


def test_a_channel_that_is_turned_on_later_is_told_what_is_open(desk, receiver):
    one = FoundAlert(AlertKind.LATE, "late:x", "has not started", namespace="tests")
    (alert,) = alerts.raise_alerts(desk.world.db, [one], channels=(), **SIDE)
    desk.world.db.execute("update alerts set seen_at = seen_at - interval '1 minute'")

    for _ in range(2):
        assert alerts.raise_alerts(desk.world.db, [one], channels=("webhook",), **SIDE) == []
    desk.tell()
    desk.tell()

    assert told(receiver) == [f"{alert.id}-raised"]


@pytest.mark.parametrize(("ahead", "heard"), [(timedelta(minutes=14), 0), (timedelta(hours=1), 1)])
def test_what_was_put_off_by_a_clock_that_was_set_back_since_is_told(desk, receiver, ahead, heard):
    desk.raised()
    desk.world.db.execute("update alert_deliveries set due_at = noonmark_now() + %s", [ahead])

    desk.tell()

    assert len(told(receiver)) == heard


def test_an_alert_of_a_job_that_is_gone_keeps_the_name_of_the_job(desk, receiver):
    desk.raised(job_id=uuid7(), details={"job_name": "invoices"})

    desk.tell()

    ((_, body),) = receiver.got
    assert json.loads(body)["data"]["job_name"] == "invoices"


def test_several_observers_share_a_channel(desk):
    for n in range(20):
        desk.raised(f"late:{n}")
    other = desk.world.another()
    with desk.world.db.transaction():
        first = deliveries.claim(desk.world.db, "webhook", most=12, lease_seconds=60)
        second = deliveries.claim(other, "webhook", most=20, lease_seconds=60)

    assert (len(first), len(second)) == (12, 8)
    assert not {one.alert_id for one in first} & {one.alert_id for one in second}
    assert deliveries.claim(other, "webhook", most=20, lease_seconds=60) == []


def test_who_was_overtaken_notes_nothing(desk):
    desk.raised()
    (slow,) = deliveries.claim(desk.world.db, "webhook", most=9, lease_seconds=60)
    desk.let_pass(61)
    (quick,) = deliveries.claim(desk.world.db, "webhook", most=9, lease_seconds=60)

    late = deliveries.Failure(slow, "late", 1.0, give_up=True)
    assert deliveries.note_failed(desk.world.db, "webhook", [late]) == (0, 0)
    assert deliveries.note_sent(desk.world.db, "webhook", [slow], reminded=False) == 0
    assert deliveries.note_sent(desk.world.db, "webhook", [quick], reminded=False) == 1
    assert deliveries.note_sent(desk.world.db, "webhook", [quick], reminded=False) == 0


CHILD = """
import sys, threading, psycopg
from noonmark.core import faults
from noonmark.observer.delivery_loop import delivery_loops
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.telemetry.logs import get_logger
faults.arm("observer.after_tell=1")
service = Service("observer", Settings(), Health(), threading.Event(), get_logger())
delivery_loops(service)[0].run(service.stop)
"""


def test_one_that_dies_between_sending_and_noting_leads_to_the_same_id_again(desk, receiver):
    alert = desk.raised()
    environment = {
        "NOONMARK_DATABASE_URL": desk.settings.dsn,
        "NOONMARK_ALERT_WEBHOOK_URL": receiver.url,
        "NOONMARK_ALERT_WEBHOOK_SECRET": SECRET,
    }
    died = subprocess.run([sys.executable, "-c", CHILD], env={**os.environ, **environment}, check=False)
    assert died.returncode == -9
    assert told(receiver) == [f"{alert}-raised"]

    desk.tell()
    assert len(receiver.got) == 1, "it is the dead one's until its lease is over"
    desk.let_pass(91)
    desk.tell()

    assert told(receiver) == [f"{alert}-raised"] * 2
    assert desk.row() == (2, None, True, False)


def test_settings_that_cannot_work_keep_the_observer_from_starting(emptied_database, receiver):
    settings = Settings(database_url=emptied_database, alert_webhook_url=receiver.url)
    service = Service("observer", settings, Health(), threading.Event(), get_logger())

    with pytest.raises(StartError, match="NOONMARK_ALERT_WEBHOOK_SECRET"):
        delivery_loops(service)


def test_an_alert_that_is_long_over_goes_with_how_it_was_told_and_one_that_is_open_stays(desk):
    desk.raised("late:over")
    desk.raised("late:open")
    desk.resolved("late:over")
    desk.world.db.execute(
        "update alerts set raised_at = raised_at - interval '91 days', resolved_at = resolved_at - interval '91 days'"
    )

    housekeeping.run_housekeeping(desk.world.db, desk.settings)

    assert desk.world.column("select fingerprint from alerts") == ["late:open"]
    assert desk.world.column("select change from alert_deliveries") == ["raised"]


class Alertmanager:
    """A real one."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        config = folder / "alertmanager.yml"
        config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
        self._runs = 0
        self.start()

    def start(self) -> None:
        """Start with an empty memory."""
        self._runs += 1
        command = [
            tool("prometheus-alertmanager"),
            f"--config.file={self._folder / 'alertmanager.yml'}",
            f"--storage.path={self._folder / str(self._runs)}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
        ]
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self._answers, "Alertmanager does not answer")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def active(self) -> list[dict[str, Any]]:
        return self._get("/api/v2/alerts?active=true")

    def _answers(self) -> bool:
        try:
            self._get("/api/v2/status")
        except OSError:
            return False
        return True

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)


def until(holds: Callable[[], bool], why: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, why
        time.sleep(0.02)


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    alertmanager = Alertmanager(tmp_path)
    yield alertmanager
    alertmanager.stop()


def test_alertmanager_shows_what_is_open_and_is_reminded_and_told_the_end(emptied_database, alertmanager):
    with open_desk(emptied_database, alertmanager_url=alertmanager.url) as desk:
        world = desk.world
        job = world.job()
        world.db.execute("update jobs set name = 'invoices' where id = %s", [job])
        desk.raised("late:1", job_id=job)
        desk.raised("late:2")

        desk.tell("alertmanager")
        shown = alertmanager.active()
        assert {one["labels"].get("job") for one in shown} == {"invoices", None}
        assert {one["labels"]["alertname"] for one in shown} == {"NoonmarkLate"}

        # It lost its memory; the next reminder gives it back.
        alertmanager.stop()
        desk.let_pass(61)
        desk.tell("alertmanager")
        alertmanager.start()
        assert alertmanager.active() == []
        desk.let_pass(61)
        desk.tell("alertmanager")
        assert len(alertmanager.active()) == 2

        desk.resolved("late:1")
        desk.tell("alertmanager")
        desk.let_pass(61)
        desk.tell("alertmanager")
        (left,) = alertmanager.active()
        assert "job" not in left["labels"]
        assert world.value("select count(*) from alert_deliveries where isfinite(due_at)") == 1


def test_alertmanager_does_not_hear_that_one_is_over_while_the_next_of_its_labels_is_open(
    emptied_database, receiver
):
    with open_desk(emptied_database, alertmanager_url=receiver.url) as desk:
        desk.raised()
        desk.tell("alertmanager")
        desk.resolved()
        desk.raised()

        desk.tell("alertmanager")

        ends = [json.loads(body)[0]["endsAt"] for _, body in receiver.got]
        assert len(ends) == 2
        assert ends == sorted(ends)
        assert min(ends) > f"{desk.world.now():%Y-%m-%dT%H:%M:%S}"
