"""What no live worker of its pool can run is refused when it is submitted."""

from __future__ import annotations

import pytest
from tests.integration.intake.world import World, create, event, nightly

from noonmark.store.cluster.catalogues import catalogue_text
from noonmark.store.jobs.submit import Reason, Status
from noonmark.store.runs import worker_lease


def worker(
    world: World, *handlers: str, kinds: tuple[str, ...] = ("http", "python")
) -> worker_lease.Identity:
    return worker_lease.register(
        world.connection,
        pool="default",
        host="h",
        pid=1,
        lease_seconds=60,
        catalogue=catalogue_text(kinds, dict.fromkeys(handlers, "thread")),
    )


def told(result) -> tuple[str, str]:
    (error,) = result.refused.errors
    return error.message, error.expected


def test_a_handler_that_nobody_has_is_refused_with_what_it_might_have_been(world):
    worker(world, "mails.send", "reports.nightly")

    result = world.one(create(handler="mails.sent"))

    assert (result.status, result.reason) == (Status.REJECTED, Reason.UNKNOWN_HANDLER)
    assert told(result) == (
        "no live worker of pool 'default' has a handler 'mails.sent'; did you mean 'mails.send'?",
        "one of: mails.send, reports.nightly",
    )
    assert result.refused.errors[0].pointer == "/handler"
    assert world.one(create(handler="mails.send")).status is Status.ACCEPTED


def test_a_kind_that_nobody_runs_is_refused(world):
    worker(world, "a.b", kinds=("python",))

    result = world.one(event("create", type="http", payload={"url": "https://a.example"}))

    assert (result.status, result.reason) == (Status.REJECTED, Reason.UNKNOWN_KIND)
    assert told(result) == ("no live worker of pool 'default' runs jobs of type 'http'", "one of: python")


def test_without_any_live_worker_everything_is_taken(world):
    gone = worker(world, "a.b")
    worker_lease.leave(world.connection, gone)
    lapsed = worker(world, "a.b")
    world.connection.execute("update workers set lapsed_at = now() where id = %s", [lapsed.worker])

    assert world.one(create(handler="c.d")).status is Status.ACCEPTED


def test_the_workers_of_a_pool_count_together_and_one_that_says_nothing_may_run_all(world):
    worker(world, "a.b")
    worker(world, "c.d")
    results = world.take(create(handler="a.b"), create(handler="c.d"), create(handler="e.f"))
    assert [result.status for result in results] == [Status.ACCEPTED, Status.ACCEPTED, Status.REJECTED]

    worker_lease.register(world.connection, pool="default", host="old", pid=1, lease_seconds=60)
    assert world.one(create(handler="e.f")).status is Status.ACCEPTED


def test_a_worker_that_has_just_started_counts_at_once(world):
    worker(world, "a.b")
    assert world.one(create(handler="c.d")).status is Status.REJECTED
    worker(world, "c.d")

    assert world.one(create(handler="c.d")).status is Status.ACCEPTED


def test_what_is_remembered_is_read_again_after_a_moment(world, monkeypatch):
    worker(world, "a.b")
    assert world.one(create(handler="a.b")).status is Status.ACCEPTED
    world.connection.execute("update workers set left_at = now()")
    worker(world, "c.d")
    assert world.one(create(handler="a.b")).status is Status.ACCEPTED

    monkeypatch.setattr(world.known, "_catalogues_until", 0.0)
    assert world.one(create(handler="a.b")).status is Status.REJECTED


@pytest.mark.parametrize("handler", ["a.b", "c.d"])
def test_updates_are_looked_at_as_well(world, handler):
    worker(world, "a.b")
    world.job_id(nightly(handler="a.b"))

    result = world.one(event("update", type="python", name="nightly", schedule="0 4 * * *", handler=handler))

    assert result.status is (Status.ACCEPTED if handler == "a.b" else Status.REJECTED)
