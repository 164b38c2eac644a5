"""`noonmark verify`: check the promises on the ledger of an installation in use."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import database_errors, operator_settings
from noonmark.cli.terminal.options import AsJson, read_since
from noonmark.cli.terminal.output import counted, instant, printable, show_json
from noonmark.cli.terminal.problems import CliError, ExitCode, first_line

if TYPE_CHECKING:
    from noonmark.cli.verify.findings import Report
    from noonmark.cli.verify.walk import Window

_TIMEOUT_SECONDS = 30.0


def verify(
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Only runs due since this time: 2h or 7d ago, a day (UTC) or an instant."
            " (default: 7d before the end)",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Only runs due before this time. (default: now)")
    ] = None,
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
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            "--metrics-file",
            dir_okay=False,
            help="Write the metrics of the check to this file, for the textfile collector of a node"
            " exporter. The file is replaced in one step when the check has ended.",
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
    window = Window(*_window(since, until), tuple(namespace or ()), step, instants)
    report = _check(window, rate)
    if metrics_file is not None:
        _write_metrics(report, metrics_file)
    if as_json:
        show_json(document(report))
    else:
        _show(report)
    if not report.clean:
        raise typer.Exit(ExitCode.PROBLEM)


def _window(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    first, end = read_since(since), read_since(until, option="--until")
    if first is not None and end is not None and first >= end:
        raise CliError("--since is not before --until, so no run is between them", ExitCode.USAGE)
    return first, end


def _check(window: Window, rate: float) -> Report:
    import psycopg  # noqa: PLC0415

    from noonmark.cli.verify.pacing import Pacer  # noqa: PLC0415
    from noonmark.cli.verify.walk import LedgerCheck, ZoneDataError  # noqa: PLC0415
    from noonmark.kafka.topics import Topics  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415
    from noonmark.store.verify.reader import LedgerReader  # noqa: PLC0415

    settings = operator_settings()
    with (
        database_errors(settings),
        connect(settings.dsn, application="verify", autocommit=True) as connection,
    ):
        reader = LedgerReader(connection, namespaces=window.namespaces, timeout_seconds=_TIMEOUT_SECONDS)
        try:
            return LedgerCheck(reader, window, Pacer(rate), Topics(settings.topic_prefix), _progress()).run()
        except psycopg.errors.QueryCanceled as error:
            raise CliError(
                f"a step took longer than {_TIMEOUT_SECONDS:g} s; pass a smaller --step, and check with"
                " `noonmark db check` that the database is healthy"
            ) from error
        except ZoneDataError as error:
            raise CliError(f"--instants is not possible: {error}", ExitCode.USAGE) from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise CliError(
                f"the database user cannot read all rows: {first_line(error)}; use the owner of the tables,"
                " or a user with SELECT on them and BYPASSRLS",
                ExitCode.USAGE,
            ) from error
        finally:
            if sys.stderr.isatty():
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _progress() -> Callable[[datetime, int], None] | None:
    if not sys.stderr.isatty():
        return None
    return lambda day, runs: print(
        f"\r\x1b[K{day:%Y-%m-%d}: {counted(runs, 'run')} checked", end="", file=sys.stderr, flush=True
    )


def _write_metrics(report: Report, path: Path) -> None:
    from prometheus_client import write_to_textfile  # noqa: PLC0415

    from noonmark.telemetry import metrics  # noqa: PLC0415

    metrics.VERIFY_FINDINGS.replace({(rule,): report.counts[rule] for rule in report.rules})
    metrics.VERIFY_RUNS.set(report.runs)
    metrics.VERIFY_COMPLETED.set(time.time())
    names = [row.name for row in metrics.TABLE if row.shown_by == "verify"]
    try:
        write_to_textfile(str(path), metrics.REGISTRY.restricted_registry(names))
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from error


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
        "findings": [asdict(finding) for finding in report.findings],
    }


def _show(report: Report) -> None:
    for finding in report.findings:
        print(printable(f"{finding.rule} {finding.sentence}. {finding.remedy}."), file=sys.stderr)
    for rule, count in sorted(report.counts.items()):
        shown = sum(finding.rule == rule for finding in report.findings)
        if shown < count:
            print(f"{rule}: {count - shown:,} more are not shown", file=sys.stderr)
    broken = sum(report.counts.values())
    print(
        f"{counted(report.runs, 'run')} due from {instant(report.since)} to {instant(report.until)} checked:"
        f" {counted(broken, 'broken promise') if broken else 'all promises kept'}"
    )
