"""Columns reach Postgres as they are, in whichever form they are sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from tests.integration.store.world import World

from noonmark.store.database.columns import Instants, SmallInts, Texts, UuidBytes, folded

pytestmark = pytest.mark.postgres

_SUMMER = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("sent", "kind", "read"),
    [
        (Texts(["a", "", "ä\n'{\"", None, "x" * 300]), "text[]", ["a", "", "ä\n'{\"", None, "x" * 300]),
        (Texts([None, None]), "text[]", [None, None]),
        (Texts([]), "text[]", []),
        (
            Instants([datetime(1970, 1, 1, tzinfo=UTC), None, datetime(2026, 6, 1, 9, 0, 0, 1, _SUMMER)]),
            "timestamptz[]",
            [datetime(1970, 1, 1, tzinfo=UTC), None, datetime(2026, 6, 1, 7, 0, 0, 1, UTC)],
        ),
        (
            Instants([datetime(9999, 12, 31, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)]),
            "timestamptz[]",
            [datetime(9999, 12, 31, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)],
        ),
        (SmallInts([0, 1, 32767, -1]), "smallint[]", [0, 1, 32767, -1]),
        (UuidBytes([bytes(16), bytes(range(16))]), "uuid[]", [UUID(int=0), UUID(bytes=bytes(range(16)))]),
        (UuidBytes([]), "uuid[]", []),
    ],
)
def test_an_array_arrives_as_it_was_given(world: World, sent: object, kind: str, read: list[Any]) -> None:
    row = world.db.execute(
        f"select %(sent)b::{kind}, pg_typeof(%(sent)b)::text".encode(), {"sent": sent}
    ).fetchone()

    assert row == (read, {"timestamptz[]": "timestamp with time zone[]"}.get(kind, kind))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "a"], "text"),
        ([None, "a", "b"], "text"),
        ([None, None], "text"),
        ([True, False], "bool"),
        ([7, None, 2**40], "bigint"),
        ([datetime(2026, 6, 1, tzinfo=UTC), None], "timestamptz"),
    ],
)
def test_a_folded_column_is_read_as_it_was_given(world: World, values: list[Any], kind: str) -> None:
    query = f"""select coalesce(u.x, %(x_all)s::{kind})
                from unnest(%(places)b::int[], %(x)b::{kind}[]) as u (place, x) order by place"""
    rows = world.db.execute(
        query.encode(), {"places": list(range(len(values))), **folded({"x": values})}
    ).fetchall()

    assert [value for (value,) in rows] == values
