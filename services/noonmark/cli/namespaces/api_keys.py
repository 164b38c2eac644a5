"""`noonmark admin`: create the first platform key, and manage API keys."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.audit_entries import write_entry
from noonmark.cli.connections.context import changing, operator_settings
from noonmark.cli.terminal.options import AsJson, Limit, Namespace, Output, OutputOption, as_seconds
from noonmark.cli.terminal.output import Column, field, instant_field, show_fields, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.auth.key_issuing import IssuedKey
    from noonmark.client import Client

app = typer.Typer(help="Manage API access.", no_args_is_help=True)
keys = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)
app.add_typer(keys, name="key")

_KEY_ID: Final = re.compile(r"[a-z0-9]{12}")


def _key_id(given: str) -> str:
    """Reject a value that is not a key id before it is sent: it may be a whole key with its secret."""
    if not _KEY_ID.fullmatch(given):
        raise CliError(
            "KEY must be a key id (12 of a-z and 0-9), not the name of a key nor the key itself;"
            " `noonmark admin key list` shows the ids",
            ExitCode.USAGE,
        )
    return given


KeyId = Annotated[
    str,
    typer.Argument(metavar="KEY", help="Id of the key, from `noonmark admin key list`.", callback=_key_id),
]
_PAGE: Final = 200
_ROLES: Final = ("viewer", "operator", "editor", "admin")
_SHOWN_ONCE: Final = "shown only once; store it with your secrets"


def _reach(row: Mapping[str, Any]) -> str:
    if row["platform"]:
        return "platform"
    return ", ".join(f"{place}={role}" for place, role in sorted(row["grants"].items()))


_COLUMNS = (
    field("key_id", "KEY"),
    field("name", cut=True),
    Column("GRANTS", _reach, elastic=True),
    field("state"),
    instant_field("expires_at", "EXPIRES"),
    instant_field("last_used_at", "LAST USED"),
    Column("SCOPES", lambda row: ", ".join(row["scopes"] or ()), wide=True),
    field("rate_per_minute", "RATE", numeric=True, wide=True),
    field("signs", wide=True),
    field("created_by", "BY", wide=True),
    instant_field("created_at", "CREATED", wide=True),
)


@app.command()
def bootstrap(
    name: Annotated[str, typer.Option("--name", help="Name of the key.")] = "bootstrap",
    force: Annotated[
        bool,
        typer.Option("--force", help="Create a key although a valid one exists, because that one is lost."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create the first platform admin key and print it once. Needs the database."""
    made = _first_key(name, force=force)
    token = str(made.token)
    if as_json:
        show_json({"key_id": made.row.key_id, "name": name, "token": token})
        return
    print(token)
    print(
        f"key {made.row.key_id} has all permissions in all namespaces; {_SHOWN_ONCE}. Set it as"
        " NOONMARK_API_KEY, with NOONMARK_API_URL; `noonmark admin key create` creates other keys",
        file=sys.stderr,
    )


@keys.command()
def create(
    *,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the key: the user or service that uses it.")
    ],
    grant: Annotated[
        list[str] | None,
        typer.Option(
            "--grant",
            metavar="NAMESPACE=ROLE",
            help=f"{', '.join(_ROLES)}; `*` for all namespaces; repeatable.",
        ),
    ] = None,
    platform: Annotated[bool, typer.Option("--platform", help="All permissions in all namespaces.")] = False,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="Restrict the key to this permission, such as jobs:write; repeatable."),
    ] = None,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, metavar="N", help="Maximum requests a minute.")
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option("--expires-in", metavar="TIME", help="Lifetime of the key: 12h, 90d, 52w.")
    ] = None,
    signs: Annotated[
        bool, typer.Option("--signs", help="Also create a key for signing events on Kafka.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a key and print it once. It cannot have more permissions than its creator."""
    grants = _grants(grant or [])
    body = {
        "name": name,
        "grants": grants,
        "platform": platform,
        "scopes": scope or None,
        "rate_per_minute": rate,
        "expires_in_seconds": _lifetime(expires_in),
        "signs": signs,
    }
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - the API's client takes a while to load

    with client(operator_settings()) as api:
        made = api.keys.create(body)
        # At once: the token cannot be read again, whatever happens to the notes.
        _show_created(made, signs=signs, as_json=as_json)
        for note in _unknown_places(api, grants):
            print(f"note: {note}", file=sys.stderr)


@keys.command("list")
def list_(
    *,
    namespace: Namespace = None,
    ended: Annotated[bool, typer.Option("--ended", help="Include revoked and expired keys.")] = False,
    limit: Limit = 50,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List keys with their last use, without secrets."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = api.keys.list(namespace=namespace, ended=ended, limit=min(limit, _PAGE))
        rows = list(islice(found, limit))
    if as_json:
        show_json({"items": rows})
        return
    empty = "no API keys found; `noonmark admin key create` creates one"
    show_list(rows, _COLUMNS, wide=output is Output.WIDE, empty=empty)


@keys.command()
def show(key: KeyId, as_json: AsJson = False) -> None:
    """Show a key without secrets."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = api.keys.get(key)
    if as_json:
        show_json(found)
    else:
        show_fields(found)


@keys.command()
def revoke(key: KeyId, as_json: AsJson = False) -> None:
    """Revoke a key permanently. All servers reject it within 5 s."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        api.keys.revoke(key)
    if as_json:
        show_json({"key_id": key, "revoked": True})
    else:
        print(f"key {key} revoked; all servers reject it within 5 s")


def _first_key(name: str, *, force: bool) -> IssuedKey:
    """Create the key and its audit entry in one transaction, unless a valid one exists."""
    from noonmark.auth.key_issuing import issue_key  # noqa: PLC0415 - drivers take a while to load
    from noonmark.cli.connections.api import local_principal  # noqa: PLC0415
    from noonmark.store.access.api_keys import KeyRequestError, NewKey, has_platform_key, lock_first_key  # noqa: PLC0415

    maker = local_principal()
    with changing(operator_settings()) as connection, connection.transaction():
        lock_first_key(connection)
        if not force and has_platform_key(connection):
            raise CliError(
                "a platform admin key already exists: create other keys with it by `noonmark admin key"
                " create`; if it is lost, use --force"
            )
        try:
            made = issue_key(connection, maker, NewKey(name, {}, platform=True))
        except KeyRequestError as error:
            raise CliError(str(error), ExitCode.USAGE) from error
        reason = "bootstrap, forced" if force else "bootstrap"
        after = made.row._asdict()
        write_entry(connection, "key.create", f"key:{made.row.key_id}", reason=reason, after=after)
    return made


def _grants(given: Sequence[str]) -> dict[str, str]:
    """Parse `NAMESPACE=ROLE` options; each namespace can be given once."""
    found: dict[str, str] = {}
    for text in given:
        place, equals, role = text.partition("=")
        if not equals or role not in _ROLES:
            raise CliError(
                f"--grant {text!r} is not a grant; use NAMESPACE=ROLE with one of {', '.join(_ROLES)}",
                ExitCode.USAGE,
            )
        if place in found:
            raise CliError(f"--grant has namespace {place!r} twice", ExitCode.USAGE)
        found[place] = role
    return found


def _show_created(made: Mapping[str, Any], *, signs: bool, as_json: bool) -> None:
    if as_json:
        show_json(made)
        return
    print(made["token"])
    if made["signing_key"] is not None:
        print(made["signing_key"])
    both = "the API key, then the signing key for events" if signs else f"key {made['key_id']}"
    print(f"{both}: {_SHOWN_ONCE}", file=sys.stderr)
    sys.stdout.flush()


def _unknown_places(api: Client, grants: Mapping[str, str]) -> Iterator[str]:
    """Yield a note for each granted namespace that is not in use yet: its name may be misspelled."""
    from noonmark.client import ApiError  # noqa: PLC0415
    from noonmark.store.namespaces.namespaces import name_hint  # noqa: PLC0415 - not needed to show help

    named = [place for place in grants if place not in {"*", "default"}]
    if not named:
        return
    try:
        known = [row["name"] for row in api.namespaces.list()]
    except ApiError:  # a key that may create keys need not see every namespace
        return
    for place in named:
        if place not in known:
            yield name_hint(place, known)


def _lifetime(given: str | None) -> int | None:
    if given is None:
        return None
    if given.strip().isdecimal():
        raise CliError(
            f"--expires-in {given!r} has no unit; write {given.strip()}d for days, for example",
            ExitCode.USAGE,
        )
    seconds = as_seconds(given)
    if not seconds:
        raise CliError(f"--expires-in {given!r} is not a time span such as 12h, 90d or 52w", ExitCode.USAGE)
    return seconds
