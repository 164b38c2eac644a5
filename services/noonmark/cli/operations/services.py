"""Commands that run one service in this process until it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from noonmark.cli.connections.context import address_origins, operator_settings
from noonmark.cli.terminal.options import Folder, LogLevel, MetricsHost, MetricsPort
from noonmark.cli.terminal.signals import ended_by_signals

if TYPE_CHECKING:
    from types import ModuleType

    from noonmark.settings import Settings


def api(
    *,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free port.")] = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    log_level: LogLevel = None,
) -> None:
    """Serve the REST API."""
    _serve(
        "api",
        api_host=host,
        api_port=port,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        log_level=log_level,
    )


def intake(
    metrics_port: MetricsPort = None, metrics_host: MetricsHost = None, log_level: LogLevel = None
) -> None:
    """Write submissions from Kafka to the database."""
    _serve("intake", metrics_port=metrics_port, metrics_host=metrics_host, log_level=log_level)


def trigger(
    metrics_port: MetricsPort = None, metrics_host: MetricsHost = None, log_level: LogLevel = None
) -> None:
    """Queue due jobs, retries and runs of lost workers."""
    _serve("trigger", metrics_port=metrics_port, metrics_host=metrics_host, log_level=log_level)


def dispatcher(
    metrics_port: MetricsPort = None, metrics_host: MetricsHost = None, log_level: LogLevel = None
) -> None:
    """Relay queued runs to Kafka, and measure lag."""
    _serve("dispatcher", metrics_port=metrics_port, metrics_host=metrics_host, log_level=log_level)


def worker(
    *,
    pool: Annotated[str | None, typer.Option(help="Pool whose runs this worker executes.")] = None,
    handlers: Annotated[
        list[str] | None, typer.Option(help="Module with Python handlers; repeatable.")
    ] = None,
    path: Folder = None,
    slots: Annotated[int | None, typer.Option(help="Maximum number of concurrent runs.")] = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    log_level: LogLevel = None,
) -> None:
    """Execute the runs of a pool."""
    _serve(
        "worker",
        lambda module, settings: module.run(settings, path),
        pool=pool,
        handlers=tuple(handlers) if handlers else None,
        worker_slots=slots,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        log_level=log_level,
    )


def observer(
    *,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Discard the counts and rebuild them from the topic."),
    ] = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    log_level: LogLevel = None,
) -> None:
    """Monitor jobs and runs: count outcomes, raise and send alerts."""
    _serve(
        "observer",
        lambda module, settings: module.run(settings, rebuild=rebuild),
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        log_level=log_level,
    )


def watchdog(
    metrics_port: MetricsPort = None, metrics_host: MetricsHost = None, log_level: LogLevel = None
) -> None:
    """Call an external URL while all services make progress (dead-man's switch)."""
    _serve("watchdog", metrics_port=metrics_port, metrics_host=metrics_host, log_level=log_level)


def _run(module: ModuleType, settings: Settings) -> int:
    code: int = module.run(settings)
    return code


def _serve(name: str, run: Callable[[ModuleType, Settings], int] = _run, **overrides: object) -> NoReturn:
    """Run a service and exit with its exit code."""
    # It takes over the signals once it has something to stop.
    with ended_by_signals():
        settings = _settings(name, **overrides)
        code = run(import_module(f"noonmark.{name}.main"), settings)
    raise typer.Exit(code)


def _settings(name: str, **overrides: object) -> Settings:
    """Read a service's settings, options first, and log which database and brokers it will use."""
    from noonmark.settings.postgres_url import database_address  # noqa: PLC0415
    from noonmark.telemetry.logs import configure_logs, get_logger  # noqa: PLC0415 - not for `--help`

    settings = operator_settings(**overrides)
    configure_logs(name, settings.log_level, settings.log_format)
    origins = address_origins()
    get_logger().info(
        "addresses_found",
        database=database_address(settings.dsn),
        database_from=origins["database_url"],
        kafka=settings.kafka_bootstrap,
        kafka_from=origins["kafka_bootstrap"],
    )
    return settings
