"""Errors of commands: a message and an exit code, so that known errors show no traceback."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from shlex import quote
from typing import Any, Final

import typer

from noonmark.cli.terminal.synonyms import (
    CommandLine,
    choices_of,
    command_meant,
    extra_argument,
    missing_option,
    unknown_value,
)


class ExitCode(IntEnum):
    """Exit codes. `noonmark --help` lists them."""

    OK = 0
    PROBLEM = 1
    """The command found a problem, or did not find an object."""
    USAGE = 2
    """An option, an argument or a setting is invalid."""
    UNREACHABLE = 3
    """The database, Kafka or the API is unreachable."""
    INTERRUPTED = 130


EXIT_CODES = (
    "Exit codes: 0 ok, 1 problem found, 2 wrong usage or settings, 3 database, Kafka or API"
    " unreachable, 130 interrupted."
)


class CliError(Exception):
    """A known error: its message is printed on stderr."""

    def __init__(self, message: str, code: ExitCode = ExitCode.PROBLEM) -> None:
        """Store the message and the exit code."""
        super().__init__(message)
        self.code = code


_FOLDER = " (run commands in the folder where it was started)"


def database_away(dsn: str, reason: object) -> CliError:
    """Return the error of a database that is unreachable."""
    from noonmark.settings.postgres_url import database_address  # noqa: PLC0415 - loads pydantic

    return CliError(
        f"cannot connect to the database {database_address(dsn)}: {first_line(reason)};"
        f" check NOONMARK_DATABASE_URL, or run `noonmark dev up`{_FOLDER}",
        ExitCode.UNREACHABLE,
    )


def broker_away(bootstrap: str, reason: object) -> CliError:
    """Return the error of Kafka brokers that are unreachable."""
    return CliError(
        f"cannot connect to Kafka at {bootstrap}: {first_line(reason)};"
        f" check NOONMARK_KAFKA_BOOTSTRAP, or run `noonmark dev up`{_FOLDER}",
        ExitCode.UNREACHABLE,
    )


def right_missing(bootstrap: str, missing: str) -> CliError:
    """Return the error of a command whose user lacks a right in Kafka."""
    return CliError(f"Kafka at {bootstrap} refuses the command: {missing}", ExitCode.USAGE)


def no_schema() -> CliError:
    """Return the error of a database that was not migrated."""
    return CliError("the database has no noonmark schema, or an older one; run `noonmark db migrate`")


def first_line(reason: object) -> str:
    """Return the first line of an error, at most 200 characters."""
    text = str(reason).strip() or type(reason).__name__
    line = text.splitlines()[0].strip().rstrip(".")
    return line if len(line) <= 200 else line[:199] + "…"


_REASONS: Final = {
    errno.ENOENT: "it does not exist",
    errno.EACCES: "you have no permission",
    errno.EPERM: "you have no permission",
    errno.EISDIR: "it is a folder",
    errno.EEXIST: "a file with this name exists",
    errno.ENOTDIR: "part of the path is a file, not a folder",
    errno.ELOOP: "its symbolic links form a loop",
    errno.ENAMETOOLONG: "its name is too long",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space is left on the disk",
    errno.EDQUOT: "your disk quota is used up",
    errno.EMFILE: "too many files are open",
}


def cannot_read(what: object, error: OSError | UnicodeError) -> CliError:
    """Return the error of a file that cannot be read, in plain words."""
    return CliError(f"cannot read {what}: {file_reason(error)}", ExitCode.USAGE)


def cannot_write(what: object, error: OSError) -> CliError:
    """Return the error of a file that cannot be written, in plain words."""
    if error.errno == errno.ENOENT:
        folder = Path(str(what)).parent
        return CliError(
            f"cannot write {what}: folder {folder} does not exist; create it with"
            f" `mkdir -p {quote(str(folder))}`",
            ExitCode.USAGE,
        )
    return CliError(f"cannot write {what}: {file_reason(error)}", ExitCode.USAGE)


def file_reason(error: OSError | UnicodeError) -> str:
    """Return why a file cannot be read or written, without the number and text of the operating system."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text (byte {error.start + 1})"
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    return _REASONS.get(error.errno or 0, "") or (error.strerror or type(error).__name__).lower()


_UNKNOWN: Final = "No such command "
"""How the library reports a command that a group does not have."""

WORDS: Final = "noonmark.words"
"""Key of the context's `meta` with all arguments of the command line."""

_EXTRA: Final = re.compile(r"Got unexpected extra argument\(s\) \((\S+).*\)", re.DOTALL)
"""How the library reports arguments that a command does not take."""

_EXPLANATIONS: Final = (
    ("noonmark.kafka.admin", "TopicError", ExitCode.UNREACHABLE),
    ("noonmark.store.migrations.migrate", "SchemaError", ExitCode.PROBLEM),
    ("noonmark.devstack.processes.errors", "DevStackError", ExitCode.PROBLEM),
)
"""Errors whose text is a message for users: module, class name, exit code."""


def explain(error: BaseException) -> CliError | None:
    """Turn an uncaught error into a message if its cause is known; else return None."""
    if isinstance(error, CliError):
        return error
    if _is(error, "noonmark.settings", "SettingsError"):
        return CliError(f"{error}; run `noonmark config check`", ExitCode.USAGE)
    for module, name, code in _EXPLANATIONS:
        if _is(error, module, name):
            return CliError(str(error), code)
    if _is(error, "noonmark.client.errors", "ClientError"):
        return _of_client(error)
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EIO, errno.EDQUOT}:
        return CliError(
            f"cannot write the output: {error.strerror}; free some space, or write to another disk"
        )
    return None


_CONFLICT: Final = 409
_AWAY: Final = frozenset({502, 503, 504})
"""Status codes of a server, or a proxy before it, that is temporarily unavailable."""


def _of_client(error: BaseException) -> CliError:
    """Return the message of a client error: the fields that the API rejected, or that it is unreachable."""
    if _is(error, "noonmark.client.errors", "NoAnswerError"):
        return CliError(
            f"{error}; run `noonmark context show` to see where commands go", ExitCode.UNREACHABLE
        )
    if not _is(error, "noonmark.client.errors", "ApiError"):
        return CliError(str(error))
    status: int = getattr(error, "status", 0)
    detail: str = getattr(error, "detail", "")
    if status == _CONFLICT:
        # It is about a job or another object, not about a document that was sent.
        detail = detail.removeprefix("document: ")
    fields: tuple[Any, ...] = getattr(error, "errors", ())
    lines = [f"{getattr(error, 'title', '') or status}{f': {detail}' if detail else ''}"]
    if len(fields) > 1 or not detail:
        lines += [f"  {field_text(one)}" for one in fields]
    if status >= 500:
        lines.append(f"  request {getattr(error, 'request_id', None)} (see the log of the API)")
    return CliError("\n".join(lines), ExitCode.UNREACHABLE if status in _AWAY else ExitCode.PROBLEM)


def field_text(one: Mapping[str, Any]) -> str:
    """Return one field error of a problem document as a line."""
    expected = f"; expected {one['expected']}" if one.get("expected") else ""
    return f"{one.get('pointer') or 'document'}: {one.get('message', '')}{expected}"


def explain_usage(error: Exception) -> None:
    """Reword an error about options or arguments in place: in plain words, with what is expected.

    Args:
        error: an error of the library that parses the command line.
    """
    ctx = getattr(error, "ctx", None)
    if isinstance(error, typer.BadParameter):
        param: Any = error.param
        if error.message or param is None or ctx is None:
            error.message = wrong_option(error)
        else:
            error.message = missing_option(_path_of(ctx), (*param.opts, *param.secondary_opts))
    elif ctx is not None and ctx.parent is not None and getattr(error, "message", "").startswith(_UNKNOWN):
        word = getattr(error, "message", "").split("'")[1]
        if meant := command_meant(word, ctx.command.commands):
            error.message = f"{_UNKNOWN}{word!r}. Did you mean {meant!r}?"  # type: ignore[attr-defined]
        error.message += f" {_commands_of(ctx)}"  # type: ignore[attr-defined]
    elif ctx is not None and (extra := _EXTRA.fullmatch(getattr(error, "message", ""))) is not None:
        taken = [param.metavar or param.name.upper() for param in ctx.command.params if _is_argument(param)]
        line = CommandLine(tuple(ctx.meta.get(WORDS, ())), _single_flags(ctx.command))
        error.message = extra_argument(  # type: ignore[attr-defined]
            _path_of(ctx), taken, extra[1].rstrip(","), line
        )


def _commands_of(ctx: Any) -> str:
    """Return a sentence with the commands of a group."""
    group = " ".join(("noonmark", *_path_of(ctx)))
    known = sorted(name for name, command in ctx.command.commands.items() if not command.hidden)
    return f"`{group}` has: {', '.join(known)}."


def _single_flags(command: Any) -> frozenset[str]:
    """Return the options with a value that a command takes once."""
    options = (param for param in command.params if not _is_argument(param))
    return frozenset(
        flag for one in options if not (one.is_flag or one.multiple or one.count) for flag in one.opts
    )


def _path_of(ctx: Any) -> list[str]:
    """Return the names of a command, without the program."""
    path: list[str] = []
    while ctx.parent is not None:
        path.insert(0, ctx.info_name)
        ctx = ctx.parent
    return path


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def wrong_option(error: typer.BadParameter) -> str:
    """Return a readable message for an invalid option value, with the range of a number."""
    message = error.message.removeprefix("Value error, ")
    given, _, known = message.partition(" is not one of ")
    if known:
        return message + unknown_value(given.strip("'"), choices_of(error.param))
    if not message.startswith("Input should be"):
        return message
    found: list[dict[str, Any]] = getattr(error.__cause__ or error.__context__, "errors", list)()
    shown = f"{found[0]['input']} is not allowed: " if found else ""
    limits = getattr(getattr(error.param, "type_descriptor", None), "parameter_info", None)
    low, high = getattr(limits, "min", None), getattr(limits, "max", None)
    reach = f"from {low}" if low is not None else ""
    reach += f" to {high}" if high is not None else ""
    return f"{shown}use a whole number{' ' if reach else ''}{reach.strip()}"


def _is(error: BaseException, module: str, name: str) -> bool:
    """Check against a class without importing its module: a module not loaded cannot have raised."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(error, getattr(loaded, name))
