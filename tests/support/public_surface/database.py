"""Tables, columns, constraints, indexes and functions of a migrated database."""

from __future__ import annotations

from typing import Any, Final

import psycopg

_OURS: Final = """n.nspname = 'public' and not exists (
    select from pg_depend d where d.objid = {oid} and d.deptype = 'e')"""

_COLUMNS: Final = f"""
    select c.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
           case when a.attnotnull then 'not null' end,
           case a.attidentity when 'a' then 'identity always' when 'd' then 'identity' end,
           case when a.attgenerated = 's' then 'generated' when a.atthasdef then 'default' end,
           pg_get_expr(d.adbin, d.adrelid))
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
     where c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition and {_OURS.format(oid="c.oid")}"""

_TABLES: Final = f"""
    select c.relname, concat_ws(' ', case c.relkind when 'r' then 'table' when 'p' then 'partitioned table'
           when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence' end,
           pg_get_partkeydef(c.oid))
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'v', 'm', 'S') and not c.relispartition and {_OURS.format(oid="c.oid")}"""

_CONSTRAINTS: Final = f"""
    select c.relname || ' constraint ' || o.conname, pg_get_constraintdef(o.oid)
      from pg_constraint o join pg_class c on c.oid = o.conrelid join pg_namespace n on n.oid = c.relnamespace
     where not c.relispartition and o.contype not in ('n', 't') and {_OURS.format(oid="c.oid")}"""

_INDEXES: Final = f"""
    select c.relname || ' index ' || i.relname, pg_get_indexdef(i.oid)
      from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid
      join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'm') and not c.relispartition and {_OURS.format(oid="c.oid")}"""

_TRIGGERS: Final = f"""
    select c.relname || ' trigger ' || t.tgname, pg_get_triggerdef(t.oid)
      from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
     where not t.tgisinternal and not c.relispartition and {_OURS.format(oid="c.oid")}"""

# Without those that are made of statements: their names have a digest, and only the release itself calls them.
_FUNCTIONS: Final = f"""
    select p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
           concat_ws(' ', '(' || pg_get_function_arguments(p.oid) || ')', '-> ' || pg_get_function_result(p.oid),
           case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end)
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where p.proname !~ '_[0-9a-f]{{8}}$' and {_OURS.format(oid="p.oid")}"""

_TYPES: Final = f"""
    select 'type ' || t.typname, coalesce((select string_agg(e.enumlabel, '|' order by e.enumsortorder)
           from pg_enum e where e.enumtypid = t.oid), (select string_agg(a.attname || ' '
           || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
           from pg_attribute a where a.attrelid = t.typrelid), t.typtype::text)
      from pg_type t join pg_namespace n on n.oid = t.typnamespace left join pg_class c on c.oid = t.typrelid
     where (t.typtype in ('e', 'd') or c.relkind = 'c') and {_OURS.format(oid="t.oid")}"""


def database(url: str) -> dict[str, Any]:
    """Return what a migrated database holds; days of the ledger are as their parent is."""
    found: dict[str, Any] = {}
    with psycopg.connect(url) as connection:
        for query in (_TABLES, _COLUMNS, _CONSTRAINTS, _INDEXES, _TRIGGERS, _FUNCTIONS, _TYPES):
            found.update(connection.execute(query).fetchall())
    return found
