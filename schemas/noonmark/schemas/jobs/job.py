"""Parses a job document into the form that the store saves: checked, with all defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
import orjson
from pydantic import ValidationError

from noonmark.core.instants import format_instant, parse_instant
from noonmark.core.planning.plan import Misfire, MisfirePolicy
from noonmark.core.retry import RetryPolicy
from noonmark.core.schedules.schedule import Schedule
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.core.states import DeliverySemantics, Lane, Overlap
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.schemas.jobs.documents import OF_TASKS, OF_WORKFLOWS, WORKFLOW, JobDocument, JobType
from noonmark.schemas.jobs.policies import MisfireDocument, check_limits
from noonmark.schemas.jobs.retry import retry_of
from noonmark.schemas.jobs.schedule import schedule_in
from noonmark.schemas.jobs.work import (
    DEFAULT_TIMEOUT_SECONDS,
    MAX_PAYLOAD_BYTES,
    check_work,
    encode_payload,
)
from noonmark.schemas.jobs.workflow import WorkflowSpec, workflow_in
from noonmark.schemas.problems.pydantic_errors import NOT_AVAILABLE, field_errors
from noonmark.schemas.problems.refusal import FieldError, Refused, kind_of, shown
from noonmark.schemas.problems.screening import screen

__all__ = [
    "DEFAULT_TIMEOUT_SECONDS",
    "MAX_PAYLOAD_BYTES",
    "JobDocument",
    "JobSpec",
    "parse_job",
    "payload_for",
]

_DEFAULT_MISFIRE: Final = Misfire()
_NO_FACTS: Final = TimeFacts()

_OF_EACH_TASK: Final = frozenset({"handler", "payload"})
_RUN_ONCE: Final = RetryPolicy(max_retries=0)

_OWN: Final = frozenset({"name", "idempotency_key", "run_at", "schedule", "payload"})
"""Fields that usually differ between the documents of one application; the others are checked only once."""

_RECURRING: Final = b" "
"""Follows the shape of a recurring job, which has other defaults."""

_MOST_SHAPES: Final = 2048
_LONGEST_SHAPE: Final = 2048
_LONGEST_LINE: Final = 200


class JobSpec(msgspec.Struct, frozen=True, gc=False):
    """A checked job, as the store saves it. Durations are in seconds, instants are aware UTC.

    Attributes:
        name: unique in the namespace if `schedule` is set; otherwise only a label.
        kind: the document's `type`.
        handler: registered name of the Python handler; None for other kinds.
        payload_json: the payload as JSON; for all kinds but python with defaults filled in.
        schedule: schedule of a recurring job; None for one-time jobs.
        run_at: instant of a one-time job; if `schedule` is None, too, the job is due on arrival.
        deadline_seconds: longest time from the instant of a run to the end of its last attempt.
        limits: names of limits of the namespace, each with the key that runs are counted by, or None.
        pause_after_failures: equal failures in a row after which the job pauses itself.
        late_after_seconds: time after the instant of a run at which an alert says that it has not started.
        workflow: tasks of a workflow; None for other kinds. Its payload is a digest of them, its timeout the
            longest of theirs, and its pool `WORKFLOW_POOL`.
    """

    name: str | None
    kind: JobType
    handler: str | None
    payload_json: bytes
    schedule: Schedule | None
    run_at: datetime | None
    timeout_seconds: float
    retry: RetryPolicy
    lane: Lane
    pool: str
    namespace: str
    labels: Mapping[str, str]
    misfire: Misfire
    overlap: Overlap
    start_deadline_seconds: float | None
    idempotency_key: str | None
    description: str | None
    owner: str | None
    delivery: DeliverySemantics = DeliverySemantics.AT_LEAST_ONCE
    deadline_seconds: float | None = None
    limits: tuple[tuple[str, str | None], ...] = ()
    pause_after_failures: int | None = None
    late_after_seconds: float | None = None
    workflow: WorkflowSpec | None = None


class Shapes:
    """Cache of checked jobs by the shape of their document. Thread-safe."""

    def __init__(self, most: int = _MOST_SHAPES) -> None:
        """Create an empty cache. It is cleared when it has `most` entries."""
        self._most = most
        self._known: dict[bytes, JobSpec] = {}

    def get(self, shape: bytes) -> JobSpec | None:
        """Return a job whose document had this shape."""
        return self._known.get(shape)

    def keep(self, shape: bytes, spec: JobSpec) -> None:
        """Cache a job of a shape."""
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[shape] = spec


_SHAPES: Final = Shapes()


def parse_job(
    data: object,
    *,
    now: datetime,
    ledger_floor: datetime,
    facts: TimeFacts = _NO_FACTS,
    screened: bool = False,
    name_required: bool = True,
    max_payload_bytes: int = MAX_PAYLOAD_BYTES,
) -> JobSpec:
    """Check a job document.

    Args:
        data: the parsed document.
        now: the instant of the submission, by the database's clock if available.
        ledger_floor: runs before this instant were dropped; an earlier `run_at` is refused.
        facts: default zones and calendars of the namespaces.
        screened: True if `data` comes from `screening.parse_json`, which did part of the checks.
        name_required: whether a recurring job must have a name.
        max_payload_bytes: most bytes of the payload as JSON.

    Raises:
        Refused: if the document is invalid; lists every problem, with pointers relative to the document.
    """
    if not isinstance(data, dict):
        raise Refused([FieldError("", f"is {kind_of(data)}", "a job document: a JSON object")])
    if not screened and (unfit := screen(data)):
        raise Refused(unfit)
    shape = shape_of(data)
    if shape is not None and (like := _SHAPES.get(shape)) is not None:
        again = _alike(data, like, now, ledger_floor, facts, max_bytes=max_payload_bytes, named=name_required)
        if again is not None:
            return again
    spec = _check_all(data, now, ledger_floor, facts, max_payload_bytes, name_required=name_required)
    if shape is not None and spec.workflow is None:
        # Without what every document brings itself: a payload can be large.
        _SHAPES.keep(shape, msgspec.structs.replace(spec, payload_json=b"", schedule=None))
    return spec


def payload_for(kind: JobType, payload: object, *, limit: int = MAX_PAYLOAD_BYTES) -> bytes:
    """Check a payload that replaces a job's own, and return it in the form of `JobSpec.payload_json`.

    Raises:
        Refused: if it is invalid; lists every problem, with pointers that start with `/payload`.
    """
    if kind == WORKFLOW:
        raise Refused([FieldError("/payload", f"of a workflow {NOT_AVAILABLE}", "no payload")])
    problems: list[FieldError] = []
    encoded = encode_payload({"type": kind, "payload": payload}, limit, problems)
    if problems:
        raise Refused(problems)
    return encoded


def shape_of(data: dict[str, Any]) -> bytes | None:
    """Return the shared part of a screened document as JSON text; None if the document cannot be cached.

    JSON text distinguishes 1 from 1.0 and from true.
    """
    shape = orjson.dumps({name: value for name, value in data.items() if name not in _OWN})
    if len(shape) > _LONGEST_SHAPE:
        return None
    return shape if data.get("schedule") is None else shape + _RECURRING


def is_plain_line(text: object) -> bool:
    """Whether this is certainly a valid name, or null; False means that it needs the full check."""
    if text is None:
        return True
    return (
        type(text) is str
        and 0 < len(text) <= _LONGEST_LINE
        and text.isascii()
        and text.isprintable()
        and text[0] != " "
        and text[-1] != " "
    )


def _check_all(
    data: dict[str, Any],
    now: datetime,
    ledger_floor: datetime,
    facts: TimeFacts,
    max_payload_bytes: int,
    *,
    name_required: bool,
) -> JobSpec:
    problems: list[FieldError] = []
    document: JobDocument | None = None
    try:
        document = JobDocument.model_validate(data)
    except ValidationError as error:
        problems += field_errors(error, JobDocument, given=data)
    schedule = schedule_in(data, now, facts, problems, name_required=name_required)
    run_at = _run_at(data.get("run_at"), ledger_floor, problems)
    misfire = _misfire(data.get("misfire"), problems)
    kind = data.get("type")
    of_workflow = isinstance(kind, str) and kind.lower() == WORKFLOW
    payload_json, workflow, retry = b"", None, _RUN_ONCE
    if of_workflow:
        lane = document.priority if document is not None and "priority" in data else None
        workflow = workflow_in(data, lane, max_payload_bytes, problems)
    else:
        payload_json = encode_payload(data, max_payload_bytes, problems)
    _check_between_fields(data, problems, name_required=name_required)
    _check_type_fields(data, problems, of_workflow=of_workflow)
    if document is not None and not of_workflow:
        retry = retry_of(document, problems)
    if problems or document is None:
        raise Refused(problems)
    spec = _spec_of(document, payload_json, schedule, run_at, retry=retry, misfire=misfire)
    return spec if workflow is None else _with_tasks(spec, workflow)


def _with_tasks(spec: JobSpec, workflow: WorkflowSpec) -> JobSpec:
    """Complete the spec of a workflow: what its tasks decide, and what no document can say."""
    return msgspec.structs.replace(
        spec,
        # An edit of any task is an edit of the job.
        payload_json=orjson.dumps({"tasks": workflow.digest}),
        timeout_seconds=workflow.timeout_seconds,
        pool=WORKFLOW_POOL,
        workflow=workflow,
    )


def _spec_of(
    document: JobDocument,
    payload_json: bytes,
    schedule: Schedule | None,
    run_at: datetime | None,
    *,
    retry: RetryPolicy,
    misfire: Misfire,
) -> JobSpec:
    recurring = schedule is not None
    return JobSpec(
        document.name,
        document.type,
        document.handler,
        payload_json,
        schedule,
        run_at,
        document.timeout_seconds or DEFAULT_TIMEOUT_SECONDS.get(document.type, 0.0),
        retry,
        document.priority,
        document.pool,
        document.namespace,
        document.labels,
        misfire,
        Overlap(document.overlap) if document.overlap else Overlap.SKIP if recurring else Overlap.ALLOW,
        document.start_deadline_seconds,
        document.idempotency_key,
        document.description,
        document.owner,
        DeliverySemantics(document.delivery),
        document.deadline_seconds,
        tuple((limit.name, limit.key) for limit in document.limits),
        document.pause_after_failures,
        document.late_after_seconds,
    )


def _alike(
    data: dict[str, Any],
    like: JobSpec,
    now: datetime,
    ledger_floor: datetime,
    facts: TimeFacts,
    *,
    max_bytes: int,
    named: bool,
) -> JobSpec | None:
    """Read a document whose other fields are known to be valid; None: it needs the full check."""
    name, key = data.get("name"), data.get("idempotency_key")
    if not (is_plain_line(name) and is_plain_line(key)):
        return None
    problems: list[FieldError] = []
    run_at = _run_at(data.get("run_at"), ledger_floor, problems)
    schedule = schedule_in(data, now, facts, problems, name_required=named)
    payload = encode_payload(data, max_bytes, problems)
    if problems or (schedule is not None and (run_at is not None or (named and name is None))):
        return None
    own = {"schedule": schedule, "run_at": run_at, "payload_json": payload, "idempotency_key": key}
    return msgspec.structs.replace(like, name=name, **own)


def _run_at(value: object, ledger_floor: datetime, problems: list[FieldError]) -> datetime | None:
    if value is None:
        return None
    try:
        at = parse_instant(value)
    except ValueError as error:
        problems.append(FieldError.from_text("/run_at", str(error)))
        return None
    if at < ledger_floor:
        floor = format_instant(ledger_floor)
        problems.append(
            FieldError(
                "/run_at",
                f"{shown(value)} is before the ledger floor {floor}: older runs were dropped",
                f"an instant at or after {floor}",
            )
        )
    return at


def _misfire(value: object, problems: list[FieldError]) -> Misfire:
    if value is None or value == "fire_latest":
        return _DEFAULT_MISFIRE
    short = not isinstance(value, dict)
    try:
        document = MisfireDocument.model_validate({"policy": value} if short else value)
    except ValidationError as error:
        found = field_errors(error, MisfireDocument, ("misfire",))
        problems += (
            [FieldError("/misfire", item.message, item.expected + ", or an object") for item in found]
            if short
            else found
        )
        return _DEFAULT_MISFIRE
    look_back = document.look_back_seconds
    if look_back is not None and look_back < document.grace_seconds:
        problems.append(
            FieldError(
                "/misfire/look_back_seconds",
                f"{look_back:g} is below grace_seconds, {document.grace_seconds:g}",
                "a number of seconds not below grace_seconds",
            )
        )
        return _DEFAULT_MISFIRE
    return Misfire(MisfirePolicy(document.policy), document.grace_seconds, look_back)


def _check_between_fields(data: dict[str, Any], problems: list[FieldError], *, name_required: bool) -> None:
    """Check rules between fields, on the raw document, so that all problems are reported."""
    if data.get("schedule") is not None:
        if data.get("run_at") is not None:
            problems.append(
                FieldError(
                    "/run_at", "cannot be combined with schedule", "one of the two, or neither to run now"
                )
            )
        if name_required and data.get("name") is None:
            problems.append(
                FieldError("/name", "is missing: a recurring job needs a name", "1 to 200 characters")
            )
    check_limits(data.get("limits"), problems)


def _check_type_fields(data: dict[str, Any], problems: list[FieldError], *, of_workflow: bool) -> None:
    """Refuse the fields that only workflows have, or only other jobs."""
    if not of_workflow:
        check_work(data, problems)
        problems += [
            FieldError(f"/{name}", "is for workflows only", f"no {name}, or type workflow")
            for name in OF_WORKFLOWS
            if data.get(name) is not None
        ]
        return
    for name in OF_TASKS:
        if data.get(name) is not None:
            place = "in each task" if name in _OF_EACH_TASK else "in defaults or in a task"
            problems.append(
                FieldError(f"/{name}", "is a field of tasks, not of a workflow", f"{name} {place}")
            )
