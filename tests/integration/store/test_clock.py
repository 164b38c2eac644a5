"""The clock is the database's: one function, and every decision follows it."""

import re
from datetime import timedelta

import pytest
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, outcome

from noonmark.core.states import Lane, RunState
from noonmark.store.claims import claims
from noonmark.store.database import statements
from noonmark.store.runs import leases, starts


def test_no_statement_asks_another_clock():
    other = re.compile(
        r"(?<!noonmark_)\bnow\(\)|current_(date|time)|localtime|clock_timestamp|statement_timestamp|transaction_timestamp"
    )
    offenders = [name for name in statements.names() if other.search(statements.statement(name))]

    assert offenders == []


@pytest.mark.parametrize(("by", "claimed"), [(timedelta(hours=2), 1), (timedelta(hours=-2), 0)])
def test_what_is_due_is_due_by_the_databases_clock(world, by, claimed):
    world.timer(world.job(), world.now() + timedelta(hours=1 if claimed else -1))
    assert claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 10).claimed == 0 or not claimed
    if not claimed:
        world.timer(world.job(), world.now() - timedelta(hours=1))

    world.turn_clock(by)

    assert claims.claim_once(world.db, Lane.NORMAL, EVERY_SHARD, 10).claimed == claimed


def test_a_start_deadline_passes_by_the_databases_clock(world):
    run_id = world.put_run(start_by=world.now() + timedelta(hours=1))
    world.turn_clock(timedelta(hours=2))

    started, refused = starts.start(world.db, world.worker(), "default", [world.ticket(run_id)])

    assert started == []
    assert starts.expire(world.db, TOPICS, refused, shards=SHARDS) == {Lane.NORMAL: 1}


def test_a_lease_runs_out_by_the_databases_clock(world):
    world.worker(lease_seconds=10)
    for seconds in range(0, 15, 3):
        world.turn_clock(timedelta(seconds=seconds))
        done = leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5)

    assert done.lapsed == 1


def test_a_retry_is_due_by_the_databases_clock_and_all_times_are_its(world):
    hour = timedelta(hours=5)
    world.turn_clock(hour)
    real = world.value("select now()")
    worker = world.worker()
    (run,) = world.started(worker)
    world.record(worker, [outcome(run, RunState.RETRYING, error="boom", retry_seconds=60.0)])

    assert claims.claim_retries(world.db, Lane.NORMAL, EVERY_SHARD, 10).claimed == 0
    world.turn_clock(hour + timedelta(seconds=61))
    assert claims.claim_retries(world.db, Lane.NORMAL, EVERY_SHARD, 10).queued == 1

    row = world.run(run.id)
    assert row["started_at"] - real >= hour - timedelta(seconds=1)
    assert row["queued_at"] - real >= hour
    assert world.value("select created_at from outbox where run_id is not null") - real >= hour


def test_the_time_zone_of_a_session_changes_nothing(world):
    elsewhere = world.another()
    elsewhere.execute("set timezone = 'Asia/Kolkata'")
    world.timer(world.job(), world.now() - timedelta(seconds=1))
    world.timer(world.job(), world.now() + timedelta(hours=1))

    assert claims.claim_once(elsewhere, Lane.NORMAL, EVERY_SHARD, 10).claimed == 1
    day = (world.now() + timedelta(days=9)).date()
    assert elsewhere.execute("select noonmark_make_day(%s)", [day]).fetchone() == (True,)
    bound = world.value(
        "select pg_get_expr(relpartbound, oid) from pg_class where relname = %s", f"runs_{day:%Y%m%d}"
    )
    assert f"FROM ('{day} 00:00:00+00')" in bound


def test_there_is_no_column_without_a_time_zone(world):
    naive = world.column(
        """select table_name || '.' || column_name from information_schema.columns
           where table_schema = 'public' and data_type in ('timestamp without time zone', 'time without time zone')"""
    )

    assert naive == []
