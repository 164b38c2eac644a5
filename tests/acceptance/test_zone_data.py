"""A change of the zone data among real processes: who has the other version leaves zoned jobs alone."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.cluster import Cluster
from tests.support.publish import Load
from tests.support.zone_data import OLD_VERSION, VANCOUVER, old_zone_data

from noonmark.core.zones.zones import ZoneData

NEW_VERSION = ZoneData.packaged().version
CLAIMS = "noonmark_zone_data_info"
BY_OLD, BY_NEW = datetime(2026, 11, 2, 16, tzinfo=UTC), datetime(2026, 11, 2, 15, tzinfo=UTC)


def command(noonmark: Cluster, *arguments: str, code: int = 0, **settings: str) -> str:
    """Run `noonmark` with this cluster's addresses; return what it prints."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("NOONMARK_")}
    env |= {"NOONMARK_DATABASE_URL": noonmark.dsn, **settings}
    done = subprocess.run(
        [sys.executable, "-m", "noonmark.cli.main", *arguments],
        env=env,
        cwd=noonmark.folder,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def turn_clock_to(noonmark: Cluster, at: datetime) -> None:
    noonmark.turn_clock((at - noonmark.value("select now()")).total_seconds())


@pytest.mark.slow
def test_a_new_law_is_rolled_out_beside_a_trigger_that_does_not_know_it(
    noonmark: Cluster, tmp_path: Path
) -> None:
    directory = str(old_zone_data(tmp_path / "old"))
    noonmark.rows("delete from zone_data returning 1")
    command(noonmark, "zones", "activate", "--yes", NOONMARK_ZONE_DATA_DIR=directory)
    for day in range(-3, 5):
        noonmark.rows("select noonmark_make_day(date '2026-11-02' + %s)", day)
    turn_clock_to(noonmark, datetime(2026, 11, 2, 14, 50, tzinfo=UTC))
    old = noonmark.start("intake", "dispatcher", "worker", "trigger", zone_data_dir=directory)[-1]
    load = Load()
    every_day = {"cron": "0 8 * * *", "timezone": VANCOUVER}
    load._job({"type": "python", "handler": "chaos.record", "schedule": every_day}, 1)
    plain = {"cron": "5 15 * * *", "timezone": "UTC"}
    load._job({"type": "python", "handler": "chaos.record", "schedule": plain}, 1)
    noonmark.publish(load)
    due = "select scheduled_for from timers where kind = 3"
    noonmark.wait(lambda: noonmark.rows(due), "the job to be taken in")
    assert noonmark.value(due) == BY_OLD

    command(noonmark, "zones", "show", code=1)
    told = json.loads(command(noonmark, "zones", "activate", "--yes", "--json"))

    assert (told["previous"], told["version"], told["moved"]) == (OLD_VERSION, NEW_VERSION, 1)
    assert noonmark.value(due) == BY_NEW
    noonmark.wait(lambda: old.metric(CLAIMS, version=OLD_VERSION, active="no") == 1, "the trigger to see it")
    noonmark.wait(lambda: old.logged("zone_data_differ"), "the trigger to say so")
    noonmark.wait(old.ready, "the trigger to be ready nevertheless")
    turn_clock_to(noonmark, datetime(2026, 11, 2, 15, 5, 1, tzinfo=UTC))
    by_zone = "select count(*) from runs where (scheduled_for at time zone 'UTC')::time = '15:00'"
    by_utc = "select state from runs where (scheduled_for at time zone 'UTC')::time = '15:05'"
    noonmark.wait(lambda: noonmark.rows(by_utc) == [("succeeded",)], "the job without a zone to run")
    # It was due first: a trigger that claims it would have claimed it with the other one.
    assert noonmark.value(by_zone) == 0

    assert old.stop() == 0
    noonmark.start("trigger")
    noonmark.wait(lambda: noonmark.value(by_zone) == 1, "the new trigger to take over")
    versions = noonmark.rows(
        "select scheduled_for, version from runs join zone_data on zone_data.id = zone_data"
        " where (scheduled_for at time zone 'UTC')::time = '15:00'"
    )
    assert versions == [(BY_NEW, NEW_VERSION)]
    assert noonmark.value(due) == datetime(2026, 11, 3, 15, tzinfo=UTC)
