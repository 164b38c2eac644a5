"""Refused records: a row with the reason and the bytes, and one event on the topic of rejections."""

from __future__ import annotations

import orjson
import pytest
from tests.integration.intake.world import SHARDS, World

from noonmark.schemas.events.envelope import parse_event
from noonmark.schemas.events.lifecycle import SubmissionRejected, read_published
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.store.jobs.rejections import RejectedRecord, record_rejections

pytestmark = pytest.mark.postgres


def refused(offset: int, value: bytes = b"{}", *problems: FieldError) -> RejectedRecord:
    verdict = Refused(problems or [FieldError("/id", "is missing", "text")])
    return RejectedRecord("t.submissions", 0, offset, "/tests", f"e-{offset}", "malformed", verdict, value)


def record(world: World, *records: RejectedRecord, cap_bytes: int = 16) -> int:
    with world.connection.transaction():
        new = record_rejections(
            world.connection, records, topic="t.rejections", cap_bytes=cap_bytes, shards=SHARDS
        )
        return len(new)


def test_a_refused_record_is_kept_and_told_once(world: World) -> None:
    assert record(world, refused(7), refused(8)) == 2
    assert record(world, refused(8), refused(9)) == 1, "taken in again after an unknown COMMIT"

    rows = world.rows("select * from rejections order by record_offset")
    assert [row["record_offset"] for row in rows] == [7, 8, 9]
    assert rows[0]["errors"] == [{"pointer": "/id", "message": "is missing", "expected": "text"}]
    events = world.rows("select * from outbox where topic = 't.rejections' order by seq")
    told = [read_published(parse_event(bytes(row["value"]), None)) for row in events]
    assert all(isinstance(one, SubmissionRejected) for one in told)
    assert [one.offset for one in told] == [7, 8, 9]  # type: ignore[attr-defined]
    assert len({(row["slice"], bytes(row["key"])) for row in events}) == 1, (
        "those of a partition stay in order"
    )


def test_only_so_many_bytes_of_a_large_value_are_kept(world: World) -> None:
    record(world, refused(1, b"x" * 17), refused(2, b"y" * 16))
    large, small = world.rows("select value, truncated from rejections order by record_offset")
    assert (bytes(large["value"]), large["truncated"]) == (b"x" * 16, True)
    assert (bytes(small["value"]), small["truncated"]) == (b"y" * 16, False)


def test_problems_that_quote_what_postgres_cannot_hold_are_kept_as_escapes(world: World) -> None:
    record(world, refused(1, b"\x00\xff", FieldError("/a\x00", "holds \ud800", "text \x00 without")))
    (row,) = world.rows("select errors, value from rejections")
    assert row["errors"] == [
        {"pointer": "/a\\u0000", "message": "holds \\ud800", "expected": "text \\u0000 without"}
    ]
    assert bytes(row["value"]) == b"\x00\xff"
    event = world.row("select value from outbox")
    assert orjson.loads(bytes(event["value"]))["data"]["value_base64"] == "AP8="
