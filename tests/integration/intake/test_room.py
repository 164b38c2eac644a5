"""Limits, caps and overlap rules as documents and orders meet them: refusals, triggers, pauses, cancels, races."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from tests.integration.intake.world import SHARDS, TOPICS, World, create, event, nightly, open_world
from tests.support.settings_orders import pause_namespace, resume_namespace, set_max_in_flight

from noonmark.core.planning.backfill import BackfillRange
from noonmark.core.states import BackfillMode, Lane, RunState, TimerKind
from noonmark.store.backfills import requests as backfill_requests
from noonmark.store.backfills import steps as backfill_steps
from noonmark.store.backfills.steps import StepLimits
from noonmark.store.claims import claims
from noonmark.store.claims.planner import Planner
from noonmark.store.database.connect import connect
from noonmark.store.documents.schedules import ScheduleTexts
from noonmark.store.jobs.requests import Reason, Status
from noonmark.store.limits import promotion
from noonmark.store.limits.limits import Figures, LimitInUseError, delete_limit, list_limits, set_limit

LIMIT = ("waiting", "limit")
PAUSED = ("waiting", "paused")
QUEUED = ("queued", None)
QUEUED_FOR_SLOT = ("waiting", "overlap")


def states(world: World, job_id: UUID) -> list[tuple[str, str | None]]:
    rows = world.rows("select state, reason from runs where job_id = %s order by id", job_id)
    return [(row["state"], row["reason"]) for row in rows]


def claim(connection: psycopg.Connection) -> None:
    for lane in Lane:
        claims.claim_planned(
            connection,
            lane,
            tuple(range(SHARDS)),
            1000,
            kind=TimerKind.PLANNED,
            plan=Planner(catch_up_cap=100, ledger_cap=1000),
            topics=TOPICS,
            install_shards=SHARDS,
        )


def settle(world: World) -> int:
    total = 0
    for _ in range(50):
        done = promotion.promote(world.connection, TOPICS, install_shards=SHARDS)
        total += done.queued.total()
        if not done.more:
            return total
    raise AssertionError("promotion does not come to rest")


@pytest.fixture
def one_at_a_time(world: World) -> None:
    set_limit(world.connection, "default", "api", Figures(max_running=1))


def test_a_limit_that_the_namespace_has_not_is_refused_with_those_that_it_has(world: World) -> None:
    for name in ("stripe", "mail"):
        set_limit(world.connection, "default", name, Figures(max_running=1))
    set_limit(world.connection, "other", "api", Figures(max_running=1))

    refused = world.one(create(limits=["stripe", "api"]))

    assert refused.status is Status.REJECTED
    assert refused.reason is Reason.UNKNOWN_LIMIT
    assert refused.refused is not None
    (error,) = refused.refused.errors
    assert (error.pointer, error.expected) == ("/limits/1", "one of: mail, stripe")
    assert error.message == "namespace 'default' has no limit 'api'"


def test_an_update_cannot_name_a_limit_that_is_not_there(world: World) -> None:
    world.job_id(nightly())

    refused = world.one(
        event("update", name="nightly", type="python", handler="h.h", schedule="0 3 * * *", limits=["api"])
    )

    assert refused.reason is Reason.UNKNOWN_LIMIT


@pytest.mark.usefixtures("one_at_a_time")
def test_a_job_with_a_limit_that_is_due_on_arrival_waits_for_room(world: World) -> None:
    first, second = (world.job_id(create(limits=["api"])) for _ in range(2))
    assert [timer["kind"] for timer in world.timers(first)] == [TimerKind.PLANNED]

    claim(world.connection)

    assert settle(world) == 1
    assert sorted([*states(world, first), *states(world, second)], key=str) == [QUEUED, LIMIT]


def test_a_job_of_a_capped_namespace_is_planned(world: World) -> None:
    set_max_in_flight(world.connection, "default", 1)

    now, later = world.job_id(create()), world.job_id(create(run_at="2100-01-01T00:00:00Z"))

    assert [timer["kind"] for timer in world.timers(now)] == [TimerKind.PLANNED]
    assert [timer["kind"] for timer in world.timers(later)] == [TimerKind.PLANNED]


@pytest.mark.usefixtures("one_at_a_time")
def test_manual_runs_wait_for_room_like_others_and_the_triggers_are_told(world: World) -> None:
    job_id = world.job_id(nightly(overlap="allow", limits=[{"name": "api", "key": "k"}]))

    taken = world.taken(event("trigger", name="nightly"), event("trigger", name="nightly"))

    assert taken.freed
    assert states(world, job_id) == [LIMIT, LIMIT]
    assert settle(world) == 1


@pytest.mark.usefixtures("one_at_a_time")
def test_a_run_that_waits_for_a_limit_is_not_queued_while_its_job_is_paused(world: World) -> None:
    job_id = world.job_id(nightly(overlap="allow", limits=["api"]))
    world.take(event("trigger", name="nightly"), event("trigger", name="nightly"))
    settle(world)
    run = world.start(job_id)

    world.one(event("pause", name="nightly"))
    world.end(run, fence=2)
    assert settle(world) == 0
    assert states(world, job_id)[1] == PAUSED
    world.one(event("trigger", name="nightly"))
    assert settle(world) == 0

    assert world.taken(event("resume", name="nightly")).freed
    assert states(world, job_id)[1:] == [LIMIT, LIMIT]
    assert settle(world) == 1
    assert sorted(states(world, job_id)[1:], key=str) == [QUEUED, LIMIT]


@pytest.mark.usefixtures("one_at_a_time")
def test_a_queued_run_that_a_pause_holds_keeps_its_slot(world: World) -> None:
    job_id = world.job_id(nightly(overlap="allow", limits=["api"]))
    world.one(event("trigger", name="nightly"))
    settle(world)
    pause_namespace(world.connection, "default")
    other = world.connection.execute("select count(*) from limit_slots").fetchone()
    assert other == (1,)

    resume_namespace(world.connection, "default")

    assert settle(world) == 1
    assert states(world, job_id) == [QUEUED]
    assert world.connection.execute("select count(*) from limit_slots").fetchone() == (1,)


@pytest.mark.usefixtures("one_at_a_time")
def test_a_cancel_ends_what_waits_and_frees_what_is_held(world: World) -> None:
    first = world.job_id(nightly("a", overlap="allow", limits=["api"]))
    second = world.job_id(nightly("b", overlap="allow", limits=["api"]))
    world.take(event("trigger", name="a"), event("trigger", name="a"), event("trigger", name="b"))
    settle(world)
    assert states(world, first) == [QUEUED, LIMIT]

    assert world.taken(event("cancel", name="a")).freed

    assert states(world, first) == [("cancelled", "with its job")] * 2
    assert settle(world) == 1
    assert states(world, second) == [QUEUED]
    assert len(world.rows("select * from waits")) == 0


@pytest.mark.usefixtures("one_at_a_time")
def test_an_update_that_takes_the_limit_away_lets_waiting_runs_go(world: World) -> None:
    job_id = world.job_id(nightly(overlap="allow", limits=["api"]))
    world.take(*(event("trigger", name="nightly") for _ in range(3)))
    settle(world)

    taken = world.taken(
        event("update", name="nightly", type="python", handler="h.h", schedule="0 3 * * *", overlap="allow")
    )

    assert taken.freed
    assert settle(world) == 2
    assert states(world, job_id) == [QUEUED] * 3


def test_a_manual_run_of_queue_one_waits_and_a_second_is_skipped(world: World) -> None:
    job_id = world.job_id(nightly(overlap="queue_one"))
    world.take(*(event("trigger", name="nightly") for _ in range(3)))

    assert states(world, job_id) == [QUEUED, QUEUED_FOR_SLOT, ("skipped", "overlap")]


def test_a_manual_run_cancels_the_one_under_way_but_not_while_the_job_is_paused(world: World) -> None:
    job_id = world.job_id(nightly(overlap="cancel_running"))
    world.one(event("trigger", name="nightly"))
    world.start(job_id)
    world.one(event("pause", name="nightly"))
    world.one(event("trigger", name="nightly"))
    assert states(world, job_id) == [("running", None), PAUSED]

    world.one(event("resume", name="nightly"))
    assert settle(world) == 0
    assert states(world, job_id) == [("running", None), QUEUED_FOR_SLOT]
    world.one(event("trigger", name="nightly"))

    assert states(world, job_id) == [("cancelling", "overlap"), ("skipped", "overlap"), QUEUED_FOR_SLOT]


def test_a_limit_goes_only_when_nothing_that_may_run_names_it(world: World, one_at_a_time: None) -> None:
    del one_at_a_time
    world.job_id(nightly(limits=["api"]))
    with pytest.raises(LimitInUseError, match="is used by nightly"):
        delete_limit(world.connection, "default", "api")

    world.one(event("cancel", name="nightly"))

    assert delete_limit(world.connection, "default", "api") is True
    assert delete_limit(world.connection, "default", "api") is False


@pytest.mark.usefixtures("one_at_a_time")
def test_a_limit_is_listed_with_what_is_in_use_and_what_waits(world: World) -> None:
    world.job_id(nightly(overlap="allow", limits=["api"]))
    world.take(*(event("trigger", name="nightly") for _ in range(3)))
    settle(world)

    (row,) = list_limits(world.connection, "default")

    assert (row.name, row.max_running, row.in_use, row.waiting) == ("api", 1, 1, 2)
    assert list_limits(world.connection, "other") == []


@pytest.mark.parametrize("rule", ["skip", "queue_one", "cancel_running"])
def test_a_claim_a_backfill_and_a_manual_trigger_race_for_one_slot(world: World, rule: str) -> None:
    """Real sessions side by side: whatever order they come in, one run holds the slot."""
    with ThreadPoolExecutor(4) as threads:
        for n in range(8):
            job_id = world.job_id(nightly(f"race{n}", schedule={"every": "PT1H"}, overlap=rule))
            _put_in_the_past(world, job_id)
            asked = BackfillRange(_hour(world, -10), _hour(world, -5))
            order = backfill_requests.plan(world.connection, job_id, asked, BackfillMode.ALL)
            backfill_id = backfill_requests.start(world.connection, order, requested_by="me")
            racers = [
                _claims(world.url),
                _backfills(world.url, backfill_id),
                _triggers(world.url, f"race{n}"),
                _promotes(world.url),
            ]
            for race in [threads.submit(racer) for racer in racers]:
                race.result()

            live = ("queued", "running", "retrying", "cancelling")
            runs = world.rows("select id, state, holds_slot from runs where job_id = %s", job_id)
            holders = [row["id"] for row in runs if row["state"] in live]
            slots = [row["run_id"] for row in world.rows("select run_id from slots where key = %s", job_id)]
            assert holders == slots
            assert len(slots) <= 1
            settle(world)
            assert len([s for s, _ in states(world, job_id) if s in live]) == 1


def _hour(world: World, ahead: int) -> datetime:
    now: datetime = world.row("select noonmark_now() as now")["now"]
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=ahead)


def _put_in_the_past(world: World, job_id: UUID) -> None:
    """Let the job have begun half a day ago, and its next instant be due."""
    anchor = (_hour(world, 0) - timedelta(hours=12)).isoformat().replace("+00:00", "Z")
    world.connection.execute(
        "update jobs set schedule = jsonb_set(schedule, '{anchor}', to_jsonb(%s::text)) where id = %s",
        [anchor, job_id],
    )
    due = _hour(world, 0)
    world.connection.execute(
        "update timers set scheduled_for = %s, fire_at = %s where job_id = %s", [due, due, job_id]
    )
    world.connection.execute("select noonmark_make_day(%s)", [(due - timedelta(days=1)).date()])


def _claims(url: str) -> Callable[[], None]:
    def race() -> None:
        with connect(url, application="claim", autocommit=True) as connection:
            claim(connection)

    return race


def _backfills(url: str, backfill_id: UUID) -> Callable[[], None]:
    def race() -> None:
        with connect(url, application="backfill", autocommit=True) as connection:
            for _ in range(3):
                backfill_steps.step(connection, backfill_id, ScheduleTexts(), StepLimits())

    return race


def _triggers(url: str, name: str) -> Callable[[], None]:
    def race() -> None:
        with open_world(url) as mine:
            mine.take(event("trigger", name=name))

    return race


def _promotes(url: str) -> Callable[[], None]:
    def race() -> None:
        with connect(url, application="promote", autocommit=True) as connection:
            for _ in range(5):
                promotion.promote(connection, TOPICS, install_shards=SHARDS)

    return race


def test_a_backfill_under_a_limit_waits_for_room_in_the_low_lane(world: World, one_at_a_time: None) -> None:
    del one_at_a_time
    job_id = world.job_id(nightly("hourly", schedule={"every": "PT1H"}, overlap="allow", limits=["api"]))
    _put_in_the_past(world, job_id)
    world.connection.execute(
        "update timers set fire_at = fire_at + interval '1 h', scheduled_for = scheduled_for + interval '1 h'"
    )
    asked = BackfillRange(_hour(world, -8), _hour(world, -4))
    order = backfill_requests.plan(world.connection, job_id, asked, BackfillMode.ALL)
    backfill_id = backfill_requests.start(world.connection, order, requested_by="me")

    step = backfill_steps.step(world.connection, backfill_id, ScheduleTexts(), StepLimits())

    assert step.queued == 4
    assert states(world, job_id) == [LIMIT] * 4
    assert settle(world) == 1
    run = world.row("select * from runs where state = 'queued'")
    assert (run["lane"], run["origin"]) == (Lane.LOW, "backfill")
    assert world.end(world.start(job_id), RunState.SUCCEEDED, fence=2).freed
    assert settle(world) == 1
