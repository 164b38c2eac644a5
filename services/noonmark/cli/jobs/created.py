"""What `noonmark job create` prints about the job that it has created."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from noonmark.cli.terminal.output import instant, printable

if TYPE_CHECKING:
    from noonmark.client import Client


def created_text(api: Client, made: Mapping[str, Any]) -> str:
    """Return the sentence about a created job: its name, and when it is due.

    Args:
        api: client of the API.
        made: its answer to the request.
    """
    from noonmark.client import ApiError  # noqa: PLC0415 - httpx takes a while to load

    job_id, name = made["id"], made["name"]
    job = f"job {printable(name)} ({job_id})" if name else f"job {job_id}"
    if not made["created"]:
        return f"{job} was created by an earlier request with this idempotency key; nothing changed"
    try:
        due = f", {due_of(api.jobs.get(job_id), datetime.now(UTC))}"
    except ApiError:
        due = ""  # a key may create jobs and not read them
    return f"{job} created{due}; run `noonmark job show {job_id}` to see it"


def due_of(job: Mapping[str, Any], now: datetime) -> str:
    """Return when a new job is due.

    Args:
        job: the job as the API shows it.
        now: the current time.
    """
    if job["state"] == "paused":
        return "paused, as its namespace is"
    document = job["document"]
    if document["schedule"] is not None:
        following = job["next_run_at"]
        return f"next due {_instant(following)}" if following else "with no instant ahead"
    run_at = document["run_at"]
    if run_at is None:
        return "due now"
    past = datetime.fromisoformat(run_at) <= now
    return f"due {_instant(run_at)}{', which is in the past: now' if past else ''}"


def _instant(given: str) -> str:
    return instant(datetime.fromisoformat(given))
