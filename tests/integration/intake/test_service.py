"""The service as a process: real Kafka in, real Postgres out, killed and cut off on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer
from psycopg.rows import dict_row
from tests.support.commits import Commits
from tests.support.stack import Kafka, Postgres

from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import PartitionCounts, Topics
from noonmark.schemas.envelope import STRUCTURED_HEADERS, render_binary, render_structured
from noonmark.schemas.submissions import CREATE

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

LATER = "2100-01-01T00:00:00Z"


class Line:
    """Topics of one test, a producer before them and a database behind them."""

    def __init__(self, bootstrap: str, prefix: str, url: str, env: dict[str, str], folder: Path) -> None:
        self.topics = Topics(prefix)
        self.url = url
        self.env = env
        self.folder = folder
        self.starts = 0
        counts = PartitionCounts(submissions=2, submissions_bulk=1)
        ensure_topics(KafkaConfig(bootstrap), self.topics.base_specs(counts=counts))
        self.commits = Commits(bootstrap)
        self.producer = Producer({"bootstrap.servers": bootstrap})

    def publish(
        self, value: bytes | None, headers: Any = None, *, bulk: bool = False, key: bytes = b"k"
    ) -> None:
        topic = self.topics.submissions_bulk if bulk else self.topics.submissions
        self.producer.produce(topic, value, key, headers=headers)

    def submit(self, event_id: str, *, bulk: bool = False, **data: Any) -> None:
        document = {"type": "python", "handler": "tests.noop", "name": event_id, "run_at": LATER, **data}
        value = render_structured(id=event_id, source="/tests", type=CREATE, data=document)
        self.publish(value, STRUCTURED_HEADERS, bulk=bulk, key=event_id.encode())

    def flush(self) -> None:
        assert self.producer.flush(30) == 0

    @contextmanager
    def intake(self, **env: str) -> Iterator[subprocess.Popen[bytes]]:
        self.starts += 1
        with (self.folder / f"intake-{self.starts}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "noonmark.cli.main", "intake"], env=self.env | env, stderr=log
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                assert process.wait(30) == 0, self.log()

    def log(self) -> str:
        return (self.folder / f"intake-{self.starts}.log").read_text()

    def rows(self, query: str) -> list[dict[str, Any]]:
        with (
            psycopg.connect(self.url, autocommit=True) as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            return cursor.execute(query).fetchall()  # type: ignore[arg-type]

    def count(self, table: str) -> int:
        return self.rows(f"select count(*) from {table}")[0]["count"]

    def committed(self) -> int:
        """Records of the main topic below the committed offsets."""
        topic = self.topics.submissions
        commits = self.commits.of(self.topics.group_intake, [(topic, p) for p in (0, 1)])
        return sum(held.offset for held in commits.values())

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not come about\n{self.log()}"
            time.sleep(0.02)


@pytest.fixture
def line(
    database_url: str, kafka_server: Kafka, topic_prefix: str, service_env: dict[str, str], tmp_path: Path
) -> Iterator[Line]:
    line = Line(kafka_server.bootstrap, topic_prefix, database_url, service_env, tmp_path)
    yield line
    line.commits.close()


def test_submissions_of_both_topics_become_jobs_and_bad_records_are_answered(line: Line) -> None:
    for i in range(300):
        line.submit(f"good-{i}")
    line.submit("bulk", bulk=True)
    value, headers = render_binary(
        id="binary",
        source="/tests",
        type=CREATE,
        data={"type": "python", "handler": "tests.noop", "name": "binary"},
    )
    line.publish(value, headers)
    line.publish(b"no json")
    line.publish(None)
    line.publish(b"\xff\xfe\x00")
    line.submit("wrong", priority="urgent", color="red")
    line.submit("nul", payload={"text": "a\x00b"})
    surrogate = render_structured(
        id="half", source="/tests", type=CREATE, data={"name": "HERE", "type": "python"}
    )
    line.publish(surrogate.replace(b"HERE", b"\\ud800"))
    line.submit("large", payload={"text": "x" * 2000})
    line.submit("pool", pool="nowhere")
    line.flush()

    with line.intake(NOONMARK_MAX_SUBMISSION_BYTES="1500"):
        line.wait(lambda: line.count("jobs") == 302 and line.count("rejections") == 8, "jobs and rejections")
        line.wait(lambda: line.committed() == 309, "the commit of every offset")

    rejections = line.rows("select * from rejections")
    reasons = {row["event_id"]: row["reason"] for row in rejections if row["event_id"]}
    assert reasons == {"wrong": "invalid", "nul": "malformed", "pool": "unknown_pool"}
    assert sorted(row["reason"] for row in rejections if not row["event_id"]) == ["malformed"] * 4 + [
        "too_large"
    ]
    (wrong,) = (row for row in rejections if row["event_id"] == "wrong")
    assert {problem["pointer"] for problem in wrong["errors"]} == {"/data/priority", "/data/color"}
    (nowhere,) = (row for row in rejections if row["event_id"] == "pool")
    assert nowhere["errors"][0]["pointer"] == "/data/pool"
    assert len(line.rows(f"select from outbox where topic = '{line.topics.rejections}'")) == 8
    assert line.rows("select state from runs") == [{"state": "queued"}], "the binary one was due on arrival"


@pytest.mark.slow
@pytest.mark.parametrize("point", ["intake.before_commit", "intake.after_commit"])
def test_a_kill_around_the_commit_loses_and_doubles_nothing(line: Line, point: str) -> None:
    for i in range(500):
        line.submit(f"job-{i}", run_at=None)
    line.publish(b"no json")
    line.flush()
    with line.intake(NOONMARK_FAULT=f"{point}=1") as process:
        assert process.wait(60) == -signal.SIGKILL
    assert line.committed() == 0
    assert (line.count("jobs") > 0) == (point == "intake.after_commit")

    with line.intake():
        line.wait(lambda: line.committed() == 501, "the commit of every offset")
    assert [line.count(table) for table in ("jobs", "runs", "rejections")] == [500, 500, 1]
    assert line.rows("select name from jobs group by name having count(*) > 1") == []


def test_while_the_database_is_away_nothing_is_lost_or_committed(
    line: Line, postgres_server: Postgres
) -> None:
    name = line.url.rpartition("/")[2]
    with line.intake() as process:
        line.submit("before")
        line.flush()
        line.wait(lambda: line.count("jobs") == 1 and line.committed() == 1, "the first job")
        postgres_server.run(
            f"alter database {name} allow_connections false",
            f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'",
        )
        try:
            for i in range(3000):
                line.submit(f"meanwhile-{i}")
            line.flush()
            line.wait(lambda: line.log().count("database_unavailable") >= 3, "tries to reach the database")
            assert process.poll() is None
            assert line.committed() == 1
        finally:
            postgres_server.run(f"alter database {name} allow_connections true")
        line.wait(lambda: line.committed() == 3001, "the commit of every offset")
        assert line.count("jobs") == 3001


def test_a_sigterm_ends_it_with_everything_written_committed(line: Line) -> None:
    for i in range(2000):
        line.submit(f"job-{i}")
    line.flush()
    with line.intake() as process:
        line.wait(lambda: line.count("jobs") > 0, "some jobs")
        process.terminate()
        assert process.wait(30) == 0
    assert line.committed() == line.count("jobs")
