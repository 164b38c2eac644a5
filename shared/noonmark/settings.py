"""Settings of every service, read once from the environment and passed down.

Each name here is the environment variable `NOONMARK_<NAME>`. Secrets are never shown.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "NOONMARK_"

_FOREIGN = frozenset(
    {"NOONMARK_FAULT", "NOONMARK_PG_BIN", "NOONMARK_CACHE_DIR", "NOONMARK_KAFKA_LIBS", "NOONMARK_NO_APT"}
)
"""Variables with our prefix that tests and the development stack read, not the services."""


class SettingsError(ValueError):
    """The environment holds a wrong or unknown setting; the message lists each."""


class Settings(BaseSettings):
    """What a service needs to know. Frozen: built in `main`, never looked up later."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    database_url: SecretStr = Field(
        SecretStr("postgresql://localhost/noonmark"), description="Postgres 15 or newer, as a libpq URL."
    )
    kafka_bootstrap: str = Field("localhost:9092", description="host:port list of the brokers.")
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    kafka_sasl_mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = ""
    kafka_sasl_username: str = ""
    kafka_sasl_password: SecretStr = SecretStr("")
    kafka_ssl_ca_location: str = ""
    kafka_ssl_certificate_location: str = ""
    kafka_ssl_key_location: str = ""
    kafka_group_protocol: Literal["consumer", "classic"] = Field(
        "consumer", description="KIP-848 where the broker has it (Kafka 4), else classic."
    )
    kafka_partitions: int = Field(6, ge=1, le=1000, description="Partitions of a topic made by noonmark.")
    kafka_replication: int = Field(-1, ge=-1, le=10, description="-1: the broker's default.")
    topic_prefix: str = Field("noonmark", pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")

    metrics_host: str = Field("127.0.0.1", description="Where /livez, /readyz and /metrics listen.")
    metrics_port: int = Field(0, ge=0, le=65535, description="0: a free port, logged at the start.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"

    lease_seconds: float = Field(15.0, ge=2, le=3600, description="A worker silent for longer is lost.")
    beat_seconds: float = Field(2.0, ge=0.2, le=60)
    owner_timeout_seconds: float = Field(
        3.0, ge=1, le=60, description="A trigger or dispatcher silent for longer loses its shards."
    )

    claim_batch: int = Field(1000, ge=1, le=10_000, description="Runs claimed in one transaction.")
    claim_pause_ms: int = Field(
        15,
        ge=0,
        le=1000,
        description="Shortest time between two claim rounds: lower is prompter and costs more CPU.",
    )
    relay_batch: int = Field(2000, ge=1, le=10_000)
    outbox_age_limit_seconds: float = Field(
        10.0, ge=1, description="An older unsent row stops claims of its slice."
    )
    outbox_depth_limit: int = Field(
        50_000, ge=100, description="More unsent rows stop claims of their slice."
    )
    catch_up_cap: int = Field(100, ge=1, le=10_000, description="Runs made per job and claim under fire_all.")
    ledger_cap: int = Field(1000, ge=1, le=100_000, description="A longer gap gets one summary row.")

    pool: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,47}$")] = "default"
    handlers: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Modules that register Python handlers."
    )
    worker_slots: int = Field(256, ge=1, le=10_000, description="Runs executed at once by one worker.")
    worker_high_reserve: float = Field(0.1, ge=0, le=0.9, description="Share of slots that only high takes.")
    worker_low_share: float = Field(
        0.05, gt=0, le=0.5, description="Share of starts kept for each lower lane."
    )
    drain_seconds: float = Field(
        30.0, ge=0, le=3600, description="Time to finish running work after SIGTERM."
    )
    http_allow_networks: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Private networks (CIDR) that HTTP jobs may call; none by default."
    )

    intake_batch: int = Field(1000, ge=1, le=10_000)
    max_submission_bytes: int = Field(256 * 1024, ge=1024, le=8 * 1024 * 1024)
    rejection_bytes: int = Field(
        16 * 1024, ge=0, le=1024 * 1024, description="Bytes of a refused event that are kept."
    )
    retention_days: int = Field(30, ge=1, le=3650, description="Days of runs that are kept.")
    partitions_ahead_days: int = Field(3, ge=1, le=60)
    inbox_days: int = Field(
        14, ge=1, le=365, description="Days an event id is remembered; above the topic's retention."
    )

    @classmethod
    def load(cls, **overrides: object) -> Settings:
        """Read the environment.

        Raises:
            SettingsError: a value is wrong, or a variable with our prefix is not a setting.
        """
        settings, problems = cls.examine(**overrides)
        if problems or settings is None:
            raise SettingsError("; ".join(problems))
        return settings

    @classmethod
    def examine(cls, **overrides: object) -> tuple[Settings | None, list[str]]:
        """Read the environment; return the settings (None where a value is wrong) and every problem found."""
        lists = {}
        for name in ("handlers", "http_allow_networks"):
            raw = os.environ.get(PREFIX + name.upper())
            if raw is not None and name not in overrides:
                lists[name] = tuple(part.strip() for part in raw.split(",") if part.strip())
        problems = _unknown_variables()
        settings = None
        try:
            settings = cls(**{**lists, **overrides})  # type: ignore[arg-type]
        except ValidationError as error:
            problems += [
                f"{PREFIX}{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors()
            ]
        return settings, problems

    @property
    def dsn(self) -> str:
        """The libpq URL in the clear, for the driver alone."""
        return self.database_url.get_secret_value()


def _unknown_variables() -> list[str]:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    problems = []
    for name in sorted(os.environ):
        if (
            not name.startswith(PREFIX)
            or name in known
            or name in _FOREIGN
            or name.startswith("NOONMARK_TEST_")
        ):
            continue
        near = get_close_matches(name, known, n=1)
        problems.append(f"{name} is not a setting" + (f"; did you mean {near[0]}?" if near else ""))
    return problems
