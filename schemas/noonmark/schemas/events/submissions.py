"""Submissions that clients send on the submission topics: one class per event type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

import orjson
from pydantic import ConfigDict, Field, ValidationError

from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.core.states import Lane, ResumeChoice
from noonmark.schemas.events.envelope import Event
from noonmark.schemas.jobs.completion import RunCompletion
from noonmark.schemas.jobs.documents import JobDocument, field_rules
from noonmark.schemas.jobs.job import MAX_PAYLOAD_BYTES, JobSpec, parse_job
from noonmark.schemas.jobs.requests import (
    JobCancel,
    JobId,
    JobReference,
    JobResume,
    JobTrigger,
    ReasonedReference,
    RunsCancel,
)
from noonmark.schemas.problems.pydantic_errors import Document, field_errors
from noonmark.schemas.problems.refusal import FieldError, Refused, kind_of, shown
from noonmark.schemas.problems.screening import screen
from noonmark.schemas.problems.suggestions import suggestion

CREATE: Final = "noonmark.job.create.v1"
UPDATE: Final = "noonmark.job.update.v1"
CANCEL: Final = "noonmark.job.cancel.v1"
PAUSE: Final = "noonmark.job.pause.v1"
RESUME: Final = "noonmark.job.resume.v1"
TRIGGER: Final = "noonmark.job.trigger.v1"
CANCEL_RUNS: Final = "noonmark.run.cancel.v1"
COMPLETE_RUN: Final = "noonmark.run.complete.v1"
TYPES: Final = (CREATE, UPDATE, CANCEL, PAUSE, RESUME, TRIGGER, CANCEL_RUNS, COMPLETE_RUN)

DEFAULT_NAMESPACE: Final = "default"

_NO_FACTS: Final = TimeFacts()


class JobUpdate(JobDocument):
    """The complete new document of a job: omitted fields return to their default."""

    model_config = ConfigDict(
        title="noonmark job update",
        json_schema_extra={
            **field_rules(name_required=False),
            "anyOf": [{"required": ["job_id"]}, {"required": ["name"]}],
        },
    )

    job_id: Annotated[
        JobId, Field(description="Id of the job. Without it, `name` and `namespace` identify the job.")
    ] = None


class JobRef(NamedTuple):
    """Identifies one job by id, or by name in a namespace."""

    job_id: UUID | None
    namespace: str
    name: str | None


@dataclass(slots=True, frozen=True)
class CreateJob:
    """Create a job."""

    spec: JobSpec


@dataclass(slots=True, frozen=True)
class UpdateJob:
    """Replace the document of a job. `spec.name` may be None if `ref` has an id: the job keeps its name.

    Attributes:
        schedule: the schedule as written, if `ref` has an id: the namespace of the job may have another
            default zone and other calendars than the one in the document.
    """

    ref: JobRef
    spec: JobSpec
    schedule: object = None


@dataclass(slots=True, frozen=True)
class CancelJob:
    """Cancel a job: it is never due again, and its unfinished runs are cancelled.

    Attributes:
        stops_running: True: started runs are asked to stop; False: they finish.
    """

    ref: JobRef
    reason: str | None
    stops_running: bool = True


@dataclass(slots=True, frozen=True)
class PauseJob:
    """Pause a job until it is resumed."""

    ref: JobRef
    reason: str | None


@dataclass(slots=True, frozen=True)
class ResumeJob:
    """Resume a paused job; `missed` says what to do with instants that came due during the pause."""

    ref: JobRef
    missed: ResumeChoice = ResumeChoice.SKIP


@dataclass(slots=True, frozen=True)
class TriggerJob:
    """Run a job once now, in addition to its schedule.

    Attributes:
        payload: JSON that replaces the job's payload for this run; None: the job's own.
        lane: lane of the run; None: the job's own.
    """

    ref: JobRef
    payload: bytes | None = None
    lane: Lane | None = None


@dataclass(slots=True, frozen=True)
class CancelRuns:
    """Cancel runs: those without a worker at once; running ones are asked to stop."""

    run_ids: tuple[UUID, ...]
    reason: str | None = None
    actor: str | None = None
    """Who requested it, if not the source of an event."""


@dataclass(slots=True, frozen=True)
class CompleteRun:
    """Report the outcome of a run whose target responded 202. `result` is JSON."""

    run_id: UUID
    token: str
    succeeded: bool
    result: bytes | None
    error: str | None
    retryable: bool


Submission = CreateJob | UpdateJob | CancelJob | PauseJob | ResumeJob | TriggerJob | CancelRuns | CompleteRun


def parse_submission(
    event: Event,
    *,
    now: datetime,
    ledger_floor: datetime,
    facts: TimeFacts = _NO_FACTS,
    max_payload_bytes: int = MAX_PAYLOAD_BYTES,
    namespace: str = DEFAULT_NAMESPACE,
) -> Submission:
    """Check an event of a submission topic.

    Args:
        event: the event, from `envelope.parse_event`.
        now: the instant of the submission.
        ledger_floor: runs before this instant were dropped; an earlier `run_at` is refused.
        facts: default zones and calendars of the namespaces.
        max_payload_bytes: most bytes of a job's payload as JSON.
        namespace: namespace of data that names none.

    Raises:
        Refused: if the event is invalid; lists every problem. Pointers are relative to the event: `/data/…`.
    """
    if event.type not in _READERS:
        raise Refused([_unknown_type(event.type)])
    data = event.data
    if not isinstance(data, dict):
        raise Refused([FieldError("/data", f"is {kind_of(data)}", "a JSON object")])
    if not event.screened and (unfit := screen(data)):
        raise Refused(unfit).below("/data")
    if namespace != DEFAULT_NAMESPACE and event.type in _IN_A_NAMESPACE:
        data = {"namespace": namespace, **data}
    known: dict[str, Any] = {
        "now": now,
        "ledger_floor": ledger_floor,
        "facts": facts,
        "screened": True,
        "max_payload_bytes": max_payload_bytes,
    }
    try:
        if event.type == CREATE:
            return CreateJob(parse_job(data, **known))
        if event.type == UPDATE:
            return _update(data, partial(parse_job, **known))
        return _order(event.type, data)
    except Refused as refused:
        raise refused.below("/data") from None


_READERS: Final[Mapping[str, type[Document]]] = {
    CREATE: JobDocument,
    UPDATE: JobUpdate,
    CANCEL: JobCancel,
    PAUSE: ReasonedReference,
    RESUME: JobResume,
    TRIGGER: JobTrigger,
    CANCEL_RUNS: RunsCancel,
    COMPLETE_RUN: RunCompletion,
}

_IN_A_NAMESPACE: Final = frozenset({CREATE, UPDATE, CANCEL, PAUSE, RESUME, TRIGGER})


def data_model(event_type: str) -> type[Document]:
    """Return the model of a submission type's data."""
    return _READERS[event_type]


def _unknown_type(name: str) -> FieldError:
    stem, dot, version = name.rpartition(".v")
    known = ", ".join(TYPES)
    if dot and version.isdecimal() and f"{stem}.v1" in TYPES:
        return FieldError("/type", f"major version {version} of {stem} is not supported", f"{stem}.v1")
    return FieldError(
        "/type", f"{shown(name)} is not a submission{suggestion(name, TYPES)}", f"one of {known}"
    )


def _update(data: dict[str, Any], read_job: Callable[..., JobSpec]) -> UpdateJob:
    document = dict(data)
    problems: list[FieldError] = []
    job_id = document.pop("job_id", None)
    named = isinstance(job_id, str) or document.get("name") is not None
    spec = None
    try:
        # Without name and id, report one problem, not two.
        spec = read_job(document, name_required=named and job_id is None)
    except Refused as refused:
        problems += refused.errors
    if job_id is not None:
        try:
            JobReference.model_validate({"job_id": job_id})
        except ValidationError as error:
            problems += field_errors(error, JobReference)
    elif not named:
        problems.append(FieldError("", "identifies no job", "job_id, or name with its namespace"))
    if problems or spec is None:
        raise Refused(problems)
    ref = JobRef(UUID(job_id) if job_id else None, spec.namespace, spec.name)
    return UpdateJob(ref, spec, document.get("schedule") if job_id else None)


def _order(kind: str, data: dict[str, Any]) -> Submission:
    model = _READERS[kind]
    try:
        order = model.model_validate(data)
    except ValidationError as error:
        raise Refused(field_errors(error, model)) from None
    if isinstance(order, RunCompletion):
        return _completion(order)
    if isinstance(order, RunsCancel):
        return CancelRuns(tuple(UUID(run_id) for run_id in dict.fromkeys(order.run_ids)), order.reason)
    assert isinstance(order, JobReference)
    if order.job_id is None and order.name is None:
        raise Refused([FieldError("", "identifies no job", "job_id, or name with its namespace")])
    if order.job_id is not None and order.name is not None:
        raise Refused([FieldError("/name", "cannot be combined with job_id", "one of the two")])
    ref = JobRef(UUID(order.job_id) if order.job_id else None, order.namespace, order.name)
    return _order_of_job(order, ref)


def _order_of_job(order: JobReference, ref: JobRef) -> Submission:
    match order:
        case JobCancel():
            return CancelJob(ref, order.reason, order.running == "stop")
        case ReasonedReference():
            return PauseJob(ref, order.reason)
        case JobResume():
            return ResumeJob(ref, ResumeChoice(order.missed))
        case JobTrigger():
            given = "payload" in order.model_fields_set
            return TriggerJob(ref, orjson.dumps(order.payload) if given else None, order.priority)
    raise AssertionError(type(order).__name__)


def _completion(report: RunCompletion) -> CompleteRun:
    result = None if report.result is None else orjson.dumps(report.result)
    return CompleteRun(
        UUID(report.run_id),
        report.token,
        report.outcome == "succeeded",
        result,
        report.error,
        report.retryable,
    )
