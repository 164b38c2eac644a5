"""What a job or a task does: its payload, the rules between its fields, and the form that workers read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from pydantic import ValidationError

from noonmark.core.retry import RetryPolicy
from noonmark.core.states import DeliverySemantics
from noonmark.schemas.jobs.payloads import PAYLOADS
from noonmark.schemas.jobs.retry import check_retry
from noonmark.schemas.jobs.work_fields import NO_TRANSACTION, WORK_KINDS
from noonmark.schemas.problems.pydantic_errors import field_errors
from noonmark.schemas.problems.refusal import FieldError, kind_of

MAX_PAYLOAD_BYTES: Final = 128 * 1024
"""Each job version stores its payload, and each run reads it; keep larger data elsewhere."""

DEFAULT_TIMEOUT_SECONDS: Final[Mapping[str, float]] = {
    "http": 30.0,
    "grpc": 30.0,
    "kafka": 30.0,
    "script": 3600.0,
    "python": 3600.0,
}


def encode_payload(data: Mapping[str, Any], limit: int, problems: list[FieldError]) -> bytes:
    """Return the payload of a document as JSON, with defaults filled in; append problems to `problems`."""
    kind = data.get("type")
    payload = data.get("payload", {})
    model = PAYLOADS.get(kind.lower()) if isinstance(kind, str) else None
    if model is not None:
        if "payload" not in data or not isinstance(payload, dict):
            message = f"is {kind_of(payload)}" if "payload" in data else "is missing"
            problems.append(FieldError("/payload", message, model.purpose))
            return b""
        try:
            payload = model.model_validate(payload).request()
        except ValidationError as error:
            problems += field_errors(error, model, ("payload",), payload)
            return b""
    encoded = orjson.dumps(payload)
    if len(encoded) > limit:
        problems.append(
            FieldError(
                "/payload",
                f"is {len(encoded)} bytes of JSON",
                f"at most {limit} bytes; keep larger data elsewhere and pass a reference",
            )
        )
    return encoded


def check_work(data: Mapping[str, Any], problems: list[FieldError]) -> None:
    """Check the rules between the fields, on the raw document, so that all problems are reported."""
    check_kind(data, problems)
    check_retry(data, problems)


def check_kind(data: Mapping[str, Any], problems: list[FieldError]) -> None:
    """Check the rules between the type and other fields."""
    kind = data.get("type")
    if not isinstance(kind, str):
        return
    kind, handler = kind.lower(), data.get("handler")
    if kind in WORK_KINDS and kind != "python" and handler is not None:
        problems.append(FieldError("/handler", "is for python jobs only", "no handler"))
    if kind == "python" and handler is None:
        problems.append(
            FieldError("/handler", "is missing", "the registered name, such as mails.send_welcome")
        )
    if data.get("delivery") == "exactly_once" and kind in NO_TRANSACTION:
        message = "exactly_once needs a handler with a transaction on noonmark's database"
        problems.append(FieldError("/delivery", message, f"at_least_once or at_most_once for {kind} jobs"))


def work_text(
    payload_json: bytes,
    timeout_seconds: float,
    retry: RetryPolicy,
    delivery: DeliverySemantics,
    *,
    deadline_seconds: float | None = None,
    pause_after_failures: int | None = None,
) -> str:
    """Return what workers read, as JSON text: payload, time limits, retry policy, delivery."""
    tail = _work_tail(timeout_seconds, retry, delivery, deadline_seconds, pause_after_failures)
    return f'{{"payload":{payload_json.decode()},{tail}'


@lru_cache(maxsize=4096)
def _work_tail(
    timeout_seconds: float,
    retry: RetryPolicy,
    delivery: DeliverySemantics,
    deadline_seconds: float | None,
    pause_after_failures: int | None,
) -> str:
    stored: dict[str, object] = {
        "timeout_seconds": timeout_seconds,
        "retry": retry.stored(),
    }
    if delivery is not DeliverySemantics.AT_LEAST_ONCE:
        stored["delivery"] = delivery.value
    if deadline_seconds is not None:
        stored["deadline_seconds"] = deadline_seconds
    if pause_after_failures is not None:
        stored["pause_after_failures"] = pause_after_failures
    return orjson.dumps(stored).decode()[1:]
