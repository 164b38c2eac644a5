"""Events of submissions, as `noonmark submit` publishes and checks them."""

from __future__ import annotations

import json
from typing import Any

from noonmark.cli.terminal.problems import CliError, ExitCode


def event_of(document: dict[str, Any], number: int, source: str) -> dict[str, Any]:
    """Return the create event of a document; an event is returned unchanged.

    Intake checks the job itself, as for any other client.

    Args:
        document: job document or event (an object with `specversion`).
        number: its number in the input, from 1, for messages.
        source: `source` of the create event.

    Raises:
        CliError: it is an event with invalid attributes.
    """
    from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, parse_event  # noqa: PLC0415
    from noonmark.schemas.events.submissions import TYPES  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import Refused  # noqa: PLC0415

    if "specversion" not in document:
        return create_of(document, source)
    value = as_json_text(document, number)
    try:
        # The maximum size of an event is a setting of the intake.
        event = parse_event(value, STRUCTURED_HEADERS, max_bytes=len(value))
    except Refused as refused:
        raise CliError(f"event {number} is invalid: {refused}", ExitCode.USAGE) from refused
    if event.type not in TYPES:
        raise CliError(
            f"event {number} is invalid: /type: {event.type!r} is not a submission;"
            f" expected one of {', '.join(TYPES)}",
            ExitCode.USAGE,
        )
    return document


def create_of(document: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the create event of a job document."""
    from noonmark.core.ids import uuid7  # noqa: PLC0415
    from noonmark.schemas.events.submissions import CREATE  # noqa: PLC0415

    head = {"specversion": "1.0", "id": str(uuid7()), "source": source, "type": CREATE}
    return {**head, "datacontenttype": "application/json", "data": document}


def as_json_text(document: object, number: int) -> bytes:
    """Return a document as JSON. YAML can contain values without a JSON form.

    Raises:
        CliError: it contains such a value.
    """
    try:
        return json.dumps(document).encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, TypeError) else "it contains itself, or is nested too deeply"
        raise CliError(f"document {number} has no JSON form: {reason}", ExitCode.USAGE) from error


def key_of(event: dict[str, Any]) -> bytes:
    """Return the record key (name or id of the job), which keeps events of a job in order."""
    data = event["data"]
    if data.get("name"):
        return f"{data.get('namespace') or 'default'}/{data['name']}".encode("utf-8", "replace")
    return str(data.get("job_id") or data.get("run_id") or event["id"]).encode("utf-8", "replace")


def word_of(event_type: str) -> str:
    """Return the request of an event in one word, such as `create`."""
    return event_type.removeprefix("noonmark.job.").partition(".v")[0]


def job_of(event: dict[str, Any]) -> object:
    """Return the name or id of the job that an event is about."""
    return event["data"].get("name") or event["data"].get("job_id")
