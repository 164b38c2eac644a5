"""Namespaces in API requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from noonmark.core.states import ResumeChoice
from noonmark.schemas.api.common import Answer
from noonmark.schemas.jobs.requests import Reason
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document


class Namespace(Answer):
    """A namespace with its defaults and quotas."""

    name: str
    timezone: Annotated[str, Field(description="Time zone of schedules that name none.")]
    max_in_flight: Annotated[
        int | None, Field(description="Most runs of each lane in flight; null: unlimited.")
    ]
    max_jobs: Annotated[
        int | None, Field(description="Most recurring jobs that are not cancelled; null: unlimited.")
    ]
    state: Annotated[Literal["active", "paused"], Field(description="paused: none of its runs start.")]
    paused_at: datetime | None
    pause_reason: str | None
    updated_at: Annotated[datetime | None, Field(description="null: the namespace has the defaults.")]


class NamespaceDetail(Namespace):
    """A namespace with the number of its jobs."""

    recurring_jobs: Annotated[
        dict[str, int],
        Field(
            description="Number of recurring jobs by state; paused ones as `paused_by_job` and "
            "`paused_by_namespace`."
        ),
    ]


class Namespaces(Answer):
    """Namespaces, sorted by name."""

    items: list[Namespace]


class NamespaceSettings(Document):
    """Settings of a namespace; omitted fields return to their default."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.NAMESPACE

    timezone: Annotated[
        str, Field(min_length=1, max_length=64, description="IANA time zone of schedules that name none.")
    ] = "UTC"
    max_in_flight: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="Most runs of each lane in flight.")
    ] = None
    max_jobs: Annotated[
        int | None, Field(ge=1, le=10_000_000, description="Most recurring jobs that are not cancelled.")
    ] = None


class NamespacePause(Document):
    """Why a namespace is paused."""

    reason: Reason = None


class NamespaceResume(Document):
    """What to do with instants that came due during the pause."""

    missed: Annotated[
        Literal["skip", "latest", "all"],
        Field(description="skip: none runs; latest: the latest runs; all: all run."),
    ] = ResumeChoice.SKIP.value


class NamespaceChange(Answer):
    """Result of one call to pause or resume a namespace."""

    name: str
    state: Literal["active", "paused"]
    changed: Annotated[bool, Field(description="True if the state of the namespace changed.")]
    jobs: Annotated[int, Field(description="Jobs that this call paused or resumed.")]
    runs: Annotated[int, Field(description="Runs that this call deferred, or enqueued again.")]
    jobs_with_held_instants: Annotated[
        int, Field(description="Resumed jobs with instants that came due during the pause.")
    ]
    complete: Annotated[bool, Field(description="False: jobs are left; repeat the call to continue.")]
