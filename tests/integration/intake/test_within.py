"""What a request may be about: jobs and runs of other namespaces are not there for it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from tests.integration.intake.test_submission_auth import key_for
from tests.integration.intake.world import World, create, event, nightly

from noonmark.auth.authenticator import Authenticator
from noonmark.auth.key_cache import KeyCache
from noonmark.core.access.submission_signature import SignedEvent, signature_header
from noonmark.intake.authorization import Authorizer, BatchContext, Unauthorized
from noonmark.kafka.consumers.records import Record
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, parse_event, render_structured
from noonmark.schemas.events.submissions import CREATE, CancelRuns
from noonmark.settings import Settings
from noonmark.store.access.api_keys import revoke_key
from noonmark.store.jobs.submit import EventRef, Reason, Request, Status

pytestmark = pytest.mark.postgres

ACME, LAB = frozenset({"acme"}), frozenset({"lab"})


def cancel_runs(*run_ids: UUID, within: frozenset[str] | None) -> Request:
    return Request(CancelRuns(run_ids), EventRef("/tests", str(uuid4()), None), within)


@pytest.mark.parametrize("kind", ["update", "cancel", "pause", "resume", "trigger"])
def test_a_job_elsewhere_is_not_found_just_as_one_that_is_not_there(world: World, kind: str) -> None:
    job_id = world.job_id(nightly(namespace="acme"))
    before = world.job(job_id)
    document = {"type": "python", "handler": "a.b", "schedule": "@daily"} if kind == "update" else {}
    nobody = uuid4()

    there = world.one(event(kind, job_id=str(job_id), **document)._replace(within=LAB))
    not_there = world.one(event(kind, job_id=str(nobody), **document)._replace(within=LAB))

    assert there.reason is not_there.reason is Reason.NOT_FOUND
    assert str(there.refused).replace(str(job_id), "ID") == str(not_there.refused).replace(str(nobody), "ID")
    assert there[:3] == not_there[:3]
    assert world.job(job_id) == before
    assert world.one(event(kind, job_id=str(job_id), **document)._replace(within=ACME)).status is (
        Status.ACCEPTED
    )


def test_nothing_is_locked_of_a_job_elsewhere(world: World) -> None:
    """Whoever may not touch a job cannot hold up those who may."""
    job_id = world.job_id(nightly(namespace="acme"))
    with world.connection.transaction():
        world.take(event("pause", job_id=str(job_id))._replace(within=LAB))
        locks = "select count(*) from pg_locks where pid = pg_backend_pid() and mode = 'RowShareLock'"
        assert world.row(locks)["count"] == 0


def test_runs_are_cancelled_all_within_or_none(world: World) -> None:
    ours = world.run(world.job_id(create(namespace="acme")))["id"]
    theirs = world.run(world.job_id(create(namespace="lab")))["id"]

    mixed = world.one(cancel_runs(ours, theirs, within=ACME))
    unknown = world.one(cancel_runs(ours, nobody := uuid4(), within=ACME))
    assert mixed.reason is unknown.reason is Reason.NOT_FOUND
    assert str(mixed.refused).replace(str(theirs), "ID") == str(unknown.refused).replace(str(nobody), "ID")
    assert {row["state"] for row in world.rows("select state from runs")} == {"queued"}

    assert world.one(cancel_runs(ours, within=ACME)).status is Status.ACCEPTED
    assert world.one(cancel_runs(theirs, within=ACME | LAB)).status is Status.ACCEPTED
    assert {row["state"] for row in world.rows("select state from runs")} == {"cancelled"}


def test_events_of_two_namespaces_may_have_one_name(world: World) -> None:
    def named(scope: str) -> Request:
        request = create(name="x", namespace=scope)
        return request._replace(event=EventRef("/shop", "order-1", None, scope))

    first, second, again = world.take(named("acme"), named("lab"), named("acme"))
    assert [one.status for one in (first, second, again)] == [
        Status.ACCEPTED,
        Status.ACCEPTED,
        Status.DUPLICATE,
    ]


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_revoked_key_is_refused_within_five_seconds(world: World) -> None:
    key = key_for(world.url, "acme")
    clock, authority = Clock(), Authenticator(world.url, Settings())
    authority._keys = KeyCache(world.url, clock=clock)
    door = Authorizer({}, authority)
    value = render_structured(id="e", source="/s", type=CREATE, data={})
    signed = SignedEvent("/s", "e", CREATE, None, value)
    at = world.row("select extract(epoch from noonmark_now())::float8 as now")["now"]
    header = signature_header(key, signed, namespace="acme", now=at)
    record = Record("t.submissions", 0, 0, 1, None, value, 0, [*STRUCTURED_HEADERS, header])

    def admit() -> str:
        try:
            return door.authorize(record, parse_event(value, None), BatchContext(at)).namespace
        except Unauthorized as refused:
            return str(refused)

    assert admit() == "acme"
    assert revoke_key(world.connection, key.key_id)
    clock.now += timedelta(seconds=5).total_seconds()
    assert "its key is unknown, revoked" in admit()
    authority.close()
