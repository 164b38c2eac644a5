"""The settings of what watches the rest: observer, alerts, watchdog, traces. See `settings`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode

from noonmark.settings.checks import checked_objectives, checked_outside_url


class ObservingSettings(BaseSettings):
    """Fields of the observer, of the sending of alerts, of the watchdog and of traces."""

    late_after_seconds: float = Field(
        300.0,
        ge=1,
        le=86_400,
        description="A run not started so long after its instant is late; a job may say.",
    )
    start_objective_seconds: Annotated[tuple[float, ...], NoDecode, AfterValidator(checked_objectives)] = (
        Field(
            (5.0, 30.0, 300.0),
            description="Seconds from its instant within which a run is to start, of high, normal and low:"
            " what `noonmark_start_slo_good_total` counts.",
        )
    )
    runaway_factor: float = Field(
        2.0, ge=1.1, le=100, description="A run that takes so many times its job's usual time is a runaway."
    )
    runaway_min_runs: int = Field(
        5, ge=1, le=1000, description="Runs that a job's usual time must rest on before one can be a runaway."
    )
    runaway_min_seconds: float = Field(
        10.0, ge=0.1, le=86_400, description="A run that is shorter is no runaway, whatever is usual."
    )
    stuck_runs: int = Field(
        1000, ge=1, description="More runs than these, claimed and unfinished without a heartbeat, are stuck."
    )
    stuck_after_seconds: float = Field(
        300.0, ge=5, le=86_400, description="Time without a heartbeat after which they are."
    )
    failing_after: int = Field(
        3, ge=2, le=100, description="Equal failures in a row of a job that is failing."
    )
    silent_after_seconds: float = Field(
        300.0,
        ge=5,
        le=86_400,
        description="Time without any outcome, while instants were due, that is silence.",
    )
    observer_check_seconds: float = Field(
        5.0, ge=0.2, le=300, description="How often the observer looks at runs and timers in Postgres."
    )
    alert_hold_seconds: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="An alert is over once nothing of it was seen for so long: what comes and goes is"
        " one alert.",
    )
    alert_webhook_url: Annotated[str, AfterValidator(checked_outside_url)] = Field(
        "", description="Where alerts are posted, signed. See [alerts.md](alerts.md)."
    )
    alert_webhook_secret: SecretStr = Field(
        SecretStr(""), description="Key of the signature: `whsec_` and base64 of at least 16 bytes."
    )
    alertmanager_url: Annotated[str, AfterValidator(checked_outside_url)] = Field(
        "", description="Alertmanager that alerts are sent to, such as `http://alertmanager:9093`."
    )
    run_link: str = Field(
        "",
        description="Link to a run in alerts, with `{run_id}`, `{job_id}` and `{namespace}` in it, such as a"
        " log search; none: the address of its logs in the API.",
    )
    alert_days: int = Field(90, ge=1, le=3650, description="Days of resolved alerts that are kept.")

    watchdog_url: Annotated[SecretStr, AfterValidator(checked_outside_url)] = Field(
        SecretStr(""),
        description="URL outside of the installation, called while everything makes progress.",
    )
    watchdog_seconds: float = Field(
        30.0, ge=1, le=3600, description="Time between two beats of the watchdog."
    )
    watchdog_stale_seconds: float = Field(
        60.0, ge=2, le=3600, description="A part that made no progress for longer ends the beats."
    )

    otlp_endpoint: Annotated[str, AfterValidator(checked_outside_url)] = Field(
        "", description="OpenTelemetry collector (OTLP over HTTP) that traces go to; none: no traces."
    )
    trace_share: float = Field(
        0.01, ge=0, le=1, description="Share of runs traced that no client asked to be traced."
    )
