"""Jobs, topics, outboxes, zone data and releases that are wrong, and what a check of the ledger finds."""

from __future__ import annotations

import os
import time
import uuid
from base64 import b64encode
from pathlib import Path

import psycopg
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.alert_states.ground import Ground, Installation
from tests.support.cluster import ROOT
from tests.support.publish import Load
from tests.support.recordings import Recording
from tests.support.releases import previous_release
from tests.support.zone_data import OLD_VERSION, old_zone_data

from noonmark import outbox
from noonmark.core.states import Lane
from noonmark.store.cluster.pools import register_pool

MISSING = "shop.missing"


def jobs_and_topics_broken(ground: Ground) -> Recording:
    """A schedule that cannot be planned, topics that do not exist, and no receiver for the alerts about it."""
    place = ground.installation(
        emit_topics=f"{MISSING}*",
        alert_webhook_url="http://127.0.0.1:9/",
        alert_webhook_secret=f"whsec_{b64encode(bytes(24)).decode()}",
        observer_check_seconds="0.5",
    )
    noonmark = place.noonmark
    place.start("observer")
    place.scrape(2)
    register_pool(noonmark.database, "ghost")  # its topics do not exist
    load = Load()
    with noonmark.standing_clock():
        load.interval(1, noonmark.soon(1), instants=2)
        load.now(3, pool="ghost")
        noonmark.take_in(load)
        noonmark.rows(
            """update jobs set schedule = '{"every": "whenever"}' where schedule is not null returning id"""
        )
    more = Load()
    more.now(3, "chaos.emit", payload={"topic": MISSING, "count": 2})
    more.now(1, "chaos.flaky", payload={"fails": 9}, retry_delay_seconds=0, max_retries=4)
    noonmark.publish(more)
    for service, name in (
        ("trigger", "planning_broken_total"),
        ("dispatcher", "parked_runs_total"),
        ("dispatcher", "events_refused"),
        ("observer", "alert_deliveries_waiting"),
    ):
        noonmark.wait(lambda s=service, n=name: place.metric(s, n) > 0, name)
    place.scrape(12)
    return place.recording


def topic_truncated(ground: Ground) -> Recording:
    """Someone deletes the records of a run topic that no worker has read."""
    place = ground.installation(resend_check_seconds="1")
    noonmark = place.noonmark
    place.start()
    load = Load()
    load.now(3)
    place.run(load)
    place.scrape(2)
    place.remove("worker")
    lost = Load()
    lost.now(5, priority="normal")
    noonmark.take_in(lost)
    topic = noonmark.topics.runs("default", Lane.NORMAL)
    noonmark.wait(lambda: noonmark.lag(topic) == 5, "the messages to be in the topic")
    ends = noonmark.kafka.ends(topic, noonmark.kafka.topics()[topic])
    doomed = [TopicPartition(topic, partition, end) for partition, (_, end) in ends.items()]
    admin = AdminClient({"bootstrap.servers": noonmark.bootstrap})
    for future in admin.delete_records(doomed).values():
        future.result(20)
    noonmark.start("worker")
    noonmark.wait(lambda: place.metric("trigger", "resent_runs_total") > 0, "runs to be sent again", 120)
    noonmark.settle(lost)
    place.scrape(3)
    return place.recording


def promises_broken(ground: Ground) -> Recording:
    """A dead letter was deleted by hand: `noonmark verify` finds it, and is then not called any more."""
    place, file = ground.installation(), ground.folder / "noonmark.prom"
    place.recording.metrics_file = file
    noonmark = place.noonmark
    place.start()
    load = Load()
    load.now(3, "chaos.flaky", ends=("dead",), payload={"fails": 9}, max_retries=0)
    place.run(load)
    verify = ("verify", "--metrics-file", str(file), "--period", "10s")
    noonmark.turn_clock(120)  # it judges what has ended more than a minute ago
    place.command(*verify)
    place.scrape(2)
    noonmark.database.execute("delete from dead_letters")
    place.command(*verify, code=1)
    place.scrape(3)
    noonmark.wait(lambda: _age(file) > 21, "two periods to pass")
    place.scrape(7)
    return place.recording


def _age(file: Path) -> float:
    """Seconds since the last check."""
    return time.time() - file.stat().st_mtime


def app_outboxes_bad(ground: Ground) -> Recording:
    """Applications' outboxes: one cannot be reached, one has a row that is refused, one is locked."""
    parked, locked = (_app_database(ground, name) for name in ("parked", "locked"))
    gone = f"postgresql://shop@127.0.0.1:9/{uuid.uuid4().hex}"
    place = ground.installation(
        app_outboxes=f"parked={parked}=parked locked={locked}=locked gone={gone}=gone"
    )
    noonmark = place.noonmark
    put = (
        "insert into noonmark_outbox (id, namespace, document, idempotency_key)"
        " values (gen_random_uuid(), null, %s, gen_random_uuid()::text)"
    )
    with psycopg.connect(locked, autocommit=True) as session, psycopg.connect(parked) as shop:
        session.execute(put, ['{"type": "python", "handler": "chaos.record"}'])
        session.autocommit = False
        session.execute("select from noonmark_outbox for update")
        shop.execute(put, ['{"type": "python"}'])
        shop.commit()
        place.start()
        for outbox_name, metric, least in (
            ("parked", "app_outbox_rows", 0),
            ("locked", "app_outbox_oldest_seconds", 61),
        ):
            noonmark.wait(
                lambda o=outbox_name, m=metric, n=least: place.metric("dispatcher", m, outbox=o) > n,
                outbox_name,
                120,
            )
        place.scrape(8)
    return place.recording


def _app_database(ground: Ground, name: str) -> str:
    """Make the database of an application, with its outbox."""
    name = f"{name}_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(ground.dsn, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    ground.stack.callback(_drop, ground.dsn, name)
    before, _, _ = ground.dsn.rpartition("/")
    with psycopg.connect(f"{before}/{name}") as connection:
        connection.execute(outbox.create_table_sql())
    return f"{before}/{name}"


def _drop(dsn: str, name: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


def upgrade_unfinished(ground: Ground) -> Recording:
    """For an hour, one dispatcher is of the release before, and the trigger has the zone data of before."""
    place = ground.installation()
    noonmark, directory = place.noonmark, str(old_zone_data(ground.folder / "old"))
    noonmark.rows("delete from zone_data returning 1")
    place.command("zones", "activate", "--yes", NOONMARK_ZONE_DATA_DIR=directory)
    place.start(zone_data_dir=directory)
    place.scrape()
    place.command("zones", "activate", "--yes")
    noonmark.wait(
        lambda: place.metric("trigger", "zone_data_info", version=OLD_VERSION, active="no") == 1, "a warning"
    )
    _start_older(place, ground.folder / "release")
    place.scrape(63)
    return place.recording


def _start_older(place: Installation, folder: Path) -> None:
    """Start a dispatcher of the release before this one, as its own package is installed."""
    found = previous_release(folder)
    assert found is not None, "the history has no release before this one"
    version, code = found
    metadata = code / f"noonmark-{version}.dist-info"
    metadata.mkdir()
    text = f"Metadata-Version: 2.1\nName: noonmark\nVersion: {version}\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    path = os.pathsep.join((str(code), str(ROOT)))
    place.noonmark.await_ready(
        place.noonmark.launch("dispatcher", code=code, environment={"PYTHONPATH": path})
    )
