"""What all events that noonmark publishes have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, WithJsonSchema

SOURCE: Final = "/noonmark"


def open_enum(values: Sequence[str], about: str) -> Any:
    """Annotate text whose known values are listed, while later ones stay valid."""
    return WithJsonSchema(
        {"anyOf": [{"enum": list(values)}, {"type": "string"}], "description": f"{about} More may be added."}
    )


class Published(BaseModel):
    """Base of what consumers read: unknown fields are ignored, so that fields can be added."""

    model_config = ConfigDict(extra="ignore", frozen=True)
