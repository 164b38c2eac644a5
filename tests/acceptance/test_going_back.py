"""This release on the schema of a later one, as after going back: its commands, its hook and its services work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import chart
from tests.support.cli import Called
from tests.support.cluster import SERVICES, Cluster
from tests.support.later_release import ADDS, REMOVES, REVISION, migrate_later
from tests.support.publish import Load


@pytest.mark.slow
def test_every_service_of_this_release_works_on_a_later_schema_that_only_adds(
    noonmark: Cluster, command: Callable[..., Called], tmp_path: Path
) -> None:
    noonmark.start(*SERVICES)
    before = Load()
    before.interval(5, noonmark.soon(3), 8)
    noonmark.take_in(before)
    migrate_later(noonmark.dsn, tmp_path, ADDS)
    for service in SERVICES:
        assert noonmark.node(service).stop() == 0
    noonmark.start(*SERVICES, "observer")
    noonmark.start("api", api_port="0")

    after = Load()
    after.now(50)
    after.once(50, noonmark.soon(1), spread_seconds=2)
    noonmark.take_in(after)
    noonmark.assert_clean(before, after)
    shown = json.loads(command("db", "check", "--json").stdout)
    assert (shown["schema"], shown["problems"], len(shown["notes"])) == (REVISION, [], 1)
    assert "of a later release; this release" in command("db", "check").stdout


@pytest.mark.slow
@pytest.mark.parametrize("values", ["many-pools", "no-hooks"])
def test_every_step_of_the_charts_job_succeeds_on_a_later_schema(
    noonmark: Cluster, command: Callable[..., Called], tmp_path: Path, values: str
) -> None:
    """The Job of an older chart: `helm upgrade` to it runs it as a hook, `helm rollback` without hooks as a Job."""
    migrate_later(noonmark.dsn, tmp_path, ADDS)
    (job,) = chart.of_kind(values, "Job").values()
    steps = [container["args"] for container in chart.containers(job["spec"]["template"]["spec"])]

    told = [command(*step).stdout for step in steps]

    assert steps[0][:2] == ["db", "migrate"]
    assert f"the schema is at {REVISION} of a later release; this release" in told[0]
    assert "there is nothing to migrate" in told[0]


@pytest.mark.slow
def test_a_later_schema_that_removes_something_is_refused_by_every_command_and_service(
    noonmark: Cluster, command: Callable[..., Called], tmp_path: Path
) -> None:
    migrate_later(noonmark.dsn, tmp_path, REMOVES)
    wanted = f"run a release with revision {REVISION} or later, or restore a backup"
    for step in (["db", "migrate"], ["db", "check"]):
        refused = command(*step, code=1)
        assert wanted in refused.stdout + refused.stderr
    node = noonmark.launch("trigger")
    node.expected_alive = False
    assert node.process.wait(60) == 2
    assert wanted in node.log()
