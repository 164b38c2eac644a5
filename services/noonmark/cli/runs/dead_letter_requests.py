"""How `noonmark dead redrive` and `discard` work: count, confirm, then change in batches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.job_ref import home_of, require_job
from noonmark.cli.connections.periods import OPEN, Period
from noonmark.cli.terminal.bulk_requests import agree, may_ask, progress
from noonmark.cli.terminal.output import counted, show_json
from noonmark.cli.terminal.problems import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from noonmark.client import Client
    from noonmark.client.types.dead_letters import DeadLetterChange

_STEP: Final = 1_000
"""Maximum number of runs that one API call checks, and of ids that it accepts."""

_SHOWN_REFUSED: Final = 100
"""Number of rejected runs to name; above it, only the reasons are counted."""


@dataclass(frozen=True, slots=True)
class DeadSelection:
    """Filter for dead letters; all given conditions must match.

    Attributes:
        runs: ids of runs; empty for any.
        job_id: id of their job.
        job_name: name of their job.
        namespace: their namespace; None for that of the client.
        fingerprint: fingerprint of the cause.
        reason: reason of the death.
        period: when they died.
    """

    runs: tuple[UUID, ...] = ()
    job_id: UUID | None = None
    job_name: str | None = None
    namespace: str | None = None
    fingerprint: str | None = None
    reason: str | None = None
    period: Period = OPEN

    def filter(self, namespace: str | None) -> dict[str, Any]:
        """Return the filter for the API, without the ids."""
        given = {
            "namespace": namespace,
            "job_id": str(self.job_id) if self.job_id else None,
            "job_name": self.job_name,
            "fingerprint": self.fingerprint,
            "reason": self.reason,
            "since": self.period.since.isoformat() if self.period.since else None,
            "until": self.period.until.isoformat() if self.period.until else None,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(slots=True)
class _Done:
    """Results so far."""

    states: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    named: list[tuple[str, str]] = field(default_factory=list)

    def add(self, answer: DeadLetterChange) -> None:
        self.states.update(answer["runs"])
        self.refused.update(answer["refused"])
        self.named += [(one["run_id"], one["reason"]) for one in answer["refused_runs"]]


def carry_out(
    verb: Literal["redrive", "discard"],
    wanted: DeadSelection,
    most: int | None,
    rate: int | None,
    *,
    because: str | None = None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Count the matching runs, confirm, and change them in batches; each batch is one transaction.

    Args:
        verb: redrive or discard.
        wanted: filter for the runs.
        most: maximum number of runs; None for all.
        rate: maximum number of runs a second; None for no limit.
        because: reason of a discard, for people.
        dry_run: only count.
        yes: do not prompt.
        as_json: print JSON.
    """
    if not dry_run:
        may_ask(yes=yes, as_json=as_json)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    done = _Done()
    with client(operator_settings()) as api:
        filters = list(_filters(api, wanted, done if most is None else _Done()))
        order = (
            api.dead_letters.redrive
            if verb == "redrive"
            else partial(api.dead_letters.discard, reason=because)
        )
        matched = sum(order(one, dry_run=True)["matched"] for one in filters)
        matched = min(matched, most) if most is not None else matched
        if not dry_run and matched:
            agree(f"{verb} {counted(matched, 'dead run')}?", yes=yes)
            _change(order, filters, matched, rate, done)
        if not matched:
            require_job(api, wanted.job_name or wanted.job_id, wanted.namespace)
    _report(verb, matched, done, dry_run=dry_run, as_json=as_json)
    if wanted.runs and done.refused:
        raise typer.Exit(ExitCode.PROBLEM)


def _filters(api: Client, wanted: DeadSelection, done: _Done) -> Iterator[dict[str, Any]]:
    """Return the filters to send: one, or one for each namespace of named runs."""
    if not wanted.runs:
        yield wanted.filter(wanted.namespace or home_of(api, wanted.job_id))
        return
    from noonmark.client import ApiError  # noqa: PLC0415

    places: dict[str, list[str]] = {}
    for run in wanted.runs:
        try:
            place = api.dead_letters.get(run)["namespace"]
        except ApiError as error:
            if error.status != 404:
                raise
            place = None
        if place is None or wanted.namespace not in {None, place}:
            done.refused["not_dead"] += 1
            done.named.append((str(run), "not_dead"))
        else:
            places.setdefault(place, []).append(str(run))
    for place, runs in places.items():
        for begin in range(0, len(runs), _STEP):
            yield {**wanted.filter(place), "runs": runs[begin : begin + _STEP]}


def _change(
    order: Callable[..., DeadLetterChange],
    filters: list[dict[str, Any]],
    total: int,
    rate: int | None,
    done: _Done,
) -> None:
    """Change the counted number of runs and no more: others may die meanwhile."""
    left = total
    for one in filters:
        after: str | None = None
        while left:
            answer = order(one, after=after, limit=min(_STEP, rate or _STEP, left))
            done.add(answer)
            left -= answer["matched"]
            progress(total - left, total)
            after = answer["next_after"]
            if rate is not None and left and (after or one is not filters[-1]):
                time.sleep(1)
            if after is None:
                break


def _report(verb: str, matched: int, done: _Done, *, dry_run: bool, as_json: bool) -> None:
    named = done.named[:_SHOWN_REFUSED]
    if as_json:
        refused: list[Mapping[str, str]] = [{"run_id": run, "reason": reason} for run, reason in named]
        show_json(
            {"dry_run": dry_run, "matched": matched, "runs": dict(done.states), "refused": dict(done.refused)}
            | {"refused_runs": refused}
        )
        return
    if dry_run:
        print(f"{verb} affects {counted(matched, 'dead run')}; dry run, nothing changed")
    else:
        states = (
            ", ".join(f"{count} {state}" for state, count in sorted(done.states.items())) or "none changed"
        )
        print(f"{verb} of {counted(matched, 'dead run')}: {states}")
    for run, reason in named[:20]:
        print(f"rejected: {run} ({reason})")
    if done.refused.total() > 20:
        print(
            "rejected in total: " + ", ".join(f"{count} {reason}" for reason, count in done.refused.items())
        )
