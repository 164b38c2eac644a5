"""What is to be measured, read from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from noonmark.settings import PREFIX, Settings

FULL_SIZE: Final = 100_000
PARTS: Final = ("idle", "burst", "recurring", "open", "submissions", "claims")
_LEAST_WINDOW_SECONDS: Final = 3.0


WINDOWS: Final = ((1000.0, 20.0), (5000.0, 15.0), (100.0, 10.0))
"""Rates of the open loop, jobs per second, and how long each lasts, seconds."""

LATENESS_RATES: Final = (1000, 5000)
"""Rates of them at which noonmark's lateness is compared with that of others."""

WARM_RUNS: Final = 40_000
"""Size of a burst that warms broker and processes, and is not reported."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the parts are. SIZE below the full one shrinks every part in proportion."""

    size: int

    @property
    def share(self) -> float:
        """Of the full size, at most 1."""
        return min(1.0, self.size / FULL_SIZE)

    def scaled(self, count: int) -> int:
        """Shrink a count."""
        return max(1000, round(count * self.share))

    def window(self, seconds: float) -> float:
        """Shrink a window."""
        return min(seconds, max(_LEAST_WINDOW_SECONDS, round(seconds * self.share, 1)))


@dataclass(frozen=True, slots=True)
class Plan(Scale):
    """What is measured, and how large."""

    parts: frozenset[str]
    backlogs: tuple[int, ...]
    backlogs_asked_for: bool
    priority: int | None
    settings: dict[str, str]
    folder: Path | None
    json_file: Path | None
    bare: bool = False
    pairs: bool = False


def plan_of(arguments: Sequence[str] | None) -> Plan:
    """Read the command line; what is wrong ends the process with a usage message, as argparse does."""
    options = _parser().parse_args(arguments)
    size: int = options.size
    default = (10_000, max(100_000, min(1_000_000, 10 * size)))
    asked = tuple(sorted({10_000, *options.backlog}))
    return Plan(
        size=size,
        parts=frozenset(options.parts),
        backlogs=asked if options.backlog else default,
        backlogs_asked_for=bool(options.backlog),
        priority=options.priority,
        settings=dict(options.set),
        folder=options.dir,
        json_file=options.json,
        bare=options.bare,
        pairs=options.pairs,
    )


def positive(text: str) -> int:
    """Read a number above 0, such as `100_000`, for argparse."""
    number = int(text.replace("_", "").replace(",", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description="Measures noonmark on this machine, with a Postgres and a Kafka of its own.",
    )
    parser.add_argument(
        "--size",
        type=positive,
        default=FULL_SIZE,
        help="runs of the burst (default %(default)s); below it, every part shrinks in proportion",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write every figure to this file")
    parser.add_argument(
        "--parts",
        type=_parts,
        default=PARTS,
        metavar="A,B",
        help=f"measure only these: {', '.join(PARTS)}",
    )
    _add_further_parts(parser)
    return parser


def _add_further_parts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backlog",
        type=positive,
        action="append",
        default=[],
        metavar="N",
        help="measure claims with this number of waiting timers, too, not only with 10,000; repeatable"
        " (10000000 takes minutes)",
    )
    parser.add_argument(
        "--priority",
        type=positive,
        nargs="?",
        const=1_000_000,
        metavar="N",
        help="measure the high lane while so many low jobs drain (default 1000000; takes minutes)",
    )
    parser.add_argument(
        "--pairs",
        action="store_true",
        help="measure the burst with two triggers, dispatchers and workers, too (a minute more)",
    )
    parser.add_argument(
        "--set",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a setting of the services, such as claim_pause_ms=5; the report names it",
    )
    parser.add_argument(
        "--bare",
        action="store_true",
        help="measure the bare design before and after noonmark, and compare them (two minutes more)",
    )
    parser.add_argument("--dir", type=Path, help="folder for the data (default: the temporary one)")


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if unknown := [part for part in parts if part not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part is called {', '.join(unknown)}; known: {', '.join(PARTS)}")
    return parts


def setting(text: str) -> tuple[str, str]:
    """Read a setting and its value, for argparse."""
    name, equals, value = text.partition("=")
    field = name.strip().lower().removeprefix(PREFIX.lower())
    if not equals or field not in Settings.model_fields:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE with the name of a setting")
    return PREFIX + field.upper(), value
