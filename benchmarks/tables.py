"""The report as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.figures import SERVERS, SERVICES, Burst, Report, Spread
from benchmarks.ratios import ratios
from benchmarks.targets import Target, targets

_KINDS = (*SERVICES, *SERVERS)
_FIGURES_OF_A_BURST = {
    "runs": "runs",
    "runs/s": "runs_per_s",
    "WAL bytes per run": "wal_bytes_per_run",
    "CPU of others, % of a core": "other_cpu_percent",
    "runs per start": "runs_per_start",
    "runs per recorded batch": "runs_per_recorded_batch",
    "lost": "lost",
    "CPU µs per run": "cpu_us_per_run",
}
_STYLES = {"aim": "green", "reached": "yellow", "missed": "red"}


def show(report: Report, console: Console) -> None:
    """Print everything that was measured."""
    _machine(report, console)
    _bursts(report, console)
    _windows(report, console)
    _submissions(report, console)
    _claims(report, console)
    _priority(report, console)
    _bare(report, console)
    _compared("Ratios", list(ratios(report).values()), console)
    _compared("Against the targets", targets(report), console)
    for part, reason in report.skipped.items():
        console.print(f"[yellow]{part} was skipped:[/] {reason}")
    for part, reason in report.failed.items():
        console.print(f"{part} failed: {reason}", markup=False, style="red")


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*(_text(cell) for cell in row))
    return table


def _text(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:,.1f}" if abs(cell) >= 100 else f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _machine(report: Report, console: Console) -> None:
    facts = report.machine
    if facts:
        console.print(
            f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gb']} GB, {facts['file_system']};"
            f" Python {facts['python']}, Postgres {facts['postgres']}, Kafka {facts['kafka']}"
        )
    if report.yardsticks:
        rows = [(name, value, report.yardsticks_after.get(name)) for name, value in report.yardsticks.items()]
        console.print(_table("Yardsticks of this run", ("", "before", "after"), rows))


def _bursts(report: Report, console: Console) -> None:
    bursts = [one for one in (report.burst, report.recurring) if one is not None]
    if bursts:
        _burst_table("W1: all due at one instant", bursts, console)
    if report.pairs is not None:
        _burst_table("W6: two triggers, dispatchers, workers", report.pairs.bursts, console)


def _burst_table(title: str, bursts: Sequence[Burst], console: Console) -> None:
    rows = [
        ("runs", *(one.runs for one in bursts)),
        ("seconds to the last outcome", *(one.seconds for one in bursts)),
        ("runs/s", *(one.runs_per_s for one in bursts)),
        ("COPY jobs/s when loading", *(one.copy_jobs_per_s for one in bursts)),
        ("share of it, %", *(100 * one.share_of_copy_jobs for one in bursts)),
        ("CPU µs per run", *(one.cpu_us_per_run for one in bursts)),
        *((f"  {kind}", *(one.cpu_us_by_process.get(kind) for one in bursts)) for kind in _KINDS),
        ("CPU of others, % of a core", *(one.other_cpu_percent for one in bursts)),
        ("WAL bytes per run", *(one.wal_bytes_per_run for one in bursts)),
        ("  with loading job and timer", *(one.wal_bytes_per_run_with_load for one in bursts)),
        ("a checkpoint meanwhile", *(one.checkpoint for one in bursts)),
        ("Kafka records per run", *(one.messages_per_run for one in bursts)),
        *((f"memory MB, {kind}", *(one.rss_mb.get(kind) for one in bursts)) for kind in _KINDS),
        ("runs per start", *(one.runs_per_start for one in bursts)),
        ("runs per recorded batch", *(one.runs_per_recorded_batch for one in bursts)),
        ("runs per message", *(one.runs_per_message for one in bursts)),
        ("lost", *(one.lost for one in bursts)),
        ("second verdicts", *(one.second_verdicts for one in bursts)),
        ("succeeded without event", *(one.without_event for one in bursts)),
        ("queued or attempted twice", *(one.repeated for one in bursts)),
    ]
    console.print(_table(title, ("", *(one.kind for one in bursts)), rows))
    for one in bursts:
        _backends(one, console)


def _backends(burst: Burst, console: Console) -> None:
    shown = ", ".join(f"{name} {value:.1f}" for name, value in list(burst.cpu_us_by_backend.items())[:8])
    console.print(f"Postgres µs per {burst.kind} run by session: {shown}")


def _spread(spread: Spread | None) -> tuple[object, ...]:
    return (spread.p50, spread.p95, spread.p99, spread.max) if spread else (None,) * 4


def _windows(report: Report, console: Console) -> None:
    columns = (
        "due per second",
        "p50 ms",
        "p95",
        "p99",
        "max",
        "handler p50",
        "p99",
        "CPU %",
        "noonmark",
        *SERVERS,
    )
    rows: list[Sequence[object]] = []
    if report.idle is not None:
        rows.append(("idle", *(None,) * 6, *_percents(report.idle)))
    for one in report.open_loops:
        handler = _spread(one.handler_lateness_ms)
        rows.append((f"{one.rate:,.0f}", *_spread(one.lateness_ms), handler[0], handler[2], *_percents(one)))
    if rows:
        console.print(_table("W2: start lateness, and CPU in percent of one core", columns, rows))


def _percents(window: object) -> tuple[object, ...]:
    by_process: Mapping[str, float] = getattr(window, "cpu_percent", {})
    return (
        getattr(window, "cpu_percent_all", None),
        getattr(window, "cpu_percent_noonmark", None),
        *(by_process.get(kind) for kind in SERVERS),
    )


def _submissions(report: Report, console: Console) -> None:
    rows = [
        (
            one.kind,
            one.submissions,
            one.per_s,
            one.cpu_us_per_submission,
            one.cpu_us_by_process.get("intake"),
            one.cpu_us_by_process.get("postgres"),
            one.wal_bytes_per_submission,
            one.missing,
            one.rejected,
        )
        for one in report.submissions.values()
    ]
    columns = (
        "kind",
        "events",
        "per s",
        "CPU µs",
        "intake µs",
        "Postgres µs",
        "WAL B",
        "missing",
        "rejected",
    )
    if rows:
        console.print(_table("W3: submissions through one intake process", columns, rows))


def _claims(report: Report, console: Console) -> None:
    rows = [
        (
            f"{one.waiting:,}",
            one.batch_ms,
            one.postgres_ms_per_batch,
            one.postgres_us_per_run,
            one.ratio_ms,
            one.ratio_cpu,
            one.table_mb,
        )
        for one in report.claim_backlog
    ]
    columns = ("waiting", "ms per claim", "Postgres ms", "µs per run", "ratio ms", "ratio CPU", "table MB")
    if rows:
        batch = report.claim_backlog[0].batch
        console.print(_table(f"W4: claiming {batch} due timers while others wait", columns, rows))


def _priority(report: Report, console: Console) -> None:
    one = report.priority
    if one is None:
        return
    rows = [
        ("high before", *_spread(one.high_ms_before)),
        ("high during", *_spread(one.high_ms_during)),
        ("normal before", *_spread(one.normal_ms_before)),
        ("normal during", *_spread(one.normal_ms_during)),
    ]
    title = (
        f"W5: lateness of the higher lanes while {one.low_jobs:,} low jobs drain"
        f" ({one.low_seconds:.1f} s, {one.low_runs_per_s:,.0f} runs/s)"
    )
    console.print(_table(title, ("", "p50 ms", "p95", "p99", "max"), rows))


def _bare(report: Report, console: Console) -> None:
    """Print the bare design next to the same figures of noonmark."""
    if report.bare is None:
        return
    rows: list[Sequence[object]] = []
    if report.bare.bursts:
        bursts = (report.bare.burst, report.burst, report.bare.burst_after)
        rows += [
            (title, *(getattr(one, name, None) for one in bursts))
            for title, name in _FIGURES_OF_A_BURST.items()
        ]
        for kind in (*SERVICES[1:], *SERVERS):
            of_kind = (one.cpu_us_by_process.get(kind) if one else None for one in bursts)
            rows.append((f"  {kind}", *of_kind))
    for one in report.bare.open_loops:
        windows = (one, report.open_loop(one.rate), None)
        for share in ("p50", "p99"):
            late = (getattr(window and window.lateness_ms, share, None) for window in windows)
            rows.append((f"start lateness {share} ms at {one.rate:,.0f}/s", *late))
    console.print(_table("The bare design on the same servers", ("", "bare", "noonmark", "bare again"), rows))


def _compared(title: str, compared: Sequence[Target], console: Console) -> None:
    if not compared:
        return
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("figure", "measured", "at least", "aim", ""):
        table.add_column(column, justify="left" if column in {"figure", ""} else "right")
    for one in compared:
        measured = f"{_text(one.measured)} {one.unit}".strip()
        style = _STYLES.get(one.verdict)
        verdict = f"[{style}]{one.verdict}[/]" if style else one.verdict
        table.add_row(one.figure, measured, _text(one.at_least), _text(one.aim), verdict)
    console.print(table)
