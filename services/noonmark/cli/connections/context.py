"""What commands work with: settings, a database connection, the address of Kafka."""

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
"""The options of commands that stand for a setting."""

CONTEXT_OPTION: Final[ContextVar[str | None]] = ContextVar("context", default=None)
"""What `--context` says; it stands before the command, and counts in every one."""


def load_settings(**overrides: object) -> Settings:
    """Read the settings: from the environment, and from options where they are given.

    Args:
        overrides: values of options; None leaves the setting as it is.

    Raises:
        SettingsError: a value is wrong, or a variable with our prefix is not a setting.
    """
    from noonmark.settings import Settings  # noqa: PLC0415 - pydantic takes a while to load

    given = {name: value for name, value in overrides.items() if value is not None}
    named = {name: OPTION_OF[name] for name in given if name in OPTION_OF}
    settings = Settings.load(given_as=named, **given)
    settings.apply_zone_data()
    return settings


def operator_settings(**overrides: object) -> Settings:
    """Read the settings as above, and let a running development stack of this folder fill the gaps.

    What the environment names always wins, but for `--context`, which also stands above an API that it names.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    return load_settings(**{**stack_addresses(), **_context_option(), **given})


def _context_option() -> dict[str, str]:
    """Return what `--context`, given before the command, means for the settings."""
    name = CONTEXT_OPTION.get()
    return {"context": name, "api_url": ""} if name else {}


def stack_addresses(folder: Path = STACK_DIR) -> dict[str, str]:
    """Return the addresses of a development stack that runs from the current folder, as settings.

    Only those that the environment does not name; nothing where no stack runs.
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
        # Whoever names another installation's API does not mean this one's database.
        return {}
    found = {"database_url": running.database_url, "kafka_bootstrap": running.kafka_bootstrap}
    return {
        name: value for name, value in found.items() if value and f"NOONMARK_{name.upper()}" not in os.environ
    }


def address_origins() -> dict[str, str]:
    """Return where each address comes from: `environment`, `dev stack` of this folder, or `default`."""
    stack = stack_addresses()
    return {name: origin_of(name, stack) for name in ("database_url", "kafka_bootstrap")}


def origin_of(name: str, stack: Mapping[str, str]) -> str:
    """Return where a setting comes from that no option gives."""
    if f"NOONMARK_{name.upper()}" in os.environ:
        return "environment"
    return "dev stack" if name in stack else "default"


def use_named_zone_data() -> None:
    """Use the zone data that the environment names, for commands that read no other setting.

    Raises:
        CliError: there are none.
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
        CliError: no database answers, or it has no schema of ours.
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
    """Tell a job that has nothing to list from one that is not there.

    Raises:
        CliError: no job has this id, or this name in the namespace.
    """
    from noonmark.store.views import paging  # noqa: PLC0415

    job_id = as_uuid(job)
    name = job if job_id is None else None
    if not paging.find_jobs(connection, job=job_id, name=name, namespace=namespace):
        raise CliError(f"there is no job {job!r}: `noonmark job list` shows those there are")


@contextmanager
def database_errors(settings: Settings) -> Iterator[None]:
    """Turn a database that does not answer into a sentence, for code that opens its own connection."""
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
    """Open a connection on autocommit, for commands that do more than look.

    Raises:
        CliError: no database answers, or it has no schema of ours.
    """
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    with database_errors(settings), connect(settings.dsn, application="cli", autocommit=True) as connection:
        yield connection


@contextmanager
def kafka_errors(settings: Settings) -> Iterator[None]:
    """Turn a broker that does not answer into a sentence."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    try:
        yield
    except KafkaException as error:
        reason = error.args[0]
        raise broker_away(
            settings.kafka_bootstrap, reason.str() if hasattr(reason, "str") else reason
        ) from error


def kafka_config(settings: Settings) -> KafkaConfig:
    """Return how to reach Kafka; the client's own log is off, as a command says itself what is wrong."""
    from noonmark.kafka.config import CLIENT_LOGGER  # noqa: PLC0415
    from noonmark.service.startup import kafka_config as read  # noqa: PLC0415

    _require(settings, "kafka_bootstrap")
    CLIENT_LOGGER.disabled = True
    return read(settings)
