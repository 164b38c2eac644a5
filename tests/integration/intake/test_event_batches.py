"""CloudEvents batches on real Kafka: each event on its own, once, and the offset after all of them."""

from __future__ import annotations

import signal
from typing import Any

import orjson
import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from tests.integration.intake.line import LATER, Line

from noonmark.core.access.submission_signature import BATCH_TYPE
from noonmark.schemas.events.envelope import parse_event, render_structured
from noonmark.schemas.events.submissions import CREATE, PAUSE

pytestmark = [pytest.mark.postgres, pytest.mark.kafka]

HEADERS = [("content-type", BATCH_TYPE.encode())]


def create(event_id: str, **data: Any) -> bytes:
    document = {"type": "python", "handler": "tests.noop", "name": event_id, "schedule": "0 9 * * 1", **data}
    return render_structured(id=event_id, source="/tests", type=CREATE, data=document)


def batch(*events: bytes) -> bytes:
    return b"[" + b",".join(events) + b"]"


def test_each_event_of_a_batch_is_accepted_or_rejected_on_its_own(line: Line) -> None:
    pause = render_structured(id="pause", source="/tests", type=PAUSE, data={"name": "a", "reason": "r"})
    line.publish(
        batch(
            create("a"), create("bad", color="red"), b"[]", pause, create("a"), create("nowhere", pool="none")
        ),
        HEADERS,
    )
    line.publish(b"[]", HEADERS)
    line.submit("single")
    line.flush()

    with line.intake():
        line.wait(lambda: line.count("jobs") == 2 and line.count("rejections") == 2, "jobs and rejections")
        line.wait(lambda: line.committed() == 3, "the commit of every offset")

    jobs = {row["name"]: row["state"] for row in line.rows("select name, state from jobs")}
    assert jobs == {"a": "paused", "single": "active"}, "in order: created, then paused"
    (mixed, empty) = line.rows("select * from rejections order by length(value) desc")
    assert [problem["pointer"] for problem in mixed["errors"]] == ["/1/data/color", "/2", "/5/data/pool"]
    assert (mixed["event_id"], bytes(mixed["value"])[:1]) == (None, b"[")
    assert "the batch is empty" in empty["errors"][0]["message"]
    told = [
        parse_event(bytes(row["value"]), None).data
        for row in line.rows(
            f"select value from outbox where topic = '{line.topics.rejections}' order by seq"
        )
    ]
    found = {one.get("index"): one["event_id"] for one in told}  # type: ignore[attr-defined]
    assert found == {1: "bad", 2: None, 5: "nowhere", None: None}


def test_a_batch_of_the_cloudevents_library_is_taken(line: Line) -> None:
    events = [
        CloudEvent(
            {"id": name, "source": "/tests", "type": CREATE, "specversion": "1.0"},
            {"type": "python", "handler": "tests.noop", "name": name, "run_at": LATER},
        )
        for name in ("one", "two")
    ]
    line.publish(batch(*(JSONFormat().write(event) for event in events)), HEADERS)
    line.flush()
    with line.intake():
        line.wait(lambda: line.count("jobs") == 2, "both jobs")
    assert line.count("rejections") == 0


@pytest.mark.slow
@pytest.mark.parametrize("point", ["intake.before_commit", "intake.after_commit"])
def test_a_kill_in_the_middle_of_a_batch_loses_and_doubles_nothing(line: Line, point: str) -> None:
    events = [create(f"job-{i}") for i in range(50)]
    line.publish(batch(*events[:25], b'{"poison": 1}', *events[25:]), HEADERS)
    line.flush()
    with line.intake(NOONMARK_FAULT=f"{point}=1") as process:
        assert process.wait(60) == -signal.SIGKILL
    assert line.committed() == 0
    after = point == "intake.after_commit"
    assert (line.count("jobs"), line.count("rejections")) == ((50, 1) if after else (0, 0)), "all or nothing"

    # The publisher sends it again, in another composition.
    line.publish(batch(*reversed(events)), HEADERS)
    line.flush()
    with line.intake():
        line.wait(lambda: line.committed() == 2, "the commit of both batches")
    assert (line.count("jobs"), line.count("rejections")) == (50, 1)
    (told,) = line.rows(f"select value from outbox where topic = '{line.topics.rejections}'")
    assert orjson.loads(bytes(told["value"]))["data"]["index"] == 25
