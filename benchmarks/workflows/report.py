"""The report about workflows as a table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Spread
from benchmarks.workflows.figures import Against, Graph, Hop, IdleWorkflows, Report, Wide

_NONE = "-"
_Row = tuple[str, str, str, str]


def show(report: Report, console: Console) -> None:
    """Print what was measured, with what is wanted."""
    table = Table(title=f"Workflows, {report.seconds:.0f} s", title_justify="left")
    for name in ("figure", "measured", "at least", "aim"):
        table.add_column(name, overflow="fold")
    for row in rows(report):
        table.add_row(*row)
    console.print(table)
    for part, reason in report.failed.items():
        console.print(f"{part} failed: {reason}", markup=False)
    for name, value in report.settings_changed.items():
        console.print(f"changed: {name}={value}", markup=False)


def rows(report: Report) -> list[_Row]:
    """Return figure, measured, at least, aim."""
    found: list[_Row] = []
    if report.wide is not None:
        found += _wide(report.wide)
    if report.hop is not None:
        found += _hop(report.hop)
    if report.graph is not None:
        found += _graph(report.graph)
    if report.idle is not None:
        found += _idle(report.idle)
    if report.against is not None:
        found += _against(report.against)
    return found


def _wide(wide: Wide) -> list[_Row]:
    plain = wide.plain
    floor = 6000.0 if plain is None else min(6000.0, plain.runs_per_s / 2)
    found = [
        (
            f"wide: task runs/s, {wide.workflows:,} of {wide.tasks} tasks",
            f"{wide.task_runs_per_s:,.0f}",
            f"{floor:,.0f}",
            "15,000",
        ),
        ("CPU per task run, µs", f"{wide.cpu_us_per_task_run:.1f}", "150", "85"),
        ("  by process", _named(wide.cpu_us_by_process), "", ""),
        ("  by session of Postgres", _named(wide.cpu_us_by_backend), "", ""),
        ("WAL per task run, bytes", f"{wide.wal_bytes_per_task_run:,.0f}", "2,200", "1,800"),
        (
            "passes of the trigger",
            f"{wide.passes:,}, {wide.facts_per_pass:.0f} timers and {wide.pass_ms:.1f} ms each",
            "",
            "",
        ),
        ("others on the machine, % of a core", f"{wide.other_cpu_percent:.0f}", "", ""),
    ]
    if plain is not None:
        found += [
            ("plain burst: runs/s", f"{plain.runs_per_s:,.0f} ({wide.share_of_plain} of it)", "0.5", ""),
            ("plain: CPU per run, µs", f"{plain.cpu_us_per_run:.1f}", "", ""),
            ("  by process", _named(plain.cpu_us_by_process), "", ""),
            ("  by session of Postgres", _named(plain.cpu_us_by_backend), "", ""),
            ("plain: WAL per run, bytes", f"{plain.wal_bytes_per_run:,.0f}", "", ""),
        ]
    return found


def _hop(hop: Hop) -> list[_Row]:
    return [
        (
            f"hop at {hop.rate:g} workflows/s: handler begins, ms",
            _spread(hop.handler_ms),
            "60 / 200",
            "20 / 60",
        ),
        ("  run started", _spread(hop.started_ms), "", ""),
        ("  run written", _spread(hop.queued_ms), "", ""),
        ("  CPU per task run, µs", f"{hop.cpu_us_per_task_run:.1f}", "", ""),
        ("  passes", f"{hop.facts_per_pass:.1f} timers and {hop.pass_ms:.1f} ms each", "", ""),
    ]


def _graph(graph: Graph) -> list[_Row]:
    name = f"{graph.layers} layers of {graph.width}"
    return [
        (f"{name}: open, ms", f"{graph.open_ms:.1f} ({graph.again_ms:.1f} if known)", "200", "60"),
        ("  statements", f"{graph.open_statements} ({graph.again_statements} if known)", "6", ""),
        ("  a layer, ms p50 / p99", _spread(graph.layer_ms), "", ""),
        ("  statements", str(graph.layer_statements), "6", ""),
    ]


def _idle(idle: IdleWorkflows) -> list[_Row]:
    without, with_open = idle.transactions_per_s
    total = sum(idle.table_mb.values())
    return [
        (f"{idle.open:,} that wait: transactions/s", f"{without:.1f} → {with_open:.1f}", "+ 0", "+ 0"),
        (
            "  CPU, % of a core",
            f"{idle.without.cpu_percent_all:.2f} → {idle.with_open.cpu_percent_all:.2f}",
            "",
            "",
        ),
        ("  tables, MB", f"{total:.1f}: {_named(idle.table_mb)}", f"{idle.open / 500:.0f}", ""),
    ]


def _against(against: Against) -> list[_Row]:
    return [
        (
            f"plain path, this over {against.folder}: CPU",
            f"{against.cpu_ratio:.3f} (same twice: {against.same_cpu_ratio:.3f})",
            "1.02",
            "1",
        ),
        ("  WAL", f"{against.wal_ratio:.3f} (same twice: {against.same_wal_ratio:.3f})", "1.02", "1"),
    ]


def _spread(spread: Spread | None) -> str:
    return _NONE if spread is None else f"{spread.p50:.1f} / {spread.p99:.1f}"


def _named(values: dict[str, float]) -> str:
    ordered = sorted(values.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {value:.1f}" for name, value in ordered if value >= 0.05)
