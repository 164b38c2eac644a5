"""Completion reports of targets among the submissions: written together, with one result each."""

from __future__ import annotations

from noonmark.core.states import RunState
from noonmark.schemas.events.submissions import CompleteRun
from noonmark.store.jobs.requests import UNFIT, Batch, Reason, Result, Status, rejected, unplannable
from noonmark.store.runs.callbacks import complete_runs


def complete(batch: Batch, completions: list[tuple[int, CompleteRun]], results: dict[int, Result]) -> None:
    """Write the collected reports, and empty the list.

    Args:
        batch: the transaction.
        completions: the reports, at least one, each with its index in the batch.
        results: receives the result of each.
    """
    try:
        _complete(batch, completions, results)
    except UNFIT as error:
        if len(completions) == 1:
            results[completions[0][0]] = unplannable(error)
        else:
            # At least one report cannot be stored. A separate savepoint for each finds out which.
            for one in completions:
                complete(batch, [one], results)
    completions.clear()


def _complete(batch: Batch, completions: list[tuple[int, CompleteRun]], results: dict[int, Result]) -> None:
    with batch.connection.transaction():
        settled, taken = complete_runs(
            batch.connection, batch.topics, [report for _, report in completions], shards=batch.shards
        )
    # A first retry may be due at once.
    batch.due_soon |= RunState.RETRYING in settled.states.values()
    batch.settled.update(settled.counts)
    batch.freed |= settled.freed
    for (place, report), is_taken in zip(completions, taken, strict=True):
        results[place] = Result(Status.ACCEPTED, run_id=report.run_id) if is_taken else _conflict()


def _conflict() -> Result:
    return rejected(
        Reason.CONFLICT,
        "",
        "no callback is open for this run and token: it was used, has expired, or never existed",
        "the run_id and token of a request that was answered 202, sent once and before its deadline",
    )
