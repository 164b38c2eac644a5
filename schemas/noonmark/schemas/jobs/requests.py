"""Requests about existing jobs and runs, as clients write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic.config import JsonDict

from noonmark.core.states import Lane
from noonmark.schemas.jobs.documents import Namespace
from noonmark.schemas.jobs.policies import Line
from noonmark.schemas.jobs.work_fields import PRIORITY_SCHEMA, optional_lane
from noonmark.schemas.problems import other_names
from noonmark.schemas.problems.pydantic_errors import Document, Expected

MOST_RUNS: Final = 100
"""Most runs that one event can cancel."""

_UUID_PATTERN: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_ONE_NAME: Final[JsonDict] = {"oneOf": [{"required": ["job_id"]}, {"required": ["name"]}]}

JobId = Annotated[
    str | None,
    Field(pattern=_UUID_PATTERN, description="Id of the job."),
    Expected("a UUID in the form with 36 characters"),
]
Reason = Annotated[
    str | None,
    Field(min_length=1, max_length=500, description="Why, for people and the audit log."),
    Expected("text of 1 to 500 characters"),
]


class JobReference(Document):
    """Identifies a job by `job_id`, or by `name` in `namespace`."""

    synonyms: ClassVar[Mapping[str, str]] = other_names.REFERENCE

    model_config = ConfigDict(json_schema_extra=_ONE_NAME)

    job_id: JobId = None
    namespace: Namespace = "default"
    name: Annotated[
        Line | None, Field(description="Name of the job."), Expected("1 to 200 characters on one line")
    ] = None


class ReasonedReference(JobReference):
    """Identifies a job, with a reason for the request."""

    reason: Reason = None


class JobResume(JobReference):
    """Which job to resume, and what to do with instants that came due while it was paused."""

    missed: Annotated[
        Literal["skip", "latest", "all"],
        Field(
            description="Instants of a recurring job that came due during the pause. skip: none runs; "
            "latest: the latest runs; all: all run, oldest first."
        ),
        Expected("skip, latest or all"),
    ] = "skip"


class JobCancel(ReasonedReference):
    """Which job to cancel, why, and what to do with its running runs."""

    running: Annotated[
        Literal["stop", "finish"],
        Field(description="Started runs: stop requests them to stop, finish lets them finish."),
        Expected("stop or finish"),
    ] = "stop"


class JobTrigger(JobReference):
    """Which job to run once now, and values that replace the job's own for this run."""

    payload: Annotated[
        Any, Field(description="Replaces the whole payload of the job. Default: the job's own.")
    ] = None
    priority: Annotated[
        Lane | None,
        PlainValidator(optional_lane),
        WithJsonSchema({"anyOf": [PRIORITY_SCHEMA, {"type": "null"}], "default": None}),
        Field(description="Lane of the run. Default: the job's own.", json_schema_extra={"default": None}),
        Expected("high, normal, low, or an integer from 1 (most urgent) to 10"),
    ] = None


class RunsCancel(Document):
    """Which runs to cancel."""

    run_ids: Annotated[
        list[Annotated[str, Field(pattern=_UUID_PATTERN)]],
        Field(min_length=1, max_length=MOST_RUNS, description="Ids of the runs."),
        Expected(f"1 to {MOST_RUNS} UUIDs in the form with 36 characters"),
    ]
    reason: Reason = None
