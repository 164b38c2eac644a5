"""The table of the outbox refuses what no run message can say: it would end the dispatcher that reads it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from tests.integration.store.world import World

from noonmark.core.ids import uuid7

COLUMNS: dict[str, Any] = {"slice": 0, "namespace": "tests", "pool": "default", "fence": 1}


def one(world: World) -> dict[str, Any]:
    ids = {"run_id": uuid7(), "job_id": uuid7(), "scheduled_for": world.now(), "job_version": 1}
    return {**COLUMNS, "lane": 1, **ids}


def several(world: World) -> dict[str, Any]:
    now = world.now()
    ids = {"run_ids": [uuid7(), uuid7()], "job_ids": [uuid7(), uuid7()]}
    return {**COLUMNS, "lane": 11, **ids, "instants": [now, now], "job_versions": [1, 2]}


def insert(world: World, row: dict[str, Any], change: dict[str, str]) -> None:
    names = [*row, "created_at"]
    values = [change.get(name, f"%({name})s") for name in row]
    world.db.execute(f"insert into outbox ({', '.join(names)}) values ({', '.join(values)}, now())", row)


def test_rows_with_one_run_and_with_several_are_taken(world: World) -> None:
    insert(world, one(world), {})
    insert(world, several(world), {})
    insert(world, {"slice": 0, "lane": 3, "topic": "t", "key": b"k", "value": b"v"}, {})
    assert world.count("outbox") == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("job_id", "null"),
        ("scheduled_for", "null"),
        ("scheduled_for", "'infinity'"),
        ("job_version", "0"),
        ("fence", "0"),
        ("fence", "null"),
        ("namespace", "null"),
        ("namespace", "''"),
        ("pool", "repeat('p', 129)"),
    ],
)
def test_a_row_with_one_run_that_no_message_can_say_is_refused(world: World, name: str, value: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        insert(world, one(world), {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run_ids", "array[%(run_ids)s::uuid[], %(run_ids)s::uuid[]]"),
        ("run_ids", "'{}'::uuid[]"),
        ("run_ids", "array[null, null]::uuid[]"),
        ("job_ids", "null"),
        ("job_ids", "(%(job_ids)s::uuid[])[:1]"),
        ("job_ids", "array[null, null]::uuid[]"),
        ("instants", "array[now(), null]"),
        ("instants", "array[now(), 'infinity']"),
        ("instants", "array['-infinity', now()]::timestamptz[]"),
        ("instants", "array[now()]"),
        ("job_versions", "array[1, 0]"),
        ("job_versions", "array[1, null]"),
        ("job_versions", "array[1, 2, 3]"),
        ("fence", "-3"),
        ("namespace", "null"),
        ("pool", "''"),
    ],
)
def test_a_row_with_several_runs_that_no_message_can_say_is_refused(
    world: World, name: str, value: str
) -> None:
    # Postgres cannot search an array of several dimensions, which is refused for that reason.
    with pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.FeatureNotSupported)):
        insert(world, several(world), {name: value})
