"""A year on a virtual clock: a thousand schedules through intake and trigger, and every instant accounted for.

NOONMARK_TEST_SCHEDULES, NOONMARK_TEST_DAYS and NOONMARK_TEST_SEED make it smaller or another one.
"""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.virtual.schedules import population
from tests.virtual.system import System
from tests.virtual.year import Totals, compare, run_through, take_in

START = datetime(2026, 1, 1, 0, 0, 17, tzinfo=UTC)
SCHEDULES = int(os.environ.get("NOONMARK_TEST_SCHEDULES", "1000"))
DAYS = int(os.environ.get("NOONMARK_TEST_DAYS", "365"))
SEED = int(os.environ.get("NOONMARK_TEST_SEED", "20260308"))


@pytest.mark.timeout(1800)
def test_a_year_of_schedules_leaves_the_ledger_that_the_oracle_lists(database_url, say):
    began = time.monotonic()
    until = START.replace(second=0) + timedelta(days=DAYS)
    jobs = population(SCHEDULES, start=START, until=until, seed=SEED)
    totals = Totals(len(jobs), len({job.shape.zone for job in jobs}))
    system = System(database_url, START)
    try:
        made = take_in(system, jobs)
        run_through(system, until=until, rng=random.Random(SEED), totals=totals, say=say)
        compare(system, made, created=START, until=until, totals=totals, say=say)
    finally:
        system.close()
    families = ", ".join(f"{name} {fires:,}" for name, fires in sorted(totals.families.items()))
    say(f"fires by kind: {families}")
    say(f"{totals.line(f'{DAYS} days from {START:%Y-%m-%d}')}; {time.monotonic() - began:.0f} s in all")
    assert totals.restarts > 0
