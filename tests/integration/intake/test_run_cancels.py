"""Cancelling runs by an event, for programs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from tests.integration.intake.world import World, create

from noonmark.core.states import RunState
from noonmark.schemas.events.envelope import parse_event, render_structured
from noonmark.schemas.events.submissions import parse_submission
from noonmark.store.jobs.submit import EventRef, Reason, Request, Status


def cancel(*runs: object, event_id: str = "") -> Request:
    value = render_structured(
        id=event_id or str(uuid4()),
        source="/tests",
        type="noonmark.run.cancel.v1",
        data={"run_ids": [str(run) for run in runs]},
    )
    event, now = parse_event(value, None), datetime.now(UTC)
    submission = parse_submission(event, now=now, ledger_floor=now - timedelta(days=30))
    return Request(submission, EventRef(event.source, event.id, None))


def test_queued_runs_end_and_running_ones_are_asked_to_stop(world: World):
    jobs = [world.job_id(create()) for _ in range(2)]
    world.start(jobs[1])
    runs = [world.run(job)["id"] for job in jobs]

    taken = world.taken(cancel(*runs))

    assert [result.status for result in taken.results] == [Status.ACCEPTED]
    assert taken.queued
    assert [world.run(job)["state"] for job in jobs] == ["cancelled", "cancelling"]


def test_one_that_has_ended_stays_as_it_is_and_a_repeated_event_is_a_duplicate(world: World):
    job = world.job_id(create())
    world.end(world.start(job))
    run = world.run(job)

    first = world.one(cancel(run["id"], event_id="x"))
    again = world.one(cancel(run["id"], event_id="x"))

    assert (first.status, again.status) == (Status.ACCEPTED, Status.DUPLICATE)
    assert world.run(job)["state"] == RunState.SUCCEEDED


def test_an_unknown_run_is_told_and_then_none_is_cancelled(world: World):
    job = world.job_id(create())
    unknown = uuid4()

    result = world.one(cancel(world.run(job)["id"], unknown))

    assert (result.status, result.reason) == (Status.REJECTED, Reason.NOT_FOUND)
    assert result.refused is not None
    assert result.refused.errors[0].pointer == "/run_ids/1"
    assert str(unknown) in result.refused.errors[0].message
    assert world.run(job)["state"] == "queued"


def test_it_stands_in_a_batch_with_others(world: World):
    job = world.job_id(create())
    run = world.run(job)["id"]

    results = world.take(create(), cancel(run), create())

    assert [result.status for result in results] == [Status.ACCEPTED] * 3
    assert world.run(job)["state"] == "cancelled"
