"""What commands work on: an API that a context or the environment names, or the database of the settings."""

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
        url: address of the API; empty: it runs in this process, over the database of the settings.
        key: the API key.
        namespace: what requests mean that name none.
        named_by: what decided, for people.
        context: the context that it is of.
        allow_http: send the key unencrypted to a server that is not this machine.
    """

    url: str = ""
    key: str = field(default="", repr=False)
    namespace: str | None = None
    named_by: str = "the settings"
    context: str | None = None
    allow_http: bool = False


def target_of(settings: Settings) -> Target:
    """Decide where requests go; the nearer wins.

    `--context`, then `NOONMARK_API_URL`, then `NOONMARK_CONTEXT`; then a database that the environment names
    or a development stack of this folder; then the current context of the file; else the database that the
    settings have by default.

    Args:
        settings: of `operator_settings()`, where an option stands in for its variable.

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
            raise CliError("NOONMARK_API_URL names an API, and NOONMARK_API_KEY holds no key", ExitCode.USAGE)
        contexts.refuse_plain(settings.api_url, by, allow_http=False)
        return Target(settings.api_url, key, named_by=by)
    context = contexts.read(contexts.path_of(settings.config)).named(name)
    # Never the key of the environment: it is for NOONMARK_API_URL, and no business of any other server's.
    key = contexts.key_of(context)
    return Target(context.url, key, context.namespace, by, name, context.allow_http)


def require_direct(settings: Settings, what: Literal["database_url", "kafka_bootstrap"]) -> None:
    """Make sure that a command that goes to Postgres or Kafka itself was not meant for an API.

    Raises:
        CliError: an API is named, and not what the command needs beside it.
    """
    chosen = _chosen(settings)
    if chosen is None:
        return
    name, by = chosen
    if name is None and what in settings.model_fields_set:
        # Both are named by the environment: this command uses the one that it needs.
        return
    place = "the database" if what == "database_url" else "Kafka"
    told = f"context {name} (by {by})" if name is not None else by
    raise CliError(
        f"this command works on {place} itself, and {told} names an API;"
        f" give NOONMARK_{what.upper()} instead, without a context",
        ExitCode.USAGE,
    )


def _chosen(settings: Settings) -> tuple[str | None, str] | None:
    """Return the context that is meant, None for the API of the environment, and by what; None: no API."""
    if settings.api_url:
        return None, "NOONMARK_API_URL"
    if settings.context:
        variable = os.environ.get("NOONMARK_CONTEXT") == settings.context
        return settings.context, "NOONMARK_CONTEXT" if variable else "--context"
    if "database_url" in settings.model_fields_set:
        return None
    current = contexts.read(contexts.path_of(settings.config)).current
    return (current, "the configuration file") if current is not None else None
