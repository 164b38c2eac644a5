"""Settings of the intake, which reads submissions from Kafka."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode

from noonmark.core.access.topic_bindings import read_bindings


class IntakeSettings(BaseSettings):
    """What the intake accepts, and what it keeps of refused events."""

    intake_batch: int = Field(1000, ge=1, le=10_000, description="Submissions written in one transaction.")
    max_submission_bytes: int = Field(
        256 * 1024,
        ge=1024,
        le=8 * 1024 * 1024,
        description="Largest event in bytes; larger ones are refused unread.",
    )
    bound_topics: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Topics whose events need no signature, each as `topic=namespace`: their events act as an"
        " editor of that namespace, with `topic=*` of every namespace. Topics other than the two for"
        " submissions are read too. None by default. See [events.md](events.md#who-may-publish).",
    )
    rejection_bytes: int = Field(
        16 * 1024, ge=0, le=1024 * 1024, description="Bytes that are kept of a refused event."
    )

    @field_validator("bound_topics")
    @classmethod
    def _check_bound_topics(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        read_bindings(given)
        return given
