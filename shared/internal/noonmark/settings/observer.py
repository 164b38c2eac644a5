"""Settings of the observer, which raises alerts, and of where alerts are sent."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode

from noonmark.settings.checks import checked_objectives, checked_outside_url


class ObserverSettings(BaseSettings):
    """Thresholds of alerts, and the receivers of alerts."""

    late_after_seconds: float = Field(
        300.0,
        ge=1,
        le=86_400,
        description="A run that has not started this long after its instant is late. A job can set its own"
        " value.",
    )
    start_objective_seconds: Annotated[tuple[float, ...], NoDecode, AfterValidator(checked_objectives)] = (
        Field(
            (5.0, 30.0, 300.0),
            description="Objective of the time from the instant of a run to its start, for the lanes high,"
            " normal and low. `noonmark_start_slo_good_total` counts the runs that meet it.",
        )
    )
    runaway_factor: float = Field(
        2.0,
        ge=1.1,
        le=100,
        description="A run that takes longer than its job's usual time times this factor is a runaway.",
    )
    runaway_min_runs: int = Field(
        5,
        ge=1,
        le=1000,
        description="Runs needed to know a job's usual time; with fewer, no run is a runaway.",
    )
    runaway_min_seconds: float = Field(
        10.0, ge=0.1, le=86_400, description="A run shorter than this is never a runaway."
    )
    stuck_runs: int = Field(
        1000,
        ge=1,
        description="More claimed, unfinished runs without a heartbeat than this are reported as stuck.",
    )
    stuck_after_seconds: float = Field(
        300.0, ge=5, le=86_400, description="Time without a heartbeat after which a run counts as stuck."
    )
    failing_after: int = Field(
        3,
        ge=2,
        le=100,
        description="A job with this number of equal failures in a row is failing.",
    )
    silent_after_seconds: float = Field(
        300.0,
        ge=5,
        le=86_400,
        description="Time without any outcome, while instants were due, after which silence is reported.",
    )
    observer_check_seconds: float = Field(
        5.0, ge=0.2, le=300, description="Time between two checks of runs and timers in Postgres."
    )
    alert_hold_seconds: float = Field(
        60.0,
        ge=0,
        le=3600,
        description="An alert is resolved when its condition has been absent for this long, so that a"
        " condition that comes and goes is one alert.",
    )
    alert_webhook_url: Annotated[str, AfterValidator(checked_outside_url)] = Field(
        "", description="URL that alerts are posted to, signed. See [alerts.md](alerts.md)."
    )
    alert_webhook_secret: SecretStr = Field(
        SecretStr(""), description="Key of the signature: `whsec_` and base64 of at least 16 bytes."
    )
    alertmanager_url: Annotated[str, AfterValidator(checked_outside_url)] = Field(
        "", description="Alertmanager that alerts are sent to, such as `http://alertmanager:9093`."
    )
    run_link: str = Field(
        "",
        description="Link to a run in alerts, such as a log search, with `{run_id}`, `{job_id}` and"
        " `{namespace}` as placeholders. Empty: the address of the run's logs in the API.",
    )
    alert_days: int = Field(90, ge=1, le=3650, description="Days that resolved alerts are kept.")
