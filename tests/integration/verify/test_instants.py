"""`noonmark verify --instants`: the schedules of recurring jobs against the ledger."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.integration.store.world import World
from tests.integration.verify.ledgers import check
from tests.support.cli import call

from noonmark.core.states import TimerKind

STEP = timedelta(minutes=10)
INSTANTS = 20


@pytest.fixture
def tick(world: World):
    """A job with a run for each of its instants in the last hours, across midnight at some times of day."""
    now = world.now()
    first = now.replace(second=0, microsecond=0) - STEP * INSTANTS
    schedule = {"every": STEP.total_seconds(), "anchor": first.isoformat(), "start": first.isoformat()}
    job = world.job(schedule=schedule, recurring=True)
    world.db.execute("update jobs set created_at = %s where id = %s", [first - STEP, job])
    for n in range(INSTANTS + 1):
        world.put_run("succeeded", job_id=job, scheduled_for=first + n * STEP)
    world.timer(job, first + (INSTANTS + 1) * STEP, kind=TimerKind.PLANNED)
    world.db.execute("update zone_data set activated_at = %s", [first - timedelta(days=1)])
    return job, first


def lost(world: World, **window) -> list[str]:
    return [one.sentence for one in check(world, instants=True, **window).findings if one.rule == "V1"]


def remove(world: World, tick, *numbers: int) -> None:
    job, first = tick
    for n in numbers:
        world.db.execute("delete from runs where job_id = %s and scheduled_for = %s", [job, first + n * STEP])


def test_a_ledger_with_every_instant_is_clean(world, tick):
    assert lost(world) == []


@pytest.mark.parametrize("n", [0, 7, INSTANTS])
def test_an_instant_without_a_row_is_found_once_with_its_job(world, tick, n):
    world.turn_clock(timedelta(minutes=2))
    remove(world, tick, n)

    report = check(world, instants=True)
    (found,) = [one for one in report.findings if one.rule == "V1"]

    assert found.sentence.endswith(f"the ledger has no row for {(tick[1] + n * STEP).isoformat()}")
    assert (found.job_id, found.namespace, found.run_id) == (str(tick[0]), "tests", None)
    assert check(world).counts["V1"] == 0


def test_midnight_is_judged(world, tick):
    """Windows of days meet there."""
    midnight = world.now().replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight - 2 * STEP
    schedule = {"every": STEP.total_seconds(), "anchor": first.isoformat(), "start": first.isoformat()}
    other = world.job(schedule=schedule, recurring=True)
    world.db.execute("update jobs set created_at = %s where id = %s", [first - STEP, other])
    world.timer(other, midnight + 2 * STEP, kind=TimerKind.PLANNED)
    world.db.execute("update zone_data set activated_at = %s", [first - timedelta(days=1)])
    world.turn_clock(timedelta(hours=1))

    expected = [(first + n * STEP).isoformat() for n in range(4)]
    assert sorted(one.split()[-1] for one in lost(world) if str(other) in one) == expected


def test_instants_within_a_summary_of_skipped_ones_are_accounted_for(world, tick):
    job, first = tick
    remove(world, tick, *range(6))
    world.put_run(
        "skipped", job_id=job, scheduled_for=first, last_scheduled_for=first + 5 * STEP, reason="misfired"
    )

    assert lost(world) == []
    # Also where it begins before the window.
    assert lost(world, since=first + 3 * STEP) == []


def test_what_the_timer_still_waits_for_is_a_backlog_and_not_lost(world, tick):
    job, first = tick
    remove(world, tick, *range(15, INSTANTS + 1))
    world.turn_clock(timedelta(minutes=2))
    assert lost(world) != []

    world.db.execute("update timers set scheduled_for = %s where job_id = %s", [first + 15 * STEP, job])
    assert lost(world) == []


def test_each_version_is_judged_for_the_time_in_which_it_was_valid(world, tick):
    """The version before an edit came twice as often."""
    job, first = tick
    edited = first + 10 * STEP - timedelta(minutes=2)
    world.db.execute(
        "insert into job_versions (job_id, version, name, kind, pool, work, schedule, replaced_at)"
        " select id, 1, name, kind, pool, work, schedule || '{\"every\": 300}', %s from jobs where id = %s",
        [edited, job],
    )
    world.db.execute("update jobs set version = 2 where id = %s", [job])

    assert len(lost(world)) == 10


def test_other_zone_data_than_the_installations_are_refused(command_line, world, tick):
    world.db.execute("update zone_data set version = '1999a'")

    assert "the installation plans with 1999a" in call("verify", "--instants", code=2).stderr
    assert "all promises kept\n" in call("verify", code=0).stdout
