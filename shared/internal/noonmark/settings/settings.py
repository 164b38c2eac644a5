"""Settings of every service, read once from the environment and passed down.

Each name here is the environment variable `NOONMARK_<NAME>`. Secrets are never shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, get_origin

from pydantic import SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from noonmark.core.instants import parse_duration
from noonmark.core.zones.zones import use_zone_data
from noonmark.settings.api import ApiSettings
from noonmark.settings.commands import CommandSettings
from noonmark.settings.common import LeaseSettings, PostgresSettings, TelemetrySettings, ZoneSettings
from noonmark.settings.housekeeping import HousekeepingSettings
from noonmark.settings.intake import IntakeSettings
from noonmark.settings.kafka import KafkaSettings
from noonmark.settings.observer import ObserverSettings
from noonmark.settings.traces import TraceSettings
from noonmark.settings.trigger import TriggerSettings
from noonmark.settings.values import wanted
from noonmark.settings.watchdog import WatchdogSettings
from noonmark.settings.worker import WorkerSettings

PREFIX = "NOONMARK_"
SECRET_PREFIX: Final = "NOONMARK_SECRET_"  # noqa: S105 - a prefix of names
"""Prefix of the variables that hold secrets of jobs for a worker; any name can follow."""

_FOREIGN = frozenset(
    {"NOONMARK_FAULT", "NOONMARK_PG_BIN", "NOONMARK_CACHE_DIR", "NOONMARK_KAFKA_LIBS", "NOONMARK_NO_APT"}
) | frozenset(
    # The worker sets these for scripts and handlers in processes, which may call the command line.
    f"NOONMARK_{name}"
    for name in (
        *("RUN_ID", "JOB_ID", "NAMESPACE", "ATTEMPT", "FENCE", "IDEMPOTENCY_KEY", "SCHEDULED_FOR"),
        "PROCESS",
    )
)
"""Variables with our prefix that are not settings of the services."""


class SettingsError(ValueError):
    """The environment has an invalid or unknown setting; the message lists all of them."""


class Settings(
    # Pydantic orders fields from the last base to the first; docs/settings.md has the same order.
    TraceSettings,
    WatchdogSettings,
    ObserverSettings,
    CommandSettings,
    HousekeepingSettings,
    IntakeSettings,
    WorkerSettings,
    TriggerSettings,
    LeaseSettings,
    TelemetrySettings,
    ApiSettings,
    ZoneSettings,
    KafkaSettings,
    PostgresSettings,
):
    """All settings of a process. Frozen: `main` builds it once and passes it down."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _strip_line_ending(cls, given: object) -> object:
        """A Kubernetes Secret created from a file often ends with a line break; no setting does."""
        return given.rstrip("\r\n") if isinstance(given, str) else given

    @field_validator("*", mode="before")
    @classmethod
    def _read_duration(cls, given: object, info: ValidationInfo) -> object:
        """A setting in seconds also takes `5m` and `PT5M`, as job documents and options do."""
        name = info.field_name or ""
        if not (
            isinstance(given, str)
            and name.endswith("_seconds")
            and cls.model_fields[name].annotation is float
        ):
            return given
        try:
            return given if given.replace(".", "").isdigit() else parse_duration(given).total_seconds()
        except ValueError:
            return given

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the environment only: to look for each setting in files as well takes half of the time."""
        return init_settings, env_settings

    @classmethod
    def load(cls, *, given_as: Mapping[str, str] | None = None, **overrides: object) -> Settings:
        """Read the environment.

        Args:
            given_as: name of an override in error messages, such as an option of the command line.
            overrides: values that take precedence over the environment.

        Raises:
            SettingsError: if a value is invalid, or a variable with our prefix is not a setting.
        """
        settings, problems = cls.examine(given_as=given_as, **overrides)
        if problems or settings is None:
            raise SettingsError("; ".join(problems))
        return settings

    @classmethod
    def examine(
        cls, *, given_as: Mapping[str, str] | None = None, **overrides: object
    ) -> tuple[Settings | None, list[str]]:
        """Read the environment; return the settings (None if a value is invalid) and every problem found."""
        lists = {}
        for name in (name for name, info in cls.model_fields.items() if get_origin(info.annotation) is tuple):
            raw = os.environ.get(PREFIX + name.upper())
            if raw is not None and name not in overrides:
                lists[name] = tuple(part.strip() for part in raw.split(",") if part.strip())
        problems = _unknown_variables()
        settings = None
        try:
            settings = cls(**{**lists, **overrides})  # type: ignore[arg-type]
        except ValidationError as error:
            problems += [_problem(item, given_as or {}) for item in error.errors(include_url=False)]
        return settings, problems

    def apply_zone_data(self) -> None:
        """Make this process plan with the zone data that the settings name, from now on.

        Raises:
            ZoneError: if the directory cannot be read any more.
        """
        if self.zone_data_dir:
            use_zone_data(Path(self.zone_data_dir))

    @property
    def dsn(self) -> str:
        """The libpq URL with its password, for the driver only."""
        return self.database_url.get_secret_value()


def _problem(item: ErrorDetails, given_as: Mapping[str, str]) -> str:
    """Say which variable or option is invalid, its value, and which values are allowed."""
    own = item["type"] == "value_error"
    message = str(item["ctx"]["error"]) if own else ""
    name = str(item["loc"][0]) if item["loc"] else ""
    info = Settings.model_fields.get(name)
    if info is None:
        return message or item["msg"]  # a rule about several settings names them itself
    variable = given_as.get(name, PREFIX + name.upper())
    if own:
        return f"{variable} {message}" if name == "database_url" else f"{variable}: {message}"
    # A mistyped password must not appear in a log.
    shown = "" if info.annotation is SecretStr else f" {item['input']!r}"
    return f"{variable}{shown} is not allowed: use {wanted(info)}"


def _unknown_variables() -> list[str]:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    problems = []
    for name in sorted(os.environ):
        if (
            not name.startswith(PREFIX)
            or name in known
            or name in _FOREIGN
            or name.startswith(("NOONMARK_TEST_", SECRET_PREFIX))
        ):
            continue
        near = get_close_matches(name, known, n=1)
        problems.append(f"{name} is not a setting" + (f"; did you mean {near[0]}?" if near else ""))
    return problems
