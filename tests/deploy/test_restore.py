"""The database is lost and comes back from a backup taken under load, as docs/recovery.md says."""

from __future__ import annotations

import subprocess
import time
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from tests.support.cluster import SERVICES, Cluster, cluster, wait_until
from tests.support.publish import Load
from tests.support.stack import Kafka, Postgres

from noonmark.devstack.postgres.server import find_binaries

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.timeout(300)]

JOBS = 300


def run(program: str, *arguments: str) -> None:
    """One of Postgres' own programs."""
    done = subprocess.run(
        [str(find_binaries() / program), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def go_back(noonmark: Cluster, moment: datetime) -> int:
    """Move the group of intake to before a moment, once its members are forgotten; return how many records."""
    admin = AdminClient({"bootstrap.servers": noonmark.bootstrap})
    group = noonmark.topics.group_intake
    names = (noonmark.topics.submissions, noonmark.topics.submissions_bulk)
    count = noonmark.kafka.topics()
    places = [TopicPartition(name, number) for name in names for number in range(count[name])]
    at = OffsetSpec.for_timestamp(int(moment.timestamp() * 1000))
    found = admin.list_offsets(dict.fromkeys(places, at))
    ends = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
    targets, records = [], 0
    for place in places:
        end = ends[place].result(10).offset
        offset = found[place].result(10).offset
        offset = end if offset < 0 else offset
        records += end - offset
        targets.append(TopicPartition(place.topic, place.partition, offset))

    def moved() -> bool:
        request = ConsumerGroupTopicPartitions(group, targets)
        try:
            result = admin.alter_consumer_group_offsets([request])[group].result(10)
        except Exception:  # noqa: BLE001 - the group still has members that the broker takes for living
            return False
        return all(part.error is None for part in result.topic_partitions)

    wait_until(moved, "the broker to forget the killed members", 60)
    return records


def verdicts(noonmark: Cluster, load: Load) -> list[tuple[str, int]]:
    return noonmark.rows(
        "select coalesce(r.state, 'none'), count(*) from jobs j left join runs r on r.job_id = j.id"
        " where j.namespace = %s group by 1",
        load.namespace,
    )


def test_a_restored_database_gets_back_what_kafka_still_has(
    postgres_server: Postgres,
    database_url: str,
    kafka_server: Kafka,
    topic_prefix: str,
    tmp_path: Path,
    report: list[str],
) -> None:
    name = database_url.rpartition("/")[2]
    settings = {"resend_check_seconds": "2"}
    with cluster(database_url, kafka_server.bootstrap, topic_prefix, tmp_path, **settings) as noonmark:
        noonmark.start(*SERVICES)
        settled, moving, after = Load(), Load(), Load()
        settled.now(JOBS)
        noonmark.publish(settled)
        noonmark.settle(settled)

        # The backup sees these in every state there is.
        moving.now(JOBS, "chaos.slow", payload={"seconds": 0.3})
        moving.interval(3, noonmark.soon(1), 20)
        noonmark.publish(moving)
        noonmark.wait(lambda: len(noonmark.calls(moving.namespace)) > 50, "runs to be under way")
        before_backup: datetime = noonmark.value("select noonmark_now() - interval '1 second'")
        dump = tmp_path / "noonmark.dump"
        run("pg_dump", "--format=custom", f"--file={dump}", database_url)
        after.now(JOBS)
        noonmark.publish(after)
        noonmark.wait(
            lambda: verdicts(noonmark, after) == [("succeeded", JOBS)], "what came after the backup to run"
        )

        for node in noonmark.nodes:
            node.kill()
        noonmark.database.close()
        postgres_server.run(f"drop database {name} with (force)", f"create database {name}")
        run("pg_restore", "--exit-on-error", "--no-owner", f"--dbname={database_url}", str(dump))
        assert noonmark.value("select count(*) from jobs where namespace = %s", after.namespace) == 0
        unfinished = noonmark.value("select count(*) from runs where finished_at is null")
        assert unfinished > 0
        records = go_back(noonmark, before_backup)

        began = time.monotonic()
        noonmark.start(*SERVICES)
        for load in (settled, moving, after):
            noonmark.settle(load, within=90)
        assert verdicts(noonmark, settled) == [("succeeded", JOBS)]
        assert verdicts(noonmark, after) == [("succeeded", JOBS)]
        assert verdicts(noonmark, moving) == [("succeeded", moving.instants)]
        report.append(
            f"restore from a backup under load: {unfinished} runs were unfinished in it, {records} submissions"
            f" read again, every job and every instant has its one verdict {time.monotonic() - began:.0f} s after"
            " the start"
        )


def test_a_backup_holds_the_role_and_the_policies_of_the_api(database_url: str, tmp_path: Path) -> None:
    dump = tmp_path / "schema.sql"
    run("pg_dump", "--schema-only", f"--file={dump}", database_url)
    text = dump.read_text(encoding="utf-8")
    with psycopg.connect(database_url) as connection:
        policies = connection.execute("select count(*) from pg_policies").fetchone()
    assert policies is not None
    assert text.count("CREATE POLICY") == policies[0] > 0
    assert "GRANT SELECT" in text
