"""Job documents that several tests start from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from noonmark.schemas.jobs.job import JobSpec, parse_job
from noonmark.schemas.problems.refusal import Refused

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
FLOOR = datetime(2026, 4, 1, tzinfo=UTC)

INVOICE: dict[str, Any] = {
    "name": "send-invoice", "type": "HTTP", "schedule": "0 9 * * 1", "max_retries": 3,
    "retry_delay_seconds": 60, "timeout_seconds": 30,
    "payload": {"url": "https://internal.example.com/billing/send", "method": "POST", "body": {"user_id": 42}},
}  # fmt: skip
WELCOME: dict[str, Any] = {
    "name": "welcome-mail", "type": "python", "handler": "mails.send_welcome",
    "run_at": "2026-06-01T09:00:00Z", "payload": {"user_id": 42},
}  # fmt: skip
PYTHON: dict[str, Any] = {"type": "python", "handler": "tasks.run"}
EVERY: dict[str, Any] = {**PYTHON, "name": "beat", "schedule": {"every": 60}}
HTTP: dict[str, Any] = {"type": "http", "payload": {"url": "https://example.com/"}}


def parse(document: object, **options: Any) -> JobSpec:
    return parse_job(document, now=NOW, ledger_floor=FLOOR, **options)


T = TypeVar("T")


def outcome(call: Callable[[], T]) -> T | Refused:
    try:
        return call()
    except Refused as refused:
        return refused


def refusal(document: object, **options: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        parse(document, **options)
    return {error.pointer: f"{error.message}; {error.expected}" for error in caught.value.errors}


def http(**payload: Any) -> dict[str, Any]:
    return {"type": "http", "payload": {"url": "https://example.com/", **payload}}
