"""A database put back to what its migration made of it, which is much faster than making a new one."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta

import psycopg

from noonmark.core.zones.zones import zone_data_version

KEPT = ["alembic_version", "install", "pools", "pool_keys"]


def empty(db: psycopg.Connection, *, kept_days: Collection[date] = ()) -> None:
    """Delete what tests wrote, and let the clock show the time again.

    Args:
        db: in autocommit mode.
        kept_days: days of the ledger that stay besides those that a migration makes.
    """
    row = db.execute("select (now() at time zone 'UTC')::date").fetchone()
    assert row is not None
    wanted = [*(row[0] + timedelta(days=n) for n in range(-1, 4)), *kept_days]
    days = {f"runs_{day:%Y%m%d}": day for day in wanted}
    made = [
        name
        for (name,) in db.execute(
            "select inhrelid::regclass::text from pg_inherits where inhparent = 'runs'::regclass"
        )
    ]
    tables = db.execute(
        "select tablename from pg_tables where schemaname = 'public' and tablename !~ '^runs_' and tablename <> all (%s)",
        [KEPT],
    ).fetchall()
    resets = [f"drop table {day}" for day in made if day not in days]
    resets += [f"select noonmark_make_day('{day}')" for name, day in days.items() if name not in made]
    resets.append("select set_config('noonmark.prunes_audit', 'yes', true)")
    # A deleted timer leaves the slot that it names to a row.
    in_order = sorted((table for (table,) in tables), key=lambda table: table == "slots")
    resets += [f"delete from {table}" for table in in_order]
    resets += ["delete from pool_keys where pool <> 'default'", "delete from pools where name <> 'default'"]
    resets += ["delete from runs", "update install set ledger_floor = now() - interval '30 days'"]
    resets.append(
        f"insert into zone_data (version, active, activated_at) values ('{zone_data_version()}', true, now())"
    )
    db.execute("; ".join(resets))
    turn_clock(db, timedelta(0))


def turn_clock(db: psycopg.Connection, by: timedelta) -> None:
    """Let the system's one clock run ahead by so much (or behind).

    Where it goes back by days, the floor of the ledger goes with it: dates that a test names must not meet it
    because the test is run a month later.
    """
    db.execute(
        "create or replace function noonmark_now() returns timestamptz language sql stable parallel safe"
        f" as 'select statement_timestamp() + interval ''{by.total_seconds()} seconds'''"
    )
    if by < timedelta(days=-1):
        db.execute(
            "update install set ledger_floor = least(ledger_floor, noonmark_now() - interval '30 days')"
        )
