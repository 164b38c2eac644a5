"""Base of all events that noonmark publishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, WithJsonSchema

SOURCE: Final = "/noonmark"


def open_enum(values: Sequence[str], about: str) -> Any:
    """Annotate text with its known values; later versions can add more."""
    return WithJsonSchema(
        {
            "anyOf": [{"enum": list(values)}, {"type": "string"}],
            "description": f"{about} Later versions may add values.",
        }
    )


class Published(BaseModel):
    """Base of events that consumers read. They ignore unknown fields, so that later versions can add some."""

    model_config = ConfigDict(extra="ignore", frozen=True)
