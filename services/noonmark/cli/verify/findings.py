"""What a check found: broken promises, with the run and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from noonmark.cli.verify.event_log import EventCounts
from noonmark.verify.case import Violation

MOST: Final = 100
"""Findings of one rule that are shown; all are counted."""

_CLOCK = "Check whether a clock of a database server was set back, and what changed the row outside noonmark"
_OUTSIDE = "Find out what changed these rows outside noonmark"
REMEDIES: Final[Mapping[str, str]] = {
    "S1": "The unique index of the day's table is damaged or missing: check it with amcheck, find out which"
    " run took effect, delete the other, then reindex",
    "S3": "Check whether the effects of the run happened twice, and whether a server's clock was set back",
    "S4": "The lifecycle topic has each outcome under its fence: find out which one took effect, and what"
    " changed the other outside noonmark",
    "S6": "The leading trigger queues the run again within minutes; if it does not, check that triggers are"
    " live, and which topic lost records",
    "S7": _CLOCK,
    "S11": f"{_OUTSIDE}; `noonmark run show` shows the attempts",
    "S12": f"{_OUTSIDE}, and who could read the row in the other namespace",
    "S15": f"{_OUTSIDE}; `noonmark run show` shows the attempts that are left",
    "S16": _CLOCK,
    "S17": f"{_OUTSIDE}; the lifecycle topic has the outcome as it was recorded",
    "S18": f"{_OUTSIDE}: two rows say different things about one run",
    "S19": f"{_OUTSIDE}, and whether a worker of another installation uses this database",
    "V1": "Run the instant with `noonmark backfill`, and find out what deleted its row or moved the timer of"
    " its job outside noonmark",
    "V2": "Run `noonmark db check`, which says what to do, and check that a trigger is live",
    "V3": "Check that dispatchers are live and reach Kafka; their log names the topics that refuse events",
}
"""What to do, by rule. docs/verify.md has more."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken promise.

    Attributes:
        rule: the id of the invariant, such as S3.
        kind: how it is broken, in one word.
        run_id: the run; None: it is not about a run.
        job_id: its job.
        namespace: of the run.
        sentence: what is wrong.
        remedy: what to do.
    """

    rule: str
    kind: str
    run_id: str | None
    job_id: str | None
    namespace: str | None
    sentence: str
    remedy: str

    @classmethod
    def of(cls, violation: Violation) -> Finding:
        """Return the finding of a violation, whose first row of a run is the evidence."""
        run = _run(violation.rows)
        job = next((row for row in violation.rows if "created_at" in row), {})
        return cls(
            violation.invariant,
            violation.kind,
            run.get("id") or run.get("run"),
            run.get("job") or job.get("id"),
            run.get("namespace") or job.get("namespace"),
            violation.what,
            REMEDIES[violation.invariant],
        )


@dataclass(slots=True)
class Report:
    """The result of a check.

    Attributes:
        judged_at: when it began, by the database's clock.
        since: the first instant that was checked.
        until: the first instant after the window.
        namespaces: whose runs were checked; empty: all.
        rules: ids of the invariants that are checked.
        runs: the number of runs that were checked.
        findings: the first of each rule.
        counts: the number of findings, by rule.
        events: what was read and compared of events; None: they were not read.
    """

    judged_at: datetime
    since: datetime
    until: datetime
    namespaces: Sequence[str]
    rules: Sequence[str]
    runs: int = 0
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    events: EventCounts | None = None

    def add(self, violation: Violation) -> None:
        """Count a violation; keep it if its rule has few so far."""
        self.counts[violation.invariant] += 1
        if self.counts[violation.invariant] <= MOST:
            self.findings.append(Finding.of(violation))

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.counts


def _run(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the run among the evidence, otherwise the first row that names one."""
    whole = (row for row in rows if "request" in row)
    return next(whole, next((row for row in rows if "run" in row), {}))
