"""Settings of the watchdog, which reports to a service outside of the installation."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings

from noonmark.settings.checks import checked_outside_url


class WatchdogSettings(BaseSettings):
    """Where the watchdog sends its beats, how often, and when it stops."""

    watchdog_url: Annotated[SecretStr, AfterValidator(checked_outside_url)] = Field(
        SecretStr(""),
        description="URL outside of the installation that the watchdog calls while all parts make progress.",
    )
    watchdog_seconds: float = Field(
        30.0, ge=1, le=3600, description="Time between two beats of the watchdog."
    )
    watchdog_stale_seconds: float = Field(
        60.0, ge=2, le=3600, description="The beats stop when a part makes no progress for longer than this."
    )
