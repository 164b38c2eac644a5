"""The tables of `docs/verification.md`: each rule, and each column of the ledger, with its planted faults.

`python -m tests.chaos.fault_tables` prints them; with `--write` they replace those of the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import Final

from tests.chaos.columns import LEDGER, Planted, planted
from tests.chaos.planted import PLANTED, judged
from tests.support.cluster import ROOT
from tests.support.marked import write_part

from noonmark.verify import INVARIANTS

PAGE: Final = ROOT / "docs" / "verification.md"
PART: Final = "planted faults"


@cache
def found() -> dict[str, frozenset[str]]:
    """The invariants that found each planted fault."""
    return {fault.name: frozenset(v.invariant for v in judged(fault).violations) for fault in PLANTED}


def rule_table() -> Iterator[str]:
    """One row per invariant: how many of its planted faults it found, and their names."""
    yield "| rule | found | planted faults |"
    yield "|---|---|---|"
    for invariant in INVARIANTS:
        mine = [fault.name for fault in PLANTED if invariant.id in fault.found_by]
        count = sum(invariant.id in found()[name] for name in mine)
        if mine:
            yield f"| {invariant.id} | {count} of {len(mine)} | {_listed(mine)} |"


def column_table() -> Iterator[str]:
    """One row per column of the ledger that is checked: the rules that found its faults, and the faults."""
    yield "| column | found by | planted faults |"
    yield "|---|---|---|"
    for table, column, said in planted():
        by = sorted(frozenset().union(*(found()[name] for name in said.faults)))
        yield f"| `{table}.{column}` | {', '.join(by)} | {_listed(said.faults)} |"


def reason_table() -> Iterator[str]:
    """One row per reason why columns of the ledger have no planted fault."""
    yield "| not checked, because | columns |"
    yield "|---|---|"
    reasons: dict[str, list[str]] = {}
    for table, columns in LEDGER.items():
        for column, said in columns.items():
            if not isinstance(said, Planted):
                reasons.setdefault(said, []).append(f"{table}.{column}")
    for reason, names in sorted(reasons.items()):
        yield f"| {reason} | {_listed(names)} |"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def tables() -> str:
    """The tables as the page has them."""
    return "\n\n".join("\n".join(part()) for part in (rule_table, column_table, reason_table))


def main() -> None:
    """Print the tables, or write them into the page."""
    if sys.argv[1:] != ["--write"]:
        print(tables())
        return
    write_part(PAGE, PART, tables())


if __name__ == "__main__":
    main()
