"""`noonmark lag`: show consumer lag, measured at the brokers."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import database_errors, kafka_config, kafka_errors, operator_settings
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import Column, duration, field, show_json, show_list
from noonmark.cli.terminal.problems import ExitCode, broker_away

if TYPE_CHECKING:
    from noonmark.kafka.lag.lag import PartitionLag
    from noonmark.settings import Settings

_FIGURES = (
    field("start_backlog", "START BACKLOG", numeric=True),
    Column("OLDEST", lambda row: duration(row["start_backlog_seconds"]), numeric=True),
    field("commit_lag", "COMMIT LAG", numeric=True),
)
_COLUMNS = (field("group"), field("topic"), *_FIGURES)
_PARTITION_COLUMNS = (
    field("group"),
    field("topic"),
    field("partition", numeric=True),
    *_FIGURES,
    field("committed", numeric=True),
    field("end", numeric=True),
)


def lag(
    partitions: Annotated[
        bool, typer.Option("--partitions", "-p", help="Show one row per partition, with offsets.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the lag of intake and workers: messages not started, and messages not committed.

    START BACKLOG: messages that no worker has started; use it for scaling. OLDEST: age of the first of
    them. COMMIT LAG: messages after the committed offset, which is what Kafka tools show; one long run can
    keep it high. COMMITTED and END (with --partitions): the committed offset, and that of the next message.
    """
    settings = operator_settings()
    rows, failed = measure(settings)
    if as_json:
        show_json({"items": rows, "failed": failed})
    else:
        show_list(*((rows, _PARTITION_COLUMNS) if partitions else (summed(rows), _COLUMNS)))
        for reason in failed:
            print(reason, file=sys.stderr)
    if failed:
        raise typer.Exit(ExitCode.PROBLEM)


def summed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum the partitions of each group and topic, with the oldest message of all of them."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        total = found.setdefault(
            (row["group"], row["topic"]),
            {
                "group": row["group"],
                "topic": row["topic"],
                "start_backlog": 0,
                "start_backlog_seconds": 0.0,
                "commit_lag": 0,
            },
        )
        total["start_backlog"] += row["start_backlog"]
        total["commit_lag"] += row["commit_lag"]
        # If one age could not be read, the total age is unknown, not zero.
        ages = (total["start_backlog_seconds"], row["start_backlog_seconds"])
        total["start_backlog_seconds"] = None if None in ages else max(ages)
    return list(found.values())


def measure(settings: Settings) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure every subscription of this installation.

    Returns:
        One row per group, topic and partition; and the reasons why some could not be measured.

    Raises:
        CliError: cannot connect to the database or to Kafka.
    """
    from noonmark.core.access.topic_bindings import read_bindings  # noqa: PLC0415
    from noonmark.core.states import Lane  # noqa: PLC0415
    from noonmark.kafka.lag.lag import LagProbe  # noqa: PLC0415
    from noonmark.kafka.topics import Topics  # noqa: PLC0415
    from noonmark.store.cluster.pools import pool_names  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415

    with database_errors(settings), connect(settings.dsn, application="cli") as connection:
        pools = pool_names(connection)
    topics = Topics(settings.topic_prefix)
    further = topics.further_submissions(read_bindings(settings.bound_topics))
    submissions = (topics.submissions, *further, topics.submissions_bulk)
    wanted = [(topics.group_intake, topic) for topic in submissions]
    wanted += [(topics.group_worker(pool, lane), topics.runs(pool, lane)) for pool in pools for lane in Lane]
    with kafka_errors(settings):
        probe = LagProbe(kafka_config(settings))
        try:
            report = probe.measure_all(wanted)
        finally:
            probe.close()
    failed = [f"{topic} for {group}: {reason}" for (group, topic), reason in report.failed.items()]
    if failed and not report.lags:
        raise broker_away(settings.kafka_bootstrap, failed[0])
    return [_row(one) for partitions in report.lags.values() for one in _by_partition(partitions)], failed


def _by_partition(partitions: Sequence[PartitionLag]) -> list[PartitionLag]:
    return sorted(partitions, key=lambda one: one.partition)


def _row(one: PartitionLag) -> dict[str, Any]:
    oldest = one.oldest_unstarted_timestamp_ms
    waiting_seconds = max(time.time() - oldest / 1000, 0.0) if oldest is not None else None
    return {
        "group": one.group,
        "topic": one.topic,
        "partition": one.partition,
        "start_backlog": one.start_backlog,
        "start_backlog_seconds": waiting_seconds if one.start_backlog else 0.0,
        "commit_lag": one.commit_lag,
        "committed": one.committed,
        "end": one.end,
    }
