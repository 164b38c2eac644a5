"""`noonmark signing-key`: manage the keys that sign calls to receivers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.audit_entries import write_entry
from noonmark.cli.connections.context import changing, operator_settings
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import field, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    import psycopg

    from noonmark.store.access.signing_keys import SigningKey

app = typer.Typer(
    help="Manage the keys that sign HTTP calls of a namespace's jobs.",
    no_args_is_help=True,
)

Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Namespace of the jobs.")]
KeyId = Annotated[str | None, typer.Argument(metavar="[KEY]", help="Id of the key.")]

_COLUMNS = (
    field("key_id", "KEY"),
    field("state"),
    field("created_at", "CREATED"),
    field("retired_at", "RETIRED"),
)


@app.command("list")
def list_(namespace: Namespace, as_json: AsJson = False) -> None:
    """List the keys of a namespace, newest first, without secrets."""
    with changing(operator_settings()) as connection:
        rows = [_row(key) for key in _keys(connection, namespace)]
        if not rows:
            _hint(connection, namespace)
    if as_json:
        show_json({"namespace": namespace, "items": rows})
        return
    show_list(rows, _COLUMNS, empty=f"namespace {namespace} has no signing keys")


@app.command()
def show(namespace: Namespace, key: KeyId = None, as_json: AsJson = False) -> None:
    """Print the secret of a key (default: the newest) for receivers. Creates the first key."""
    from noonmark.store.access.signing_keys import ensure_signing_keys  # noqa: PLC0415

    _check(namespace)
    with changing(operator_settings()) as connection, connection.transaction():
        _hint(connection, namespace)
        if not _keys(connection, namespace):
            made = ensure_signing_keys(connection, namespace)[0]
            _record(connection, "create", namespace, after={"key_id": made.key_id})
        found = [one for one in _keys(connection, namespace) if key in {None, one.key_id}]
    if not found:
        raise CliError(
            f"namespace {namespace!r} has no key {key!r}; run `noonmark signing-key list {namespace}`"
        )
    if as_json:
        show_json({"namespace": namespace, **_row(found[0]), "secret": found[0].secret})
    else:
        print(found[0].secret)


@app.command()
def rotate(namespace: Namespace, as_json: AsJson = False) -> None:
    """Create a key. All valid keys sign, so that receivers can switch before you retire the old key."""
    from noonmark.store.access.signing_keys import rotate_signing_key  # noqa: PLC0415

    _check(namespace)
    with changing(operator_settings()) as connection, connection.transaction():
        made = rotate_signing_key(connection, namespace)
        _record(connection, "rotate", namespace, after={"key_id": made.key_id})
    if as_json:
        show_json({"namespace": namespace, **_row(made)})
        return
    print(
        f"key {made.key_id} of namespace {namespace} signs within 30 s, in addition to older keys;"
        f" `noonmark signing-key show {namespace}` prints it,"
        f" `noonmark signing-key retire {namespace}` retires the others"
    )


@app.command()
def retire(namespace: Namespace, key: KeyId = None, as_json: AsJson = False) -> None:
    """Retire a key, or all but the newest. You cannot retire the newest, because calls are always signed."""
    from noonmark.store.access.signing_keys import retire_signing_keys  # noqa: PLC0415

    with changing(operator_settings()) as connection, connection.transaction():
        ended = retire_signing_keys(connection, namespace, key)
        if ended:
            _record(connection, "retire", namespace, before={"key_ids": ended})
        left = [one.key_id for one in _keys(connection, namespace) if one.retired_at is None]
    if key is not None and not ended:
        hint = "it is the newest; rotate first" if key in left else "it does not exist, or is already retired"
        raise CliError(f"key {key!r} of namespace {namespace!r} cannot be retired: {hint}")
    if as_json:
        show_json({"namespace": namespace, "retired": ended, "valid": left})
        return
    print(f"retired: {', '.join(ended) or 'none'}; valid: {', '.join(left) or 'none'}")


def _record(
    connection: psycopg.Connection,
    verb: str,
    namespace: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Record a change in the audit log, without secrets."""
    target = f"signing-keys:{namespace}"
    write_entry(connection, f"signing_key.{verb}", target, namespace=namespace, before=before, after=after)


def _hint(connection: psycopg.Connection, namespace: str) -> None:
    """Print a hint if the namespace has neither jobs nor keys: its name may be misspelled."""
    from noonmark.store.namespaces.namespaces import without_jobs  # noqa: PLC0415

    if not _keys(connection, namespace) and (hint := without_jobs(connection, namespace)):
        print(hint, file=sys.stderr)


def _row(key: SigningKey) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "state": "valid" if key.retired_at is None else "retired",
        "created_at": key.created_at,
        "retired_at": key.retired_at,
    }


def _keys(connection: psycopg.Connection, namespace: str) -> list[SigningKey]:
    from noonmark.store.access.signing_keys import signing_keys  # noqa: PLC0415

    return signing_keys(connection, namespace)


def _check(namespace: str) -> None:
    import re  # noqa: PLC0415

    from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN  # noqa: PLC0415

    if re.fullmatch(NAMESPACE_PATTERN, namespace) is None:
        raise CliError(
            f"{namespace!r} is not a namespace; use 1 to 63 of a-z, 0-9, '-' and '_', not a sign first",
            ExitCode.USAGE,
        )
