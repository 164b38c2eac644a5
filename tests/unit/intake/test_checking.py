"""Records become requests or refusals; nothing a record holds stops the others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import orjson
import pytest

from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.intake.authorization import Authorizer, CredentialStore
from noonmark.intake.batch_checks import CheckedBatch, check
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import UNREADABLE_HEADERS, Record
from noonmark.schemas.events.envelope import render_binary, render_structured
from noonmark.schemas.events.submissions import CANCEL, CREATE, CreateJob
from noonmark.store.jobs.submit import EventRef
from noonmark.store.schedules.time_facts import Moment

MOMENT = Moment(datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC), TimeFacts())
NOBODY = cast("BatchConsumer", None)
OPEN = Authorizer({"t.submissions": "*"}, cast("CredentialStore", None))


def record(value: bytes, offset: int = 0, headers: Any = None) -> Record:
    return Record("t.submissions", 3, offset, 1, None, value, 0, headers)


def checked(*records: Record, max_bytes: int = 10_000) -> CheckedBatch:
    return check(NOBODY, list(records), MOMENT, authorizer=OPEN, max_bytes=max_bytes)


def create(event_id: str = "e", **data: Any) -> bytes:
    return render_structured(
        id=event_id,
        source="/shop",
        type=CREATE,
        sequence=4,
        data={"type": "python", "handler": "a.b", **data},
    )


def test_sound_records_become_requests_in_order_with_their_event() -> None:
    batch = checked(record(create("a"), 0), record(create("b"), 1))
    assert [request.event for request in batch.requests] == [
        EventRef("/shop", "a", 4),
        EventRef("/shop", "b", 4),
    ]
    assert [(one.offset, word) for one, word in batch.sources] == [(0, "create"), (1, "create")]
    assert batch.refused == []


def test_binary_content_mode_is_read_from_the_headers() -> None:
    value, headers = render_binary(
        id="x", source="/shop", type=CREATE, data={"type": "python", "handler": "a.b"}
    )
    (request,) = checked(record(value, headers=headers)).requests
    assert isinstance(request.submission, CreateJob)


@pytest.mark.parametrize(
    ("value", "reason", "word", "pointer"),
    [
        (b"", "malformed", "unknown", ""),
        (b"no json", "malformed", "unknown", ""),
        (b"\xff\x00", "malformed", "unknown", ""),
        (b"[" * 9000, "malformed", "unknown", ""),
        (b'{"id": "\\ud800"}', "malformed", "unknown", "/id"),
        (
            orjson.dumps({"id": "e", "source": "/s", "type": CREATE, "data": {}}),
            "malformed",
            "unknown",
            "/specversion",
        ),
        (create(color="red"), "invalid", "create", "/data/color"),
        (render_structured(id="e", source="/s", type=CANCEL, data={}), "invalid", "cancel", "/data"),
        (
            render_structured(id="e", source="/s", type="noonmark.job.fly.v1", data={}),
            "invalid",
            "unknown",
            "/type",
        ),
        (b"x" * 10_001, "too_large", "unknown", ""),
    ],
)
def test_a_bad_record_is_refused_with_its_reason_and_its_neighbours_are_taken(
    value: bytes, reason: str, word: str, pointer: str
) -> None:
    batch = checked(record(create("before"), 0), record(value, 1), record(create("after"), 2))
    assert [request.event.id for request in batch.requests if request.event] == ["before", "after"]
    ((refused, kind),) = batch.refused
    assert (refused.reason, kind, refused.offset, refused.partition) == (reason, word, 1, 3)
    assert refused.refused.errors[0].pointer == pointer
    assert refused.value == value


def test_a_refused_event_is_named_as_far_as_it_can_be_read() -> None:
    half = orjson.dumps({"specversion": "1.0", "id": "e-9", "source": 7, "type": CREATE, "data": {}})
    ((refused, _),) = checked(record(half)).refused
    assert (refused.source, refused.event_id) == (None, "e-9")


def test_a_record_that_breaks_the_parser_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import noonmark.intake.batch_checks as module  # noqa: PLC0415

    parse = module.parse_submission

    def breaking(event: Any, **known: Any) -> Any:
        if event.id == "bad":
            raise RecursionError("too deep")
        return parse(event, **known)

    monkeypatch.setattr(module, "parse_submission", breaking)
    batch = checked(record(create("good")), record(create("bad"), 1))
    assert len(batch.requests) == 1
    ((refused, _),) = batch.refused
    assert (refused.reason, refused.event_id) == ("malformed", "bad")
    assert "RecursionError" in str(refused.refused)


def test_a_record_whose_headers_cannot_be_read_is_malformed_and_the_next_is_taken():
    batch = checked(record(create(), 1, UNREADABLE_HEADERS), record(create(), 2))

    ((refused, _),) = batch.refused
    assert (refused.reason, refused.refused.errors[0].message) == ("malformed", "a header's key is not UTF-8")
    assert len(batch.requests) == 1
