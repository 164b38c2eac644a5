"""What a race measures, read from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.plan import FULL_SIZE, Scale, positive
from benchmarks.race.rivals import RIVALS
from noonmark.devstack.kafka.jars import cache_dir

OWN: Final = ("bare", "noonmark")
"""What needs no installation."""


@dataclass(frozen=True, slots=True)
class RacePlan(Scale):
    """What is measured, and where.

    Attributes:
        entrants: names of `OWN` and of rivals, in the order of the race.
        rivals_folder: where rivals are installed.
        folder: for the data; None for the temporary folder.
        install: names of the rivals to install; then nothing is measured.
    """

    entrants: tuple[str, ...]
    rivals_folder: Path
    folder: Path | None
    json_file: Path | None
    markdown_file: Path | None
    install: tuple[str, ...]


def race_plan_of(arguments: Sequence[str] | None) -> RacePlan:
    """Read the command line; a mistake ends the process with a usage message, as argparse does."""
    options = _parser().parse_args(arguments)
    return RacePlan(
        size=options.size,
        entrants=options.only,
        rivals_folder=options.rivals or cache_dir() / "race",
        folder=options.dir,
        json_file=options.json,
        markdown_file=options.markdown,
        install=options.install,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.race",
        description="Measures noonmark, the bare design and other schedulers with one workload.",
    )
    parser.add_argument(
        "--size",
        type=positive,
        default=FULL_SIZE,
        help="jobs of the burst (default %(default)s); below it, every part shrinks in proportion",
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write every figure to this file")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="also write the table to this file")
    entrants = (*OWN, *RIVALS)
    parser.add_argument(
        "--only",
        type=_Names(entrants),
        default=entrants,
        metavar="A,B",
        help=f"measure only these: {', '.join(entrants)}",
    )
    parser.add_argument(
        "--install",
        type=_Names(tuple(RIVALS)),
        nargs="?",
        const=tuple(RIVALS),
        default=(),
        metavar="A,B",
        help="install these rivals, by default all, and measure nothing",
    )
    parser.add_argument(
        "--rivals",
        type=Path,
        metavar="FOLDER",
        help="folder in which rivals are installed (default: race in noonmark's cache folder)",
    )
    parser.add_argument("--dir", type=Path, help="folder for the data (default: the temporary one)")
    return parser


class _Names:
    """Reads names that are separated by commas."""

    def __init__(self, known: tuple[str, ...]) -> None:
        self._known = known

    def __call__(self, text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if not names or (unknown := [name for name in names if name not in self._known]):
            wrong = ", ".join(unknown) if names else repr(text)
            raise argparse.ArgumentTypeError(f"{wrong} is unknown; known: {', '.join(self._known)}")
        return names
