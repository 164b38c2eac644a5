"""Reports of targets as submissions: taken in together, refused one by one, in the order of other orders."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.integration.intake.world import World, create, event

from noonmark.core.states import RunState
from noonmark.schemas.events.envelope import parse_event, render_structured
from noonmark.schemas.events.submissions import parse_submission
from noonmark.schemas.problems.refusal import Refused
from noonmark.store.jobs.submit import EventRef, Reason, Request, Status
from noonmark.store.outcomes.callback_rows import NewCallback, open_callbacks

pytestmark = pytest.mark.postgres

TOKEN = "t" * 43


def report(run_id: UUID | str, *, token: str = TOKEN, event_id: str = "", **data: Any) -> Request:
    """Build a report, and read it as intake does."""
    value = render_structured(
        id=event_id or str(uuid4()),
        source="/tests",
        type="noonmark.run.complete.v1",
        data={"run_id": str(run_id), "token": token, "outcome": "succeeded", **data},
    )
    parsed = parse_event(value, None)
    now = datetime.now(UTC)
    submission = parse_submission(parsed, now=now, ledger_floor=now - timedelta(days=30))
    return Request(submission, EventRef(parsed.source, parsed.id, parsed.sequence))


def called(world: World) -> UUID:
    """A run whose callback is open; return its id."""
    run = world.start(world.job_id(create()))
    wanted = NewCallback(run.id, run.scheduled_for, 1, TOKEN)
    assert open_callbacks(world.connection, *world.worker, [wanted]) == {run.id}
    return run.id


def state(world: World, run_id: UUID) -> str:
    found: str = world.row("select state from runs where id = %s", run_id)["state"]
    return found


def test_reports_of_a_batch_are_answered_one_by_one(world: World) -> None:
    first, second, third = (called(world) for _ in range(3))

    taken = world.taken(
        report(first, result={"a": 1}),
        report(second, token="x" * 43),
        report(third, outcome="failed", error="no disk", retryable=False),
        report(first),
        report(uuid4()),
    )

    assert [result.status for result in taken.results] == [
        Status.ACCEPTED,
        Status.REJECTED,
        Status.ACCEPTED,
        Status.REJECTED,
        Status.REJECTED,
    ]
    refused = [result for result in taken.results if result.status is Status.REJECTED]
    assert {result.reason for result in refused} == {Reason.CONFLICT}
    # Whatever was wrong, the answer is the same.
    assert len({str(result.refused) for result in refused}) == 1
    assert [state(world, one) for one in (first, second, third)] == ["succeeded", "running", "dead"]
    assert dict(taken.settled) == {("succeeded", 1): 1, ("dead", 1): 1}


def test_a_report_that_comes_again_is_a_duplicate(world: World) -> None:
    run_id = called(world)
    again = report(run_id, event_id="one")

    assert world.one(again).status is Status.ACCEPTED
    assert world.one(again).status is Status.DUPLICATE


def test_a_refused_report_may_come_again_with_the_right_token(world: World) -> None:
    run_id = called(world)

    assert world.one(report(run_id, token="x" * 43, event_id="one")).status is Status.REJECTED
    assert world.one(report(run_id, event_id="one")).status is Status.ACCEPTED


def test_of_a_report_and_a_cancel_in_one_batch_the_first_wins(world: World) -> None:
    one, other = called(world), called(world)
    job_of = "select job_id from runs where id = %s"
    jobs = [str(world.row(job_of, run_id)["job_id"]) for run_id in (one, other)]

    results = world.take(
        report(one), event("cancel", job_id=jobs[0]), event("cancel", job_id=jobs[1]), report(other)
    )

    assert state(world, one) == RunState.SUCCEEDED
    # Its worker still has it: what it reports ends the run as cancelled.
    assert state(world, other) == RunState.CANCELLED
    assert results[0].status is Status.ACCEPTED


def test_a_failure_that_is_retried_at_once_wakes_the_trigger(world: World) -> None:
    job_id = world.job_id(create(retry={"delay_seconds": 0}))
    run = world.start(job_id)
    open_callbacks(world.connection, *world.worker, [NewCallback(run.id, run.scheduled_for, 1, TOKEN)])

    taken = world.taken(report(run.id, outcome="failed", error="x"))

    assert taken.due_soon
    assert state(world, run.id) == RunState.RETRYING


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        ({"run_id": "x"}, "/data/run_id"),
        ({"token": ""}, "/data/token"),
        ({"token": "a b" * 20}, "/data/token"),
        ({"outcome": "done"}, "/data/outcome"),
        ({"result": "x" * 70_000}, "/data/result"),
        ({"error": "x"}, "/data"),
        ({"outcome": "failed", "result": 1}, "/data"),
        ({"outcome": "failed", "error": "x" * 2001}, "/data/error"),
        ({"secret": 1}, "/data/secret"),
    ],
    ids=str,
)
def test_a_report_that_is_none_is_refused_without_its_token(data: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Refused) as told:
        report(**{"run_id": uuid4(), "token": TOKEN, **data})

    assert pointer in [error.pointer for error in told.value.errors]
    assert TOKEN not in str(told.value)
