"""`noonmark rights`: print the commands that grant every service the rights that it needs, and no others."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from noonmark.kafka.rights import Client, Right

app = typer.Typer(
    help="Print the rights that each service needs in Kafka and Postgres.", no_args_is_help=True
)


_COMMAND = 'kafka-acls.sh --bootstrap-server "$BOOTSTRAP" --command-config "$COMMAND_CONFIG"'


@app.command()
def kafka(
    pools: Annotated[
        list[str] | None,
        typer.Option("--pool", help="Pool of the workers; repeat for several. (default: default)"),
    ] = None,
    principals: Annotated[
        list[str] | None,
        typer.Option(
            "--principal",
            metavar="CLIENT=PRINCIPAL",
            help="Principal of a client; repeat for several. (default: User:noonmark-CLIENT)",
        ),
    ] = None,
) -> None:
    """Print one `kafka-acls.sh` command per right, with the names of this installation.

    The names follow NOONMARK_TOPIC_PREFIX, NOONMARK_BOUND_TOPICS and NOONMARK_EMIT_TOPICS. In the shell that
    runs the commands, set BOOTSTRAP (address) and COMMAND_CONFIG (file with the administrator's properties).
    """
    from noonmark.core.access.topic_bindings import read_bindings  # noqa: PLC0415
    from noonmark.kafka.rights import Client, kafka_rights  # noqa: PLC0415
    from noonmark.kafka.topics import Topics  # noqa: PLC0415

    settings = operator_settings()
    try:
        rights = kafka_rights(
            Topics(settings.topic_prefix),
            pools=pools or ["default"],
            bound=read_bindings(settings.bound_topics),
            emitted=settings.emit_topics,
        )
    except ValueError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    known = _principals(principals or (), [client.value for client in Client])
    for line in acl_commands(rights, known):
        print(line)


@app.command()
def postgres(
    schema: Annotated[str, typer.Option(help="Schema of noonmark's tables.")] = "public",
) -> None:
    """Print the SQL that creates a role for each service, and grants it its rights.

    An administrator of the server runs the first part, once. The owner of the tables then runs
    `noonmark db migrate`, which grants the rights again at each upgrade; the second part shows them.
    """
    from noonmark.store.migrations.service_roles import create_statements, grant_statements  # noqa: PLC0415

    print("-- As an administrator of the server, once:")
    for line in create_statements():
        print(line)
    print("\n-- `noonmark db migrate` runs these as the owner of the tables, and adds the policies:")
    for line in grant_statements(schema=schema):
        print(line)


def acl_commands(rights: Mapping[Client, Sequence[Right]], principals: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands that grant these rights.

    Args:
        rights: of each client.
        principals: client to principal.
    """
    for client, granted in rights.items():
        for right in granted:
            operations = " ".join(f"--operation {operation}" for operation in right.operations)
            pattern = " --resource-pattern-type prefixed" if right.prefixed else ""
            yield (
                f"{_COMMAND} --add"
                f" --allow-principal {shlex.quote(principals[client])} {operations}"
                f" --{right.resource} {shlex.quote(right.name)}{pattern}"
            )


def _principals(given: Sequence[str], clients: Sequence[str]) -> Mapping[str, str]:
    known = {client: f"User:noonmark-{client}" for client in clients}
    for text in given:
        client, separator, principal = text.partition("=")
        if client not in known or not separator or ":" not in principal:
            raise CliError(
                f"--principal {text!r} is not CLIENT=PRINCIPAL; use one of {', '.join(clients)}, and a"
                " principal with its type, such as worker=User:noonmark-worker",
                ExitCode.USAGE,
            )
        known[client] = principal
    return known
