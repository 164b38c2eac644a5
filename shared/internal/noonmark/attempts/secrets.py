"""Resolves secrets: references in jobs, `secret://name`, that a worker replaces at the last moment.

A reference is a whole string, or part of one as `${secret://name}`. Its value is the file
`<secrets_dir>/<namespace>/<name>`, or else the environment variable of that namespace and name. No namespace
can read the secrets of another. Values exist only in the worker's memory: a redactor removes them from
everything that an attempt stores.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from noonmark.attempts.redaction import Redactor
from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.kinds.secret_references import SCHEME, has_references
from noonmark.settings import SECRET_PREFIX

MAX_SECRET_BYTES: Final = 64 * 1024
LEAST_CHARACTERS: Final = 4
"""A shorter value cannot be removed from texts without damaging them."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_INSIDE: Final = re.compile(r"\$\{secret://([^}]*)\}")
_NAMESPACE: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_WORDS: Final = re.compile(r"[A-Za-z0-9]+(?:[-._][A-Za-z0-9]+)*")
_NAMESPACE_WORDS: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class SecretError(Exception):
    """A reference cannot be resolved; the message names the reference and never a value.

    Attributes:
        retryable: whether the operator can fix it without a change of the job.
    """

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        """Create the error with its message."""
        super().__init__(message)
        self.retryable = retryable


class SecretResolver:
    """Reads the secrets of namespaces, again for each attempt, so that a rotated one takes effect at once."""

    def __init__(self, directory: Path | None, environment: Mapping[str, str] | None = None) -> None:
        """Create the resolver.

        Args:
            directory: contains a folder for each namespace, with a file for each secret.
            environment: variables; by default those of the process.
        """
        self._directory = directory
        self._environment = os.environ if environment is None else environment
        self._seen = Redactor({})
        self._lock = threading.Lock()

    def mask(self, text: str) -> str:
        """Remove every secret that this process has ever resolved from a text, for its log."""
        return self._seen.clean(text)

    def fill(self, attempt: RunningAttempt, value: Any) -> Any:
        """Return a part of a payload with its references resolved, and add them to the attempt's redactor.

        Raises:
            SecretError: a reference cannot be resolved.
        """
        if not has_references(value):
            return value
        filled, redactor = self.resolve(attempt.run.namespace, value)
        self._remember(attempt, redactor)
        return filled

    def get(self, attempt: RunningAttempt, name: str) -> str:
        """Return a secret that a handler requests, and add it to the attempt's redactor.

        Raises:
            SecretError: the secret does not exist or cannot be read.
        """
        value = self._read(attempt.run.namespace, name)
        self._remember(attempt, Redactor({name: value}))
        return value

    def resolve(self, namespace: str, value: Any) -> tuple[Any, Redactor]:
        """Return a copy with all references in dicts and lists resolved, at any depth, and a redactor.

        Keys are not changed.

        Raises:
            SecretError: a reference cannot be resolved.
        """
        found: dict[str, str] = {}

        def read(name: str) -> str:
            if name not in found:
                found[name] = self._read(namespace, name)
            return found[name]

        def walk(part: Any) -> Any:
            if isinstance(part, str):
                if part.startswith(SCHEME):
                    return read(part.removeprefix(SCHEME))
                return _INSIDE.sub(lambda match: read(match[1]), part)
            if isinstance(part, Mapping):
                return {key: walk(inner) for key, inner in part.items()}
            return [walk(inner) for inner in part] if isinstance(part, list | tuple) else part

        return walk(value), Redactor(found)

    def _remember(self, attempt: RunningAttempt, redactor: Redactor) -> None:
        with self._lock:
            attempt.redactor = redactor if attempt.redactor is None else attempt.redactor.joined(redactor)

    def _read(self, namespace: str, name: str) -> str:
        reference = SCHEME + name
        if _NAME.fullmatch(name) is None:
            raise SecretError(
                f"{reference[:160]!r} is not a reference to a secret: write secret:// and a name of 1 to 128 "
                "ASCII letters, digits, dots, dashes and underscores not beginning with a dot",
                retryable=False,
            )
        value = self._find(namespace, name)
        if len(value) < LEAST_CHARACTERS:
            raise SecretError(
                f"{reference} is shorter than {LEAST_CHARACTERS} characters, so it cannot be removed from "
                "logs; use a longer secret"
            )
        if not _is_text(value):
            raise SecretError(f"{reference} is not UTF-8 text; store binary secrets as base64")
        if len(value.encode()) > MAX_SECRET_BYTES:
            raise SecretError(f"{reference} is longer than {MAX_SECRET_BYTES // 1024} KB")
        with self._lock:
            self._seen = self._seen.joined(Redactor({f"{namespace}/{name}": value}))
        return value

    def _find(self, namespace: str, name: str) -> str:
        value = self._from_file(namespace, name)
        variable = variable_of(namespace, name)
        if value is None and variable is not None:
            value = self._environment.get(variable)
        if value is None:
            places = []
            if self._directory is not None:
                places.append(f"the file {namespace}/{name} in its secrets directory")
            if variable is not None:
                places.append(f"the environment variable {variable}")
            where = " or ".join(places) or "NOONMARK_SECRETS_DIR, and put a file there"
            raise SecretError(f"{SCHEME}{name} is not known to this worker: set {where}")
        return value

    def _from_file(self, namespace: str, name: str) -> str | None:
        # Neither a name nor a namespace has a slash or a leading dot, so the path stays inside the folder.
        if self._directory is None or _NAMESPACE.fullmatch(namespace) is None:
            return None
        try:
            with (self._directory / namespace / name).open("rb") as file:
                data = file.read(MAX_SECRET_BYTES + 2)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SecretError(f"{SCHEME}{name} cannot be read by this worker: {error.strerror}") from None
        try:
            return data.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise SecretError(f"{SCHEME}{name} is not UTF-8 text; store binary secrets as base64") from None


def _is_text(value: str) -> bool:
    """Return whether a value is valid text; variables can contain other bytes, which cannot be redacted."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def variable_of(namespace: str, name: str) -> str | None:
    """Return the environment variable of a secret: `NOONMARK_SECRET_<NAMESPACE>__<NAME>`, with `_` for signs.

    None if another namespace could have the same variable, or if the name ends with a sign or has two in a
    row: such secrets must be files.
    """
    if _NAMESPACE_WORDS.fullmatch(namespace) is None or _WORDS.fullmatch(name) is None:
        return None
    return f"{SECRET_PREFIX}{_as_words(namespace)}__{_as_words(name)}"


def _as_words(text: str) -> str:
    return text.replace("-", "_").replace(".", "_").upper()


def refuse_references(value: Any, place: str) -> None:
    """Refuse references in a field that others can read.

    Args:
        value: the value of the field.
        place: the name of the field, such as `argv`.

    Raises:
        SecretError: the value contains a reference.
    """
    if has_references(value):
        raise SecretError(
            f"{place} may not contain a secret, because others can read it: use a field that may contain "
            "one, such as headers, body or env",
            retryable=False,
        )
