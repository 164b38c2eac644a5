"""Run messages that a worker did not believe, kept beside the refused submissions."""

from __future__ import annotations

from noonmark.store.database.statements import statement
from noonmark.store.jobs.rejections import RefusedMessage, keep_messages


def message(offset: int, **more):
    said = {
        "reason": "malformed",
        "detail": "not a run message \x00",
        "value": b"\xff\x00",
        "truncated": False,
    }
    return RefusedMessage("noonmark.runs.default.low", 0, offset, **{**said, **more})


def test_each_is_kept_once_with_its_reason_and_first_bytes(world):
    assert keep_messages(world.db, [message(1), message(2, truncated=True)]) == 2
    assert keep_messages(world.db, [message(2), message(3)]) == 1

    rows = world.rows("select * from rejections order by record_offset")
    assert [(row["record_offset"], row["reason"], row["truncated"]) for row in rows] == [
        (1, "malformed", False),
        (2, "malformed", True),
        (3, "malformed", False),
    ]
    assert bytes(rows[0]["value"]) == b"\xff\x00"
    assert rows[0]["errors"][0]["message"].startswith("not a run message")
    # Nobody is told: it is not a submission of a publisher's.
    assert world.count("outbox") == 0


def test_the_old_ones_are_forgotten(world):
    keep_messages(world.db, [message(1), message(2)])
    world.db.execute("update rejections set received_at = now() - interval '31 days' where record_offset = 1")

    world.db.execute(statement("prune_rejections"), {"days": 30})

    assert world.column("select record_offset from rejections") == [2]
