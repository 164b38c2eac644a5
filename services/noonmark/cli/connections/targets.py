"""Where commands send requests: an API from a context or the environment, or the configured database."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from noonmark.cli.connections import contexts
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.settings import Settings


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go.

    Attributes:
        url: address of the API; empty if the API runs in this process, on the configured database.
        key: the API key.
        namespace: namespace of requests that name none.
        named_by: the option, variable or file that decided, for messages.
        context: name of the context, if any.
        allow_http: send the key unencrypted to a server that is not this machine.
    """

    url: str = ""
    key: str = field(default="", repr=False)
    namespace: str | None = None
    named_by: str = "the settings"
    context: str | None = None
    allow_http: bool = False


def target_of(settings: Settings) -> Target:
    """Decide where requests go. The first of these that is set wins.

    `--context`, `NOONMARK_API_URL`, `NOONMARK_CONTEXT`; a database that the environment names
    or a development stack of this folder; the current context of the file; the database that the
    settings have by default.

    Args:
        settings: from `operator_settings()`, where an option replaces its variable.

    Raises:
        CliError: the context is unknown, or its key cannot be read.
    """
    chosen = _chosen(settings)
    if chosen is None:
        return Target()
    name, by = chosen
    if name is None:
        key = settings.api_key.get_secret_value()
        if not key:
            raise CliError("NOONMARK_API_URL is set, but NOONMARK_API_KEY is not; set both", ExitCode.USAGE)
        contexts.refuse_plain(settings.api_url, by, allow_http=False)
        return Target(settings.api_url, key, named_by=by)
    context = contexts.read(contexts.path_of(settings.config)).named(name)
    # Never send the key of the environment: it belongs to NOONMARK_API_URL and to no other server.
    key = contexts.key_of(context)
    return Target(context.url, key, context.namespace, by, name, context.allow_http)


def require_direct(settings: Settings, what: Literal["database_url", "kafka_bootstrap"]) -> None:
    """Check that a command which connects to Postgres or Kafka directly was not meant for an API.

    Raises:
        CliError: an API is configured, but not the address that the command needs.
    """
    chosen = _chosen(settings)
    if chosen is None:
        return
    name, by = chosen
    if name is None and what in settings.model_fields_set:
        # The environment names both; this command uses the one that it needs.
        return
    server = "the database" if what == "database_url" else "Kafka"
    chosen_by = f"context {name} (from {by})" if name is not None else by
    raise CliError(
        f"this command connects to {server} directly, but {chosen_by} names an API;"
        f" set NOONMARK_{what.upper()} and use no context",
        ExitCode.USAGE,
    )


def _chosen(settings: Settings) -> tuple[str | None, str] | None:
    """Return the context (None: the API of the environment) and what chose it; None if there is no API."""
    if settings.api_url:
        return None, "NOONMARK_API_URL"
    if settings.context:
        variable = os.environ.get("NOONMARK_CONTEXT") == settings.context
        return settings.context, "NOONMARK_CONTEXT" if variable else "--context"
    if "database_url" in settings.model_fields_set:
        return None
    current = contexts.read(contexts.path_of(settings.config)).current
    return (current, "the configuration file") if current is not None else None
