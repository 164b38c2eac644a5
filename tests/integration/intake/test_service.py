"""The service as a process: real Kafka in, real Postgres out, killed and cut off on the way."""

from __future__ import annotations

import signal

import pytest
from tests.integration.intake.line import Line
from tests.support.stack import Postgres

from noonmark.schemas.events.envelope import render_binary, render_structured
from noonmark.schemas.events.submissions import CREATE

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]


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
