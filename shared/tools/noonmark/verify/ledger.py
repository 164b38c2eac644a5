"""Judges what the ledger alone shows, for an installation in use: no topic, no target, no plan of a test.

The rows of a few runs make a history, and the rules are those of `INVARIANTS`. Without lifecycle events, it
does not show redrives: numbers of attempts that start again at 1 are accepted as one (`partway`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Final

from noonmark.verify.case import Case, Judging, Violation
from noonmark.verify.history import History
from noonmark.verify.invariants import INVARIANTS

RUN_RULES: Final = ("S3", "S7", "S11", "S12", "S15", "S16", "S17", "S18", "S19")
"""Rules that judge each settled run by its own rows."""

WORKFLOW_RULES: Final = ("W2", "W3", "W5", "W6", "W7", "W8", "W9")
"""Rules that judge a workflow run together with the runs of its tasks."""

CHECKED: Final = tuple(
    invariant.id
    for invariant in INVARIANTS
    if invariant.id in {"S1", "S6", *RUN_RULES, "V2", "V3", *WORKFLOW_RULES}
)
"""All invariants that are always judged."""

EVENT_RULES: Final = ("S4",)
"""Rules that need events: judged on request. Others then judge more: S6, S12, S15, S17 and S18."""

INSTANT_RULES: Final = ("V1",)
"""Rules that compare the instants of schedules with the ledger: judged on request."""

UNJUDGED: Final[Mapping[str, str]] = {
    "S2": "needs the events that publishers sent",
    "S4": "pass --events to compare the ledger with the lifecycle topic",
    "S5": "needs the topics and their committed offsets",
    "S8": "needs the limits of the past",
    "S9": "needs the calls that targets saw",
    "S10": "this version has no dependencies between jobs",
    "S13": "needs the schedules and zone data of the past",
    "S14": "needs the times of faults",
    "V1": "pass --instants to compare the schedules of recurring jobs with the ledger",
    "V4": "needs the metrics of the processes",
    "V5": "needs the times of bad input",
    "V6": "needs the times of a backlog",
    "V7": "needs the exits of processes",
    "V8": "needs a measurement",
}
"""Why the ledger alone cannot show the other invariants of an installation."""

_RULES: Final = {invariant.id: invariant.rule for invariant in INVARIANTS}


def judge_rows(
    history: History,
    rules: Collection[str],
    *,
    bound: timedelta = timedelta(0),
    partway: bool = True,
) -> Iterator[Violation]:
    """Yield what breaks these invariants in a part of the ledger.

    Args:
        history: complete rows of some runs, of one snapshot.
        rules: ids of invariants, such as S3.
        bound: what is unfinished for less than this is not judged.
        partway: whether events about the runs may be missing.
    """
    case = Case(history, None, Judging(bound, partway))
    for name in rules:
        rule = _RULES[name]
        assert rule is not None, name
        yield from rule(case)
