"""Settings of every service, read once from the environment and passed down.

Each name here is the environment variable `NOONMARK_<NAME>`. Secrets are never shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, get_origin

from pydantic import SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsConfigDict

from noonmark.core.zones.zones import use_zone_data
from noonmark.settings.observer import ObservingSettings
from noonmark.settings.services import ServiceSettings
from noonmark.settings.values import wanted

PREFIX = "NOONMARK_"
SECRET_PREFIX: Final = "NOONMARK_SECRET_"  # noqa: S105 - a prefix of names
"""Variables that hold secrets of jobs for a worker; any name may follow."""

_FOREIGN = frozenset(
    {"NOONMARK_FAULT", "NOONMARK_PG_BIN", "NOONMARK_CACHE_DIR", "NOONMARK_KAFKA_LIBS", "NOONMARK_NO_APT"}
) | frozenset(
    # What scripts and handlers in processes are told about their run; they may call the command line.
    f"NOONMARK_{name}"
    for name in (
        *("RUN_ID", "JOB_ID", "NAMESPACE", "ATTEMPT", "FENCE", "IDEMPOTENCY_KEY", "SCHEDULED_FOR"),
        "PROCESS",
    )
)
"""Variables with our prefix that are no settings of the services."""


class SettingsError(ValueError):
    """The environment holds a wrong or unknown setting; the message lists each."""


class Settings(ObservingSettings, ServiceSettings):
    """What a service needs to know. Frozen: built in `main`, never looked up later."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _without_the_end_of_a_line(cls, given: object) -> object:
        """A Secret that was made from a file often ends a line; no setting does."""
        return given.rstrip("\r\n") if isinstance(given, str) else given

    @classmethod
    def load(cls, *, given_as: Mapping[str, str] | None = None, **overrides: object) -> Settings:
        """Read the environment.

        Args:
            given_as: how a wrong override is called in the message, such as an option of the command line.
            overrides: values that go before the environment's.

        Raises:
            SettingsError: a value is wrong, or a variable with our prefix is not a setting.
        """
        settings, problems = cls.examine(given_as=given_as, **overrides)
        if problems or settings is None:
            raise SettingsError("; ".join(problems))
        return settings

    @classmethod
    def examine(
        cls, *, given_as: Mapping[str, str] | None = None, **overrides: object
    ) -> tuple[Settings | None, list[str]]:
        """Read the environment; return the settings (None where a value is wrong) and every problem found."""
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
        """Let this process plan with the zone data that the settings name, from now on.

        Raises:
            ZoneError: the directory cannot be read any more.
        """
        if self.zone_data_dir:
            use_zone_data(Path(self.zone_data_dir))

    @property
    def dsn(self) -> str:
        """The libpq URL in the clear, for the driver alone."""
        return self.database_url.get_secret_value()


def _problem(item: ErrorDetails, given_as: Mapping[str, str]) -> str:
    """Say which variable or option is wrong, what it holds, and what would be right."""
    own = item["type"] == "value_error"
    told = str(item["ctx"]["error"]) if own else ""
    name = str(item["loc"][0]) if item["loc"] else ""
    info = Settings.model_fields.get(name)
    if info is None:
        return told or item["msg"]  # a rule over several settings names them itself
    place = given_as.get(name, PREFIX + name.upper())
    if own:
        return f"{place} {told}" if name == "database_url" else f"{place}: {told}"
    # A wrong password must not end up in a log.
    shown = "" if info.annotation is SecretStr else f" {item['input']!r}"
    return f"{place}{shown} is not allowed: use {wanted(info)}"


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
