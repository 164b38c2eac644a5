"""The file of contexts: named APIs with their addresses and keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from noonmark.cli.terminal.problems import CliError, ExitCode, cannot_read, cannot_write, file_reason

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_BYTES: Final = 1024 * 1024
_ENV: Final = "env:"
_FILE: Final = "file:"
_OTHERS: Final = 0o077
"""Permission bits of other users than the owner."""

_TEXTS: Final = ("url", "key", "namespace")
_ALLOW_HTTP: Final = "allow_http"


@dataclass(frozen=True, slots=True)
class Context:
    """One API.

    Attributes:
        url: address of the API.
        key: the key itself, `env:NAME` or `file:PATH`.
        namespace: namespace of requests that name none; None leaves it to the key.
        allow_http: send the key unencrypted to a server that is not this machine.
    """

    name: str
    url: str
    key: str = field(repr=False)
    namespace: str | None = None
    allow_http: bool = False

    @property
    def key_source(self) -> str:
        """The source of the key; `in the file` instead of a key that the file contains."""
        return "********" if self.holds_key else self.key

    @property
    def holds_key(self) -> bool:
        """Whether the file contains the key itself."""
        return not self.key.startswith((_ENV, _FILE))


@dataclass(frozen=True, slots=True)
class Contexts:
    """Contents of the file.

    Attributes:
        current: the context that commands use by default, if any.
    """

    path: Path
    contexts: Mapping[str, Context]
    current: str | None = None

    def named(self, name: str) -> Context:
        """Return a context.

        Raises:
            CliError: no context has this name.
        """
        found = self.contexts.get(name)
        if found is None:
            known = ", ".join(sorted(self.contexts)) or "none"
            raise CliError(
                f"context {name!r} does not exist in {self.path} (contexts: {known}); run `noonmark context"
                " add`",
                ExitCode.USAGE,
            )
        return found


def path_of(given: str) -> Path:
    """Return the path of the file: `NOONMARK_CONFIG`, else in the user's configuration folder."""
    if given:
        return Path(given)
    # XDG: ignore paths that are not absolute.
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "noonmark" / "config.toml"


def read(path: Path) -> Contexts:
    """Read the file; a missing file has no contexts.

    Raises:
        CliError: it cannot be read, is invalid, or contains a key and is readable by other users.
    """
    import tomllib  # noqa: PLC0415 - for commands that have a file to read

    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_MOST_BYTES).decode()
    except FileNotFoundError:
        return Contexts(path, {})
    except (OSError, UnicodeDecodeError) as error:
        raise cannot_read(path, error) from error
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CliError(f"{path} is not TOML: {error}", ExitCode.USAGE) from error
    contexts = _contexts_of(found, path)
    if mode & _OTHERS and any(context.holds_key for context in contexts.contexts.values()):
        raise CliError(
            f"{path} contains keys, and other users can read it: run `chmod 600 {path}`, and replace the"
            " keys if other  users had access to this machine",
            ExitCode.USAGE,
        )
    return contexts


def write(contexts: Contexts) -> None:
    """Replace the whole file; only its owner can read it.

    Raises:
        CliError: it cannot be written.
    """
    path = contexts.path
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Exclusive, so that a link that another user planted is not followed.
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text_of(contexts))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise
    except OSError as error:
        raise cannot_write(path, error) from error


def text_of(contexts: Contexts) -> str:
    """Return the contexts as TOML."""
    lines = ["# Written by `noonmark context`; docs/contexts.md describes this file."]
    if contexts.current is not None:
        lines.append(f"current = {_quoted(contexts.current)}")
    for name, context in sorted(contexts.contexts.items()):
        lines += ["", f"[contexts.{_quoted(name)}]"]
        lines += [f"{part} = {_quoted(value)}" for part in _TEXTS if (value := getattr(context, part))]
        if context.allow_http:
            lines.append(f"{_ALLOW_HTTP} = true")
    return "\n".join(lines) + "\n"


def make(name: str, url: str, key: str, namespace: str | None = None, *, allow_http: bool = False) -> Context:
    """Create a context from the values that a user gave.

    Raises:
        CliError: a value is invalid; the message shows no key.
    """
    from noonmark.settings.checks import checked_api_url  # noqa: PLC0415 - for this command only

    if not _NAME.fullmatch(name):
        raise CliError(
            f"{name!r} is not a context name; use 1 to 64 of A-Z, a-z, 0-9, dot, dash and underscore",
            ExitCode.USAGE,
        )
    try:
        url = checked_api_url(url)
    except ValueError as error:
        raise CliError(f"context {name}: url {error}", ExitCode.USAGE) from error
    if not (key and key.isprintable() and key.isascii() and " " not in key):
        raise CliError(
            f"context {name}: the key is missing or has invalid characters; give the key, env:NAME"
            " or file:PATH",
            ExitCode.USAGE,
        )
    refuse_plain(url, f"context {name}", allow_http=allow_http)
    return Context(name, url, key, namespace or None, allow_http)


def key_of(context: Context, environment: Mapping[str, str] = os.environ) -> str:
    """Return the key of a context from its source.

    Raises:
        CliError: the key cannot be read.
    """
    reference = context.key
    subject = f"context {context.name}: the key {reference}"
    if reference.startswith(_ENV):
        key = environment.get(reference.removeprefix(_ENV), "")
        if not key:
            raise CliError(f"{subject} is not set", ExitCode.USAGE)
        return key
    if reference.startswith(_FILE):
        place = Path(reference.removeprefix(_FILE)).expanduser()
        try:
            with place.open(encoding="utf-8") as file:
                key = file.read(4096).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CliError(f"{subject} cannot be read: {file_reason(error)}", ExitCode.USAGE) from error
        if not key:
            raise CliError(f"{subject} is empty", ExitCode.USAGE)
        return key
    return reference


def refuse_plain(url: str, what: str, *, allow_http: bool) -> None:
    """Check that a key is not sent unencrypted, unless that is allowed.

    Raises:
        CliError: the URL has no TLS and is not on this machine.
    """
    parts = urlsplit(url)
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme == "http" and not local and not allow_http:
        raise CliError(
            f"{what}: the key would be sent to {parts.hostname} unencrypted; use https, or a context with"
            " `--allow-http` on a trusted network",
            ExitCode.USAGE,
        )


def _contexts_of(found: Mapping[str, Any], path: Path) -> Contexts:
    """Check the contents of the file."""
    unknown = sorted(set(found) - {"current", "contexts"})
    current, tables = found.get("current"), found.get("contexts", {})
    if unknown or not isinstance(tables, dict) or not isinstance(current, str | None):
        problem = f"unknown key {unknown[0]}" if unknown else "current must be a string, contexts tables"
        raise CliError(f"{path}: {problem}; see docs/contexts.md", ExitCode.USAGE)
    contexts = {}
    for name, table in tables.items():
        if not isinstance(table, dict) or not {"url", "key"} <= set(table):
            raise CliError(f"{path}: context {name} has no url or no key", ExitCode.USAGE)
        wrong = [part for part, value in table.items() if not _fits(part, value)]
        if wrong:
            raise CliError(
                f"{path}: context {name}: {wrong[0]} is unknown or has the wrong type; expected"
                f" {', '.join(_TEXTS)} (strings) and {_ALLOW_HTTP} (true or false)",
                ExitCode.USAGE,
            )
        try:
            contexts[name] = make(name, **table)
        except CliError as error:
            raise CliError(f"{path}: {error}", ExitCode.USAGE) from error
    return Contexts(path, contexts, current)


def _fits(part: str, value: object) -> bool:
    return isinstance(value, bool) if part == _ALLOW_HTTP else part in _TEXTS and isinstance(value, str)


def _quoted(value: str) -> str:
    """Return a TOML string: a JSON string, but with DEL escaped and characters beyond the BMP unescaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
