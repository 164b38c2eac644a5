"""Namespaces as the API takes and shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from noonmark.core.vocabulary import ResumeChoice
from noonmark.schemas.api.common import Answer
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems.pydantic_errors import Document


class Namespace(Answer):
    """A namespace with its defaults and quotas."""

    name: str
    timezone: Annotated[str, Field(description="Of schedules that name none.")]
    max_in_flight: Annotated[
        int | None, Field(description="Most runs of each priority under way at a time; null: any number.")
    ]
    max_jobs: Annotated[
        int | None, Field(description="Most recurring jobs that are not cancelled; null: any number.")
    ]
    state: Annotated[Literal["active", "paused"], Field(description="Paused: nothing of it starts.")]
    paused_at: datetime | None
    pause_reason: str | None
    updated_at: Annotated[datetime | None, Field(description="Null where it has the defaults.")]


class NamespaceDetail(Namespace):
    """The same with counts."""

    recurring_jobs: Annotated[
        dict[str, int],
        Field(description="By state; paused ones as `paused_by_job` and `paused_by_namespace`."),
    ]


class Namespaces(Answer):
    """Namespaces by name."""

    items: list[Namespace]


class NamespaceSettings(Document):
    """What is set for a namespace; what is left out has its default."""

    timezone: Annotated[
        str, Field(min_length=1, max_length=64, description="IANA zone of schedules that name none.")
    ] = "UTC"
    max_in_flight: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="Most runs of each priority under way at a time.")
    ] = None
    max_jobs: Annotated[
        int | None, Field(ge=1, le=10_000_000, description="Most recurring jobs that are not cancelled.")
    ] = None


class NamespacePause(Document):
    """Why a namespace is paused."""

    reason: Reason = None


class NamespaceResume(Document):
    """What becomes of the instants that the pause held."""

    missed: Annotated[
        Literal["skip", "latest", "all"], Field(description="Whether none, the latest, or all of them run.")
    ] = ResumeChoice.SKIP.value


class NamespaceChange(Answer):
    """What a pause or resume did by this call."""

    name: str
    state: Literal["active", "paused"]
    changed: Annotated[bool, Field(description="It was not so before.")]
    jobs: Annotated[int, Field(description="Jobs that are held, or go on, by this call.")]
    runs: Annotated[int, Field(description="Runs that wait, or are queued again.")]
    jobs_with_held_instants: Annotated[
        int, Field(description="Of a resume: jobs with instants that came due in the pause.")
    ]
    complete: Annotated[bool, Field(description="False: others are left; repeat the call to go on.")]
