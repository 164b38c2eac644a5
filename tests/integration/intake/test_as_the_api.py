"""What the API does through the store works as its role, for one tenant, beside the same things of another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.integration.intake.world import LATER, SHARDS, TOPICS, World, event, open_world
from tests.support.settings_orders import set_calendar, set_max_in_flight

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.planning.backfill import BackfillMode, BackfillRange
from noonmark.core.states import ResumeChoice, RunState
from noonmark.schemas.events.envelope import parse_event, render_structured
from noonmark.schemas.events.submissions import parse_submission
from noonmark.store.backfills import requests as backfill_requests
from noonmark.store.database.scope import enter_scope
from noonmark.store.jobs.submit import Request, Result, Status, accept
from noonmark.store.limits import limits
from noonmark.store.namespaces import namespaces
from noonmark.store.namespaces import pauses as namespace_pauses
from noonmark.store.runs import cancel as run_cancel
from noonmark.store.runs import dead_letters
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.schedules import calendars
from noonmark.store.schedules.time_facts import read_time_facts

pytestmark = pytest.mark.postgres

MINE, OTHERS = "acme", "rival"
JOB = {"type": "python", "handler": "tests.noop", "namespace": MINE}
DATES = Calendar.parse({"dates": ["2026-12-25"]})
FIGURES = limits.Figures(max_running=1)


class Tenant:
    """Does everything as the API does for one tenant."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.connection = world.connection

    @contextmanager
    def scoped(self) -> Iterator[psycopg.Connection]:
        with self.connection.transaction():
            enter_scope(self.connection, [MINE])
            yield self.connection

    def take(self, kind: str, **data) -> Result:
        """Take in an order that came by no event, as those of the API do."""
        with self.scoped() as connection:
            facts = read_time_facts(connection)
            now = datetime.now(UTC)
            value = render_structured(
                id="x", source="/x", type=f"noonmark.job.{kind}.v1", sequence=None, data=data
            )
            submission = parse_submission(
                parse_event(value, None), now=now, ledger_floor=now - timedelta(days=30), facts=facts
            )
            request = Request(submission, None)
            taken = accept(
                connection, [request], shards=SHARDS, topics=TOPICS, known=self.world.known, facts=facts
            )
        return taken.results[0]

    def create(self, **data) -> Result:
        return self.take("create", **{**JOB, **data})


@pytest.fixture
def tenant(emptied_database: str) -> Iterator[Tenant]:
    with open_world(emptied_database) as world:
        yield Tenant(world)


@pytest.fixture
def foreign(tenant: Tenant) -> Result:
    """A recurring job of another tenant, with a run that waits to be started."""
    made = tenant.world.one(
        event("create", **{**JOB, "namespace": OTHERS, "name": "theirs", "schedule": "0 3 * * *"})
    )
    tenant.world.one(event("trigger", job_id=str(made.job_id)))
    return made


def test_a_job_lives_its_whole_life(tenant):
    made = tenant.create(name="mine", schedule="0 3 * * *", labels={"team": "x"})
    assert made.status is Status.ACCEPTED
    job = {"job_id": str(made.job_id)}

    for kind, more in (
        ("update", {**JOB, "name": "mine", "schedule": "0 4 * * *", "labels": {"team": "y"}}),
        ("trigger", {}),
        ("pause", {"reason": "x"}),
        ("resume", {"missed": "skip"}),
        ("cancel", {"reason": "x"}),
    ):
        assert tenant.take(kind, **job, **more).status is Status.ACCEPTED, kind
    assert tenant.world.job(made.job_id)["state"] == "cancelled"
    assert tenant.world.run(made.job_id)["state"] == "cancelled"


def test_jobs_of_one_time_are_made_now_and_later_on_days_that_are_missing(tenant):
    assert tenant.create(run_at=LATER).status is Status.ACCEPTED
    tenant.world.connection.execute(
        "drop table if exists "
        + tenant.world.row("select to_char(now() at time zone 'UTC', '\"runs_\"YYYYMMDD') as name")["name"]
    )

    now = tenant.create()

    assert now.status is Status.ACCEPTED
    assert tenant.world.run(now.job_id)["state"] == "queued"


def test_orders_about_anothers_job_find_none(tenant, foreign):
    before = tenant.world.job(foreign.job_id)
    for ref in ({"job_id": str(foreign.job_id)}, {"name": "theirs", "namespace": OTHERS}):
        for kind in ("pause", "resume", "trigger"):
            more = {"missed": "skip"} if kind == "resume" else {}
            assert tenant.take(kind, **ref, **more).status is Status.REJECTED, (kind, ref)
    assert tenant.take("cancel", job_id=str(foreign.job_id)).status is Status.REJECTED
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        tenant.create(namespace=OTHERS)

    assert tenant.world.job(foreign.job_id) == before
    assert tenant.world.run(foreign.job_id)["state"] == "queued"


def test_runs_are_cancelled_and_dead_ones_redriven_and_discarded(tenant, foreign):
    jobs = [tenant.create().job_id for _ in range(3)]
    for job in jobs[1:]:
        tenant.world.end(tenant.world.start(job), RunState.DEAD)
    with tenant.scoped() as connection:
        queued = [row[0] for row in connection.execute("select id from runs where state = 'queued'")]
        found = [run for run, _ in run_cancel.locate(connection, queued)]
        ended = run_cancel.cancel(connection, TOPICS, found, shards=SHARDS).ended
        letters = dead_letters.find(connection, DeadSelection())
        again = dead_letters.redrive(connection, TOPICS, letters[:1], shards=SHARDS)
        gone = dead_letters.discard(connection, TOPICS, letters[1:], reason="x", shards=SHARDS)

    assert (len(ended), again.done, gone.done) == (1, 1, 1)
    assert tenant.world.run(foreign.job_id)["state"] == "queued"


def test_calendars_limits_and_the_namespace_are_set_and_deleted(tenant):
    tenant.world.connection.execute("insert into namespaces (name) values (%s)", [OTHERS])
    number = tenant.world.row("select facts from install")["facts"]
    with tenant.scoped() as connection:
        set_calendar(connection, MINE, "days", DATES)
        limits.set_limit(connection, MINE, "api", FIGURES)
        namespaces.set_timezone(connection, MINE, "Europe/Berlin")
        set_max_in_flight(connection, MINE, 5)
        assert [row.name for row in calendars.list_calendars(connection)] == ["days"]
        assert [row.name for row in limits.list_limits(connection)] == ["api"]
        assert [row.name for row in namespaces.list_namespaces(connection)] == [MINE]
    assert tenant.world.row("select facts from install")["facts"] > number
    made = tenant.create(
        name="x", schedule={"cron": "0 3 * * *", "calendars": {"exclude": ["days"]}}, limits=["api"]
    )
    assert made.status is Status.ACCEPTED
    with tenant.scoped() as connection:
        longer = Calendar.parse({"dates": ["2026-12-25", "2026-12-26"]})
        assert set_calendar(connection, MINE, "days", longer).jobs == 1
    with tenant.scoped() as connection:
        assert namespace_pauses.mark_paused(connection, MINE, "x")
        assert namespace_pauses.pause_some(connection, MINE, [made.job_id])[0] == 1
        assert namespace_pauses.mark_resumed(connection, MINE)
        assert namespace_pauses.resume_some(connection, MINE, [made.job_id], ResumeChoice.SKIP)[0] == 1
    assert tenant.take("cancel", job_id=str(made.job_id)).status is Status.ACCEPTED
    with tenant.scoped() as connection:
        assert calendars.delete_calendar(connection, MINE, "days")
        assert limits.delete_limit(connection, MINE, "api")


def test_a_backfill_is_planned_started_and_cancelled(tenant):
    made = tenant.create(name="x", schedule="0 * * * *")
    now = tenant.world.row("select noonmark_now() as now")["now"]
    asked = BackfillRange(now - timedelta(hours=5), now - timedelta(hours=1))
    with tenant.scoped() as connection:
        planned = backfill_requests.plan(connection, made.job_id, asked, BackfillMode.ALL)
        started = backfill_requests.start(connection, planned, requested_by="me")
        assert backfill_requests.cancel(connection, started, reason="x").done


def test_facts_that_a_process_keeps_are_those_of_all_tenants(tenant):
    tenant.world.connection.execute(
        "insert into namespaces (name, timezone) values (%s, 'Asia/Tokyo')", [OTHERS]
    )
    limits.set_limit(tenant.connection, OTHERS, "api", FIGURES)

    with tenant.scoped() as connection:
        facts = read_time_facts(connection)
        assert namespaces.list_namespaces(connection) == []

    assert facts.limits_of(OTHERS) == {"api"}
    assert facts.zones[OTHERS] == "Asia/Tokyo"
