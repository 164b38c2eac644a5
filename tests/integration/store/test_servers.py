"""Every Postgres from 15 on: the schema is made, and a run goes its way from timer to outcome."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from tests.integration.store.world import EVERY_SHARD, SHARDS, TOPICS, open_world, outcome
from tests.support.stack import Postgres

from noonmark.core.ids import uuid7
from noonmark.core.states import Lane, RunState
from noonmark.devstack.postgres.server import BIN_VARIABLE, start_postgres
from noonmark.settings import Settings
from noonmark.store.claims import claims
from noonmark.store.maintenance import housekeeping
from noonmark.store.migrations.migrate import MINIMUM_SERVER, SchemaError, migrate, status
from noonmark.store.outbox import relay
from noonmark.store.runs import leases, worker_lease

DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@pytest.fixture(
    params=[folder.parent for folder in DEBIAN] or [None], ids=lambda p: p.parent.name if p else "none"
)
def debian_url(request, server_dir: Path, monkeypatch) -> Iterator[str]:
    if request.param is None:
        pytest.skip("no Postgres of Debian is installed")
    monkeypatch.setenv(BIN_VARIABLE, str(request.param))
    server = start_postgres(server_dir / f"debian-{uuid7().hex}", settings={"shared_buffers": "32MB"})
    yield server.url
    server.stop()


def go_all_the_way(url: str) -> None:
    with open_world(url) as world:
        worker = world.worker()
        jobs = world.due_once(60)

        queued = sum(claims.claim_once(world.db, lane, EVERY_SHARD, 100).queued for lane in Lane)
        rows = relay.read(world.db, EVERY_SHARD, 100)
        relay.delete(world.db, rows)
        ids = [row.run_id for row in rows if row.run_id is not None]
        started = world.start(worker, ids)
        fine, failed, *rest = started
        world.record(
            worker,
            [
                outcome(fine, result='{"ok": true}'),
                outcome(failed, RunState.RETRYING, error="boom", retry_seconds=0.0),
                *[outcome(run) for run in rest],
            ],
            {run.batch_id for run in started},
        )
        retried = sum(claims.claim_retries(world.db, lane, EVERY_SHARD, 100).queued for lane in Lane)
        (again,) = world.start(worker, [failed.id])
        worker_lease.leave(world.db, worker)
        lost = leases.run_pass(world.db, TOPICS, shards=SHARDS, gap_seconds=5).lost
        report = housekeeping.run_housekeeping(world.db, Settings())

        assert queued == len(jobs) == len(ids)
        assert {run.job_id for run in started} == set(jobs)
        assert retried == 1
        assert again.attempt == 2
        assert [run.id for run in lost] == [failed.id]
        assert world.value("select count(*) from runs where state = 'succeeded'") == len(jobs) - 1
        assert world.run(fine.id)["result"] == {"ok": True}
        # Ids made by Postgres rise with time, whoever brings the function: keys made together lie together.
        assert (
            world.value("select min(substring(id::text, 15, 1)) || max(substring(id::text, 15, 1)) from runs")
            == "77"
        )
        stamps = world.column(
            "select abs(('x' || replace(left(id::text, 13), '-', ''))::bit(48)::bigint - extract(epoch from now()) * 1000) from runs"
        )
        assert max(stamps) < timedelta(minutes=5).total_seconds() * 1000
        assert report.days_kept_unfinished == 0


def test_a_run_goes_all_the_way_on_the_server_of_these_tests(database_url):
    go_all_the_way(database_url)


def test_a_run_goes_all_the_way_on_the_servers_of_debian(debian_url):
    migrate(debian_url)
    migrate(debian_url)

    found = status(debian_url)
    assert found.problems == []
    assert found.server_version >= MINIMUM_SERVER
    assert found.shards == SHARDS
    go_all_the_way(debian_url)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_with_another_encoding_is_refused_with_what_to_do(
    postgres_server: Postgres, encoding: str
) -> None:
    name = f"encoded_{uuid4().hex[:12]}"
    postgres_server.run(f"create database {name} encoding '{encoding}' locale 'C' template template0")
    try:
        for use in (migrate, status):
            with pytest.raises(
                SchemaError, match=rf"has the encoding {encoding}; noonmark needs UTF8: create"
            ):
                use(postgres_server.url_of(name))
    finally:
        postgres_server.run(f"drop database {name}")
