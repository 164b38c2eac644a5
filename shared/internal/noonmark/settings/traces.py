"""Settings of traces."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings

from noonmark.settings.checks import checked_outside_url


class TraceSettings(BaseSettings):
    """Where traces are sent, and how many runs are traced."""

    otlp_endpoint: Annotated[str, AfterValidator(checked_outside_url)] = Field(
        "",
        description="OpenTelemetry collector that receives traces (OTLP over HTTP). Empty: no traces.",
    )
    trace_share: float = Field(
        0.01, ge=0, le=1, description="Share of runs that are traced without a client's request."
    )
