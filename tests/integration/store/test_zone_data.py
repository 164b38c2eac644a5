"""A change of the zone data: what waits is planned anew, no local time fires twice, none is lost."""

import json
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, open_world
from tests.support.cli import CliRunner
from tests.support.emptying import empty
from tests.support.zone_data import LOS_ANGELES, OLD_VERSION, VANCOUVER, old_zone_data, planning_with

from noonmark.cli.connections.context import use_named_zone_data
from noonmark.cli.operations import database
from noonmark.cli.runs import commands as run_commands
from noonmark.cli.schedules import zones
from noonmark.cli.terminal.problems import CliError, ExitCode, explain
from noonmark.core.ids import shard_of
from noonmark.core.planning.jitter import Jitter
from noonmark.core.schedules.schedule import load_schedule, parse_schedule
from noonmark.core.states import Lane, TimerKind
from noonmark.core.zones.zones import ZoneData, zone_data_version
from noonmark.store.claims import claims
from noonmark.store.claims.planner import Planner
from noonmark.store.documents.columns import NEVER, recurring_due
from noonmark.store.schedules import zone_data
from noonmark.store.schedules.time_facts import active_zone_data, change_time_facts, share_time_facts

NEW_VERSION = ZoneData.packaged().version
AT_EIGHT = {"cron": "0 8 * * *", "timezone": VANCOUVER}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Zoned:
    """A database on the first days of November 2026, and processes with old and new zone data."""

    def __init__(self, world, old: Path) -> None:
        self.world = world
        self.old = old
        self.new = None
        self._planners: dict[Path | None, Planner] = {}

    def clock(self, text: str) -> None:
        """Let the database's time be that instant, from now on."""
        self.world.turn_clock(utc(text) - self.world.value("select now()"))

    def planner(self, directory: Path | None) -> Planner:
        if directory not in self._planners:
            self._planners[directory] = Planner(catch_up_cap=100, ledger_cap=1000)
        return self._planners[directory]

    def job(self, document, after: str, *, by="old", state="active", held=False, active=True):
        """A job made by a process with these zone data."""
        with planning_with(getattr(self, by)):
            schedule = parse_schedule(document, created_at=utc(after))
            job_id = self.world.job(schedule=schedule.spec(), recurring=True, state=state)
            due = recurring_due(schedule, job_id, utc(after), zone_data_is_active=active)
        due = due.when_paused() if held else due
        self.world.db.execute(
            """insert into timers (fire_at, scheduled_for, after_at, after_offset, runs_left, job_id, job_version, shard,
                                   lane, kind, namespace, pool)
               values (%s, %s, %s, %s, %s, %s, 1, %s, 1, %s, 'tests', 'default')""",
            [
                due.fire_at,
                due.at,
                due.after_at,
                due.after_offset,
                due.runs_left,
                job_id,
                shard_of(job_id, SHARDS),
                int(due.kind),
            ],
        )
        return job_id

    def claim(self, by="old", *, kind=TimerKind.ZONED, connection=None):
        with planning_with(getattr(self, by)):
            return claims.claim_planned(
                connection or self.world.db,
                Lane.NORMAL,
                EVERY_SHARD,
                8000,
                kind=kind,
                plan=self.planner(getattr(self, by)),
                topics=TOPICS,
                install_shards=SHARDS,
            )

    def activate(self, by="new", **how):
        with planning_with(getattr(self, by)):
            return zone_data.activate(self.world.db, **how)

    def timer(self, job_id):
        (row,) = self.world.rows("select * from timers where job_id = %s", job_id)
        return row

    def due(self, job_id) -> datetime:
        return self.timer(job_id)["scheduled_for"]

    def fired(self, job_id) -> list[str]:
        return [f"{run['scheduled_for']:%d %H:%M}" for run in self.world.runs_of(job_id)]


@pytest.fixture(scope="module")
def database_of_november(postgres_server, template_database):
    """URL of the database that the tests of this file take turns in; its days are not made for each of them."""
    name = f"november_{uuid4().hex[:12]}"
    postgres_server.copy(template_database, name)
    yield postgres_server.url_of(name)
    postgres_server.drop(name)


@pytest.fixture
def world(database_of_november):
    with open_world(database_of_november) as world:
        empty(world.db, kept_days=[date(2026, 10, 25) + timedelta(days=n) for n in range(20)])
        yield world


@pytest.fixture
def zoned(world, tmp_path):
    zoned = Zoned(world, old_zone_data(tmp_path / "old"))
    with planning_with(zoned.old) as version:
        assert version == OLD_VERSION
        world.db.execute("delete from zone_data")
        zone_data.ensure_active(world.db, version)
    zoned.clock("2026-11-01T12:00")
    return zoned


def test_b055_a_planned_instant_moves_with_the_law_and_the_move_is_told(zoned):
    job_id = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    assert zoned.due(job_id) == utc("2026-11-02T16:00"), "the old rules: the clock has gone back"

    report = zoned.activate()

    assert zoned.due(job_id) == zoned.timer(job_id)["fire_at"] == utc("2026-11-02T15:00")
    assert (report.version, report.previous, report.timers, report.moved) == (NEW_VERSION, OLD_VERSION, 1, 1)
    (moved,) = report.moved_jobs
    assert (moved.job_id, moved.name, moved.namespace, moved.zone) == (
        job_id,
        str(job_id),
        "tests",
        VANCOUVER,
    )
    assert (moved.was, moved.at) == (utc("2026-11-02T16:00"), utc("2026-11-02T15:00"))
    assert (moved.was_local, moved.at_local) == (datetime(2026, 11, 2, 9), datetime(2026, 11, 2, 8))  # noqa: DTZ001
    active, before = zone_data.history(zoned.world.db)
    assert (active.version, active.active, active.timers, active.moved) == (NEW_VERSION, True, 1, 1)
    assert (before.version, before.active) == (OLD_VERSION, False)
    assert active.activated_at == report.activated_at


def test_each_run_tells_the_zone_data_that_it_was_planned_with(zoned, monkeypatch):
    job_id = zoned.job(AT_EIGHT, "2026-10-31T12:00")
    zoned.clock("2026-10-31T15:00:05")
    assert zoned.claim().queued == 1
    zoned.activate()
    zoned.clock("2026-11-01T15:00:05")
    assert zoned.claim("new").queued == 1
    assert zoned.fired(job_id) == ["31 15:00", "01 15:00"]
    monkeypatch.setenv("NOONMARK_DATABASE_URL", zoned.world.url)
    for run, version in zip(zoned.world.runs_of(job_id), (OLD_VERSION, NEW_VERSION), strict=True):
        shown = CliRunner().invoke(run_commands.app, ["show", str(run["id"]), "--json"]).stdout
        assert json.loads(shown)["zone_data"] == version


def test_a_local_time_that_fired_under_the_old_data_does_not_fire_again_under_the_new(zoned):
    zoned.world.db.execute("delete from zone_data")
    zoned.activate("new")
    job_id = zoned.job(AT_EIGHT, "2026-11-02T12:00", by="new")
    zoned.clock("2026-11-02T15:00:05")
    assert zoned.claim("new").queued == 1

    report = zoned.activate("old")

    assert report.goes_back
    assert zoned.due(job_id) == utc("2026-11-03T16:00"), "not 16:00 of the same day, which is 08:00 again"
    zoned.clock("2026-11-02T16:00:05")
    assert zoned.claim("old").claimed == 0
    assert zoned.activate("new").moved == 1
    assert zoned.due(job_id) == utc("2026-11-03T15:00"), "and back, as if nothing had been"


def test_a_local_time_that_passed_unseen_under_the_old_data_is_late_under_the_new(zoned):
    job_id = zoned.job({"cron": "0,45 8 * * *", "timezone": VANCOUVER}, "2026-11-02T12:00")
    zoned.clock("2026-11-02T16:00:05")
    assert zoned.claim().queued == 1  # 08:00 by the old data; by the new ones 09:00, and 08:45 has passed

    zoned.activate()

    assert zoned.due(job_id) == utc("2026-11-02T15:45")
    assert zoned.claim("new").queued == 1
    assert zoned.fired(job_id) == ["02 15:45", "02 16:00"]
    assert zoned.due(job_id) == utc("2026-11-03T15:00")


def test_a_gap_or_an_overlap_that_comes_up_or_goes_is_planned_as_the_job_says(zoned):
    by_rule = {
        rule: zoned.job(
            {"cron": "30 1 * * *", "timezone": VANCOUVER, "dst_overlap": rule}, "2026-10-31T12:00"
        )
        for rule in ("first", "last", "both")
    }
    zoned.activate()
    assert {rule: zoned.due(job_id) for rule, job_id in by_rule.items()} == dict.fromkeys(
        by_rule, utc("2026-11-01T08:30")
    )
    zoned.activate("old")
    passes = {"first": "2026-11-01T08:30", "last": "2026-11-01T09:30", "both": "2026-11-01T08:30"}
    assert {rule: zoned.due(job_id) for rule, job_id in by_rule.items()} == {
        rule: utc(at) for rule, at in passes.items()
    }


def test_a_gap_that_is_no_more_gives_the_local_time_its_place_again(zoned):
    gap = zoned.job({"cron": "30 2 * * *", "timezone": VANCOUVER}, "2027-03-13T20:00")
    assert zoned.due(gap) == utc("2027-03-14T10:00"), "runs after the gap"
    zoned.activate()
    assert zoned.due(gap) == utc("2027-03-14T09:30"), "02:30, which exists now"
    zoned.activate("old")
    assert zoned.due(gap) == utc("2027-03-14T10:00")


def test_the_instant_of_a_paused_job_moves_and_goes_on_waiting(zoned):
    job_id = zoned.job(AT_EIGHT, "2026-11-01T17:00", state="paused", held=True)

    (moved,) = zoned.activate().moved_jobs

    assert moved.paused
    assert (zoned.due(job_id), zoned.timer(job_id)["fire_at"]) == (utc("2026-11-02T15:00"), NEVER)


def test_a_union_moves_as_its_members_do(zoned):
    members = [{"cron": "0 8 * * *"}, {"cron": "30 8 * * *"}, {"at": "2026-11-02T15:10:00Z"}]
    job_id = zoned.job({"any": members, "timezone": VANCOUVER}, "2026-11-01T17:00")
    assert zoned.due(job_id) == utc("2026-11-02T15:10")
    zoned.activate()
    due = []
    for at in ("15:00", "15:10", "15:30"):
        due.append(zoned.due(job_id))
        zoned.clock(f"2026-11-02T{at}:05")
        assert zoned.claim("new").queued == 1
    assert due == [utc("2026-11-02T15:00"), utc("2026-11-02T15:10"), utc("2026-11-02T15:30")]


def test_a_recurrence_set_moves(zoned):
    document = {"rrule": "FREQ=DAILY;COUNT=60", "dtstart": "2026-10-01T08:00:00", "timezone": VANCOUVER}
    job_id = zoned.job(document, "2026-11-01T17:00")
    zoned.activate()
    assert zoned.due(job_id) == utc("2026-11-02T15:00")


def test_jitter_is_that_of_the_new_instant(zoned):
    job_id = zoned.job({**AT_EIGHT, "jitter_seconds": 600}, "2026-11-01T17:00")
    zoned.activate()
    timer = zoned.timer(job_id)
    schedule = load_schedule(zoned.world.value("select schedule from jobs where id = %s", job_id))
    assert timer["scheduled_for"] == utc("2026-11-02T15:00")
    assert timer["fire_at"] == Jitter(schedule, job_id.bytes).fire_at(timer["scheduled_for"])
    assert timer["fire_at"] > timer["scheduled_for"]


def test_jobs_of_zones_that_did_not_change_are_left_as_they_are(zoned):
    untouched = [
        zoned.job({"cron": "0 8 * * *", "timezone": "America/New_York"}, "2026-11-01T17:00"),
        zoned.job({"cron": "0 8 * * *", "timezone": LOS_ANGELES, "jitter_seconds": 60}, "2026-11-01T17:00"),
        zoned.job({"cron": "0 * * * *", "timezone": VANCOUVER}, "2026-11-01T17:00"),
        zoned.job({"cron": "0 8 * * *", "timezone": "UTC"}, "2026-11-01T17:00"),
    ]
    places = "select job_id, ctid::text, xmin::text from timers order by job_id"
    before = zoned.world.rows(places)

    report = zoned.activate()

    assert (report.timers, report.moved, report.skipped) == (3, 0, 0)
    assert zoned.world.rows(places) == before
    assert len(before) == len(untouched)


def test_a_schedule_that_ends_before_its_moved_instant_is_completed_by_the_claim(zoned):
    zoned.world.db.execute("delete from zone_data")
    zoned.activate("new")
    job_id = zoned.job({**AT_EIGHT, "end": "2026-11-02T15:30:00Z"}, "2026-11-01T17:00", by="new")
    (moved,) = zoned.activate("old").moved_jobs
    assert (moved.was, moved.at, moved.at_local) == (utc("2026-11-02T15:00"), None, None)
    assert zoned.claim("old").claimed == 1
    assert zoned.fired(job_id) == []
    assert zoned.world.value("select state from jobs where id = %s", job_id) == "completed"


def test_a_job_that_intake_of_another_version_took_in_is_planned_by_the_claim(zoned):
    job_id = zoned.job(AT_EIGHT, "2026-11-01T17:00", by="new", active=False)
    assert zoned.due(job_id) == utc("2026-11-01T17:00"), "only a place"
    zoned.clock("2026-11-01T17:00:01")
    assert zoned.activate().moved == 0
    assert zoned.claim("new").claimed == 1
    assert zoned.due(job_id) == utc("2026-11-02T15:00")
    assert zoned.fired(job_id) == []


def test_a_process_with_other_zone_data_claims_what_has_no_zone_and_nothing_else(zoned):
    in_zone = zoned.job(AT_EIGHT, "2026-11-01T12:00")
    plain = zoned.job({"cron": "0 16 * * *", "timezone": "UTC"}, "2026-11-01T12:00")
    zoned.activate()
    zoned.clock("2026-11-01T16:00:05")
    assert zoned.claim("old").claimed == 0
    assert zoned.claim("old", kind=TimerKind.PLANNED).queued == 1
    assert (zoned.fired(in_zone), zoned.fired(plain)) == ([], ["01 16:00"])
    assert zoned.claim("new").queued == 1
    assert zoned.fired(in_zone) == ["01 15:00"]


def test_what_waits_or_is_queued_is_left_alone(zoned):
    job_id = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    zoned.clock("2026-11-02T16:00:05")
    zoned.claim()
    before = zoned.world.runs_of(job_id)
    zoned.activate()
    assert zoned.world.runs_of(job_id) == before


def test_a_dry_run_tells_the_same_and_changes_nothing(zoned):
    job_id = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    holder = zoned.world.another()
    with holder.transaction():
        change_time_facts(holder)  # somebody else is at it: looking waits for nobody
        foreseen = zoned.activate(dry_run=True)
    assert (foreseen.moved, foreseen.activated_at) == (1, None)
    assert zoned.due(job_id) == utc("2026-11-02T16:00")
    assert active_zone_data(zoned.world.db) == OLD_VERSION
    assert [release.version for release in zone_data.history(zoned.world.db)] == [OLD_VERSION]
    assert zoned.activate().moved_jobs == foreseen.moved_jobs


def test_activating_what_is_active_does_nothing(zoned):
    zoned.job(AT_EIGHT, "2026-11-01T17:00")
    first = zoned.activate()
    again = zoned.activate()
    assert (again.was_active, again.timers, again.activated_at) == (True, 0, None)
    assert zone_data.history(zoned.world.db)[0].activated_at == first.activated_at


def test_a_job_that_cannot_be_planned_is_told_and_stops_nobody(zoned):
    good = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    gone = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    damaged = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    unknown = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    world = zoned.world
    world.db.execute("delete from jobs where id = %s", [gone])
    world.db.execute("""update jobs set schedule = '{"cron": "nonsense"}' where id = %s""", [damaged])
    world.db.execute(
        """update jobs set schedule = schedule || '{"timezone": "Europe/Nowhere"}' where id = %s""", [unknown]
    )

    report = zoned.activate()

    assert (report.timers, report.moved, report.skipped) == (4, 1, 3)
    assert {job.job_id for job in report.skipped_jobs} == {gone, damaged, unknown}
    assert all(job.reason for job in report.skipped_jobs)
    assert zoned.due(good) == utc("2026-11-02T15:00")
    assert zoned.due(damaged) == utc("2026-11-02T16:00")


def test_an_activation_waits_for_claims_under_way_and_none_plans_with_the_old_data_after_it(zoned):
    job_id = zoned.job(AT_EIGHT, "2026-11-02T12:00")
    world = zoned.world
    zoned.clock("2026-11-02T16:00:05")
    claimer, activator = world.another(), world.another()
    done: list[object] = []
    with planning_with(None):  # one process's data for both threads: the claim below has planned already
        with claimer.transaction():
            assert share_time_facts(claimer), "the claim is under way"
            world_claim = threading.Thread(target=lambda: done.append(zone_data.activate(activator)))
            world_claim.start()
            waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            until(world, waiting, 1)
            # Whoever comes now does not slip in between, with whichever version.
            assert not share_time_facts(world.db)
        world_claim.join(30)
    assert len(done) == 1
    assert zoned.claim("old").claimed == 0, "its version is not the active one any more"
    assert zoned.due(job_id) == utc("2026-11-02T15:00")
    assert zoned.claim("new").queued == 1
    assert zoned.fired(job_id) == ["02 15:00"]


class Slow:
    """A planning that is under way until it is told to go on."""

    def __init__(self, planner: Planner) -> None:
        self.zone_data = planner.zone_data
        self._planner = planner
        self.begun, self.go_on = threading.Event(), threading.Event()

    def prepare(self, connection, timers) -> None:
        self._planner.prepare(connection, timers)
        self.begun.set()
        assert self.go_on.wait(20)

    def __call__(self, timer):
        return self._planner(timer)


def test_a_claim_that_is_planning_when_an_activation_comes_ends_first_and_its_local_time_is_done(zoned):
    job_id = zoned.job(AT_EIGHT, "2026-11-02T12:00")
    world = zoned.world
    zoned.clock("2026-11-02T16:00:05")
    with planning_with(zoned.old):
        plan = Slow(zoned.planner(zoned.old))
        # Its schedule is read with the old data, as in a process that has no others.
        plan._planner._schedules.read(world.value("select schedule::text from jobs where id = %s", job_id))
    how = {"kind": TimerKind.ZONED, "plan": plan, "topics": TOPICS, "install_shards": SHARDS}
    claimer, activator = world.another(), world.another()
    with planning_with(None):
        claim = threading.Thread(
            target=lambda: claims.claim_planned(claimer, Lane.NORMAL, EVERY_SHARD, 8000, **how)
        )
        claim.start()
        assert plan.begun.wait(20)
        change = threading.Thread(target=lambda: zone_data.activate(activator))
        change.start()
        until(world, "select count(*) from pg_locks where locktype = 'advisory' and not granted", 1)
        plan.go_on.set()
        claim.join(20)
        change.join(20)
    (run,) = world.runs_of(job_id)
    planned_with = world.value("select version from zone_data where id = %s", run["zone_data"])
    assert (run["scheduled_for"], planned_with) == (utc("2026-11-02T16:00"), OLD_VERSION)
    assert active_zone_data(world.db) == NEW_VERSION
    assert zoned.due(job_id) == utc("2026-11-03T15:00")
    assert zoned.claim("new").claimed == 0


def test_claims_and_activations_that_race_fire_each_local_time_once(zoned):
    """A claimer of each version and changes to and fro, over a few days of a job that fires every day."""
    world = zoned.world
    jobs = [zoned.job(AT_EIGHT, "2026-10-29T12:00") for _ in range(20)]
    claimer = world.another()
    hour = utc("2026-10-29T14:00")
    for step in range(24 * 6):
        zoned.clock((hour + timedelta(hours=step, seconds=5)).isoformat()[:19])
        by, other = ("old", "new") if step % 3 else ("new", "old")
        zoned.claim(by, connection=claimer)
        if step % 5 == 0:
            zoned.activate(other)
        zoned.claim(other, connection=claimer)
    versions = dict(world.db.execute("select id, version from zone_data").fetchall())
    for job_id in jobs:
        local = [local_time(run, versions[run["zone_data"]], zoned.old) for run in world.runs_of(job_id)]
        assert len(local) == len(set(local))
        assert [at.date().isoformat() for at in local] == [
            *("2026-10-29", "2026-10-30", "2026-10-31", "2026-11-01", "2026-11-02", "2026-11-03")
        ]
        assert {at.hour for at in local} == {8}


def local_time(run, version: str, old: Path) -> datetime:
    data = ZoneData.from_directory(old) if version == OLD_VERSION else ZoneData.packaged()
    return data.zone(VANCOUVER).local(run["scheduled_for"])


def until(world, query: str, value: int) -> None:
    give_up = threading.Event()
    for _ in range(1000):
        if world.value(query) == value:
            return
        give_up.wait(0.01)
    raise AssertionError(f"never {value}: {query}")


def test_a_pause_that_comes_in_between_is_kept(zoned, monkeypatch):
    job_id = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    other = zoned.world.another()
    move = zone_data._move

    def paused_just_before(connection: psycopg.Connection, changes) -> None:
        other.execute("update timers set fire_at = %s where job_id = %s", [NEVER, job_id])
        move(connection, changes)

    monkeypatch.setattr(zone_data, "_move", paused_just_before)
    zoned.activate()
    assert (zoned.due(job_id), zoned.timer(job_id)["fire_at"]) == (utc("2026-11-02T15:00"), NEVER)


def test_many_jobs_are_moved_in_batches_and_the_report_counts_all_of_them(zoned, monkeypatch):
    first = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    zoned.world.copies(first, 99)
    monkeypatch.setattr(zone_data, "_BATCH", 30)
    monkeypatch.setattr(zone_data, "MAX_LISTED", 10)
    seen: list[int] = []
    report = zoned.activate(progress=seen.append)
    assert (report.timers, report.moved, len(report.moved_jobs)) == (100, 100, 10)
    assert seen == [30, 60, 90, 100] * 2
    assert zoned.world.column("select distinct scheduled_for from timers") == [utc("2026-11-02T15:00")]


@pytest.fixture
def command(zoned, tmp_path, monkeypatch):
    """Runs `noonmark zones` with the packaged data; a sentence is raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOONMARK_DATABASE_URL", zoned.world.url)

    def run(*arguments, app=zones.app, code=0):
        with planning_with(None):
            result = CliRunner().invoke(app, arguments)
        if isinstance(result.exception, CliError):
            raise result.exception
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


def test_the_command_shows_what_is_active_and_exits_1_where_it_is_another_version(zoned, command):
    zoned.job(AT_EIGHT, "2026-11-01T17:00")
    shown = command("show", code=1)
    assert f"the active zone data are {OLD_VERSION}, but this process has {NEW_VERSION}" in shown.stderr
    told = json.loads(command("show", "--json", code=1).stdout)
    assert (told["active"], told["this_process"], told["zoned_jobs"]) == (OLD_VERSION, NEW_VERSION, 1)
    assert OLD_VERSION in command("check", app=database.app, code=1).stdout
    command("activate", "--yes")
    assert json.loads(command("show", "--json").stdout)["problem"] is None
    command("check", app=database.app)


def test_the_command_lists_the_moved_jobs_with_both_local_times(zoned, command):
    job_id = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    dry = command("activate", "--dry-run").stdout
    assert f"{job_id}" in dry
    assert (
        "2026-11-02T16:00:00Z  2026-11-02T15:00:00Z  Mon 2026-11-02 09:00:00  Mon 2026-11-02 08:00:00" in dry
    )
    assert "1 would move" in dry
    told = json.loads(command("activate", "--yes", "--json").stdout)
    assert (told["moved"], told["version"], told["dry_run"]) == (1, NEW_VERSION, False)
    assert told["moved_jobs"][0]["at_local"] == "2026-11-02T08:00:00"
    assert told["moved_jobs"][0]["at"] == "2026-11-02T15:00:00Z"
    assert "already active" in command("activate", "--yes").stdout


def test_a_dry_run_that_would_break_jobs_counts_them_and_exits_1(zoned, command):
    job_id = zoned.job(AT_EIGHT, "2026-11-01T17:00")
    zoned.world.db.execute(
        """update jobs set schedule = schedule || '{"timezone": "Europe/Nowhere"}' where id = %s""", [job_id]
    )
    done = command("activate", "--dry-run", code=1)
    assert done.stdout.rstrip().endswith("1 jobs with a time zone checked, 0 would move, 1 would break")
    assert json.loads(command("activate", "--dry-run", "--json", code=1).stdout)["skipped"] == 1
    assert command("activate", "--yes").stdout.rstrip().endswith("0 moved, 1 cannot be planned")


def test_the_command_asks_nobody_who_is_not_there(command):
    with pytest.raises(CliError, match="pass --yes") as refused:
        command("activate")
    assert refused.value.code is ExitCode.USAGE


def test_the_command_warns_of_older_data_and_reads_the_directory_of_the_settings(zoned, command, monkeypatch):
    command("activate", "--yes")
    monkeypatch.setenv("NOONMARK_ZONE_DATA_DIR", str(zoned.old))
    done = command("activate", "--yes")
    assert f"{OLD_VERSION} are older than {NEW_VERSION}" in done.stderr
    assert active_zone_data(zoned.world.db) == OLD_VERSION


def test_a_directory_that_holds_no_zone_data_is_refused_with_a_sentence(command, tmp_path, monkeypatch):
    monkeypatch.setenv("NOONMARK_ZONE_DATA_DIR", str(tmp_path / "nothing"))
    result = CliRunner().invoke(zones.app, ["show"])
    problem = explain(result.exception)
    assert problem is not None
    assert problem.code is ExitCode.USAGE
    assert "NOONMARK_ZONE_DATA_DIR" in str(problem)
    assert "have no version" in str(problem)
    with pytest.raises(CliError, match="NOONMARK_ZONE_DATA_DIR: zone data at") as refused:
        use_named_zone_data()
    assert refused.value.code is ExitCode.USAGE


def test_commands_without_settings_use_the_named_directory_too(zoned, monkeypatch):
    with planning_with(None):
        use_named_zone_data()
        assert zone_data_version() == NEW_VERSION
        monkeypatch.setenv("NOONMARK_ZONE_DATA_DIR", str(zoned.old))
        use_named_zone_data()
        assert zone_data_version() == OLD_VERSION
