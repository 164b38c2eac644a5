"""Runs over the API: listed by any filter, read, and who sees what of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from tests.integration.store.world import TOPICS, outcome

from noonmark.core.states import Lane, RunState
from noonmark.store.outcomes.attempt_logs import AttemptLog
from noonmark.store.outcomes.extras import OutcomeExtras
from noonmark.store.runs import finish
from noonmark.store.views import runs as run_views
from noonmark.store.views.runs import RunSearch, search_runs

pytestmark = pytest.mark.postgres

HERE = "/v1/runs?namespace=tests"


def ids(answer):
    return [item["id"] for item in answer.json()["items"]]


def walk(api, path, **options):
    """All pages of a listing, their ids in order, and how many pages that took."""
    found, pages, cursor = [], 0, ""
    while True:
        answer = api("GET", path + cursor, 200, **options).json()
        found += [item["id"] for item in answer["items"]]
        pages += 1
        if answer["next_cursor"] is None:
            return found, pages
        cursor = f"&cursor={answer['next_cursor']}"


def failed(world, **more):
    """A run that has died, with an error and a log."""
    worker = world.worker()
    (run,) = world.started(worker)
    ended = outcome(
        run, RunState.DEAD, reason="retries_exhausted", error="the card 4711 was declined", **more
    )
    log = AttemptLog()
    log.stdout.add(b"dear customer\n")
    ended.extras = OutcomeExtras(log=log)
    with world.db.transaction():
        finish.record(world.db, worker, TOPICS, [ended], [], shards=4)
    return run


def test_a_page_is_followed_by_the_next_until_nothing_is_left(api, world):
    job = world.job()
    made = [world.put_run(job_id=job, request_id=str(n)) for n in range(7)]

    found, pages = walk(api, f"{HERE}&limit=3")

    assert found == [str(run) for run in reversed(made)]
    assert pages == 3


def test_every_filter_narrows_down(api, world):
    now = world.now()
    mine, other = world.job(), world.job(lane=Lane.HIGH)
    waiting = world.put_run("waiting", job_id=mine, reason="paused", request_id="a")
    skipped = world.put_run(
        "skipped", job_id=mine, reason="overlap", scheduled_for=now - timedelta(hours=3), request_id="b"
    )
    manual = world.put_run(job_id=other, lane=Lane.HIGH, origin="manual", request_id="c")

    for query, expected in {
        "state=waiting": [waiting],
        "state=waiting&state=skipped": [skipped, waiting],
        "reason=overlap": [skipped],
        "priority=high": [manual],
        "priority=2": [manual],
        "priority=normal&priority=low": [skipped, waiting],
        "pool=other": [],
        "origin=manual": [manual],
        f"job_id={mine}": [waiting, skipped],
        f"job_name={other}": [manual],
        "job_name=nobody": [],
        f"job_id={uuid4()}": [],
        f"since={(now - timedelta(hours=1)).isoformat().replace('+', '%2B')}": [manual, waiting],
        f"until={(now - timedelta(hours=1)).isoformat().replace('+', '%2B')}": [skipped],
        "state=dead": [],
        "state=running": [],
    }.items():
        assert ids(api("GET", f"{HERE}&{query}", 200)) == [str(run) for run in expected], query


def test_a_filter_that_is_none_is_told(api):
    for query in (
        *("state=lost", "priority=urgent", "since=yesterday", "since=2026-01-01T00:00:00", "limit=201"),
        *("reason=%00", "since=0001-01-01T00:00:00Z"),
    ):
        problem = api("GET", f"{HERE}&{query}", 400).json()
        assert problem["type"] == "urn:noonmark:problem:malformed", query


def test_runs_under_way_are_found_by_their_workers_batches(api, world):
    worker = world.worker()
    started = world.started(worker, 3)
    world.put_run(request_id="queued")

    found = ids(api("GET", f"{HERE}&state=running", 200))

    assert found == sorted((str(run.id) for run in started), reverse=True)


def test_a_window_without_any_fit_says_where_to_go_on(world):
    job, other = world.job(), world.job()
    oldest = world.put_run("waiting", job_id=job, reason="paused", request_id="x")
    world.db.execute(
        """insert into runs (id, scheduled_for, job_id, job_version, fence, lane, shard, state, finished_at, origin,
                             request_id, namespace, pool)
           select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint + n), 12, '0') || '7000800000000000000f')::uuid,
                  now(), %s, 1, 1, 1, 0, 'skipped', now(), 'manual', n::text, 'tests', 'default'
           from generate_series(1, 60) n""",
        [other],
    )
    with run_lists_of(world) as connection:
        wanted = RunSearch("tests", states=[RunState.WAITING, RunState.RETRYING])
        page = search_runs(connection, wanted, limit=5, window=20)
        assert page.rows == []
        assert page.place is not None
        pages = 1
        while page.place is not None:
            page = search_runs(connection, wanted, limit=5, place=page.place, window=20)
            pages += 1
        assert [row["id"] for row in page.rows] == [oldest]
        assert pages >= 3


def run_lists_of(world):
    from noonmark.store.views.paging import reader  # noqa: PLC0415

    return reader(world.url)


def test_of_one_job_a_page_walks_its_instants(world):
    job = world.job(recurring=True)
    now = world.now()
    for n in range(30):
        world.put_run("skipped", job_id=job, reason="overlap", scheduled_for=now - timedelta(minutes=30 * n))

    with run_lists_of(world) as connection:
        for states, expected in ([], 30), ([RunState.SKIPPED], 30), ([RunState.RETRYING], 0):
            wanted = RunSearch("tests", job=job, states=states)
            page = search_runs(connection, wanted, limit=4, window=10)
            rows = list(page.rows)
            while page.place is not None:
                page = search_runs(connection, wanted, limit=4, place=page.place, window=10)
                rows += page.rows
            due = [row["scheduled_for"] for row in rows]
            assert len(due) == expected
            assert due == sorted(due, reverse=True)


def test_the_latest_run_of_a_job_comes_first_under_both_names(api, world):
    job = world.job()
    now = world.now()
    late, early = (
        world.put_run(job_id=job, scheduled_for=now - timedelta(minutes=n), request_id=str(n)) for n in (1, 9)
    )
    for path in ("runs", "executions"):
        assert ids(api("GET", f"/v1/jobs/{job}/{path}", 200)) == [str(late), str(early)]
        assert api("GET", f"/v1/{path}/{late}", 200).json()["id"] == str(late)
    api("GET", f"/v1/jobs/{uuid4()}/runs", 404)


def test_a_run_is_read_with_its_attempts_and_logs_by_those_who_may(api, world, token):
    run = failed(world)

    full = api("GET", f"/v1/runs/{run.id}", 200)
    assert full.json()["error"] == "the card 4711 was declined"
    assert [one["outcome"] for one in full.json()["attempts"]] == ["failed"]
    assert full.headers["etag"]
    logs = api("GET", f"/v1/runs/{run.id}/logs", 200).json()
    assert logs["attempts"][0]["stdout"] == "dear customer\n"
    for accept in ("application/json", "application/*, text/plain;q=0.5", "*/*"):
        assert api("GET", f"/v1/runs/{run.id}/logs", 200, headers={"Accept": accept}).json() == logs
    refused = api("GET", f"/v1/runs/{run.id}/logs", 406, headers={"Accept": "application/xml"}).json()
    assert refused["type"] == "urn:noonmark:problem:not-acceptable"
    assert "application/json, text/plain or text/event-stream" in refused["detail"]
    text = api("GET", f"/v1/runs/{run.id}/logs?attempt=1", 200, headers={"Accept": "text/plain"})
    assert text.text == "== attempt 1, fence 1: stdout\ndear customer\n"
    assert text.headers["x-content-type-options"] == "nosniff"
    assert text.headers["content-type"].startswith("text/plain")

    viewer = token("viewer", "tests")
    seen = api("GET", f"/v1/runs/{run.id}", 200, key=viewer)
    assert "4711" not in seen.text
    assert seen.json()["error_hidden"]
    assert seen.json()["attempts"][0]["error_hidden"]
    assert "4711" not in api("GET", HERE, 200, key=viewer).text
    api("GET", f"/v1/runs/{run.id}/logs", 403, key=viewer)


def test_runs_of_others_answer_like_runs_that_are_not_there(api, world, token):
    run = failed(world)
    stranger = token("admin", "elsewhere")
    random = uuid4()

    for method, path in [
        ("GET", "/v1/runs/{}"),
        ("GET", "/v1/executions/{}/logs"),
        ("POST", "/v1/runs/{}/cancel"),
        ("POST", "/v1/runs/{}/retry"),
        ("GET", "/v1/dead-letters/{}"),
    ]:
        mine, nobodys = (api(method, path.format(one), 404, key=stranger).json() for one in (run.id, random))
        assert mine["detail"].replace(str(run.id), "X") == nobodys["detail"].replace(str(random), "X")
        assert mine["type"] == nobodys["type"]
    assert api("GET", "/v1/runs", 200, key=stranger).json()["items"] == []
    api("GET", HERE, 404, key=stranger)


# how Postgres executes the listings, as the role that is bound to one tenant


@pytest.fixture
def filled(database, world):
    """Many runs of one tenant, hardly any of another, on two days."""
    job = world.job(recurring=True)
    world.db.execute("select noonmark_make_day(current_date - 1)")
    world.db.execute(
        """insert into runs (id, scheduled_for, job_id, job_version, fence, lane, shard, state, finished_at, origin,
                             request_id, namespace, pool)
           select (lpad(to_hex(n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
                  now() - n %% 2 * interval '1 day', %s, 1, 1, 1, 0, 'succeeded', now(), 'manual', n::text,
                  case when n %% 1000 = 0 then 'small' else 'tests' end, 'default'
           from generate_series(1, 5000) n""",
        [job],
    )
    world.db.execute("analyze runs")
    return job


PLANNED = {
    "plain": RunSearch("tests"),
    "a small tenant": RunSearch("small"),
    "a state that nothing has": RunSearch("tests", states=[RunState.RETRYING]),
    "a reason": RunSearch("tests", reasons=["overlap"]),
    "a lane, a pool and an origin": RunSearch("tests", lanes=[Lane.LOW], pool="other", origin="event"),
    "waiting": RunSearch("tests", states=[RunState.WAITING]),
    "running": RunSearch("tests", states=[RunState.RUNNING]),
    "dead": RunSearch("tests", states=[RunState.DEAD]),
    "a name that nothing has": RunSearch("tests", job_name="nobody"),
    "a job": RunSearch("tests", job="the job"),
    "a job and a state": RunSearch("tests", job="the job", states=[RunState.RETRYING]),
}


def test_no_filter_reads_more_than_its_window(parts, filled):
    window = 100
    for name, wanted in PLANNED.items():
        if wanted.job is not None:
            wanted = replace(wanted, job=filled)  # noqa: PLW2901 - its id is known by now
        with parts.database.reading((wanted.namespace,)) as session:
            before = read_rows(session.raw)
            search_runs(session.sql, wanted, limit=50, window=window)
            read = read_rows(session.raw) - before

        # A row counts in its index and in its table: once where the window's end is sought, once where the
        # rows are looked at, and for what hangs on those that are shown.
        assert read <= 7 * window, f"{name}: {read} rows were read"


def read_rows(connection):
    """Rows that this transaction has read of the ledger, by index or without."""
    row = connection.execute(
        """select coalesce(sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid)), 0)
           from pg_class where relname ~ '^runs_[0-9]'"""
    ).fetchone()
    return row[0]


def test_the_window_is_the_documented_one():
    assert run_views.WINDOW == 10_000
