"""Settings that every service reads: Postgres, time zones, telemetry, leases."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from noonmark.core.zones.zones import ZoneData
from noonmark.settings.postgres_url import check_database_url


class PostgresSettings(BaseSettings):
    """How a service connects to Postgres."""

    database_url: SecretStr = Field(
        SecretStr("postgresql://localhost/noonmark"),
        description="Postgres 15 or newer, as a libpq URL or connection string.",
    )

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, given: SecretStr) -> SecretStr:
        check_database_url(given.get_secret_value())
        return given


class ZoneSettings(BaseSettings):
    """Which time zone data a service plans with."""

    zone_data_dir: str = Field(
        "",
        description="Directory of compiled time zone data (TZif files, and `tzdata.zi` or `version`). Empty:"
        " the data of the Python package tzdata. See [time-zones.md](time-zones.md).",
    )

    @field_validator("zone_data_dir")
    @classmethod
    def _check_zone_data(cls, given: str) -> str:
        if given:
            ZoneData.from_directory(Path(given))
        return given


class TelemetrySettings(BaseSettings):
    """Where a service exposes its health and metrics, and what it logs."""

    metrics_host: str = Field("127.0.0.1", description="Address that serves /livez, /readyz and /metrics.")
    metrics_port: int = Field(0, ge=0, le=65535, description="Their port. 0: a free port, logged at startup.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level that is logged."
    )
    log_format: Literal["json", "console"] = Field(
        "json", description="json: one JSON object per line; console: columns for people."
    )


class LeaseSettings(BaseSettings):
    """How long workers, triggers and dispatchers keep what they own without a heartbeat."""

    lease_seconds: float = Field(
        15.0, ge=2, le=3600, description="A worker without a heartbeat for longer is lost."
    )
    beat_seconds: float = Field(
        2.0,
        ge=0.2,
        le=60,
        description="Time between two heartbeats of a worker: at most a third of the lease.",
    )
    owner_timeout_seconds: float = Field(
        3.0,
        ge=1,
        le=60,
        description="A trigger or dispatcher without a heartbeat for longer loses its shards.",
    )

    @model_validator(mode="after")
    def _check_beats_fit_lease(self) -> Self:
        if self.beat_seconds * 3 > self.lease_seconds:
            raise ValueError(
                f"NOONMARK_BEAT_SECONDS={self.beat_seconds:g} is too long for NOONMARK_LEASE_SECONDS="
                f"{self.lease_seconds:g}: a lease must last at least three beats"
            )
        return self
