"""Live events of runs: who hears what, where a stream goes on, and when it ends."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from confluent_kafka import Producer
from tests.support.cluster import wait_until

from noonmark.api.routes.runs import events
from noonmark.auth.key_cache import KeyCache
from noonmark.core.states import Lane
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import PartitionCounts, Topics
from noonmark.schemas.events.settled import SettledRun, settled_event
from noonmark.settings import Settings

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

JOB, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture
def settings(emptied_database, kafka_server, topic_prefix, monkeypatch):
    monkeypatch.setenv("NOONMARK_DATABASE_URL", emptied_database)
    return Settings.load(
        api_connections=4,
        api_event_streams=3,
        kafka_bootstrap=kafka_server.bootstrap,
        topic_prefix=topic_prefix,
    )


@pytest.fixture
def tell(settings):
    """Publishes outcomes of runs of a namespace in one record: `tell("tests", (JOB, "dead"), …)`."""
    topics = Topics(settings.topic_prefix)
    specs = topics.base_specs(counts=PartitionCounts(lifecycle=2))
    config = KafkaConfig(settings.kafka_bootstrap, settings.topic_prefix)
    ensure_topics(config, [spec for spec in specs if spec.name == topics.lifecycle])
    producer = Producer(config.client())

    def publish(namespace, *outcomes):
        value = settled_event(namespace, [settled(namespace, *outcome) for outcome in outcomes])
        producer.produce(topics.lifecycle, value, key=namespace.encode())
        assert producer.flush(10) == 0

    return publish


def settled(namespace, job, state):
    now = datetime.now(UTC)
    return SettledRun(
        *(uuid4(), job, namespace, now, "schedule", state, None, 1, 1, "normal", "default", now, now),
        error="card 4711" if state == "dead" else None,
    )


class Stream:
    """Reads one stream, event by event."""

    def __init__(self, answer):
        self.answer = answer
        self.lines = answer.iter_lines()
        self.last_id = ""

    def next(self, wanted=("run", "end")):
        """The next event that is wanted, as its name and data; a comment counts as an event `:`."""
        name, data = "", None
        for line in self.lines:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "" and line:
                name, data = ":", value
            elif field == "id":
                self.last_id = value
            elif field == "event":
                name = value
            elif field == "data":
                data = json.loads(value)
            elif not line and name:
                if name in wanted:
                    return name, data
                name, data = "", None
        raise AssertionError("the stream is over")

    def comment(self, begin):
        """Wait for a comment."""
        while True:
            _, text = self.next((":",))
            if text.startswith(begin):
                return text


@pytest.fixture
def follow(server, token):
    admin = token()

    @contextmanager
    def opened(query="namespace=tests", *, key=None, after=None):
        headers = {"Authorization": f"Bearer {key or admin}"}
        if after is not None:
            headers["Last-Event-ID"] = after
        with server.stream("GET", f"/v1/events?{query}", headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield Stream(answer)

    return opened


def test_each_hears_what_it_asked_for_and_may_see_and_goes_on_where_it_broke(follow, tell, token, world):
    job = world.job()
    tell("tests", (JOB, "succeeded"))
    viewer = token("viewer", "tests")
    with follow() as all_of_it, follow(f"job={job}", key=viewer) as of_one:
        for stream in (all_of_it, of_one):
            stream.comment("following")
        # What was there before is history, and what others do is theirs.
        tell("elsewhere", (JOB, "succeeded"))
        tell("tests", (OTHER, "succeeded"), (job, "dead"))
        assert [all_of_it.next()[1]["state"] for _ in range(2)] == ["succeeded", "dead"]
        name, told = of_one.next()
        assert (name, told["job_id"], told["state"]) == ("run", str(job), "dead")
        assert (told["error"], told["error_hidden"]) == (None, True)
        place = all_of_it.last_id
    tell("tests", (OTHER, "discarded"))
    tell("elsewhere", (JOB, "dead"))
    tell("tests", (JOB, "cancelled"))

    with follow(after=place) as again:
        assert [again.next()[1]["state"] for _ in range(2)] == ["discarded", "cancelled"]


def test_a_place_that_is_not_kept_any_more_is_told(follow, tell, monkeypatch):
    from noonmark.api.backend import live_events  # noqa: PLC0415

    monkeypatch.setattr(live_events, "RESUMED_MOST", 1)
    for _ in range(3):
        tell("tests", (JOB, "dead"))
    with follow() as stream:
        stream.comment("following")
    with follow(after="0:0,1:0") as late:
        late.comment("gap")
        assert late.next()[1]["state"] == "dead"


@pytest.fixture
def forgetful(monkeypatch):
    """Keys are looked at again after a moment, and credentials of open streams, too."""
    monkeypatch.setitem(KeyCache.__init__.__kwdefaults__, "keep_seconds", 0.1)
    monkeypatch.setattr(events, "CHECK_SECONDS", 0.1)


def test_a_stream_ends_with_its_credential_and_with_the_server(
    forgetful, follow, tell, token, database, parts
):
    key = token("viewer", "tests")
    with follow(key=key) as theirs, follow() as ours:
        theirs.comment("following")
        database.execute("update api_keys set revoked_at = now() where key_id = %s", [key.split("_")[1]])
        assert theirs.next()[1]["reason"] == "revoked"
        parts.live.close()
        assert ours.next()[1]["reason"] == "shutdown"


def test_there_are_so_many_streams_and_no_more(follow, api, tell, token):
    with follow(), follow(), follow():
        problem = api("GET", "/v1/events?namespace=tests", 503)
        assert problem.headers["retry-after"] == "5"
    # Who left makes room.
    with follow():
        pass
    api("GET", "/v1/events?namespace=tests", 404, key=token("admin", "elsewhere"))
    api("GET", f"/v1/events?job={uuid4()}", 404)


def test_without_kafka_a_stream_says_so_and_stays_open(follow, parts, monkeypatch):
    config = KafkaConfig("127.0.0.1:1")
    monkeypatch.setattr(parts.live, "_config", config)
    monkeypatch.setattr("noonmark.api.backend.live_events._ASK_SECONDS", 0.2)
    with follow() as stream:
        stream.comment("Kafka does not respond")


def test_lanes_are_measured_in_messages_and_seconds(api, settings, database):
    topics = Topics(settings.topic_prefix)
    config = KafkaConfig(settings.kafka_bootstrap, settings.topic_prefix)
    counts = PartitionCounts(*[1] * 6)
    ensure_topics(config, topics.topic_specs(["default"], counts=counts))
    producer = Producer(config.client())
    producer.produce(topics.runs("default", Lane.HIGH), b"x")
    assert producer.flush(10) == 0

    def measured() -> dict[str, Any] | None:
        """All lanes; a broker that a busy machine keeps from answering within 2 s leaves some out, and says so."""
        answer = api("GET", "/v1/lanes", 200).json()
        return None if answer["failed"] else answer

    found = wait_until(measured, "every lane to be measured", 30)
    lanes = {(lane["pool"], lane["priority"]): lane for lane in found["items"] if lane["pool"]}
    assert set(lanes) == {("default", name) for name in ("high", "normal", "low")}
    assert lanes["default", "high"]["start_backlog"] == 1
    assert lanes["default", "high"]["start_backlog_seconds"] >= 0
    assert lanes["default", "low"]["start_backlog"] == 0
    assert {lane["topic"] for lane in found["items"] if lane["pool"] is None} == {
        topics.submissions,
        topics.submissions_bulk,
    }
    assert api("GET", "/v1/lanes?pool=other", 200).json()["items"] == []
