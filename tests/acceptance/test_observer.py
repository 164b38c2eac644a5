"""The observer as a process, on a real topic: killed, started anew, rebuilt; every kind of alert, raised and resolved."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.store.world import World, open_world
from tests.support.cluster import Cluster
from tests.support.node import Node
from tests.support.releases import previous_release

from noonmark.core.ids import uuid7
from noonmark.core.monitoring.recent import Rates
from noonmark.core.states import TimerKind
from noonmark.schemas.events.settled import SettledRun, settled_event
from noonmark.store.alerts import statistics

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.slow]

ERROR = "ValueError: no such customer: 17"
NEXT_OFFSET = "select coalesce(max(next_offset), 0) from observer_offsets"
QUICK = {"observer_check_seconds": "0.2", "alert_hold_seconds": "0"}


@pytest.fixture
def world(noonmark: Cluster) -> Iterator[World]:
    with open_world(noonmark.dsn) as opened:
        yield opened


@pytest.fixture
def tell(noonmark: Cluster) -> Callable[..., None]:
    """Sends outcomes of runs to the topic, as the dispatcher does."""
    producer = Producer({"bootstrap.servers": noonmark.bootstrap})

    def send(*events: list[SettledRun]) -> None:
        for runs in events:
            value = settled_event("tests", runs)
            producer.produce(noonmark.topics.lifecycle, key=b"tests", value=value)
            producer.poll(0)
        assert producer.flush(20) == 0

    return send


def settled(
    job_id: UUID, state: str = "succeeded", *, took: float = 1.0, at: datetime | None = None
) -> SettledRun:
    at = at or datetime.now(UTC)
    return SettledRun(
        uuid7(), job_id, "tests", at, "schedule", state, None, 1, 1, "normal", "default",
        at - timedelta(seconds=took), at, None if state == "succeeded" else ERROR,
    )  # fmt: skip


def counted(cluster: Cluster) -> dict[UUID, Rates]:
    """The outcomes of the last hour by job."""
    jobs = [job for (job,) in cluster.rows("select job_id from job_stats")]
    return statistics.rates(cluster.database, jobs)


def made(cluster: Cluster) -> tuple[list[Any], dict[UUID, Rates]]:
    """All that was made of outcomes."""
    return cluster.rows(f"select {_FIGURES} from job_stats order by job_id"), counted(cluster)


_FIGURES = (
    "job_id, namespace, kind, runs, usual_seconds, failures, failure_cause, last_error, last_run_id, last_failure_at,"
    " last_success_at"
)


def changes(cluster: Cluster) -> Counter[tuple[str, str]]:
    """Kind and change of every event in the topic of alerts."""
    found: Counter[tuple[str, str]] = Counter()
    for record in cluster.kafka.read({cluster.topics.alerts: 1}):
        event = json.loads(record.value())
        found[event["data"]["kind"], event["type"].split(".")[2]] += 1
    return found


def read_to(cluster: Cluster, end: int) -> None:
    cluster.wait(lambda: cluster.value(NEXT_OFFSET) >= end, f"{end} records to be read", 90)


def test_killed_in_the_middle_and_started_again_it_comes_to_the_same_as_one_that_was_not(
    noonmark: Cluster, world: World, tell: Callable[..., None]
):
    chance = random.Random(3)
    jobs = [world.job(recurring=True) for _ in range(5)]
    began = datetime.now(UTC) - timedelta(minutes=15)
    outcomes = [
        settled(
            chance.choice(jobs),
            chance.choice(["succeeded", "retrying", "dead"]),
            took=chance.random() * 20,
            at=began + timedelta(seconds=n / 10),
        )
        for n in range(6000)
    ]
    tell(*([one] for one in outcomes))

    for fault in ("observer.before_commit=2", "observer.after_commit=2"):
        node = noonmark.launch("observer", fault=fault, **QUICK)
        noonmark.wait(lambda node=node: not node.alive, f"{node.name} to die of its fault", 90)
    assert 0 < noonmark.value(NEXT_OFFSET) < len(outcomes)
    survivor = _reads_on(noonmark, NEXT_OFFSET)
    read_to(noonmark, len(outcomes))
    survived = made(noonmark)

    expected = {job: Counter(one.state for one in outcomes if one.job_id == job) for job in jobs}
    assert {job: (one.succeeded, one.failed, one.dead) for job, one in counted(noonmark).items()} == {
        job: (tally["succeeded"], tally["retrying"] + tally["dead"], tally["dead"])
        for job, tally in expected.items()
    }
    assert survivor.stop() == 0
    noonmark.database.execute("delete from job_stats where job_id = %s", [jobs[0]])
    rebuilt = noonmark.launch("observer", "--rebuild", **QUICK)
    noonmark.wait(lambda: rebuilt.logged("partitions_placed"), "the partitions", 60)
    read_to(noonmark, len(outcomes))
    assert made(noonmark) == survived


def _reads_on(cluster: Cluster, place: str) -> Node:
    """Kill one more from outside, with whatever it is doing; return the one that follows."""
    before = cluster.value(place)
    node = cluster.launch("observer", **QUICK)
    cluster.wait(lambda: cluster.value(place) > before, "another batch", 90)
    node.kill()
    (follower,) = cluster.start("observer", **QUICK)
    return follower


def test_each_kind_of_alert_is_raised_once_and_resolved(
    noonmark: Cluster, world: World, tell: Callable[..., None]
):
    """Runs and timers stand as a dead trigger, worker or job would leave them; topic, observer and relay are real."""
    noonmark.start("dispatcher")
    (first,) = noonmark.start("observer", **_ALL_KINDS)
    job, failing = world.job(recurring=True), world.job(recurring=True)
    tell([settled(job) for _ in range(6)], [settled(failing, "retrying") for _ in range(3)])
    lost = world.worker()
    stuck = world.started(lost, 2, job_id=world.job())
    (long,) = world.started(world.worker(), job_id=job)
    _let_them_be_old(world)
    late = world.put_run(job_id=world.job(recurring=True))
    dead = world.put_run("dead", job_id=world.job())
    world.db.execute(
        "insert into dead_letters (run_id, scheduled_for, job_id, namespace, attempts, reason, error, fingerprint, died_at)"
        " select id, scheduled_for, job_id, namespace, 1, 'x', %s, 'f', noonmark_now() from runs where id = %s",
        [ERROR, dead],
    )
    world.timer(world.job(recurring=True), world.now() - timedelta(seconds=60), kind=TimerKind.PLANNED)

    kinds = {"runaway", "late", "stuck", "failing", "dead", "silent"}
    noonmark.wait(lambda: _open(world) == kinds, "every kind of alert", 60)
    noonmark.wait(lambda: {kind for kind, _ in changes(noonmark)} == kinds, "every kind in the topic", 30)
    first.kill()
    (second,) = noonmark.start("observer", **_ALL_KINDS)
    _heal(world, late, stuck, long)
    tell([settled(job), settled(failing)])

    noonmark.wait(lambda: _open(world) == set(), "every alert to be over", 60)
    raised = Counter(world.column("select kind from alerts"))
    expected = Counter(
        {(kind, change): count for kind, count in raised.items() for change in ("raised", "resolved")}
    )
    noonmark.wait(lambda: changes(noonmark) == expected, "every change in the topic", 30)
    assert set(raised) == kinds
    # Late are the run of one job and the instant of another; everything else is one thing that is wrong.
    assert raised == Counter({**dict.fromkeys(kinds, 1), "late": 2})
    assert second.stop() == 0


_ALL_KINDS = {
    **QUICK,
    "late_after_seconds": "1",
    # Silence of a few seconds can come twice on a busy machine.
    "silent_after_seconds": "30",
    "stuck_runs": "1",
    "stuck_after_seconds": "5",
    "runaway_min_seconds": "1",
}


def _let_them_be_old(world: World) -> None:
    """Workers that fell silent a minute ago, with the runs that they began before."""
    world.db.execute("update workers set beat_at = beat_at - interval '1 minute'")
    world.db.execute("update start_batches set started_at = started_at - interval '1 minute'")
    world.db.execute("update runs set started_at = started_at - interval '1 minute' where state = 'running'")


def _heal(world: World, late: UUID, stuck: Any, long: Any) -> None:
    world.db.execute("update workers set beat_at = noonmark_now() + interval '1 hour'")
    world.db.execute("delete from timers")
    world.db.execute("delete from dead_letters")
    ended = [late, long.id, *(run.id for run in stuck)]
    world.db.execute(
        "update runs set state = 'succeeded', started_at = noonmark_now(), finished_at = noonmark_now() where id = any (%s)",
        [ended],
    )


def _open(world: World) -> set[str]:
    return set(world.column("select kind from alerts where resolved_at is null"))


def test_two_observers_share_the_partitions_and_one_goes_on_alone(
    noonmark: Cluster, world: World, tell: Callable[..., None]
):
    job = world.job(recurring=True)
    one, other = noonmark.start("observer", "observer")
    tell([settled(job)], [settled(job)])
    read_to(noonmark, 2)

    assert one.stop() == 0
    tell([settled(job)])
    read_to(noonmark, 3)

    assert counted(noonmark)[job].succeeded == 3
    assert other.stop() == 0


def test_an_observer_of_the_previous_release_leaves_the_figures_right(
    noonmark: Cluster, world: World, tell: Callable[..., None], tmp_path: Path
):
    """As during an upgrade and after going back: of the last hour, each release counts what it has read itself."""
    found = previous_release(tmp_path / "release")
    if found is None:
        pytest.skip("the history of this checkout does not reach back to the previous release")
    job = world.job(recurring=True)
    for told, code in enumerate([None, found[1], None], 1):
        (node,) = noonmark.start("observer", code=code, **QUICK)
        tell([settled(job)])
        read_to(noonmark, told)
        assert node.stop() == 0

    assert noonmark.value("select runs from job_stats where job_id = %s", job) == 3
    assert 2 <= counted(noonmark)[job].succeeded <= 3


def test_it_reads_past_what_is_no_event_what_has_expired_and_a_topic_made_anew(
    noonmark: Cluster, world: World, tell: Callable[..., None]
):
    topic = noonmark.topics.lifecycle
    job = world.job(recurring=True)
    admin = AdminClient({"bootstrap.servers": noonmark.bootstrap})
    (observer,) = noonmark.start("observer", **QUICK)
    strange = json.loads(settled_event("tests", [settled(job)]))
    strange["data"]["outcomes"][0] |= {"started_at": "0001-01-01T00:00:00+14:00", "namespace": "a\0b"}
    producer = Producer({"bootstrap.servers": noonmark.bootstrap})
    for value in (None, b"\xff", b"x" * 900_000, json.dumps(strange).encode()):
        producer.produce(topic, value=value)
    assert producer.flush(20) == 0
    tell([settled(job)])
    read_to(noonmark, 5)

    observer.kill()
    tell([settled(job)], [settled(job)])
    admin.delete_records([TopicPartition(topic, 0, 6)])[TopicPartition(topic, 0)].result()
    (observer,) = noonmark.start("observer", **QUICK)
    read_to(noonmark, 7)
    assert observer.logged("records_missing")
    assert counted(noonmark)[job].succeeded == 2

    admin.delete_topics([topic])[topic].result()
    noonmark.wait(lambda: observer.logged("stream_crashed"), "the observer to miss its topic", 60)
    noonmark.wait(lambda: not observer.ready(), "the observer to say that it is not ready")
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    tell([settled(job)])

    noonmark.wait(lambda: counted(noonmark)[job].succeeded == 3, "the topic made anew", 60)
    noonmark.wait(observer.ready, "the observer to be ready again")
