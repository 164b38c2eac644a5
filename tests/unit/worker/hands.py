"""Runs in hand, made up: what a worker's parts are given in these tests."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from noonmark.attempts.context import Services
from noonmark.attempts.emitter import Emitter
from noonmark.attempts.notes import NoteWriter
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.secrets import SecretResolver
from noonmark.core.attempt_key import attempt_key
from noonmark.core.ids import uuid7
from noonmark.core.states import AttemptOutcome, Lane, RunState
from noonmark.kafka.consumers.records import Record
from noonmark.service.health import Health
from noonmark.service.runner import Service
from noonmark.settings import Settings
from noonmark.store.database.row_types import StartedRun
from noonmark.store.runs.finish import Outcome
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.logs import get_logger
from noonmark.worker.leases.shared_attempts import SharedAttempts

NOW = datetime(2026, 6, 1, 9, tzinfo=UTC)

UNWATCHED = SharedAttempts(0)


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


def record(offset: int = 0, *, epoch: int = 0) -> Record:
    return Record("t", 0, offset, epoch, None, b"", 0)


def hand(
    *, timeout_seconds: float = 60.0, retry: dict[str, Any] | None = None, fence: int = 1, **more: Any
) -> RunningAttempt:
    run = started(**more)
    return RunningAttempt(
        attempt_key(run.id, fence),
        run,
        fence,
        record(),
        Lane(run.lane),
        "default",
        None,
        timeout_seconds,
        retry or {},
    )


def success(of: RunningAttempt) -> Outcome:
    return Outcome(of.run, of.fence, RunState.SUCCEEDED, AttemptOutcome.SUCCEEDED, pool=of.pool)


def services(environment: Mapping[str, str] | None = None) -> Services:
    """Return what contexts work with; no loop writes the notes, and no secret is in a file."""
    service = Service("worker", Settings(), Health(), threading.Event(), get_logger())
    return Services(
        SecretResolver(None, environment or {}),
        NoteWriter(service, lambda: Identity(1, 1)),
        Emitter(["tests.*"], "noonmark"),
    )
