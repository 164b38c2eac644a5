"""Prints what a check found, for people: findings by run, then what to do, then what was checked."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from noonmark.cli.terminal.output import counted, instant, printable

if TYPE_CHECKING:
    from noonmark.cli.verify.event_log import EventCounts
    from noonmark.cli.verify.findings import Finding, Report


def show(report: Report) -> None:
    """Print a report to stdout; warnings to stderr."""
    from noonmark.verify.ledger import UNJUDGED  # noqa: PLC0415 - rules take a while to load

    _show_findings(report)
    if report.events is not None:
        _show_events(report.events)
    broken = sum(report.counts.values())
    print(
        f"{counted(report.runs, 'run')} due from {instant(report.since)} to {instant(report.until)} checked:"
        f" {counted(broken, 'broken promise') if broken else 'all promises kept'}"
    )
    unjudged = [f"{rule} ({why})" for rule, why in UNJUDGED.items() if rule not in report.rules]
    print(f"not checked: {'; '.join(unjudged)}")


def _show_findings(report: Report) -> None:
    from noonmark.cli.verify.findings import remedy_of  # noqa: PLC0415

    if report.clean:
        return
    # Findings that are not about a run come last.
    found = sorted(report.findings, key=lambda one: (one.run_id is None, one.run_id or ""))
    for run_id, group in groupby(found, key=lambda one: one.run_id):
        of_run = list(group)
        print(printable(_title(run_id, of_run)))
        for finding in of_run:
            print(printable(f"  {finding.rule} {_said(finding)}"))
    for rule, count in sorted(report.counts.items()):
        shown = sum(finding.rule == rule for finding in found)
        if shown < count:
            print(f"{rule}: {count - shown:,} more are not shown")
    print("What to do: keep the rows of each run first (`noonmark run show ID --json`).")
    for rule, remedy in dict.fromkeys((one.rule, remedy_of(one.rule, one.kind)) for one in found):
        print(f"  {rule} {remedy}")
    print("If nothing outside noonmark explains a finding, please report it.")


def _title(run_id: str | None, findings: list[Finding]) -> str:
    """Return the name of a run as its sentences have it, which is also the head of their group."""
    if run_id is None:
        return "not about a run:"
    mark = f"(run {run_id})"
    named = next((one.sentence for one in findings if mark in one.sentence), None)
    if named is not None:
        return f"{named.partition(mark)[0]}{mark}:"
    name = next((one.job_name for one in findings if one.job_name), None)
    return f"{name} {mark}:" if name else f"run {run_id}:"


def _said(finding: Finding) -> str:
    _, mark, rest = finding.sentence.partition(f"(run {finding.run_id})")
    return rest.lstrip(": ") if mark else finding.sentence


def _show_events(events: EventCounts) -> None:
    print(
        f"{counted(events.compared, 'outcome')} compared with {counted(events.outcomes, 'event')}"
        f" of {counted(events.records, 'record')}"
    )
    if events.not_compared:
        print(
            f"{counted(events.not_compared, 'outcome')} not compared: they are older than what Kafka still"
            " has completely (a namespace is compared from ten minutes"
            " after its oldest event on), or ended after the check began; this is no finding"
        )
    if events.unreadable:
        print(f"{counted(events.unreadable, 'record')} ignored: not an event of noonmark", file=sys.stderr)
