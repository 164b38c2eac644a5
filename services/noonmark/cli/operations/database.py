"""`noonmark db`: migrate the database and check its schema."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from noonmark.cli.connections.context import database_errors, kafka_config, operator_settings
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import printable, show_fields, show_json, verdict
from noonmark.cli.terminal.problems import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from noonmark.settings import Settings
    from noonmark.store.migrations.migrate import SchemaStatus

app = typer.Typer(help="Migrate and check the database.", no_args_is_help=True)


@app.command()
def migrate(
    shards: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Shards of a new installation; cannot be changed later. (default: 4)"
        ),
    ] = None,
    skip_topics: Annotated[bool, typer.Option("--skip-topics", help="Do not create topics.")] = False,
) -> None:
    """Migrate the schema to this release, create partitions for the next days, and create topics.

    Safe to repeat and to run while services run. If a later release has migrated, the schema stays as it is.
    """
    from noonmark.store.cluster.pools import pool_names  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415
    from noonmark.store.migrations import migrate as schema  # noqa: PLC0415

    settings = operator_settings()
    with database_errors(settings):
        schema.migrate(
            settings.dsn, shards=shards or schema.DEFAULT_SHARDS, days_ahead=settings.partitions_ahead_days
        )
        with connect(settings.dsn, application="cli") as connection:
            pools = pool_names(connection)
        status = schema.status(settings.dsn)
    for note in status.notes or [f"the database schema is at {status.current}, with {status.shards} shards"]:
        print(note)
    if not skip_topics:
        create_topics(settings, pools)


@app.command()
def check(as_json: AsJson = False) -> None:
    """Check whether the database is ready for this release, and whether its rows agree.

    Finds jobs and runs that nothing will continue, and says what to do. Exits 1 if there are problems.
    """
    from noonmark.store.database.connect import connect  # noqa: PLC0415
    from noonmark.store.migrations import migrate as schema  # noqa: PLC0415
    from noonmark.store.views.stranded import Search, find_stranded  # noqa: PLC0415

    settings = operator_settings()
    search = Search((), ())
    with database_errors(settings):
        status = schema.status(settings.dsn)
        if status.usable:
            with connect(settings.dsn, application="cli", autocommit=True) as connection:
                search = find_stranded(connection)
    shown = _shown(status)
    problems = [*status.problems, *map(printable, map(str, search.found))]
    if as_json:
        stranded = [asdict(one) for one in search.found]
        show_json(
            {
                **shown,
                "notes": status.notes,
                "problems": problems,
                "stranded": stranded,
                "unsearched": search.unsearched,
            }
        )
    else:
        show_fields(shown)
        for note in status.notes:
            print(note)
        for problem in problems:
            print(problem)
        for table in search.unsearched:
            print(f"table {table} could not be searched for stranded rows within 30 s", file=sys.stderr)
        print(verdict(len(problems)))
    if problems:
        raise typer.Exit(ExitCode.PROBLEM)


def create_topics(settings: Settings, pools: Sequence[str]) -> None:
    """Create the missing topics of these pools and print how many were created.

    Raises:
        TopicError: cannot connect to Kafka, or a broker rejected a topic.
    """
    from noonmark.core.access.topic_bindings import read_bindings  # noqa: PLC0415
    from noonmark.kafka.admin import ensure_topics  # noqa: PLC0415
    from noonmark.kafka.topics import PartitionCounts, Topics  # noqa: PLC0415

    wide = settings.kafka_partitions
    counts = PartitionCounts(submissions=wide, submissions_bulk=wide, runs=wide, lifecycle=wide)
    topics, replication = Topics(settings.topic_prefix), settings.kafka_replication
    specs = topics.topic_specs(pools, counts=counts, replication=replication)
    further = topics.further_submissions(read_bindings(settings.bound_topics))
    specs += topics.submission_specs(further, counts=counts, replication=replication)
    done = ensure_topics(kafka_config(settings), specs)
    print(f"topics: {len(done.created)} created, {len(done.existing)} already existed")
    for name, (has, wanted) in done.narrower.items():
        print(f"topic {name} has {has} partitions, fewer than the configured {wanted}; it still works")


def _shown(status: SchemaStatus) -> dict[str, object]:
    """Return the fields of `db check`."""
    return {
        "server_version": status.server_version,
        "schema": status.current,
        "wanted": status.wanted,
        "usable_from": status.revision.usable_from,
        "shards": status.shards,
        "days_ahead": status.days_ahead,
        "zone_data": status.zone_data,
        "active_zone_data": status.active_zone_data,
    }
