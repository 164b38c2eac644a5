"""What went wrong, as one sentence and an exit code: no command ends in a traceback for a known cause."""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final
from urllib.parse import urlsplit

import typer


class ExitCode(IntEnum):
    """What a command's end says. `noonmark --help` lists them."""

    OK = 0
    PROBLEM = 1
    """The command ran and found something wrong, or did not find what was asked for."""
    USAGE = 2
    """An option, an argument or a setting is wrong."""
    UNREACHABLE = 3
    """The database, the broker or the API did not answer."""
    INTERRUPTED = 130


EXIT_CODES = (
    "Exit codes: 0 ok, 1 a problem was found, 2 wrong usage or settings, 3 no database, broker or API"
    " answers, 130 interrupted."
)


class CliError(Exception):
    """A known problem: shown as it stands, on stderr."""

    def __init__(self, message: str, code: ExitCode = ExitCode.PROBLEM) -> None:
        """Take the sentence and what the process exits with."""
        super().__init__(message)
        self.code = code


_FOLDER = " (commands find it in the folder where it was started, and nowhere else)"


def database_away(dsn: str, reason: object) -> CliError:
    """Say which database does not answer, and what to do."""
    return CliError(
        f"the database {database_address(dsn)} cannot be used ({first_line(reason)}); is it up?"
        f" `noonmark dev up` starts one{_FOLDER}, NOONMARK_DATABASE_URL names another",
        ExitCode.UNREACHABLE,
    )


def broker_away(bootstrap: str, reason: object) -> CliError:
    """Say which broker does not answer, and what to do."""
    return CliError(
        f"Kafka at {bootstrap} cannot be used ({first_line(reason)}); is it up?"
        f" `noonmark dev up` starts one{_FOLDER}, NOONMARK_KAFKA_BOOTSTRAP names another",
        ExitCode.UNREACHABLE,
    )


def no_schema() -> CliError:
    """Say that the database was never migrated."""
    return CliError("the database has no noonmark schema, or an older one: run `noonmark db migrate`")


def database_address(dsn: str) -> str:
    """Return host, port and database of a libpq URL, never its user or password."""
    if "://" not in dsn:
        return "of NOONMARK_DATABASE_URL"
    parts = urlsplit(dsn)
    # Without user and password, and whatever libpq accepts as a list of hosts.
    hosts = parts.netloc.rpartition("@")[2] or "(local socket)"
    return f"{parts.path.lstrip('/') or 'of the user'} at {hosts}"


def first_line(reason: object) -> str:
    """Return the first line of an error, short enough for a sentence."""
    text = str(reason).strip() or type(reason).__name__
    line = text.splitlines()[0].strip().rstrip(".")
    return line if len(line) <= 200 else line[:199] + "…"


_EXPLANATIONS: Final = (
    ("noonmark.kafka.admin", "TopicError", ExitCode.UNREACHABLE),
    ("noonmark.store.migrations.migrate", "SchemaError", ExitCode.PROBLEM),
    ("noonmark.devstack.processes.errors", "DevStackError", ExitCode.PROBLEM),
)
"""Errors that are sentences for users as they stand: module, name, and what the process exits with."""


def explain(error: BaseException) -> CliError | None:
    """Turn an error that reached the top into a sentence, where its cause is known; else None."""
    if isinstance(error, CliError):
        return error
    if _is(error, "noonmark.settings", "SettingsError"):
        return CliError(f"{error}; `noonmark config check` shows every setting", ExitCode.USAGE)
    for module, name, code in _EXPLANATIONS:
        if _is(error, module, name):
            return CliError(str(error), code)
    if _is(error, "noonmark.client.errors", "ClientError"):
        return _of_client(error)
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EIO, errno.EDQUOT}:
        return CliError(
            f"the output could not be written: {error.strerror}; free some space, or write elsewhere"
        )
    return None


_AWAY: Final = frozenset({502, 503, 504})
"""Answers of a server, or of a proxy before it, that cannot serve for the moment."""


def _of_client(error: BaseException) -> CliError:
    """Say what the API refused, field by field, or that it gave no answer."""
    if _is(error, "noonmark.client.errors", "NoAnswerError"):
        return CliError(
            f"{error}; `noonmark context show` tells where commands go, and why", ExitCode.UNREACHABLE
        )
    if not _is(error, "noonmark.client.errors", "ApiError"):
        return CliError(str(error))
    status: int = getattr(error, "status", 0)
    detail: str = getattr(error, "detail", "")
    fields: tuple[Any, ...] = getattr(error, "errors", ())
    lines = [f"{getattr(error, 'title', '') or status}{f': {detail}' if detail else ''}"]
    if len(fields) > 1 or not detail:
        lines += [f"  {field_text(one)}" for one in fields]
    if status >= 500:
        lines.append(f"  request {getattr(error, 'request_id', None)}, for the log of the API")
    return CliError("\n".join(lines), ExitCode.UNREACHABLE if status in _AWAY else ExitCode.PROBLEM)


def field_text(one: Mapping[str, Any]) -> str:
    """Return one field's problem of a problem document, in a line."""
    expected = f"; expected {one['expected']}" if one.get("expected") else ""
    return f"{one.get('pointer') or 'document'}: {one.get('message', '')}{expected}"


def wrong_option(error: typer.BadParameter) -> str:
    """Return what is wrong with an option's value, in our words; of a number also its range."""
    message = error.message.removeprefix("Value error, ")
    if not message.startswith("Input should be"):
        return message
    found: list[dict[str, Any]] = getattr(error.__cause__ or error.__context__, "errors", list)()
    given = f"{found[0]['input']} is not allowed: " if found else ""
    limits = getattr(getattr(error.param, "type_descriptor", None), "parameter_info", None)
    low, high = getattr(limits, "min", None), getattr(limits, "max", None)
    reach = f"from {low}" if low is not None else ""
    reach += f" to {high}" if high is not None else ""
    return f"{given}use a whole number{' ' if reach else ''}{reach.strip()}"


def _is(error: BaseException, module: str, name: str) -> bool:
    """Compare with a class of a module that is loaded: what was never imported was never raised."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(error, getattr(loaded, name))
