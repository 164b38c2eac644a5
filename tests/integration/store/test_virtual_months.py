"""A small virtual clock: schedules of every kind, through intake and triggers that die, over a change of clocks."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from tests.virtual.schedules import ZONES, population
from tests.virtual.system import System
from tests.virtual.year import Totals, compare, run_through, take_in

START = datetime(2026, 3, 6, 0, 0, 17, tzinfo=UTC)
UNTIL = datetime(2026, 3, 31, tzinfo=UTC)
SCHEDULES = 56
SEED = 20260308


def test_twenty_five_days_of_schedules_of_every_kind_leave_the_ledger_that_the_oracle_lists(database_url):
    jobs = population(SCHEDULES, start=START, until=UNTIL, seed=SEED)
    totals = Totals(len(jobs), len({job.shape.zone for job in jobs}))
    system = System(database_url, START)
    try:
        made = take_in(system, jobs)
        run_through(system, until=UNTIL, rng=random.Random(SEED), totals=totals, say=lambda _: None)
        compare(system, made, created=START, until=UNTIL, totals=totals, say=lambda _: None)

        # The comparison itself: one instant moved by a second is seen.
        system.db.execute(
            "update runs set scheduled_for = scheduled_for + interval '1 second' where id = (select id from runs where"
            " scheduled_for < %s order by id limit 1 offset 700)",
            [UNTIL - timedelta(days=1)],
        )
        with pytest.raises(AssertionError, match=r"2 differences:(.|\n)*1 missing(.|\n)*1 made up"):
            compare(system, made, created=START, until=UNTIL, totals=Totals(0, 0), say=lambda _: None)
    finally:
        system.close()
    print(totals.line("25 days"))
    assert totals.zones == min(len(ZONES), SCHEDULES)
    assert totals.restarts > 0
