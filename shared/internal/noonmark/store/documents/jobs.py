"""The document of a stored job, with every default filled in; submitting it again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from noonmark.core.instants import format_instant, parse_instant
from noonmark.core.planning.plan import Misfire
from noonmark.core.retry import RetryPolicy
from noonmark.core.schedules import stored_form
from noonmark.core.schedules.schedule import Schedule
from noonmark.core.states import DeliverySemantics, Lane, Overlap
from noonmark.schemas.jobs.job import JobSpec
from noonmark.schemas.jobs.retry import retry_document
from noonmark.store.documents.workflows import KIND, tasks_of_spec, workflow_document

FIRST_ONE_OFF: Final = 1_000_000_000
"""Versions from here on are for a single run each; lower ones are from edits."""

_DEFAULT_TIMEOUT: Final = 3600.0


def document_of(row: Mapping[str, Any], schedule: Schedule | None) -> dict[str, Any]:
    """Return the document of a job, with every default filled in; an update with it changes nothing.

    An interval that was created without `start` has none here, because an update keeps its phase.

    Args:
        row: columns of `jobs`, or of `job_versions` and `namespace`; `lane` is a number or a name. Of a
            workflow also `tasks`, its `StoredTask`s; without them, the document leaves tasks out.
        schedule: its parsed schedule; None if it has none or it cannot be read. In that case the document
            contains the stored form.
    """
    stored = row["schedule"] or {}
    run_at = stored.get("run_at")
    document = effective(_spec(row, None if run_at else schedule))
    document["run_at"] = format_instant(parse_instant(run_at)) if run_at else None
    if run_at is None and stored:
        document["schedule"] = _schedule(stored, document["schedule"])
    return workflow_document(document, row.get("tasks")) if row["kind"] == KIND else document


def document_of_spec(spec: JobSpec) -> dict[str, Any]:
    """Return the document of a job that is not created yet, as `document_of` will return it."""
    document = effective(spec)
    if spec.schedule is not None:
        document["schedule"] = _schedule(spec.schedule.spec(), document["schedule"])
    return document


def effective(spec: JobSpec) -> dict[str, Any]:
    """Return the job document of a spec with all defaults filled in; `parse_job` can read it again."""
    misfire = spec.misfire
    document = {
        "name": spec.name,
        "type": spec.kind,
        "handler": spec.handler,
        "payload": orjson.loads(spec.payload_json or b"null"),
        "schedule": _schedule_document(spec.schedule),
        "run_at": format_instant(spec.run_at) if spec.run_at else None,
        "retry": retry_document(spec.retry),
        "timeout_seconds": _number(spec.timeout_seconds),
        "priority": spec.lane.label,
        "pool": spec.pool,
        "namespace": spec.namespace,
        "labels": dict(spec.labels),
        "misfire": {
            "policy": misfire.policy.value,
            "grace_seconds": _number(misfire.grace_seconds),
            "look_back_seconds": _number(misfire.look_back_seconds),
        },
        "overlap": spec.overlap.value,
        "delivery": spec.delivery.value,
        "deadline_seconds": _number(spec.deadline_seconds),
        "limits": [name if key is None else {"name": name, "key": key} for name, key in spec.limits],
        "pause_after_failures": spec.pause_after_failures,
        "start_deadline_seconds": _number(spec.start_deadline_seconds),
        "late_after_seconds": _number(spec.late_after_seconds),
        "idempotency_key": spec.idempotency_key,
        "description": spec.description,
        "owner": spec.owner,
    }
    return document if spec.workflow is None else workflow_document(document, tasks_of_spec(spec))


def readable(stored: object) -> Mapping[str, Any]:
    """Return a stored JSON object; an empty one if a job was given anything else outside noonmark."""
    return stored if isinstance(stored, Mapping) else {}


def _spec(row: Mapping[str, Any], schedule: Schedule | None) -> JobSpec:
    work, policy = readable(row["work"]), readable(row["policy"])
    lane = row["lane"]
    return JobSpec(
        name=row["name"],
        kind=row["kind"],
        handler=row["handler"],
        payload_json=orjson.dumps(work.get("payload")),
        schedule=schedule,
        run_at=None,
        timeout_seconds=work.get("timeout_seconds", _DEFAULT_TIMEOUT),
        retry=RetryPolicy.of(work.get("retry") or {}),
        lane=Lane.from_priority(lane) if isinstance(lane, str) else Lane(lane or 0),
        pool=row["pool"],
        namespace=row["namespace"],
        labels=row["labels"] or {},
        misfire=Misfire(**policy.get("misfire") or {}),
        overlap=Overlap(policy.get("overlap", Overlap.ALLOW)),
        start_deadline_seconds=policy.get("start_deadline_seconds"),
        idempotency_key=row.get("idempotency_key"),
        description=row["description"],
        owner=row["owner"],
        delivery=DeliverySemantics(work.get("delivery", DeliverySemantics.AT_LEAST_ONCE)),
        deadline_seconds=work.get("deadline_seconds"),
        limits=tuple((name, key) for name, key in policy.get("limits", ())),
        pause_after_failures=work.get("pause_after_failures"),
        late_after_seconds=policy.get("late_after_seconds"),
    )


def _schedule_document(schedule: Schedule | None) -> dict[str, object] | None:
    if schedule is None:
        return None
    document = stored_form.document_of(schedule)
    for field in ("start", "end", "calendars"):
        document.setdefault(field, None)
    return document


def _number(value: float | None) -> float | None:
    return int(value) if value is not None and float(value).is_integer() else value


def _schedule(stored: Mapping[str, Any], document: dict[str, Any] | None) -> dict[str, Any]:
    if document is None:
        return dict(stored)
    if "anchor" in stored and "start" not in stored:
        document["start"] = None
    for member, kept in zip(document.get("any", ()), stored.get("any", ()), strict=False):
        if "anchor" in kept and "start" not in kept:
            member.pop("start", None)
    return document
