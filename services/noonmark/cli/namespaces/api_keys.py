"""`noonmark admin`: the first key of an installation, and those after it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
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

app = typer.Typer(help="Look after who may use the API.", no_args_is_help=True)
keys = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)
app.add_typer(keys, name="key")

_KEY_ID: Final = re.compile(r"[a-z0-9]{12}")


def _key_id(given: str) -> str:
    """Refuse what is no id of a key before it goes anywhere: it may be a whole key, with its secret."""
    if not _KEY_ID.fullmatch(given):
        raise CliError(
            "KEY is the id of a key, 12 of a-z and 0-9, not the key: `noonmark admin key list` shows them",
            ExitCode.USAGE,
        )
    return given


KeyId = Annotated[
    str,
    typer.Argument(
        metavar="KEY", help="Id of a key: `noonmark admin key list` shows them.", callback=_key_id
    ),
]
_PAGE: Final = 200
_ROLES: Final = ("viewer", "operator", "editor", "admin")
_SHOWN_ONCE: Final = "this is shown once: keep it where secrets are kept"


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
        bool, typer.Option("--force", help="Make one although there is a valid one: the other is lost.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the first platform admin's key, and show it once. Needs the database."""
    made = _first_key(name, force=force)
    token = str(made.token)
    if as_json:
        show_json({"key_id": made.row.key_id, "name": name, "token": token})
        return
    print(token)
    print(
        f"key {made.row.key_id} may do everything everywhere; {_SHOWN_ONCE}. Commands use it as"
        " NOONMARK_API_KEY, with NOONMARK_API_URL; `noonmark admin key create` makes keys that may do less",
        file=sys.stderr,
    )


@keys.command()
def create(
    *,
    name: Annotated[str, typer.Argument(help="For people: who or what uses it.")],
    grant: Annotated[
        list[str] | None,
        typer.Option(
            "--grant",
            metavar="NAMESPACE=ROLE",
            help=f"{', '.join(_ROLES)}; `*` is every namespace; repeatable.",
        ),
    ] = None,
    platform: Annotated[bool, typer.Option("--platform", help="It may do everything everywhere.")] = False,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="One of its only permissions, such as jobs:write; repeatable."),
    ] = None,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, metavar="N", help="Requests a minute that it may send.")
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option("--expires-in", metavar="TIME", help="How long it lives: 12h, 90d, 52w.")
    ] = None,
    signs: Annotated[
        bool, typer.Option("--signs", help="Also make what its publisher signs events on Kafka with.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a key, and show it once. It can do no more than who makes it."""
    body = {
        "name": name,
        "grants": _grants(grant or []),
        "platform": platform,
        "scopes": scope or None,
        "rate_per_minute": rate,
        "expires_in_seconds": _lifetime(expires_in),
        "signs": signs,
    }
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - the API's client takes a while to load

    with client(operator_settings()) as api:
        made = api.keys.create(body)
    if as_json:
        show_json(made)
        return
    print(made["token"])
    if made["signing_key"] is not None:
        print(made["signing_key"])
    both = "the API key, then the key that signs events" if signs else f"key {made['key_id']}"
    print(f"{both}: {_SHOWN_ONCE}", file=sys.stderr)


@keys.command("list")
def list_(
    *,
    namespace: Namespace = None,
    ended: Annotated[bool, typer.Option("--ended", help="Revoked and expired ones too.")] = False,
    limit: Limit = 50,
    output: OutputOption = Output.TABLE,
    as_json: AsJson = False,
) -> None:
    """List keys without their secrets, with when each was last used."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = api.keys.list(namespace=namespace, ended=ended, limit=min(limit, _PAGE))
        rows = list(islice(found, limit))
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, _COLUMNS, wide=output is Output.WIDE)


@keys.command()
def show(key: KeyId, as_json: AsJson = False) -> None:
    """Show a key without its secrets."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        found = api.keys.get(key)
    if as_json:
        show_json(found)
    else:
        show_fields(found)


@keys.command()
def revoke(key: KeyId, as_json: AsJson = False) -> None:
    """End a key for good: it is refused everywhere within 5 s."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        api.keys.revoke(key)
    if as_json:
        show_json({"key_id": key, "revoked": True})
    else:
        print(f"key {key} is revoked: it is refused everywhere within 5 s")


def _first_key(name: str, *, force: bool) -> IssuedKey:
    """Make the key and its audit entry in one transaction, unless somebody has one."""
    from noonmark.auth.key_issuing import issue_key  # noqa: PLC0415 - drivers take a while to load
    from noonmark.cli.connections.api import local_principal  # noqa: PLC0415
    from noonmark.store.access.api_keys import KeyRequestError, NewKey, has_platform_key, lock_first_key  # noqa: PLC0415

    maker = local_principal()
    with changing(operator_settings()) as connection, connection.transaction():
        lock_first_key(connection)
        if not force and has_platform_key(connection):
            raise CliError(
                "there is a platform admin's key already: make others with it, by `noonmark admin key"
                " create`; if it is lost, --force makes another one"
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
    """Read `NAMESPACE=ROLE`, each namespace once."""
    found: dict[str, str] = {}
    for text in given:
        place, equals, role = text.partition("=")
        if not equals or role not in _ROLES:
            raise CliError(
                f"--grant {text!r} is no grant: use NAMESPACE=ROLE with one of {', '.join(_ROLES)}",
                ExitCode.USAGE,
            )
        if place in found:
            raise CliError(f"--grant names {place!r} twice", ExitCode.USAGE)
        found[place] = role
    return found


def _lifetime(given: str | None) -> int | None:
    if given is None:
        return None
    seconds = as_seconds(given)
    if not seconds:
        raise CliError(f"--expires-in {given!r} is no time such as 12h, 90d or 52w", ExitCode.USAGE)
    return seconds
