"""Why a job or run has not run: responses of `/v1/jobs/{id}/why` and `/v1/runs/{id}/why`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from noonmark.core.why.answers import Answer as Given
from noonmark.core.why.answers import Blocker, Weight
from noonmark.core.why.facts import Facts
from noonmark.schemas.api.common import Answer, JsonObject

__all__ = ["Why", "WhyAnswer", "why_document"]


class WhyAnswer(Answer):
    """One answer. docs/why.md explains every code."""

    code: Annotated[Blocker, Field(description="Code of the answer.")]
    blocks: Annotated[
        bool,
        Field(
            description="True if this prevents the run from starting; otherwise it is additional information."
        ),
    ]
    sentence: Annotated[str, Field(description="What blocks, by whom or what, and since or until when.")]
    remedy: Annotated[str, Field(description="What to do.")]
    facts: Annotated[
        JsonObject,
        Field(description="Ids, instants and numbers for the sentence; docs/why.md lists them."),
    ]


class Why(Answer):
    """Why a job or a run has not run, or its outcome."""

    kind: Annotated[Literal["job", "run"], Field(description="Whether the request was about a job or a run.")]
    id: UUID
    job_id: UUID
    job_name: str | None
    namespace: str
    state: Annotated[
        str, Field(description="State of the job or run; `undecided`: of a task that has no run yet.")
    ]
    workflow_id: Annotated[
        UUID | None, Field(description="If it is about a task: id of the workflow run.")
    ] = None
    task: Annotated[str | None, Field(description="If it is about a task: its key.")] = None
    asked_at: Annotated[datetime, Field(description="Time on the database's clock.")]
    answers: Annotated[
        list[WhyAnswer],
        Field(min_length=1, description="Actual blockers first; there is always at least one answer."),
    ]


def why_document(facts: Facts, answers: list[Given], state: str) -> Why:
    """Build the response from the facts, the answers, and the state as listings show it."""
    run, job = facts.run, facts.job
    about = run if run is not None else job
    assert about is not None
    workflow = facts.workflow
    task = workflow.tasks[workflow.task] if workflow is not None and workflow.task is not None else None
    return Why(
        kind="job" if run is None else "run",
        id=about.id,
        job_id=run.job_id if run is not None else about.id,
        job_name=job.name if job is not None else None,
        namespace=about.namespace,
        state=state if task is None else task.state,
        workflow_id=workflow.id if workflow is not None and task is not None else None,
        task=task.key if task is not None else None,
        asked_at=facts.now,
        answers=[
            WhyAnswer(
                code=one.code,
                blocks=one.weight is Weight.BLOCKS,
                sentence=one.sentence,
                remedy=one.remedy,
                facts=dict(one.facts),
            )
            for one in answers
        ],
    )
