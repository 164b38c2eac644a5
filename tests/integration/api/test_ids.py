"""Ids by their first characters over the API: of each kind, and only what the credential can read."""

from __future__ import annotations

from uuid import UUID

import pytest

from noonmark.core.access.roles import Permission
from noonmark.schemas.api.ids import FoundId

pytestmark = pytest.mark.postgres

PREFIX = "01a227be"
IDS = {
    kind: f"{PREFIX}-{digit}de9-7001-9066-803d29ef2a93"
    for digit, kind in enumerate(("job", "run", "backfill", "alert"), 1)
}


@pytest.fixture
def one_of_each(world):
    """A job, a run, a backfill and an alert whose ids begin alike."""
    add = world.db.execute
    job = world.job(schedule={"cron": "0 9 * * *", "timezone": "UTC"}, recurring=True)
    run = world.put_run(job_id=job)
    add("update runs set id = %s, job_id = %s where id = %s", [IDS["run"], IDS["job"], run])
    add("update jobs set id = %s, name = 'nightly' where id = %s", [IDS["job"], job])
    add(
        """insert into backfills (id, job_id, namespace, pool, shard, job_version, schedule, mode, from_at, until_at,
                                  ended_to, state, total, created_at, updated_at)
           select %s, id, namespace, pool, shard, version, schedule, 'missing', now() - interval '2 days', now(),
                  '-infinity', 'running', 2, now(), now()
           from jobs where id = %s""",
        [IDS["backfill"], IDS["job"]],
    )
    add_alert(world, IDS["alert"], namespace="tests", job=IDS["job"])


def add_alert(world, new, *, namespace=None, job=None):
    world.db.execute(
        "insert into alerts (id, fingerprint, kind, severity, namespace, job_id, summary, raised_at, seen_at)"
        " values (%(id)s::text::uuid, %(id)s::text, 'late', 'warning', %(namespace)s, %(job)s, 'late', now(), now())",
        {"id": new, "namespace": namespace, "job": job},
    )


def found(api, query="", **options):
    """The kinds of what is found, and its ids."""
    items = api("GET", f"/v1/ids?prefix={PREFIX}{query}", 200, **options).json()["items"]
    return {one["kind"]: one["id"] for one in items}


def test_each_kind_is_found_and_without_one_jobs_and_runs(api, one_of_each):
    for kind, whole in IDS.items():
        (item,) = api("GET", f"/v1/ids?prefix={whole[:12]}&kind={kind}", 200).json()["items"]
        assert FoundId.model_validate(item).id == UUID(whole)
        assert (item["kind"], item["namespace"], item["job_name"]) == (kind, "tests", "nightly")
        assert found(api, f"&kind={kind}") == {kind: whole}
    assert found(api) == {kind: IDS[kind] for kind in ("job", "run")}


def test_only_what_is_in_a_state_is_found(api, one_of_each):
    for kind, state, other in (
        ("job", "active", "paused"),
        ("run", "queued", "dead"),
        ("backfill", "running", "done"),
        ("alert", "open", "resolved"),
    ):
        assert found(api, f"&kind={kind}&state={state}") == {kind: IDS[kind]}
        assert found(api, f"&kind={kind}&state={other}") == {}
    problem = api("GET", f"/v1/ids?prefix={PREFIX}&state=lost", 400).json()
    assert problem["detail"].startswith('query parameter state: "lost" is not allowed; expected active, ')
    assert problem["detail"].endswith(" or resolved")
    problem = api("GET", f"/v1/ids?prefix={PREFIX}&kind=limit", 400).json()
    assert problem["errors"][0]["expected"] == "job, run, backfill or alert"


@pytest.mark.parametrize(
    ("scope", "readable"),
    [
        (Permission.JOBS_READ, {"job", "backfill"}),
        (Permission.RUNS_READ, {"run", "alert"}),
        (Permission.WORKERS_READ, set()),
    ],
)
def test_a_kind_requires_what_its_own_route_requires(api, token, one_of_each, scope, readable):
    key = token("admin", "tests", scopes=frozenset({scope}))

    for kind, whole in IDS.items():
        route = {"job": "jobs", "run": "runs", "backfill": "backfills", "alert": "alerts"}[kind]
        status = 200 if kind in readable else 403
        problem = api("GET", f"/v1/ids?prefix={PREFIX}&kind={kind}", status, key=key).json()
        assert status == 200 or f"ids of the kind {kind} require" in problem["detail"]
        api("GET", f"/v1/{route}/{whole}", status, key=key)
    assert set(found(api, key=key)) == readable & {"job", "run"}


def test_what_is_in_other_namespaces_is_not_found(api, token, one_of_each):
    stranger = token("admin", "elsewhere")
    for kind in IDS:
        assert found(api, f"&kind={kind}", key=stranger) == {}


def test_an_alert_about_the_installation_is_found_by_those_who_can_read_all_namespaces(api, token, world):
    add_alert(world, IDS["alert"])

    (item,) = api("GET", f"/v1/ids?prefix={PREFIX}&kind=alert", 200).json()["items"]
    assert (item["namespace"], item["job_name"], item["state"]) == (None, None, "open")
    assert found(api, "&kind=alert", key=token("viewer", "*")) == {"alert": IDS["alert"]}
    assert found(api, "&kind=alert", key=token("admin", "tests")) == {}
