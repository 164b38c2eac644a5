"""`exactly_once`: the handler's rows and the outcome of its run commit together, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from tests.integration.store.world import World
from tests.integration.worker.desk import PATIENCE, Desk
from tests.support.commit_proxy import CommitProxy

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.handlers import Snooze
from noonmark.store.runs import held_runs
from noonmark.telemetry.metrics import FENCED_WRITES

ONCE = {"delivery": "exactly_once"}
AGAIN = {**ONCE, "retry": {"max_retries": 3, "delay_seconds": 0}}


@pytest.fixture(autouse=True)
def effects(world: World) -> Iterator[None]:
    world.db.execute("create table effects (run_id uuid, what text, tx xid8 default pg_current_xact_id())")
    yield
    world.db.execute("drop table effects")


def write(ctx, what="done"):
    with ctx.transaction() as connection:
        connection.execute("insert into effects (run_id, what) values (%s, %s)", [ctx.run_id, what])


def written(world):
    return world.column("select what from effects order by what")


def test_the_rows_of_a_handler_and_its_outcome_commit_in_one_transaction(world, desk):
    def pay(ctx):
        write(ctx, "a")
        write(ctx, "b")
        return {"paid": 1}

    outcome = desk.run(pay, ONCE)

    row = world.run(outcome.run.id)
    assert (row["state"], row["result"]) == ("succeeded", {"paid": 1})
    assert written(world) == ["a", "b"]
    made_by = world.column("select distinct tx::text from effects")
    assert made_by == world.column("select xmin::text from runs where id = %s", outcome.run.id)
    (told,) = world.told()
    assert told["state"] == "succeeded"
    assert world.count("start_batches") == 0
    assert desk.batches.known() == set()


def test_the_events_of_a_handler_commit_with_it(world, desk):
    def pay(ctx):
        write(ctx)
        ctx.emit("paid", {"n": ctx.attempt})
        if ctx.attempt == 1:
            raise OSError("not yet")

    desk.run(pay, ONCE)
    assert world.count("outbox", "topic = 'paid'") == 0
    desk.run(pay, ONCE, attempt=1)
    assert world.count("outbox", "topic = 'paid'") == 1
    assert written(world) == ["done"]


def test_a_handler_that_needs_no_transaction_is_recorded_as_ever(world, desk):
    outcome = desk.run(lambda ctx: {"n": ctx.attempt}, ONCE)

    assert world.run(outcome.run.id)["result"] == {"n": 1}
    assert world.count("pg_stat_activity", "application_name = 'noonmark-handler'") == 0


def test_what_a_failed_attempt_wrote_is_undone_and_its_failure_recorded(world, desk):
    def fail(ctx):
        write(ctx)
        raise OSError("disk")

    outcome = desk.run(fail, AGAIN)

    assert written(world) == []
    row = world.run(outcome.run.id)
    assert row["state"] == "retrying"
    assert row["error"].startswith("OSError: disk")
    assert world.column("select outcome from attempts") == ["failed"]


def test_a_snooze_undoes_too_and_gives_the_attempt_back(world, desk):
    def later(ctx):
        write(ctx)
        raise Snooze(in_=60, reason="the bank is closed")

    outcome = desk.run(later, ONCE)

    assert written(world) == []
    row = world.run(outcome.run.id)
    assert (row["state"], row["attempt"], row["error"]) == ("retrying", 0, "the bank is closed")
    assert world.column("select outcome from attempts") == ["snoozed"]


def test_a_block_that_raises_is_undone_alone_where_the_handler_goes_on(world, desk):
    def careful(ctx):
        write(ctx, "kept")
        with suppress(ZeroDivisionError), ctx.transaction() as connection:
            connection.execute("insert into effects values (%s, 'undone')", [ctx.run_id])
            raise ZeroDivisionError
        with suppress(psycopg.Error), ctx.transaction() as connection:
            connection.execute("insert into nowhere values (1)")

    outcome = desk.run(careful, ONCE)

    assert world.run(outcome.run.id)["state"] == "succeeded"
    assert written(world) == ["kept"]


def test_a_result_that_cannot_be_kept_undoes_what_was_written(world, desk):
    def bad(ctx):
        write(ctx)
        return object()

    outcome = desk.run(bad, ONCE)

    assert (outcome.state, written(world)) == (RunState.DEAD, [])


def test_a_constraint_that_is_checked_at_commit_fails_the_attempt(world, desk):
    world.db.execute("alter table effects add unique (what) deferrable initially deferred")

    def twice(ctx):
        write(ctx)
        write(ctx)

    outcome = desk.run(twice, AGAIN)

    row = world.run(outcome.run.id)
    assert row["state"] == "retrying"
    assert "UniqueViolation" in row["error"]
    assert written(world) == []


@pytest.mark.parametrize("how", ["commit", "rollback", "commit; begin"])
def test_a_handler_that_ends_the_transaction_itself_fails_for_good(world, desk, how):
    def meddle(ctx):
        with suppress(psycopg.Error), ctx.transaction() as connection:
            connection.execute("insert into effects values (%s, 'x')", [ctx.run_id])
            connection.execute(how)

    outcome = desk.run(meddle, AGAIN)

    row = world.run(outcome.run.id)
    assert row["state"] == "dead"
    assert "ended its transaction itself" in row["error"]


def test_the_server_ends_a_transaction_whose_attempt_has_no_time_left(world, desk):
    def slow(ctx):
        with ctx.transaction() as connection:
            connection.execute("insert into effects values (%s, 'x')", [ctx.run_id])
            connection.execute("select pg_sleep(20)")

    outcome = desk.run(slow, {**AGAIN, "timeout_seconds": 0.4})

    row = world.run(outcome.run.id)
    assert row["state"] == "retrying"
    assert "timeout" in row["error"]
    assert written(world) == []


class Paused:
    """A handler that has written, and waits for the test before it returns."""

    def __init__(self, desk: Desk, work: dict) -> None:
        self._wrote, self._go, self.returned = threading.Event(), threading.Event(), threading.Event()
        desk.registry.add(self._call, name="h.paused")
        self.hand = desk.hand("h.paused", work)
        desk.executors.submit([self.hand])
        assert self._wrote.wait(PATIENCE)

    def _call(self, ctx) -> None:
        write(ctx)
        self._wrote.set()
        assert self._go.wait(PATIENCE)

    def go_on(self) -> None:
        self._go.set()


def nothing_open(world) -> bool:
    return not world.count("pg_stat_activity", "application_name = 'noonmark-handler' and state <> 'idle'")


def wait_until_over(world, desk) -> None:
    patience = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if not desk.executors.threads.running and nothing_open(world):
            return
        patience.wait(0.02)
    raise AssertionError("the handler's thread or its transaction does not end")


def test_a_thread_that_returns_past_its_timeout_commits_nothing(world, desk):
    paused = Paused(desk, {**AGAIN, "timeout_seconds": 30})
    desk.executors.end_overdue(paused.hand.began_at + 31)
    outcome = desk.wait_for(paused.hand)
    paused.go_on()
    wait_until_over(world, desk)

    assert outcome.state is RunState.RETRYING
    assert written(world) == []
    assert world.run(outcome.run.id)["state"] == "retrying"
    assert len(desk.told(paused.hand)) == 1


def test_a_run_that_was_taken_over_meanwhile_fences_the_commit_off(world, desk):
    paused = Paused(desk, AGAIN)
    fenced = FENCED_WRITES.labels("worker", "finish")
    before = fenced._value.get()
    run = paused.hand.run
    assert (
        held_runs.requeue_unfinished(world.db, desk.identity, [(run.id, run.scheduled_for, 1)]).requeued == 1
    )
    paused.go_on()
    desk.wait_for(paused.hand)
    wait_until_over(world, desk)

    assert written(world) == []
    row = world.run(run.id)
    assert (row["state"], row["fence"]) == ("queued", 2)
    assert world.told() == []
    assert fenced._value.get() - before == 1


def test_a_run_that_was_cancelled_meanwhile_commits_nothing_and_is_cancelled(world, desk):
    paused = Paused(desk, AGAIN)
    world.db.execute("update runs set state = 'cancelling' where id = %s", [paused.hand.run.id])
    paused.go_on()
    desk.wait_for(paused.hand)

    assert world.run(paused.hand.run.id)["state"] == "cancelled"
    assert written(world) == []


def test_a_backend_that_is_killed_before_the_commit_fails_the_attempt(world, desk):
    paused = Paused(desk, AGAIN)
    world.db.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'noonmark-handler'"
    )
    paused.go_on()
    outcome = desk.wait_for(paused.hand)

    assert outcome.state is RunState.RETRYING
    assert written(world) == []
    assert len(desk.told(paused.hand)) == 1


@pytest.fixture
def proxy(world) -> Iterator[CommitProxy]:
    proxy = CommitProxy(world.url)
    yield proxy
    proxy.close()


@pytest.fixture
def cut_off(world, proxy) -> Iterator[Desk]:
    """A desk whose handlers reach Postgres through a proxy."""
    desk = Desk(world, handlers_url=proxy.url)
    yield desk
    desk.close()


@pytest.mark.parametrize(
    ("cut", "state", "rows"), [("before", "retrying", []), ("after", "succeeded", ["done"])]
)
def test_a_lost_reply_to_the_commit_is_settled_by_the_row_and_told_once(
    world, proxy, cut_off, cut, state, rows
):
    proxy.cut = cut

    outcome = cut_off.run(write, AGAIN)

    assert proxy.cuts == 1
    assert written(world) == rows
    assert world.run(outcome.run.id)["state"] == outcome.state.value == state
    assert [o.state.value for o in cut_off.settled] == [state]
    assert [told["state"] for told in world.told()] == [state]
    assert world.count("start_batches") == 0
    assert cut_off.batches.known() == set()


def test_while_the_database_is_away_the_unknown_commit_waits_for_it(world, proxy, cut_off):
    paused = Paused(cut_off, AGAIN)
    proxy.cut = "after"
    proxy.closed.set()
    paused.go_on()
    assert proxy.refused.wait(PATIENCE)
    assert cut_off.settled == []

    proxy.closed.clear()
    outcome = cut_off.wait_for(paused.hand)

    assert outcome.state is RunState.SUCCEEDED
    assert written(world) == ["done"]


def test_an_unknown_commit_of_a_lost_lease_is_dropped(world, proxy, cut_off):
    paused = Paused(cut_off, AGAIN)
    proxy.cut = "before"
    proxy.closed.set()
    paused.go_on()
    assert proxy.refused.wait(PATIENCE)

    cut_off.identity = world.worker()
    wait_until_over(world, cut_off)

    assert cut_off.settled == []
    assert written(world) == []
    assert world.run(paused.hand.run.id)["state"] == "running"  # for the lapse to take up


def test_an_async_handler_is_refused_with_what_to_do(world, desk):
    async def pay(ctx):
        del ctx

    outcome = desk.run(pay, ONCE)

    row = world.run(outcome.run.id)
    assert (row["state"], outcome.attempt_outcome) == ("retrying", AttemptOutcome.REJECTED)
    assert "make it a plain function" in row["error"]


def test_a_transaction_is_only_for_exactly_once_and_only_while_the_attempt_lasts(world, desk):
    kept = []
    outcome = desk.run(lambda ctx: kept.append(ctx) or write(ctx), {})
    assert "give its job delivery: exactly_once" in world.run(outcome.run.id)["error"]

    outcome = desk.run(lambda ctx: kept.append(ctx) or write(ctx), ONCE)
    assert outcome.state is RunState.SUCCEEDED
    with pytest.raises(RuntimeError, match="the attempt is over"), kept[-1].transaction():
        pass


def test_connections_are_used_again(world, desk):
    for _ in range(5):
        assert desk.run(write, ONCE).state is RunState.SUCCEEDED

    assert len(written(world)) == 5
    assert world.count("pg_stat_activity", "application_name = 'noonmark-handler'") == 1
