"""The message that brings a queued run to a worker: a pointer, never the work itself.

Both sides are hot paths, so reading and writing do without pydantic; `RunQueued` documents the form.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from noonmark.schemas.envelope import render_structured
from noonmark.schemas.lifecycle import SOURCE, LaneName
from noonmark.schemas.refusal import FieldError, Refused

QUEUED: Final = "noonmark.run.queued.v1"

_PLACE: Final = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


class RunQueued(BaseModel):
    """One queueing of a run. A worker runs what the start statement returns, whatever else is said here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    run_id: UUID
    job_id: UUID
    namespace: str
    pool: str
    lane: LaneName
    scheduled_for: Annotated[datetime, Field(description="Part of the run's key: prunes partitions.")]
    fence: Annotated[int, Field(ge=0, description="The queueing this message belongs to.")]
    job_version: Annotated[int, Field(ge=0, description="Version of the job the run was planned with.")]
    key_id: Annotated[str, Field(description="Which key of the pool signed; empty: unsigned.")] = ""
    signature: Annotated[str, Field(description="HMAC over the signing text, hexadecimal.")] = ""


class RunMessage(msgspec.Struct, frozen=True):
    """`RunQueued` for the hot path."""

    run_id: UUID
    job_id: UUID
    namespace: str
    pool: str
    lane: str
    scheduled_for: Annotated[datetime, msgspec.Meta(tz=True)]
    fence: Annotated[int, msgspec.Meta(ge=0)]
    job_version: Annotated[int, msgspec.Meta(ge=0)]
    key_id: str = ""
    signature: str = ""

    def signing_text(self) -> bytes:
        """Return what the signature covers: every field but the signature, one a line.

        No field can hold a line break, so two different messages never sign alike. The instant is in
        microseconds since 1970, because its text has many forms.
        """
        micros = round(self.scheduled_for.timestamp() * 1_000_000)
        return (
            f"{QUEUED}\n{self.namespace}\n{self.pool}\n{self.lane}\n{self.job_id}\n{self.run_id}\n{micros}\n"
            f"{self.fence}\n{self.job_version}\n{self.key_id}"
        ).encode()


class _Envelope(msgspec.Struct):
    type: str
    data: RunMessage


_decoder = msgspec.json.Decoder(_Envelope)


def render_run_message(message: RunMessage) -> bytes:
    """Return the structured-mode value of a run message."""
    return render_structured(
        id=f"{message.run_id}.{message.fence}",
        source=SOURCE,
        type=QUEUED,
        data={name: getattr(message, name) for name in message.__struct_fields__},
    )


def parse_run_message(value: bytes | None) -> RunMessage:
    """Read the value of a record of a run topic.

    Raises:
        Refused: no such message.
    """
    if value is None:
        raise Refused([FieldError("", "the record has no value", f"a {QUEUED} event")])
    try:
        envelope = _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        text = str(error)
        place = _PLACE.search(text)
        path = "/" + place["path"].replace(".", "/") if place and place["path"] else ""
        raise Refused([FieldError(path, _PLACE.sub("", text), f"a {QUEUED} event")]) from None
    if envelope.type != QUEUED:
        raise Refused([FieldError("/type", f"{envelope.type[:80]!r} is not read here", QUEUED)])
    return envelope.data
