"""Settings of the trigger, which claims due runs, and of the dispatcher, which sends them to Kafka."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

from noonmark.settings.checks import check_app_outboxes


class TriggerSettings(BaseSettings):
    """Batch sizes and limits of claims, outboxes, catch-up and backfills."""

    claim_batch: int = Field(1000, ge=1, le=10_000, description="Runs claimed in one transaction.")
    claim_pause_ms: int = Field(
        15,
        ge=0,
        le=1000,
        description="Shortest time between two rounds of claims; three times that while rounds are small."
        " A lower value starts runs sooner and costs more CPU.",
    )
    relay_batch: int = Field(
        1000, ge=1, le=10_000, description="Runs or events that a dispatcher reads at once, per lane."
    )
    runs_per_message: int = Field(
        64,
        ge=1,
        le=64,
        description="Maximum number of runs in one run message. Set it to 1 before you go back to"
        " release 0.2, which reads only such messages.",
    )
    outbox_age_limit_seconds: float = Field(
        10.0, ge=1, description="An unsent outbox row older than this stops claims of its slice and lane."
    )
    outbox_depth_limit: int = Field(
        20_000, ge=100, description="More unsent outbox rows than this stop claims of their slice and lane."
    )
    app_outboxes: SecretStr = Field(
        SecretStr(""),
        description="Outboxes of applications that dispatchers relay: `name=postgresql://…=namespace`,"
        " several with spaces. See [outbox.md](outbox.md).",
    )
    catch_up_cap: int = Field(
        100, ge=1, le=10_000, description="Most runs created per job and claim under fire_all."
    )
    ledger_cap: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Most missed instants that get a row each; a longer gap gets one summary row.",
    )
    backfill_runs_per_second: int = Field(
        200, ge=5, le=5000, description="Runs per second that one backfill enqueues."
    )
    backfill_unfinished_limit: int = Field(
        1000,
        ge=1,
        le=10_000,
        description="A backfill with this number of unfinished runs waits until some finish.",
    )
    resend_check_seconds: float = Field(
        300.0,
        ge=1,
        le=3600,
        description="Time between two searches for queued runs whose message is proven lost.",
    )

    @field_validator("app_outboxes")
    @classmethod
    def _check_app_outboxes(cls, given: SecretStr) -> SecretStr:
        check_app_outboxes(given.get_secret_value())
        return given
