"""Messages on the run topics that no dispatcher made: counted, kept, never executed; and keys that are rotated."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from tests.support.cli import Called
from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load

from noonmark.core.states import Lane
from noonmark.kafka.messages import QueuedRun, Signer, encode_run
from noonmark.store.cluster.pools import read_keys


def signer(noonmark: Cluster) -> Signer:
    keys = read_keys(noonmark.database, "default")
    return Signer({key.key_id: key.secret for key in keys}, keys[0].key_id)


def send(noonmark: Cluster, lane: Lane, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": noonmark.bootstrap})
    for value in values:
        producer.produce(noonmark.topics.runs("default", lane), value=value)
    assert producer.flush(20) == 0


def message(signs: Signer, **other: object) -> bytes:
    said = {
        "run_id": uuid4(),
        "job_id": uuid4(),
        "namespace": "forged",
        "pool": "default",
        "lane": Lane.NORMAL,
        "scheduled_for": datetime.now(UTC),
        "fence": 1,
        "job_version": 1,
    }
    known = {**said, **other}
    pool, lane = known.pop("pool"), known.pop("lane")
    return encode_run(signs, QueuedRun(**known), pool=pool, lane=lane)  # type: ignore[arg-type]


def test_nothing_that_is_forged_is_executed_and_all_of_it_is_counted_and_kept(noonmark: Cluster) -> None:
    *_, worker = noonmark.start("intake", "trigger", "worker")
    load = Load()
    load.now(1, priority="normal")
    noonmark.take_in(load)
    (run,) = noonmark.rows(
        "select id, job_id, scheduled_for, job_version from runs where namespace = %s", load.namespace
    )
    good = signer(noonmark)
    stranger = Signer({good.current: b"x" * 32}, good.current)
    true = {
        "run_id": run[0],
        "job_id": run[1],
        "scheduled_for": run[2],
        "job_version": run[3],
        "namespace": load.namespace,
    }
    altered = message(good, **true).replace(b'"fence":1', b'"fence":2')
    send(
        noonmark,
        Lane.NORMAL,
        b"no json",
        b'{"specversion":"1.0"}',
        b"x" * 70_000,
        message(stranger, **true),
        altered,
        message(Signer({"nobody": b"y" * 32}, "nobody"), **true),
        message(good, **{**true, "lane": Lane.LOW}),
        message(good, **{**true, "pool": "other"}),
        message(good, **{**true, "job_version": 7}),
        message(good),
    )
    kept = "select reason, count(*) from rejections where topic like %s group by 1"
    topic = noonmark.topics.runs("default", Lane.NORMAL)
    noonmark.wait(lambda: sum(dict(noonmark.rows(kept, topic)).values()) == 9, "the forged ones to be kept")

    assert dict(noonmark.rows(kept, topic)) == {
        "malformed": 2,
        "too_large": 1,
        "bad_signature": 2,
        "unknown_key": 1,
        "wrong_topic": 2,
        "mismatch": 1,
    }
    assert noonmark.value("select max(length(value)) from rejections") == 1024
    assert noonmark.calls(load.namespace) == []
    # Nothing of the run was executed; it is queued anew, and a message of its row starts it.
    state, fence, attempt = noonmark.rows("select state, fence, attempt from runs")[0]
    assert (state, fence, attempt) == ("queued", 2, 0)
    assert worker.metric("noonmark_message_rejected_total", reason="bad_signature") == 2
    noonmark.start("dispatcher")
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": 1}, "the run to run")
    assert len(noonmark.calls(load.namespace)) == 1
    # The message about a run that is not there started nothing, like every one that is replayed.
    before = worker.metric("noonmark_duplicate_messages_total", lane="normal")
    assert before >= 1
    send(noonmark, Lane.NORMAL, message(good, **{**true, "fence": 2}))
    duplicates = "noonmark_duplicate_messages_total"
    noonmark.wait(lambda: worker.metric(duplicates, lane="normal") == before + 1, "the replay to be counted")
    noonmark.wait(lambda: not noonmark.lag("runs"), "every offset to be committed")
    assert len(noonmark.calls(load.namespace)) == 1


@pytest.mark.slow
def test_a_flood_is_counted_and_only_its_beginning_is_kept(noonmark: Cluster) -> None:
    (worker,) = noonmark.start("worker")

    send(noonmark, Lane.LOW, *(b"forged %d" % number for number in range(3000)))

    rejected = "noonmark_message_rejected_total"
    noonmark.wait(lambda: worker.metric(rejected, reason="malformed") == 3000, "all to be counted")
    noonmark.wait(lambda: not noonmark.lag("low"), "every offset to be committed")
    assert 50 <= noonmark.value("select count(*) from rejections") <= 200


@pytest.mark.slow
def test_keys_are_rotated_under_load_and_nothing_is_lost(
    noonmark: Cluster, command: Callable[..., Called]
) -> None:
    noonmark.start(*SERVICES)
    old = read_keys(noonmark.database, "default")[0].key_id
    load = Load()
    with noonmark.standing_clock():
        load.once(400, noonmark.soon(2), spread_seconds=8)
        noonmark.take_in(load)

    noonmark.wait(lambda: noonmark.states(load.namespace).get("succeeded", 0) > 20, "the load to run")
    new = json.loads(command("pool", "rotate-key", "default", "--json").stdout)["key_id"]
    noonmark.wait(lambda: noonmark.states(load.namespace) == {"succeeded": 400}, "all to run", 60)

    assert noonmark.value("select count(*) from rejections") == 0
    assert noonmark.value("select max(fence) from runs") == 1
    keys = json.loads(command("pool", "keys", "default", "--json").stdout)["items"]
    assert [key["key_id"] for key in keys] == [new, old]
    assert "secret" not in json.dumps(keys)
    assert "is not an older valid key" in command("pool", "retire-key", "default", new, code=1).stderr
    command("pool", "retire-key", "default", old)
    assert [key.key_id for key in read_keys(noonmark.database, "default")] == [new]
    assert "pool 'nowhere' does not exist" in command("pool", "rotate-key", "nowhere", code=1).stderr
    noonmark.assert_clean(load)
