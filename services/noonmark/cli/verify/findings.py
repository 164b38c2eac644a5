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

_CLOCK: Final = "Check whether a clock of a database server was set back"
_ANY: Final = ""
REMEDIES: Final[Mapping[str, Mapping[str, str]]] = {
    "S1": {
        _ANY: "The unique index of the day's table is damaged or missing: check it with amcheck, find out"
        " which run took effect, delete the other, then reindex"
    },
    "S3": {
        _ANY: "Check whether the effects of the run happened twice, and whether a server's clock was set back"
    },
    "S4": {
        _ANY: "The lifecycle topic has each outcome under its fence: find out which one took effect",
        "run_gone": "Consumers know the outcome, and the ledger has lost the run: compare with a backup of"
        " the database, and find out who deleted rows",
    },
    "S6": {
        _ANY: "The leading trigger queues the run again within minutes; if it does not, check that triggers"
        " are live, and which topic lost records",
        "unannounced": "Consumers still believe that the run has not ended: tell them the outcome, and find"
        " out which topic lost records",
        "announced_otherwise": "Consumers believe the outcome that was announced: find out with the target's"
        " log which one took effect, and correct the ledger or the consumers",
        "death_unannounced": "Consumers of dead letters do not know of it: `noonmark dead list` shows the"
        " run, so redrive or discard it, and find out which topic lost records",
    },
    "S7": {
        _ANY: _CLOCK,
        "deadline": "The run starts too late or never: find out what changed its row",
    },
    "S11": {
        _ANY: "A dead run without a letter is not offered for a redrive: trigger its job if it is needed"
    },
    "S12": {_ANY: "Find out who could read the row in the other namespace, and correct it in SQL"},
    "S15": {
        _ANY: "`noonmark run show` shows the attempts that are left: the retry budget may have been wrong"
    },
    "S16": {
        _ANY: _CLOCK,
        "future": f"{_CLOCK}, or what wrote the time: comparisons with it find nothing",
        "undated": "Find out what changed the row: the lifecycle topic has the times as they were recorded",
    },
    "S17": {_ANY: "The lifecycle topic has the outcome as it was recorded: compare it with the row"},
    "S18": {
        _ANY: "Two rows say different things about one run; the run itself says what was executed",
        "job_gone": "Without its job, the run cannot be started or repeated: restore the row of `jobs` from a"
        " backup",
        "range": "Find out what changed the row: every instant of the range counts as skipped (V1)",
        "slot": "Runs of the job can overlap, or none of them can start: with the services stopped,"
        " correct the row of `slots`",
    },
    "S19": {_ANY: "Check whether a worker of another installation uses this database"},
    "V1": {
        _ANY: "Run the instant with `noonmark backfill`, and find out what deleted its row or moved the timer"
        " of its job"
    },
    "V2": {_ANY: "Run `noonmark db check`, which says what to do, and check that a trigger is live"},
    "V3": {
        _ANY: "Check that dispatchers are live and reach Kafka; their log names the topics that refuse events"
    },
    "W2": {_ANY: "The task ran without what it waits for: check what it read, and run the workflow again"},
    "W3": {
        _ANY: "The task was left out wrongly, or its row was changed: run the workflow again if it is needed"
    },
    "W5": {_ANY: "Something was left behind, or the end of the workflow run was written outside noonmark"},
    "W6": {
        _ANY: "The workflow run may never end, or end wrongly: cancel it, and run it again if it is needed"
    },
    "W7": {_ANY: "The tasks say what was done: correct what relies on the verdict of the workflow run"},
    "W8": {
        _ANY: "Check whether what the task of `finally` cleans up was still in use, or was not cleaned up"
    },
    "W9": {
        _ANY: "Find out what changed the rows: compare them with a backup of the database",
        "no_graph": "Without its tasks, the workflow run cannot go on: restore the rows of `workflow_tasks`"
        " from a backup",
    },
}
"""What to do, by rule, and by kind where that differs."""


def remedy_of(rule: str, kind: str) -> str:
    """Return what to do, and where to read more."""
    known = REMEDIES[rule]
    return f"{known.get(kind, known[_ANY])}: see docs/verify.md#{rule.lower()}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken promise.

    Attributes:
        rule: the id of the invariant, such as S3.
        kind: how it is broken, in one word.
        run_id: the run; None: it is not about a run.
        job_id: its job.
        job_name: the name of the job; None: not known.
        namespace: of the run.
        sentence: what is wrong.
        remedy: what to do.
    """

    rule: str
    kind: str
    run_id: str | None
    job_id: str | None
    job_name: str | None
    namespace: str | None
    sentence: str
    remedy: str

    @classmethod
    def of(cls, violation: Violation, names: Mapping[str, str]) -> Finding:
        """Return the finding of a violation, whose first row of a run is the evidence.

        Args:
            violation: what is broken.
            names: of jobs, by id.
        """
        run = _run(violation.rows)
        job = next((row for row in violation.rows if "created_at" in row), {})
        run_id = run.get("id") or run.get("run")
        job_id = run.get("job") or job.get("id")
        # A run that is gone cannot be shown.
        kept = run_id is not None and violation.kind != "run_gone"
        first = f"Keep the rows first: `noonmark run show {run_id} --json`. " if kept else ""
        return cls(
            violation.invariant,
            violation.kind,
            run_id,
            job_id,
            names.get(job_id or "") or run.get("name"),
            run.get("namespace") or job.get("namespace"),
            violation.what,
            first + remedy_of(violation.invariant, violation.kind),
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
    _shared: set[str] = field(default_factory=set)
    """Sentences about rows that several steps read, such as jobs and workers."""

    def add(self, violation: Violation, names: Mapping[str, str]) -> None:
        """Count a violation that is not known yet; keep it if its rule has few so far.

        `names`: of jobs, by id.
        """
        if not _run(violation.rows):
            if violation.what in self._shared:
                return
            self._shared.add(violation.what)
        self.counts[violation.invariant] += 1
        if self.counts[violation.invariant] <= MOST:
            self.findings.append(Finding.of(violation, names))

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.counts


def _run(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the run among the evidence, otherwise the first row that names one."""
    whole = (row for row in rows if "request" in row)
    return next(whole, next((row for row in rows if "run" in row), {}))
