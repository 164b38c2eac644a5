"""What the model says, as Markdown tables that can be read on a terminal, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from benchmarks.fleet.check import TOLERANCE, Compared
from benchmarks.fleet.measured import BACKGROUND, SESSIONS, Measured
from benchmarks.fleet.model import Model
from benchmarks.fleet.path import PARTS
from benchmarks.fleet.queue import Minute
from benchmarks.fleet.sizing import CORES, LOG, Fleet, Steady

_WORST: Final = 4
_REMEDIES: Final = {
    CORES: "A larger host for each Postgres, or more clusters.",
    LOG: "A faster disk for each Postgres, or more clusters.",
    "triggers": "Add triggers, up to the number of shards.",
    "dispatchers": "Add dispatchers, up to the number of shards.",
    "workers": "Add workers, up to the partitions of a lane.",
}


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with columns of equal width."""
    widths = [max(len(cells[index]) for cells in (columns, *rows)) for index in range(len(columns))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(columns), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)]


def costs(measured: Measured, model: Model) -> Iterator[str]:
    """Show what was fitted: the cost of a batch and of a run in it, by part."""
    yield f"Fitted to a report of `make bench` on {measured.machine}. Microseconds of CPU:"
    yield ""
    once, cron = model.costs["one-time"], model.costs["recurring"]
    rows = [
        [
            f"Postgres: {part}" if part in SESSIONS else part,
            f"{once[part].fixed:,.0f}",
            f"{once[part].per_run:.1f}",
            f"{cron[part].per_run:.1f}",
        ]
        for part in PARTS
    ]
    for part in BACKGROUND:
        name = "Postgres: rest" if part == "rest" else part
        background = [model.background[kind][part] for kind in ("one-time", "recurring")]
        rows.append(
            [name, f"{background[0].fixed:,.0f} per second", *(f"{one.per_run:.1f}" for one in background)]
        )
    yield from table(["part", "for each batch", "for each one-time run", "for each recurring run"], rows)
    yield ""
    yield (
        f"A flush of the log takes {model.commit.p50_ms:.2f} ms (p99 {model.commit.p99_ms:.1f} ms); a message"
        f" reaches a worker in {model.trip.p50_ms:.2f} ms (p99 {model.trip.p99_ms:.1f} ms). In a second, one"
        f" trigger claims {model.trigger_rate('recurring'):,.0f} recurring or"
        f" {model.trigger_rate('one-time'):,.0f} one-time runs, one dispatcher relays"
        f" {model.dispatcher_rate('recurring'):,.0f}, one worker runs {model.worker_rate('recurring'):,.0f}"
        f" or {model.worker_rate('one-time'):,.0f}."
    )


def rates(of: Sequence[Steady]) -> Iterator[str]:
    """Show what is busy at steady rates."""
    yield "Cores that are busy at a steady rate of runs, and how late they start on hosts of their own:"
    yield ""
    yield from table(
        [
            *("runs/s", "Postgres", "workers", "trigger + dispatcher", "each of 3 brokers"),
            *("log, MB/s", "ledger, GB a day", "p50 / p99 late, ms"),
        ],
        [
            [
                f"{one.rate:,.0f}",
                *(
                    f"{cores:.2f}"
                    for cores in (one.postgres, one.workers, one.trigger_and_dispatcher, one.brokers)
                ),
                f"{one.wal_mb_per_s:.2f}",
                f"{one.ledger_gb_per_day:,.1f}",
                f"{1000 * one.late[0]:.0f} / {1000 * one.late[1]:.0f}",
            ]
            for one in of
        ],
    )


def scenario(fleet: Fleet) -> Iterator[str]:
    """Show one scenario."""
    yield f"### {fleet.scenario.title}"
    yield ""
    yield from _hosts(fleet)
    yield ""
    yield from table(["figure", "value"], list(_figures(fleet)))
    yield ""
    yield from _limits(fleet)
    yield ""
    yield from _minutes(fleet)


def _hosts(fleet: Fleet) -> list[str]:
    rows = [
        [one.role, str(one.processes), f"{one.hosts} x {one.cores} cores", str(one.all_cores)]
        for one in fleet.hosts
    ]
    hosts, cores = (sum(of) for of in zip(*((one.hosts, one.all_cores) for one in fleet.hosts), strict=True))
    return table(["role", "processes", "hosts", "cores"], [*rows, ["all", "", str(hosts), str(cores)]])


def _limits(fleet: Fleet) -> Iterator[str]:
    first = fleet.limits[0]
    yield f"First to saturate: **{first.resource}**, at {first.rate:,.0f} runs/s. {_REMEDIES[first.resource]}"
    yield ""
    largest = fleet.scenario.sustained or fleet.capacity
    yield from table(
        ["resource", "saturates at, runs/s", "used in the busiest minute"],
        [[one.resource, f"{one.rate:,.0f}", f"{largest / one.rate:.0%}"] for one in fleet.limits],
    )


def _minutes(fleet: Fleet) -> Iterator[str]:
    p50, p99 = fleet.cluster.base
    yield (
        "The minutes with the longest waits. Lateness is the wait for the backlog, and"
        f" {1000 * p50:.0f} ms (p99 {1000 * p99:.0f} ms) without one:"
    )
    yield ""
    yield from table(
        ["minute", "due", "started", "backlog at its end", "p50 late, s", "p99 late, s"],
        [
            [
                _clock(fleet.scenario.first_minute + one.number),
                f"{one.due:,.0f}",
                f"{one.started:,.0f}",
                f"{one.backlog:,.0f}",
                f"{one.p50 + p50:.2f}" if one.due else "",
                f"{one.p99 + p99:.2f}" if one.due else "",
            ]
            for one in worst(fleet)
        ],
    )


def _figures(fleet: Fleet) -> Iterator[list[str]]:
    cluster = fleet.cluster
    each = " each" if fleet.clusters > 1 else ""
    yield ["Postgres clusters, with namespaces divided over them", str(fleet.clusters)]
    yield ["cores of each primary", str(cluster.postgres_cores)]
    yield [
        f"triggers / dispatchers / workers{each}",
        f"{cluster.triggers} / {cluster.dispatchers} / {cluster.workers}",
    ]
    yield [f"partitions of a lane / shards{each}", f"{cluster.partitions} / {cluster.shards}"]
    yield [f"sessions of Postgres{each}", str(cluster.sessions)]
    yield ["sized for, runs/s", f"{fleet.target:,.0f}"]
    yield ["starts from a backlog, runs/s", f"{fleet.capacity:,.0f}"]
    yield [
        "log of transactions",
        f"{fleet.stored.wal_mb_per_s:,.0f} MB/s, {fleet.stored.wal_gb_per_day:,.0f} GB a day",
    ]
    yield ["ledger", f"{fleet.stored.ledger_gb_per_day:,.0f} GB a day"]
    yield ["Kafka, three replicas", f"{fleet.stored.kafka_mb_per_s:,.1f} MB/s"]
    yield ["stored, all copies", f"{fleet.stored.kept_gb / 1000:,.1f} TB"]
    yield ["cost a month", f"{fleet.cost_per_month:,.0f}"]


def worst(fleet: Fleet) -> list[Minute]:
    """Return the minutes with the largest p99, in their order."""
    busy = [one for one in fleet.minutes if one.due or one.started]
    ordered = sorted(busy, key=lambda one: (-one.p99, one.number))
    return sorted(ordered[:_WORST], key=lambda one: one.number)


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02}:{minute % 60:02}"


def comparison(rows: Sequence[Compared]) -> Iterator[str]:
    """Show the check."""
    yield from table(
        ["figure", "model", "measured", "off", ""],
        [
            [
                one.figure,
                f"{one.modelled:,.1f}",
                f"{one.measured:,.1f}",
                f"{one.off:+.0%}",
                ("holds" if one.holds else f"more than {TOLERANCE:.0%}") if one.judged else "not judged",
            ]
            for one in rows
        ],
    )


def as_json(fleet: Fleet) -> Mapping[str, Any]:
    """Return a scenario with the worst minutes only, for JSON."""
    shown = asdict(fleet) | {"minutes": [asdict(one) for one in worst(fleet)]}
    shown["cluster"] |= {
        "partitions_per_lane": fleet.cluster.partitions,
        "shards": fleet.cluster.shards,
        "postgres_sessions": fleet.cluster.sessions,
    }
    return shown
