"""What commands need: settings, a database connection, the Kafka configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from noonmark.cli.terminal.options import as_uuid
from noonmark.cli.terminal.problems import CliError, ExitCode, broker_away, database_away, no_schema

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import Connection

    from noonmark.kafka.config import KafkaConfig
    from noonmark.settings import Settings

STACK_DIR: Final = Path(".noonmark")
_READ_SECONDS: Final = 30.0


OPTION_OF: Final = {
    "pool": "--pool",
    "handlers": "--handlers",
    "worker_slots": "--slots",
    "api_host": "--host",
    "api_port": "--port",
    "metrics_port": "--metrics-port",
    "metrics_host": "--metrics-host",
    "log_level": "--log-level",
    "context": "--context",
}
"""Options of commands that override a setting."""

CONTEXT_OPTION: Final[ContextVar[str | None]] = ContextVar("context", default=None)
"""The value of `--context`, which precedes the command and applies to every command."""


def load_settings(**overrides: object) -> Settings:
    """Read the settings from the environment; options override them.

    Args:
        overrides: values of options; None leaves the setting as it is.

    Raises:
        SettingsError: a value is invalid, or a variable with the prefix NOONMARK_ is not a setting.
    """
    from noonmark.settings import Settings  # noqa: PLC0415 - pydantic takes a while to load

    given = {name: value for name, value in overrides.items() if value is not None}
    named = {name: OPTION_OF[name] for name in given if name in OPTION_OF}
    settings = Settings.load(given_as=named, **given)
    settings.apply_zone_data()
    return settings


def operator_settings(**overrides: object) -> Settings:
    """Read the settings, with defaults from a running development stack of this folder.

    The environment overrides the stack, and `--context` overrides the API of the environment.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    return load_settings(**{**stack_addresses(), **_context_option(), **given})


def _context_option() -> dict[str, str]:
    """Return the settings that `--context` overrides."""
    name = CONTEXT_OPTION.get()
    return {"context": name, "api_url": ""} if name else {}


def stack_addresses(folder: Path = STACK_DIR) -> dict[str, str]:
    """Return the addresses of a development stack that runs from the current folder, as settings.

    Only addresses that the environment does not name; empty if no stack runs.
    """
    if not (folder / "stack.json").exists():
        return {}
    try:
        from noonmark.devstack import state  # noqa: PLC0415 - optional extra
    except ImportError:
        return {}
    running = state.running(folder)
    named = os.environ.get("NOONMARK_API_URL", "")
    if running is None or named.rstrip("/") not in {"", running.api_url}:
        # The API of another installation does not go with this stack's database.
        return {}
    found = {"database_url": running.database_url, "kafka_bootstrap": running.kafka_bootstrap}
    return {
        name: value for name, value in found.items() if value and f"NOONMARK_{name.upper()}" not in os.environ
    }


def address_origins() -> dict[str, str]:
    """Return the origin of each address: `environment`, `dev stack` of this folder, or `default`."""
    stack = stack_addresses()
    return {name: origin_of(name, stack) for name in ("database_url", "kafka_bootstrap")}


def origin_of(name: str, stack: Mapping[str, str]) -> str:
    """Return the origin of a setting that no option overrides."""
    if f"NOONMARK_{name.upper()}" in os.environ:
        return "environment"
    return "dev stack" if name in stack else "default"


def use_named_zone_data() -> None:
    """Use the zone data that the environment names, for commands that read no other settings.

    Raises:
        CliError: the zone data cannot be read.
    """
    directory = os.environ.get("NOONMARK_ZONE_DATA_DIR")
    if not directory:
        return
    from noonmark.core.zones.zones import ZoneError, use_zone_data  # noqa: PLC0415

    try:
        use_zone_data(Path(directory))
    except ZoneError as error:
        raise CliError(f"NOONMARK_ZONE_DATA_DIR: {error.message}", ExitCode.USAGE) from error


def _require(settings: Settings, what: Literal["database_url", "kafka_bootstrap"]) -> None:
    from noonmark.cli.connections.targets import require_direct  # noqa: PLC0415 - not needed to show help

    require_direct(settings, what)


@contextmanager
def reading(settings: Settings) -> Iterator[Connection]:
    """Open a read-only transaction on the database.

    Raises:
        CliError: cannot connect to the database, or it has no noonmark schema.
    """
    import psycopg  # noqa: PLC0415 - drivers take a while to load
    from sqlalchemy.exc import OperationalError, ProgrammingError  # noqa: PLC0415

    from noonmark.store.views import paging  # noqa: PLC0415

    _require(settings, "database_url")
    try:
        with paging.reader(settings.dsn, statement_timeout_seconds=_READ_SECONDS) as connection:
            yield connection
    except ProgrammingError as error:
        if isinstance(error.orig, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            raise no_schema() from error
        raise
    except OperationalError as error:
        raise database_away(settings.dsn, error.orig) from error


def require_job(connection: Connection, job: str, namespace: str | None) -> None:
    """Check that a job exists, for listings that would otherwise just be empty.

    Raises:
        CliError: no job has this id, or this name in the namespace.
    """
    from noonmark.store.views import paging  # noqa: PLC0415

    job_id = as_uuid(job)
    name = job if job_id is None else None
    if not paging.find_jobs(connection, job=job_id, name=name, namespace=namespace):
        raise CliError(f"job {job!r} does not exist; run `noonmark job list`")


@contextmanager
def database_errors(settings: Settings) -> Iterator[None]:
    """Turn connection errors of the database into messages, for code that opens its own connection."""
    import psycopg  # noqa: PLC0415
    from sqlalchemy.exc import OperationalError, ProgrammingError  # noqa: PLC0415

    _require(settings, "database_url")
    try:
        yield
    except psycopg.errors.UndefinedTable as error:
        raise no_schema() from error
    except psycopg.OperationalError as error:
        raise database_away(settings.dsn, error) from error
    except ProgrammingError as error:
        if isinstance(error.orig, psycopg.errors.UndefinedTable):
            raise no_schema() from error
        raise
    except OperationalError as error:
        raise database_away(settings.dsn, error.orig) from error


@contextmanager
def changing(settings: Settings) -> Iterator[psycopg.Connection]:
    """Open a connection with autocommit, for commands that write.

    Raises:
        CliError: cannot connect to the database, or it has no noonmark schema.
    """
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    with database_errors(settings), connect(settings.dsn, application="cli", autocommit=True) as connection:
        yield connection


@contextmanager
def kafka_errors(settings: Settings) -> Iterator[None]:
    """Turn connection errors of Kafka into messages."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    try:
        yield
    except KafkaException as error:
        reason = error.args[0]
        raise broker_away(
            settings.kafka_bootstrap, reason.str() if hasattr(reason, "str") else reason
        ) from error


def kafka_config(settings: Settings) -> KafkaConfig:
    """Return the Kafka configuration; the client's log is off, because commands report errors themselves."""
    from noonmark.kafka.config import CLIENT_LOGGER  # noqa: PLC0415
    from noonmark.service.startup import kafka_config as read  # noqa: PLC0415

    _require(settings, "kafka_bootstrap")
    CLIENT_LOGGER.disabled = True
    return read(settings)
