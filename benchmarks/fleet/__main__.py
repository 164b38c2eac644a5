"""`python -m benchmarks.fleet`: what a large installation needs, from figures that `make bench` measured.

Without options, it reads the report that is kept next to it. `--check` compares the model on one machine with
the report, and ends with 1 if a figure is off by more than 15 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

from benchmarks.fleet import tables
from benchmarks.fleet.arrivals import scenarios
from benchmarks.fleet.check import check
from benchmarks.fleet.machine import ModelError
from benchmarks.fleet.measured import Measured, read_measured
from benchmarks.fleet.model import KINDS, model_of
from benchmarks.fleet.sizing import Assumptions, Fleet, size, steady

KEPT: Final = Path(__file__).with_name("measured.json")
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "capacity.md"
PART: Final = "fleet"
_RATES: Final = (10, 100, 1000, 5000, 10_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was asked for; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.check is not None:
            return _check(read_measured(options.check), as_json=options.json)
        measured = read_measured(options.report)
        given = Assumptions(**{one.name: getattr(options, one.name) for one in fields(Assumptions)})
        fleets = simulated(measured, options.scenario, given)
    except ModelError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        shown = {
            "assumptions": asdict(given),
            "scenarios": {one.scenario.name: tables.as_json(one) for one in fleets},
        }
        print(json.dumps(shown, indent=2))
        return 0
    text = "\n".join(lines(measured, fleets, given))
    if options.write:
        _write(text)
    else:
        print(text)
    return 0


def simulated(measured: Measured, name: str, given: Assumptions) -> list[Fleet]:
    """Size fleets for a scenario, or for `all`."""
    model, known = model_of(measured), scenarios()
    names = list(known) if name == "all" else [name]
    return [size(model, measured, known[one], given) for one in names]


def lines(measured: Measured, fleets: Sequence[Fleet], given: Assumptions) -> Iterator[str]:
    """Return the report as Markdown."""
    model = model_of(measured)
    yield from tables.costs(measured, model)
    yield ""
    yield from tables.rates([steady(model, measured, given, rate) for rate in _RATES])
    for fleet in fleets:
        yield ""
        yield from tables.scenario(fleet)


def _check(measured: Measured, *, as_json: bool) -> int:
    rows = check(measured)
    if as_json:
        print(json.dumps([asdict(one) | {"off": one.off, "holds": one.holds} for one in rows], indent=2))
    else:
        print("\n".join(tables.comparison(rows)))
    return 0 if all(one.holds for one in rows) else 1


def _write(text: str) -> None:
    """Replace what the page has between its marks."""
    begin, end = f"<!-- begin: {PART} -->", f"<!-- end: {PART} -->"
    before, rest = PAGE.read_text(encoding="utf-8").split(begin)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fleet",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "report", nargs="?", type=Path, default=KEPT, help="JSON of `make bench JSON=…` (the kept one)"
    )
    parser.add_argument(
        "--scenario", choices=[*scenarios(), "all"], default="all", help="the load (%(default)s)"
    )
    parser.add_argument(
        "--check",
        nargs="?",
        const=KEPT,
        type=Path,
        metavar="REPORT",
        help="compare the model with this report instead, or with the kept one",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/capacity.md")
    _add_assumptions(parser)
    return parser


def _add_assumptions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("assumptions, with their defaults")
    default = Assumptions()
    group.add_argument("--kind", choices=KINDS, default=default.kind, help="of the runs (%(default)s)")
    for name, meaning in (
        ("utilisation", "of any part at a sustained load, at most"),
        ("host-cores", "cores of the largest host for services and brokers"),
        ("primary-cores", "cores of the largest host for one Postgres"),
        ("primary-wal-mb", "megabytes per second that the disk of one Postgres takes"),
        ("retention-days", "of the ledger"),
        ("kafka-days", "of the topics"),
        ("price-core-hour", "price of a core for an hour, in any currency"),
        ("price-gb-month", "price of a stored gigabyte for a month"),
    ):
        value = getattr(default, name.replace("-", "_"))
        group.add_argument(
            f"--{name}", type=type(value), default=value, metavar="N", help=f"{meaning} (%(default)s)"
        )


if __name__ == "__main__":
    sys.exit(main())
