"""Runs in hand, made up: what a worker's parts are given in these tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from noonmark.core.ids import uuid7
from noonmark.core.words import AttemptOutcome, Lane, RunState
from noonmark.kafka.records import Record
from noonmark.store.rows import StartedRun
from noonmark.store.work import Outcome
from noonmark.worker.hand import Hand

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)


def started(*, batch_id: int = 1, **more: Any) -> StartedRun:
    values: dict[str, Any] = {
        "id": uuid7(),
        "scheduled_for": NOW,
        "job_id": uuid7(),
        "job_version": 1,
        "origin": "schedule",
        "request_id": "",
        "namespace": "tests",
        "lane": int(Lane.NORMAL),
        "attempt": 1,
        "losses": 0,
        "holds_slot": False,
        "started_at": NOW,
        "shard": 0,
        "kind": "python",
        "handler": "tests.noop",
        "work": "{}",
        "batch_id": batch_id,
    }
    return StartedRun(**{**values, **more})


def record(offset: int = 0) -> Record:
    return Record("t", 0, offset, 0, None, b"", 0)


def hand(
    *, timeout_seconds: float = 60.0, retry: dict[str, Any] | None = None, fence: int = 1, **more: Any
) -> Hand:
    run = started(**more)
    return Hand(
        (run.id, fence),
        run,
        fence,
        record(),
        Lane(run.lane),
        "default",
        None,
        timeout_seconds,
        retry or {},
    )


def success(of: Hand) -> Outcome:
    return Outcome(of.run, of.fence, RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED, pool=of.pool)
