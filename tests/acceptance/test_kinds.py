"""gRPC and Kafka jobs, and events of handlers, from submission to effect, by real processes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer
from tests.support.cluster import Cluster
from tests.support.grpc_server import METHOD, GrpcServer, descriptor_set, echo
from tests.support.publish import Load

from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import TopicSpec


def topic(noonmark: Cluster, name: str) -> str:
    full = f"{noonmark.prefix}x.{name}"
    ensure_topics(KafkaConfig(noonmark.bootstrap), [TopicSpec(full, 1, 1)])
    return full


def everything(noonmark: Cluster, name: str) -> list[Any]:
    """All messages of a topic, once there is nothing left in the outbox."""
    noonmark.wait(
        lambda: noonmark.value("select count(*) from outbox where lane < 4") == 0, "the outbox to go out"
    )
    consumer = Consumer(
        {
            "bootstrap.servers": noonmark.bootstrap,
            "group.id": f"{name}.test",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([name])
    messages: list[Any] = []
    try:
        for _ in range(300):
            message = consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                break
            messages.append(message)
    finally:
        consumer.close()
    return messages


@contextmanager
def grpc_server() -> Iterator[GrpcServer]:
    """The server, on a loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> GrpcServer:
        return await GrpcServer(echo).__aenter__()

    server = asyncio.run_coroutine_threadsafe(begin(), loop).result(30)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def test_each_kind_does_what_its_job_says(noonmark: Cluster) -> None:
    invoices, mine = topic(noonmark, "invoices"), topic(noonmark, "mine")
    worker = noonmark.launch(
        "worker", http_allow_networks="127.0.0.0/8", emit_topics=f"{invoices},{noonmark.prefix}x.m*"
    )
    noonmark.start("intake", "trigger", "dispatcher")
    noonmark.await_ready(worker)
    load = Load()
    with grpc_server() as server:
        call = {
            "target": f"grpc://127.0.0.1:{server.port}",
            "method": METHOD,
            "descriptor_set": descriptor_set(),
        }
        load.now(1, None, type="grpc", payload={**call, "message": {"userId": 42}})  # type: ignore[arg-type]
        load.now(3, None, type="kafka", payload={"topic": invoices, "key": "k", "value": {"id": 1}})  # type: ignore[arg-type]
        load.now(1, None, ends=("dead",), type="kafka", payload={"topic": "unlisted", "value": 1})  # type: ignore[arg-type]
        load.now(2, "chaos.emit", payload={"topic": mine, "count": 5, "fails": 1}, retry_delay_seconds=0.1)
        load.now(
            1, "chaos.emit", ends=("dead",), payload={"topic": mine, "count": 5, "fails": 9}, max_retries=0
        )
        noonmark.publish(load)
        noonmark.settle(load)
    states = dict(noonmark.rows("select state, count(*) from runs group by 1"))
    assert states == {"succeeded": 6, "dead": 2}, noonmark.rows("select state, error from runs")

    results = [row[0] for row in noonmark.rows("select result from runs where state = 'succeeded'")]
    assert {"status": "OK", "answer": {"userId": 42}} in results
    assert len(server.calls) == 1
    assert "webhook-signature" in server.calls[0]
    errors = [row[0] for row in noonmark.rows("select error from runs where state = 'dead'")]
    assert any("NOONMARK_EMIT_TOPICS does not list it" in error for error in errors)

    sent = everything(noonmark, invoices)
    assert [(m.key(), json.loads(m.value())) for m in sent] == [(b"k", {"id": 1})] * 3
    runs = {str(row[0]) for row in noonmark.rows("select id from runs")}
    assert {dict(m.headers())["noonmark-run-id"].decode() for m in sent} < runs
    emitted = everything(noonmark, mine)
    # Of the attempts that failed nothing was sent; of each run that succeeded its events, in order.
    assert {json.loads(m.value())["attempt"] for m in emitted} == {2}
    by_run: dict[str, list[int]] = {}
    for message in emitted:
        run = dict(message.headers())["noonmark-run-id"].decode()
        by_run.setdefault(run, []).append(json.loads(message.value())["n"])
    assert list(by_run.values()) == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "point", ["worker.before_outcome", "worker.after_outcome", "dispatcher.after_produce"]
)
def test_events_come_once_per_run_or_again_under_the_same_id(noonmark: Cluster, point: str) -> None:
    mine = topic(noonmark, "mine")
    service = point.partition(".")[0]
    noonmark.start("intake", "trigger", *({"dispatcher", "worker"} - {service}), emit_topics=mine)
    victim = noonmark.start(service, fault=f"{point}=1", emit_topics=mine)[0]
    load = Load()
    load.now(20, "chaos.emit", payload={"topic": mine, "count": 3})
    noonmark.publish(load)
    noonmark.wait(lambda: victim.process.poll() is not None, "the fault to strike")
    noonmark.start(service, emit_topics=mine)
    noonmark.settle(load)

    ids = [dict(message.headers())["ce_id"].decode() for message in everything(noonmark, mine)]
    runs = [str(row[0]) for row in noonmark.rows("select id from runs where state = 'succeeded'")]
    assert len(runs) == 20
    assert set(ids) == {f"{run}/{number}" for run in runs for number in range(3)}
    if service == "worker":
        assert len(ids) == 60
