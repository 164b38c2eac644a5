"""Postgres and Kafka that are gone, slow, or cannot be reached by one service."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import psutil
from tests.support.alert_states.ground import Ground
from tests.support.keys import make_token
from tests.support.node import Node
from tests.support.proxy import Toxic
from tests.support.publish import Load, soon
from tests.support.recordings import Recording

REQUESTS = 6
STALLED_SECONDS = 185.0
HOURS = 9
SLOW_SECONDS = 0.6
"""Of each way to Postgres."""


def _ask(api: Node, token: str) -> list[int]:
    """Ask the API for jobs, several times at once; return the answers' statuses."""

    def ask(_: int) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(f"{api.api_url}/v1/jobs", headers=headers, timeout=90).status_code

    with ThreadPoolExecutor(REQUESTS) as threads:
        return list(threads.map(ask, range(REQUESTS)))


def postgres_stopped(ground: Ground) -> Recording:
    """Postgres dies, and does not come back."""
    server = ground.postgres()
    place = ground.installation(dsn=server.url)
    noonmark = place.noonmark
    place.start()
    (api,) = noonmark.start("api", api_port="0")
    noonmark.start("watchdog", watchdog_seconds="1", watchdog_stale_seconds="10")
    token = make_token(noonmark.database)
    assert set(_ask(api, token)) == {200}
    place.scrape(2)
    server.kill()
    noonmark.wait(lambda: place.metric("worker", "heartbeat_age_seconds") > 21, "an old heartbeat")
    for _ in range(12):
        # Two rounds: the alert wants more than six requests in what counts as a minute.
        assert all(status >= 500 for status in _ask(api, token) + _ask(api, token))
        place.scrape()
    return place.recording


def postgres_hangs(ground: Ground) -> Recording:
    """Postgres keeps its connections and does not answer, as on a host whose disk hangs."""
    server = ground.postgres()
    place = ground.installation(dsn=server.url)
    noonmark = place.noonmark
    place.start()
    noonmark.start("watchdog", watchdog_seconds="1", watchdog_stale_seconds="10")
    place.scrape(2)
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    for process in family:
        process.suspend()
        ground.stack.callback(_resume, process)
    stalled_at = time.monotonic()
    noonmark.wait(lambda: time.monotonic() - stalled_at > STALLED_SECONDS, "loops to stall", 300)
    place.scrape(8)
    return place.recording


def _resume(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.resume()


def postgres_slow(ground: Ground) -> Recording:
    """Trigger and API wait long for each answer of Postgres."""
    proxy, slow = ground.proxy()
    place = ground.installation(owner_timeout_seconds="60")
    noonmark = place.noonmark
    for service in ("trigger", "api"):
        noonmark.of_service[service] = {"NOONMARK_DATABASE_URL": slow}
    place.start()
    (api,) = noonmark.start("api", api_port="0")
    token = make_token(noonmark.database)
    load = Load()
    load.interval(3, soon(1), 1000, priority="low")
    noonmark.take_in(load)
    place.scrape(2)
    proxy.set(Toxic(latency=SLOW_SECONDS))
    for _ in range(14):
        claims = place.metric("trigger", "claim_seconds_count")
        found = _ask(api, token)
        assert set(found) == {200}, found
        noonmark.wait(
            lambda claims=claims: place.metric("trigger", "claim_seconds_count") > claims, "a claim", 120
        )
        place.scrape()
    proxy.heal()
    return place.recording


def kafka_stopped(ground: Ground) -> Recording:
    """Kafka stands still; due work is claimed until the outbox is old, and a backfill fills it."""
    server = ground.kafka()
    place = ground.installation(
        bootstrap=server.bootstrap,
        backfill_runs_per_second="5000",
        backfill_unfinished_limit="10000",
        outbox_age_limit_seconds="60",
    )
    noonmark = place.noonmark
    place.start()
    noonmark.start("watchdog", watchdog_seconds="1", watchdog_stale_seconds="30")
    load = Load()
    load.interval(6, soon(1), 600)
    every_second = {"every": 1, "start": soon(-HOURS * 3600).isoformat()}
    filling = load._job(
        {"type": "python", "handler": "chaos.record", "schedule": every_second, "overlap": "allow"}, 1
    )
    noonmark.take_in(load)
    noonmark.wait(lambda: noonmark.calls(load.namespace), "runs")
    place.scrape(2)
    os.kill(server.pid, signal.SIGSTOP)
    ground.stack.callback(os.kill, server.pid, signal.SIGCONT)
    for hours in range(0, HOURS, 3):
        since = soon(-HOURS * 3600 + hours * 3600 + 60)
        place.command(
            *("backfill", "start", filling.name, "--namespace", load.namespace, "--yes"),
            *("--from", since.isoformat(), "--until", (since + timedelta(hours=2.7)).isoformat()),
        )
    noonmark.wait(
        lambda: place.metric("trigger", "due_oldest_seconds", lane="low") > 62, "due timers to wait", 240
    )
    place.scrape(8)
    return place.recording


def owners_cut_off(ground: Ground) -> Recording:
    """Trigger and dispatcher cannot reach Postgres, the others can; later they can again."""
    proxy, reachable = ground.proxy()
    place = ground.installation()
    noonmark = place.noonmark
    for service in ("trigger", "dispatcher"):
        noonmark.of_service[service] = {"NOONMARK_DATABASE_URL": reachable}
    place.start()
    skip = {"policy": "skip", "grace_seconds": 1}
    load = Load()
    load.interval(3, soon(1), 3600, misfire=skip)
    noonmark.take_in(load)
    noonmark.wait(lambda: noonmark.calls(load.namespace), "runs")
    place.scrape(2)
    proxy.set(Toxic(down=True))
    noonmark.wait(
        lambda: place.metric("trigger", "owned_shards") + place.metric("dispatcher", "owned_shards") == 0,
        "the owners to lose what they own",
    )
    place.scrape(5)
    due = "select noonmark_now() - min(fire_at) > interval '10 seconds' from timers"
    noonmark.wait(lambda: noonmark.value(due), "instants to be missed")
    proxy.heal()
    noonmark.wait(lambda: place.metric("trigger", "skipped_total", reason="misfired") > 10, "skips")
    place.scrape(3)
    return place.recording
