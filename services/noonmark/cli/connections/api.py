"""The client of the API: over HTTP if a context or the environment names an API, else in process."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from noonmark.cli.connections.context import database_errors
from noonmark.cli.connections.targets import target_of
from noonmark.cli.terminal.problems import CliError, ExitCode, explain

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.core.access.roles import Principal
    from noonmark.settings import Settings

IN_PROCESS_URL: Final = "http://in-process.localhost"
"""Address of the client when the API runs in process."""

_UNPROCESSABLE: Final = 422


@contextmanager
def client(settings: Settings) -> Iterator[Client]:
    """Open a client of the API. Requests and answers are the same over HTTP and in process.

    Args:
        settings: from `operator_settings()`: they name the API, or the database.

    Raises:
        CliError: a context is unknown or its key cannot be read, or the database is unreachable.
    """
    from noonmark.client import Client  # noqa: PLC0415 - httpx takes a while to load

    target = target_of(settings)
    if target.url:
        try:
            made = Client(target.url, target.key, namespace=target.namespace, allow_http=target.allow_http)
        except ValueError as error:
            raise CliError(f"{target.named_by}: {error}", ExitCode.USAGE) from error
        with made as opened:
            yield opened
        return
    with database_errors(settings), _in_process(settings, target.namespace) as opened:
        yield opened


@contextmanager
def wrong_usage() -> Iterator[None]:
    """Report a document that the API rejects as wrong usage: it was built from the command's options.

    Raises:
        CliError: the API rejected the document; with its message.
    """
    from noonmark.client import ApiError  # noqa: PLC0415

    try:
        yield
    except ApiError as error:
        if error.status != _UNPROCESSABLE:
            raise
        raise CliError(str(explain(error)), ExitCode.USAGE) from error


def local_principal() -> Principal:
    """Return the principal of commands on the database itself: users with its password have all roles."""
    from noonmark.core.access.roles import Principal  # noqa: PLC0415

    user = getpass.getuser()
    return Principal(id=f"local:{user}", name=user, platform=True)


@contextmanager
def _in_process(settings: Settings, namespace: str | None) -> Iterator[Client]:
    """Run the API's application in this process, on the configured database."""
    from anyio.from_thread import start_blocking_portal  # noqa: PLC0415

    from noonmark.api.app import build_app  # noqa: PLC0415
    from noonmark.api.main import make_parts  # noqa: PLC0415
    from noonmark.api.server.gate import LocalUser  # noqa: PLC0415
    from noonmark.cli.connections.in_process import InProcessTransport  # noqa: PLC0415
    from noonmark.client import Client  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415
    from noonmark.store.views.lookups import read_cursor_key  # noqa: PLC0415

    _log_faults_only()
    with connect(settings.dsn, application="cli", autocommit=True) as connection:
        row = connection.execute("select shards from install").fetchone()
        assert row is not None
        cursor_key = read_cursor_key(connection)
    # No rate limit: users with the database's password could bypass it.
    settings = settings.model_copy(update={"api_rate_per_minute": 0})
    parts = make_parts(settings, shards=int(row[0]), cursor_key=cursor_key, application="cli")
    app = build_app(parts, LocalUser(local_principal()))
    try:
        with (
            start_blocking_portal() as portal,
            Client(IN_PROCESS_URL, namespace=namespace, transport=InProcessTransport(app, portal)) as opened,
        ):
            yield opened
    finally:
        parts.live.close()
        parts.close()


def _log_faults_only() -> None:
    """Log only errors of the application; the command itself reports everything else."""
    import structlog  # noqa: PLC0415

    from noonmark.telemetry.logs import configure_logs  # noqa: PLC0415

    if not structlog.is_configured():
        configure_logs("cli", "error", "console")
