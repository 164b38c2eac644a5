"""`noonmark verify`: check the promises on the ledger of an installation in use."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import database_errors, kafka_config, kafka_errors, operator_settings
from noonmark.cli.connections.periods import Period, PeriodZone, since_option, until_option
from noonmark.cli.terminal.options import AsJson, duration_option
from noonmark.cli.terminal.output import show_json
from noonmark.cli.terminal.problems import CliError, ExitCode, first_line
from noonmark.cli.verify import exposition
from noonmark.cli.verify.text import show

if TYPE_CHECKING:
    from noonmark.cli.verify.findings import Report
    from noonmark.cli.verify.walk import EventSource, Window
    from noonmark.settings import Settings

_TIMEOUT_SECONDS = 30.0


def verify(
    *,
    since: Annotated[str | None, since_option("runs due", default="7d before the end")] = None,
    until: Annotated[str | None, until_option("runs due", default="now")] = None,
    zone: PeriodZone = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", help="Only this namespace; repeatable. (default: all)"),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            help="Share of the time in which the check may query the database, above 0 and up to 1."
            " With 0.2, it pauses for 400 ms after 100 ms of queries.",
        ),
    ] = 0.25,
    step: Annotated[
        int, typer.Option("--step", min=1, max=100_000, help="Runs that are read in one snapshot.")
    ] = 2000,
    instants: Annotated[
        bool,
        typer.Option(
            "--instants",
            help="Also check that the ledger has every instant of the schedules of recurring jobs."
            " Takes longer.",
        ),
    ] = False,
    events: Annotated[
        bool,
        typer.Option(
            "--events",
            help="Also compare the ledger with the events on the lifecycle topic and that of dead letters."
            " Reads Kafka; keeps events in a temporary file (TMPDIR), about 300 bytes for each run.",
        ),
    ] = False,
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics-file",
            dir_okay=False,
            help="Write the metrics of the check to this file, for the textfile collector of a node"
            " exporter. The file is replaced in one step when the check has ended.",
        ),
    ] = None,
    metrics_gateway: Annotated[
        str | None,
        typer.Option(
            "--metrics-gateway",
            help="Push the metrics of the check to the Pushgateway at this URL. It may contain a user and a"
            " password.",
        ),
    ] = None,
    metrics_label: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics-label",
            help="Label of the pushed metrics, such as namespace=prod; repeatable. `job` is noonmark-verify.",
        ),
    ] = None,
    period: Annotated[
        float | None,
        duration_option(
            "--period",
            help_text="How often the check is called, for an alert that it is overdue",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check on the ledger that noonmark kept its promises, without changing or locking anything.

    Judges runs that ended more than a minute ago. Exits 1 if a promise was broken.
    """
    from noonmark.cli.verify.walk import Window  # noqa: PLC0415 - drivers take a while to load

    if not 0 < rate <= 1:
        raise CliError(f"--rate {rate:g} is not a share; use more than 0 and at most 1", ExitCode.USAGE)
    exposition.check_gateway(metrics_gateway)
    labels = exposition.read_labels(metrics_label or [])
    every = int(period) if period is not None else None
    due = Period.read(since, until, zone)
    window = Window(due.since, due.until, tuple(namespace or ()), step, instants)
    report = _check(window, rate, events=events)
    if as_json:
        show_json(document(report))
    else:
        show(report)
    if metrics_file is not None:
        exposition.write_file(report, metrics_file, period_seconds=every)
    if metrics_gateway is not None:
        exposition.push(report, metrics_gateway, labels, period_seconds=every)
    if not report.clean:
        raise typer.Exit(ExitCode.PROBLEM)


def _check(window: Window, rate: float, *, events: bool) -> Report:
    from noonmark.cli.verify.pacing import Pacer  # noqa: PLC0415
    from noonmark.cli.verify.walk import LedgerCheck  # noqa: PLC0415
    from noonmark.kafka.topics import Topics  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415
    from noonmark.store.verify.reader import LedgerReader  # noqa: PLC0415

    settings = operator_settings()
    with (
        database_errors(settings),
        _event_source(settings, events=events) as source,
        connect(settings.dsn, application="verify", autocommit=True) as connection,
        _check_errors(),
    ):
        reader = LedgerReader(
            connection, namespaces=window.namespaces, timeout_seconds=_TIMEOUT_SECONDS, digests=events
        )
        topics = Topics(settings.topic_prefix)
        return LedgerCheck(reader, window, Pacer(rate), topics, events=source, progress=_progress()).run()


@contextmanager
def _check_errors() -> Iterator[None]:
    """Turn errors of a check into messages, and clear the line of its progress."""
    import psycopg  # noqa: PLC0415

    from noonmark.cli.verify.walk import NamespaceError, ZoneDataError  # noqa: PLC0415

    try:
        yield
    except psycopg.errors.QueryCanceled as error:
        raise CliError(
            f"a step took longer than {_TIMEOUT_SECONDS:g} s; pass a smaller --step, and check with"
            " `noonmark db check` that the database is healthy"
        ) from error
    except (NamespaceError, ZoneDataError) as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise CliError(
            f"the database user cannot read all rows: {first_line(error)}; use the owner of the tables,"
            " or a user with SELECT on them and BYPASSRLS",
            ExitCode.USAGE,
        ) from error
    finally:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def _event_source(settings: Settings, *, events: bool) -> Iterator[EventSource | None]:
    """Open a consumer and a temporary file for events; None if they are not compared."""
    if not events:
        yield None
        return
    from noonmark.cli.verify.event_store import EventStore  # noqa: PLC0415
    from noonmark.cli.verify.walk import EventSource  # noqa: PLC0415
    from noonmark.kafka.consumers.ranges import RangeReader  # noqa: PLC0415
    from noonmark.kafka.topics import Topics  # noqa: PLC0415

    topics = Topics(settings.topic_prefix)
    with _reading_errors(settings), tempfile.TemporaryDirectory(prefix="noonmark-verify-") as folder:
        kafka = RangeReader(kafka_config(settings), [topics.lifecycle, topics.dead])
        store = EventStore(Path(folder) / "events.db")
        try:
            yield EventSource(kafka, store)
        finally:
            store.close()
            kafka.close()


@contextmanager
def _reading_errors(settings: Settings) -> Iterator[None]:
    """Turn errors of the consumer and of the temporary file into messages."""
    import sqlite3  # noqa: PLC0415

    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415

    hints = {
        KafkaError.UNKNOWN_TOPIC_OR_PART: "check NOONMARK_TOPIC_PREFIX",
        KafkaError.TOPIC_AUTHORIZATION_FAILED: "grant this client READ on the topic",
    }
    try:
        with kafka_errors(settings):
            try:
                yield
            except KafkaException as error:
                hint = hints.get(error.args[0].code())
                if hint is None:
                    raise
                raise CliError(
                    f"cannot read events: {error.args[0].str()}; {hint}", ExitCode.USAGE
                ) from error
    except (sqlite3.OperationalError, FileNotFoundError, PermissionError) as error:
        raise CliError(
            f"cannot keep events in a temporary file: {error}; set TMPDIR to a folder with more space,"
            " or check a shorter window"
        ) from error


def _progress() -> Callable[[str], None]:
    if not sys.stderr.isatty():
        return lambda _done: None
    return lambda done: print(f"\r\x1b[K{done}", end="", file=sys.stderr, flush=True)


def document(report: Report) -> dict[str, Any]:
    """Return a report as a JSON document."""
    from noonmark.verify.ledger import UNJUDGED  # noqa: PLC0415

    return {
        "clean": report.clean,
        "judged_at": report.judged_at,
        "since": report.since,
        "until": report.until,
        "namespaces": list(report.namespaces),
        "runs": report.runs,
        "rules": {name: report.counts[name] for name in report.rules},
        "unjudged": {name: why for name, why in UNJUDGED.items() if name not in report.rules},
        "events": asdict(report.events) if report.events is not None else None,
        "findings": [asdict(finding) for finding in report.findings],
    }
