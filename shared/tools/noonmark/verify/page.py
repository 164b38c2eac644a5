"""The verdict on one page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noonmark.verify.invariants import INVARIANTS
from noonmark.verify.judge import Report

_SHOWN: Final = 20


def page(report: Report) -> Iterator[str]:
    """Yield the lines: figures, one line per invariant, and the violations."""
    skipped = ", ".join(f"{count} {reason}" for reason, count in sorted(report.skipped.items())) or "none"
    p50, p99, most = report.late
    yield f"verdict       {'CLEAN' if report.clean else f'{len(report.violations)} VIOLATIONS'}"
    yield f"planned       {report.planned} instants"
    yield f"ran           {report.ran} of {report.runs} rows of the ledger; {report.calls} calls at targets"
    yield f"extra         {report.count('extra')}"
    yield f"missed        {report.count('lost')}"
    yield f"skipped       {skipped}"
    yield f"late          p50 {p50:.3f} s, p99 {p99:.3f} s, max {most:.3f} s"
    twice = len(report.duplicates)
    yield f"duplicates    {twice} runs called again; {report.rising} of them under a higher fence each time"
    yield ""
    counts = report.by_invariant()
    for invariant in INVARIANTS:
        found = counts[invariant.id]
        shown = "ok" if found == 0 else found if isinstance(found, str) else f"{found} VIOLATIONS"
        yield f"{invariant.id:<4}{invariant.title:<96}{shown}"
    for violation in report.violations[:_SHOWN]:
        yield f"{violation.invariant} {violation.kind}: {violation.what}"
    if len(report.violations) > _SHOWN:
        yield f"… and {len(report.violations) - _SHOWN} more"
