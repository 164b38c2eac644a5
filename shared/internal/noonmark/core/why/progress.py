"""Clauses about what an unfinished run is doing, and about the worker that it lost."""

from __future__ import annotations

from datetime import datetime

from noonmark.core.states import BY_TARGET, BY_TASKS, RunState
from noonmark.core.why.answers import About, at, counted, lasting
from noonmark.core.why.facts import Facts, RunFacts


def doing(facts: Facts, run: RunFacts) -> str:
    """Return what an unfinished run is doing, as a clause to follow its name."""
    if run.report_until is not None:
        return f"which waits until {at(run.report_until)} for its target's report"
    if run.state in (RunState.RUNNING, RunState.CANCELLING) and run.owner == BY_TASKS:
        return f"whose tasks have been {run.state} since {at(_since(run))}"
    if run.state in (RunState.RUNNING, RunState.CANCELLING) and run.owner:
        return f"which has been {run.state} on {worker_of(run)} since {at(_since(run))}"
    return f"which has been {run.state} for {lasting((facts.now - _since(run)).total_seconds())}"


def about_holder(run: RunFacts) -> About:
    """Return the facts about the run that another one waits for."""
    return {
        "holder": run.id,
        "holder_state": run.state,
        "holder_since": _since(run),
        "holder_worker": None if run.owner in (BY_TARGET, BY_TASKS) else run.owner,
    }


def worker_of(run: RunFacts) -> str:
    """Name the worker of a run, with its host and process if they are known."""
    return f"worker {run.owner} ({run.host}, pid {run.pid})" if run.host else f"worker {run.owner}"


def loss(run: RunFacts, lost_at: datetime) -> str:
    """Say which worker a run lost, when, and in which attempt."""
    worker = f"worker {run.lost_worker}" if run.lost_worker else "its worker"
    times = f", and the run has lost {counted(run.losses, 'worker')}" if run.losses > 1 else ""
    return f"{worker} was lost at {at(lost_at)}, in attempt {run.lost_attempt}{times}"


def _since(run: RunFacts) -> datetime:
    moments = {
        RunState.WAITING: run.waiting_since,
        RunState.QUEUED: run.queued_at,
        RunState.RUNNING: run.started_at,
        RunState.CANCELLING: run.started_at,
    }
    return moments.get(RunState(run.state)) or run.started_at or run.queued_at or run.scheduled_for
