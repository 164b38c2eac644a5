-- Lists ledger days older than the retention, oldest first. Materialised, so that the name of no other table is ever parsed
-- as a date.
with days as materialized (
    select child.relname
    from pg_inherits
    join pg_class as child on child.oid = pg_inherits.inhrelid
    where pg_inherits.inhparent = 'runs'::regclass
)
select relname, to_date(right(relname, 8), 'YYYYMMDD') as day
from days
where to_date(right(relname, 8), 'YYYYMMDD') < (noonmark_now() at time zone 'UTC')::date - %(retention_days)s::int
order by 1
