"""What handlers raise about their own runs, and how late runs are begun, as the ledger has it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from noonmark.handlers import Cancel, Discard, Retry, Snooze

SIGNALS = {
    "retrying": Retry(in_=5, reason="busy"),
    "snoozed": Snooze(in_=60, reason="closed"),
    "cancelled": Cancel("moot"),
    "discarded": Discard("junk"),
}
ENDS = {
    "retrying": ("retrying", None, "busy", 1),
    "snoozed": ("retrying", None, "closed", 0),
    "cancelled": ("cancelled", "by_handler", "moot", 1),
    "discarded": ("discarded", "by_handler", "junk", 1),
}


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("name", sorted(SIGNALS))
def test_a_handler_ends_its_attempt_by_an_order(world, desk, kind, name):
    def sync(ctx):
        del ctx
        raise SIGNALS[name]

    async def on_the_loop(ctx):
        del ctx
        raise SIGNALS[name]

    outcome = desk.run(sync if kind == "sync" else on_the_loop, {"retry": {"max_retries": 1}})

    row = world.run(outcome.run.id)
    assert (row["state"], row["reason"], row["error"], row["attempt"]) == ENDS[name]
    assert world.count("timers") == (1 if row["state"] == "retrying" else 0)
    assert world.count("dead_letters") == 0


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        ({"deadline_seconds": 60}, "deadline"),
        ({"retry": {"max_retries": 5, "max_age_seconds": 60}}, "max_age"),
    ],
)
def test_a_run_that_is_started_too_late_is_dead_and_its_handler_is_not_called(world, desk, work, reason):
    called = []

    outcome = desk.run(called.append, work, scheduled_for=world.now() - timedelta(seconds=61))

    row = world.run(outcome.run.id)
    assert (row["state"], row["reason"]) == ("dead", reason)
    assert world.count("dead_letters") == 1
    assert called == []


def test_what_is_left_of_the_deadline_cuts_the_attempt(world, desk):
    told = []

    desk.run(
        lambda ctx: told.append(ctx.deadline),
        {"deadline_seconds": 100, "timeout_seconds": 3600},
        scheduled_for=world.now() - timedelta(seconds=40),
    )

    (instant,) = world.column("select scheduled_for from runs")
    assert abs((told[0] - instant).total_seconds() - 100) < 5
