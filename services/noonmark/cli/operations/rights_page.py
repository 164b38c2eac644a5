"""Generates docs/rights.md: `python -m noonmark.cli.operations.rights_page > docs/rights.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from noonmark.kafka.rights import Right, kafka_rights
from noonmark.kafka.topics import Topics
from noonmark.store.access.service_rights import FUNCTION_RIGHTS, SERVICES, TABLES, role_of, table_rights

_HEAD: Final = """\
# Rights in Kafka and Postgres

The rights that each service needs, and no others: give each service its own user in Kafka and in Postgres,
with these rights. Tests run the whole pipeline with them, on a broker and a server that refuse everything
else. `python -m noonmark.cli.operations.rights_page` generates this page; do not edit it by hand.

## Kafka

`noonmark rights kafka` prints the commands that grant them, with the names of your installation:

```console
$ noonmark rights kafka --pool reports --principal worker=User:reports-worker
kafka-acls.sh --bootstrap-server "$BOOTSTRAP" --command-config "$COMMAND_CONFIG" --add ...
```

`POOL` is the pool of a worker. Give each pool its own user, so that its workers cannot read the run messages
of another. `READ` and `WRITE` include `DESCRIBE`. The trigger does not use Kafka. No client needs a right on
the cluster, and only the migration creates topics: with `noonmark db migrate --skip-topics` none does.

A topic that `NOONMARK_BOUND_TOPICS` binds to a namespace is one more submission topic: intake, dispatcher,
API and operator need `READ`, and its publisher needs `WRITE` on this topic only. The dispatcher also needs
`WRITE` on the topics in `NOONMARK_EMIT_TOPICS`. The command prints these, too.

| client | resource | name | rights | for |
|---|---|---|---|---|
"""

_POSTGRES: Final = """
A client that lacks a right logs which one, on which topic or group, and what to do. A dispatcher that may not
write to a run topic lets its runs wait and tries again.

## Postgres

By default every service connects as the owner of the tables. To give each service less, run as an
administrator of the server the first part of what `noonmark rights postgres` prints. It creates a role for
each service; no user logs in with them. Then create a user for each service:

```sql
create role trigger_user login password '...' in role noonmark_trigger_service;
```

`noonmark db migrate`, which the owner runs, grants the roles that exist exactly these rights, and does so
again at every upgrade. In the table, s is `select`, i `insert`, u `update` and d `delete`.

"""

_TAIL: Final = """
`api` is what the API does before it knows the caller. For a caller it acts as `noonmark_api`, with the rights
in [security.md](security.md#row-level-security). Row-level security shows the other roles all rows, because
they work for all namespaces. Commands that use the database directly, such as `noonmark db`, `pool` and
`zones`, need the owner.

Handlers that use the worker's connection ([handlers.md](handlers.md)) need grants on your own tables:

```sql
grant select, insert on invoices to noonmark_worker_service;
```

A service that lacks a right stops, and logs the table and the role. Run `noonmark db migrate` as the owner.

## Connections

Verify the servers, and identify each client:

| setting | value |
|---|---|
| `NOONMARK_DATABASE_URL` | `postgresql://trigger_user:...@db/noonmark` |
| `PGSSLMODE` | `verify-full` |
| `PGSSLROOTCERT` | file with the CA of Postgres |
| `NOONMARK_KAFKA_SECURITY_PROTOCOL` | `SASL_SSL` |
| `NOONMARK_KAFKA_SASL_MECHANISM` | `SCRAM-SHA-512` |
| `NOONMARK_KAFKA_SASL_USERNAME` and `NOONMARK_KAFKA_SASL_PASSWORD` | of the service |
| `NOONMARK_KAFKA_SSL_CA_LOCATION` | file with the CA of the brokers |

The chart sets all of them: [kubernetes.md](kubernetes.md#one-user-for-each-service). On the brokers, set
`authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer` and
`allow.everyone.if.no.acl.found=false`. In `pg_hba.conf`, allow `hostssl` with `scram-sha-256` only.
"""


def page() -> str:
    """Return the text of docs/rights.md."""
    return "".join([_HEAD, *_kafka_rows(), _POSTGRES, *_table_rows(), *_function_rows(), _TAIL])


def _kafka_rows() -> Iterator[str]:
    # A pool's name is lower case; the page shows where it goes.
    for client, rights in kafka_rights(Topics("noonmark"), pools=["pool"]).items():
        for right in rights:
            operations = ", ".join(operation.upper() for operation in right.operations)
            yield f"| {client} | {right.resource} | `{_name(right)}` | {operations} | {right.why} |\n"


def _name(right: Right) -> str:
    shown = right.name.replace(".pool.", ".POOL.")
    return f"{shown}*" if right.prefixed else shown


def _table_rows() -> Iterator[str]:
    yield f"| table | {' | '.join(SERVICES)} |\n|---|{'---|' * len(SERVICES)}\n"
    for table in TABLES:
        cells = ("".join(verb[0] for verb in table_rights(service, table)) for service in SERVICES)
        yield f"| `{table}` | {' | '.join(cells)} |\n"


def _function_rows() -> Iterator[str]:
    yield "\n| role | may also execute |\n|---|---|\n"
    for service, functions in FUNCTION_RIGHTS.items():
        yield f"| `{role_of(service)}` | {', '.join(f'`{function}`' for function in functions)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
