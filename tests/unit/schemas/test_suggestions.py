"""What errors about unknown fields suggest: our name for what others call it, or a name that is spelled alike."""

from __future__ import annotations

from typing import get_args

import pytest

from noonmark.schemas.api.limits import LimitFigures
from noonmark.schemas.api.namespaces import NamespaceSettings
from noonmark.schemas.events.submissions import JobUpdate
from noonmark.schemas.jobs.documents import JobDocument
from noonmark.schemas.jobs.http_payload import HttpPayload
from noonmark.schemas.jobs.payloads import PAYLOADS
from noonmark.schemas.jobs.policies import MisfireDocument, RetryDocument
from noonmark.schemas.jobs.requests import JobCancel, JobReference
from noonmark.schemas.jobs.schedule_documents import ScheduleDocument, ScheduleMember
from noonmark.schemas.jobs.task_documents import DependencyDocument, TaskDefaults, TaskDocument
from noonmark.schemas.problems.pydantic_errors import Document, PayloadDocument, model_in, unknown_field
from noonmark.schemas.problems.suggestions import suggestion


def said(model: type[Document], name: str) -> str:
    """Return what the error about an unknown field suggests."""
    message = unknown_field(name, model, (name,)).message
    assert message.startswith("unknown field")
    return message.removeprefix("unknown field").removeprefix("; did you mean ").removesuffix("?")


@pytest.mark.parametrize(
    ("model", "name", "meant"),
    [
        # What users of other schedulers and queues write.
        (JobDocument, "every_seconds", "'schedule.every'"),
        (JobDocument, "interval", "'schedule.every'"),
        (JobDocument, "cron", "'schedule' or 'schedule.cron'"),
        (JobDocument, "crontab", "'schedule' or 'schedule.cron'"),
        (JobDocument, "timezone", "'schedule.timezone'"),
        (JobDocument, "zone", "'schedule.timezone'"),
        (JobDocument, "tz", "'schedule.timezone'"),
        (JobDocument, "retries", "'max_retries'"),
        (JobDocument, "max_attempts", "'max_retries'"),
        (JobDocument, "backoffLimit", "'max_retries'"),
        (JobDocument, "queue", "'pool'"),
        (JobDocument, "timeout", "'timeout_seconds'"),
        (JobDocument, "time_limit", "'timeout_seconds'"),
        (JobDocument, "activeDeadlineSeconds", "'timeout_seconds'"),
        (JobDocument, "startingDeadlineSeconds", "'start_deadline_seconds'"),
        (JobDocument, "args", "'payload'"),
        (JobDocument, "kwargs", "'payload'"),
        (JobDocument, "url", "'payload.url'"),
        (JobDocument, "at", "'run_at'"),
        (JobDocument, "eta", "'run_at'"),
        (JobDocument, "countdown", "'run_at'"),
        (JobDocument, "countdown_seconds", "'run_at'"),
        (JobDocument, "delay", "'run_at' or 'retry_delay_seconds'"),
        (JobDocument, "misfire_grace_time", "'misfire.grace_seconds'"),
        (JobDocument, "concurrencyPolicy", "'overlap'"),
        (JobDocument, "max_instances", "'overlap'"),
        (JobDocument, "tags", "'labels'"),
        (JobDocument, "task", "'handler'"),
        (JobDocument, "queueing_lock", "'idempotency_key'"),
        (JobReference, "id", "'job_id'"),
        (JobReference, "why", ""),
        (JobCancel, "why", "'reason'"),
        (ScheduleMember, "tz", "'schedule.timezone' of the job"),
        (ScheduleMember, "eta", "'at'"),
        (ScheduleDocument, "tz", "'timezone'"),
        (ScheduleDocument, "every_seconds", "'every'"),
        (ScheduleDocument, "minutes", "'every'"),
        (ScheduleDocument, "until", "'end'"),
        (ScheduleDocument, "run_at", "'run_at' of the job"),
        (RetryDocument, "attempts", "'max_retries'"),
        (RetryDocument, "delay", "'delay_seconds'"),
        (RetryDocument, "backoff", "'factor'"),
        (MisfireDocument, "grace", "'grace_seconds'"),
        (HttpPayload, "json", "'body'"),
        (JobDocument, "steps", "'tasks'"),
        (TaskDocument, "needs", "'depends_on'"),
        (TaskDocument, "trigger_rule", "'rule'"),
        (TaskDocument, "retries", "'max_retries'"),
        (TaskDocument, "url", "'payload.url'"),
        (TaskDocument, "schedule", "'schedule' of the job"),
        (TaskDocument, "depend_on", "'depends_on'"),
        (TaskDefaults, "queue", "'pool'"),
        (DependencyDocument, "when", "'if'"),
        (HttpPayload, "timeout", "'timeout_seconds' of the job"),
        (LimitFigures, "concurrency", "'max_running'"),
        (NamespaceSettings, "zone", "'timezone'"),
        # Names that are spelled almost alike, in another case or with another unit.
        (JobDocument, "nmae", "'name'"),
        (JobDocument, "max_retires", "'max_retries'"),
        (JobDocument, "maxRetries", "'max_retries'"),
        (JobDocument, "Max-Retries", "'max_retries'"),
        (JobDocument, "payloads", "'payload'"),
        (JobDocument, "retry_delay_secs", "'retry_delay_seconds'"),
        (JobDocument, "retry_delay_ms", "'retry_delay_seconds'"),
        (JobDocument, "idempotency", "'idempotency_key'"),
        (JobDocument, "timezne", "'schedule.timezone'"),
        (JobDocument, "calendar", "'schedule.calendars'"),
        (ScheduleDocument, "edn", "'end'"),
        (ScheduleDocument, "crn", "'cron'"),
        (HttpPayload, "ur", "'url'"),
        # Nothing is better than what misleads.
        (JobDocument, "order", ""),
        (JobDocument, "enabled", ""),
        (JobDocument, "paused", ""),
        (JobDocument, "pause", ""),
        (JobDocument, "foo", ""),
        (JobDocument, "date", ""),
        (JobDocument, "x", ""),
        (JobDocument, "", ""),
        (ScheduleDocument, "nothing", ""),
    ],
)
def test_a_suggestion_is_what_is_meant(model, name, meant):
    assert said(model, name) == meant


def test_names_of_other_things_are_only_suggested_if_they_are_alike():
    assert suggestion("strpe", ["stripe", "mail"]) == "; did you mean 'stripe'?"
    assert suggestion("paypal", ["stripe", "mail"]) == ""
    types = ["noonmark.job.create.v1", "noonmark.job.pause.v1", "noonmark.job.cancel.v1"]
    assert suggestion("noonmark.job.crate.v1", types) == "; did you mean 'noonmark.job.create.v1'?"
    assert suggestion("noonmark.job.create", types) == "; did you mean 'noonmark.job.create.v1'?"
    assert suggestion("noonmark.job.stop.v1", types) == ""


def documents(model: type[Document] = Document):
    for found in model.__subclasses__():
        yield found
        yield from documents(found)


MODELS = [
    model
    for model in documents()
    if model.synonyms and model.__module__.startswith("noonmark.") and model is not PayloadDocument
]


def fields(model: type[Document]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def exists(path: str, model: type[Document]) -> bool:
    """Return whether a path leads to a field of a document, through those of any kind in a payload."""
    first, _, rest = path.partition(".")
    if not rest:
        return first in fields(model)
    if issubclass(model, JobDocument | TaskDocument) and first == "payload":
        return any(exists(rest, payload) for payload in PAYLOADS.values())
    found = model.model_fields.get(first)
    if found is None:
        return False
    inner = [one for one in (found.annotation, *get_args(found.annotation)) if model_in(one)]
    return any(exists(rest, model_in(one)) for one in inner)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_name_of_ours_exists_and_no_name_of_others_is_ours(model):
    kin = [one for one in (JobUpdate, *MODELS) if one.synonyms is model.synonyms]
    for other, ours in model.synonyms.items():
        assert other == other.lower()
        assert other not in fields(model), f"{other} is a field of {model.__name__}"
        for path in filter(None, ours.split("|")):
            found = [JobDocument] if path.startswith("/") else kin
            assert any(exists(path.removeprefix("/"), one) for one in found), (
                f"{model.__name__}: {other} -> {path}"
            )


def test_every_field_of_a_schedule_has_its_path_at_the_top():
    for name in ScheduleDocument.model_fields:
        assert f"schedule.{name}" in JobDocument.synonyms[name].split("|")
