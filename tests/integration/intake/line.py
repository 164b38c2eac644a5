"""Topics of a test with an intake process behind them and a producer before them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Producer
from psycopg.rows import dict_row
from tests.support.commits import Commits

from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import PartitionCounts, Topics
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, render_structured
from noonmark.schemas.events.submissions import CREATE

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
